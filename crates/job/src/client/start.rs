//! Starts a keeper: runs a program again, hands it the order, waits for its one answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::connection::Connection;
use crate::failure::{Failure, Kind};
use crate::registry::format::Info;
use crate::settings::Settings;
use crate::spec::JobSpec;
use crate::wakes::deliver;
use crate::wire::{PROTOCOL, StartOrder, StartReply, line};

/// The hidden verb: `PROGRAM keep HOME` becomes a keeper.
pub(crate) const KEEP: &str = "keep";
/// Its last word for a job in a sandbox: so that every keeper can see whose descendants it must not listen to.
pub(crate) const CONFINED: &str = "confined";

/// How long a start may take: a slow disk or a program on a network share needs its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// This very program. On Linux it can be run again even after an upgrade has replaced its file.
pub(crate) fn own_program() -> PathBuf {
    if cfg!(target_os = "linux") {
        PathBuf::from("/proc/self/exe")
    } else {
        std::env::current_exe().unwrap_or_else(|_| "outlast".into())
    }
}

/// Becomes a keeper if that is what this program was started for, and never returns then. Call it first in
/// `main`, while there is only one thread.
pub fn keep_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(verb), Some(home)) = (arguments.next(), arguments.next()) else { return };
    let rest: Vec<std::ffi::OsString> = arguments.take(2).collect();
    if !rest.is_empty() && rest != [CONFINED] {
        return;
    }
    if verb == KEEP || verb == deliver::DELIVER {
        let code =
            if verb == KEEP { crate::keeper::keep(Path::new(&home)) } else { deliver::run(Path::new(&home)) };
        #[expect(
            clippy::exit,
            reason = "a keeper or helper is another program that happens to share this file"
        )]
        std::process::exit(code);
    }
}

/// A process that will keep the next job, detached and ready, and our end of its only line. It ends by itself
/// when we are gone.
#[derive(Debug)]
pub(crate) struct Starter {
    line: UnixStream,
    /// Whether it is marked as the keeper of a job in a sandbox.
    pub(crate) confined: bool,
}

impl Starter {
    /// Runs the program again, and waits until it has detached itself.
    pub(crate) fn run(home: &Path, program: &Path, confined: bool) -> Result<Self, Failure> {
        let (line, theirs) =
            UnixStream::pair().map_err(|error| Failure::system("no socket can be had", error))?;
        let mut first = Command::new(program)
            // What `ps` shows.
            .arg0("outlast")
            .arg(KEEP)
            .arg(home)
            .args(confined.then_some(CONFINED))
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| {
                Failure::system(format!("the keeper {} can't be run", program.display()), error)
            })?;
        // It forks and leaves; the keeper is no child of ours.
        let _ = first.wait();
        Ok(Self { line, confined })
    }

    /// Gives the order; false when nobody is there to take it.
    pub(crate) fn order(&mut self, order: &StartOrder) -> bool {
        self.line.write_all(&line(order)).is_ok()
    }

    /// The job's record, once the command runs; and the line to its keeper, who listens on.
    pub(crate) fn started(self) -> Result<(Info, Connection), Failure> {
        let _ = self.line.set_read_timeout(Some(PATIENCE));
        let mut text = Vec::new();
        let read = BufReader::new((&self.line).take(64 << 20)).read_until(b'\n', &mut text);
        match (read, serde_json::from_slice::<StartReply>(&text)) {
            (_, Ok(StartReply::Started(info))) => Ok((*info, Connection::of_start(self.line))),
            (_, Ok(StartReply::Failed { handle, failure })) => Err(explained(handle, failure.into())),
            (Err(error), _) => Err(broken(&error.to_string())),
            (Ok(_), Err(_)) => Err(broken("it ended without a word")),
        }
    }
}

/// What a keeper is told.
pub(crate) fn order(home: &Path, settings: &Settings, spec: JobSpec) -> StartOrder {
    StartOrder { protocol: PROTOCOL, home: home.to_owned(), spec, settings: settings.clone() }
}

fn explained(handle: Option<crate::spec::Handle>, failure: Failure) -> Failure {
    let Some(handle) = handle else { return failure };
    Failure { message: format!("job {handle} could not start: {}", failure.message), ..failure }
}

fn broken(why: &str) -> Failure {
    Failure::new(Kind::Keeper, format!("the keeper did not start: {why}"))
        .hint("see what is wrong: outlast doctor")
}
