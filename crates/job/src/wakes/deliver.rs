//! The helper that delivers wakes: `outlast deliver HOME`, with its order on stdin. A keeper starts it and
//! does not wait for it.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use super::{Delivery, Wake, notice, webhook};
use crate::outbox::{Entry, Outbox};
use crate::registry::Home;
use crate::wire::event::EntryKind;
use outlast_pty::bounded;
use outlast_tmux::{Identity, Pane, Tmux};

/// The hidden verb.
pub(crate) const DELIVER: &str = "deliver";
/// How long the command that queues a message for Codex may take.
const CODEX_LIMIT: Duration = Duration::from_secs(20);

/// What a helper has to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) session: String,
    pub(crate) wakes: Vec<Wake>,
    pub(crate) events: Vec<Entry>,
}

/// Starts a helper, and does not wait for it. It runs outside the job's sandbox, so it gets nothing of the
/// job: not its environment, which could name another `sh` or a library to load, and not its folder.
pub(crate) fn begin(order: &Order, home: &Home, env: &BTreeMap<String, String>) -> std::io::Result<Pid> {
    let input = in_memory(&serde_json::to_vec(order)?, home)?;
    let child = Command::new(crate::local::start::own_program())
        .arg0("outlast")
        .arg(DELIVER)
        .arg(home.path())
        .env_clear()
        .envs(env)
        .current_dir("/")
        .stdin(Stdio::from(input))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // The keeper reaps it.
    Ok(Pid::from_child(&child))
}

/// Bytes as an anonymous file: unlike a pipe, it cannot be full.
#[cfg(target_os = "linux")]
fn in_memory(bytes: &[u8], _: &Home) -> std::io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("wakes", rustix::fs::MemfdFlags::CLOEXEC)?;
    crate::registry::replace::write_all(&file, bytes)?;
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(file)
}

/// On other systems: a file in the home that is unlinked at once.
#[cfg(not(target_os = "linux"))]
fn in_memory(bytes: &[u8], home: &Home) -> std::io::Result<OwnedFd> {
    let name = format!(".wakes-{}", std::process::id());
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(home.as_dir(), &name, flags, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::unlinkat(home.as_dir(), &name, rustix::fs::AtFlags::empty())?;
    crate::registry::replace::write_all(&file, bytes)?;
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(file)
}

/// The helper itself. Returns its exit code.
pub(crate) fn run(home: &Path) -> i32 {
    // Leave the keeper's session, which leads the job's terminal; and do not inherit its ignored signals.
    let _ = rustix::process::setsid();
    outlast_pty::signals::restore(&[
        Signal::HUP,
        Signal::INT,
        Signal::QUIT,
        Signal::TERM,
        Signal::TSTP,
        Signal::TTIN,
        Signal::TTOU,
        Signal::USR2,
        Signal::XFSZ,
    ]);
    let mut text = Vec::new();
    if std::io::stdin().take(64 << 20).read_to_end(&mut text).is_err() {
        return 2;
    }
    let Ok(order) = serde_json::from_slice::<Order>(&text) else { return 2 };
    let Ok(home) = Home::open(home) else { return 2 };
    let Ok(outbox) = Outbox::open(&home, &order.session) else { return 2 };
    // An earlier helper may still be running: notices of one job are delivered in order.
    let job = order.events.first().map_or(0, |entry| entry.job.number());
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = openat(&outbox.dir, format!("wake-{job}"), flags, Mode::RUSR | Mode::WUSR);
    if let Ok(lock) = &lock {
        let _ = flock(lock, FlockOperation::LockExclusive);
    }
    let mut failed = 0;
    for wake in &order.wakes {
        let entries: Vec<&Entry> = order.events.iter().filter(|entry| wake.wants(entry)).collect();
        for (why, entry) in deliver(wake, &entries) {
            failed += 1;
            let text = format!("{} {:?} for event {}: {why}", wake.kind(), wake.target(), entry.n);
            let mut word = Entry::about(entry.job, entry.name.as_deref(), EntryKind::WakeFailed, text);
            word.more = "outlast events".into();
            (word.from, word.offset) = (entry.offset, entry.offset);
            let _ = outbox.append(&mut [word]);
        }
    }
    let _ = rustix::fs::unlinkat(&outbox.dir, format!("wake-{job}"), rustix::fs::AtFlags::empty());
    i32::from(failed > 0)
}

/// Delivers one wake. Returns what could not be delivered, and why.
fn deliver<'a>(wake: &Wake, entries: &[&'a Entry]) -> Vec<(String, &'a Entry)> {
    let Some(last) = entries.last() else { return Vec::new() };
    let each = |one: &dyn Fn(&Entry) -> Result<(), String>| {
        let failed = entries.iter().filter_map(|entry| Some((one(entry).err()?, *entry)));
        failed.collect::<Vec<_>>()
    };
    let once = |result: Result<(), String>| result.err().map(|why| (why, *last)).into_iter().collect();
    match &wake.how {
        Delivery::Exec { command, timeout_ms } => each(&|entry| exec(command, *timeout_ms, entry)),
        Delivery::Webhook { url, key, ca } => {
            each(&|entry| webhook::post(url, key.as_deref(), ca.as_deref(), entry))
        }
        Delivery::File { path } => each(&|entry| append(path, entry)),
        // One notice for all entries: it is typed into someone's input line.
        Delivery::Tmux { pane, prompt, timeout_ms, pinned } => {
            let limit = Duration::from_millis(*timeout_ms);
            once(type_notice(pane, pinned.as_ref(), prompt.as_deref(), limit, &notice(entries)))
        }
        Delivery::Codex { thread } => once(queue(thread.as_deref(), &notice(entries))),
    }
}

fn exec(command: &str, timeout_ms: u64, entry: &Entry) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    let ran = bounded::run(shell, &crate::wire::line(entry), Duration::from_millis(timeout_ms))?;
    if ran.status.success() { Ok(()) } else { Err(format!("{}: {}", ran.status, ran.trouble())) }
}

fn append(path: &str, entry: &Entry) -> Result<(), String> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).map_err(|error| error.to_string())?;
    crate::registry::replace::write_all(&file, &crate::wire::line(entry)).map_err(|error| error.to_string())
}

fn type_notice(
    pane: &str,
    pinned: Option<&Identity>,
    prompt: Option<&str>,
    limit: Duration,
    text: &str,
) -> Result<(), String> {
    let tmux = Tmux::of_env(&std::env::vars().collect());
    let pane = pinned.map_or_else(|| tmux.pane(pane), |pinned| Pane::again(&tmux, pinned));
    let pane = pane.and_then(|pane| pane.with_prompt(prompt)).map_err(|failure| failure.message)?;
    // An agent that has left its pane to a shell may come back.
    let told = pane.tell(text, Instant::now() + limit, &|_| false, &mut |_| {});
    told.map_err(|failure| failure.message)
}

fn queue(thread: Option<&str>, text: &str) -> Result<(), String> {
    let thread = thread.map(ToOwned::to_owned).or_else(|| std::env::var("CODEX_THREAD_ID").ok());
    let thread = thread.ok_or("no thread is known: CODEX_THREAD_ID is not set")?;
    let mut codex = Command::new("codex");
    codex.args(["queue", "--thread", &thread, "--message", text]);
    let ran = bounded::run(codex, b"", CODEX_LIMIT)?;
    if ran.status.success() { Ok(()) } else { Err(ran.trouble()) }
}
