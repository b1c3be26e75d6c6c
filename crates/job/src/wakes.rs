//! Wakes: ways to tell somebody who is not listening. A push is only a pointer to the outbox.
//!
//! The keeper starts a helper, which is this same program ([`deliver`]), and goes on. The helper does what may take
//! time: run a command, try a server again, wait for a pane to be free. It may outlive the keeper. What it can't
//! deliver becomes an entry of the outbox.

pub(crate) mod deliver;
mod tls;
mod webhook;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::lifecycle::{Outcome, State};
use crate::outbox::Entry;
use crate::wire::event::{EntryKind, EventKind};
pub use outlast_protocol::report::WakePlan;
use outlast_tmux::{Identity, Tmux};

/// No notice in a terminal is longer.
pub const LONGEST_NOTICE: usize = outlast_tmux::submit::MAX_NOTICE_BYTES;
/// How long a command may take, unless told otherwise.
const EXEC_LIMIT_MS: u64 = 10_000;
/// How long it is tried to type a notice into a pane, unless told otherwise.
const PANE_LIMIT_MS: u64 = 300_000;

fn pane_limit() -> u64 {
    PANE_LIMIT_MS
}

/// Somebody to wake, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wake {
    /// How.
    #[serde(flatten)]
    pub how: Delivery,
    /// For which kinds of entries; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<EntryKind>,
}

/// A way to wake somebody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Delivery {
    /// A line for the shell, with the entry as JSON on its standard input.
    Exec {
        /// The line.
        command: String,
        /// How long it may take, in milliseconds.
        timeout_ms: u64,
    },
    /// An HTTP POST of the entry as JSON.
    Webhook {
        /// Where to: `https://` or `http://`.
        url: String,
        /// Signs the body, if there is one.
        #[serde(default)]
        key: Option<String>,
        /// For `https`: the file with the only certificates that are trusted; none means the system's.
        #[serde(default)]
        ca: Option<String>,
    },
    /// A notice typed into a tmux pane.
    Tmux {
        /// The pane, as tmux names panes.
        pane: String,
        /// What a prompt looks like there, besides what is built in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
        /// How long it is tried, in milliseconds.
        #[serde(default = "pane_limit")]
        timeout_ms: u64,
        /// Which pane that was when the job was started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pinned: Option<Identity>,
    },
    /// A message queued for a Codex thread.
    Codex {
        /// The thread; none means `$CODEX_THREAD_ID` of whoever started the job.
        thread: Option<String>,
    },
    /// A line of JSON at the end of a file.
    File {
        /// The file.
        path: String,
    },
}

/// A `[[wake]]` table of the settings.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Table {
    kind: String,
    command: Option<String>,
    timeout: Option<String>,
    url: Option<String>,
    key: Option<String>,
    ca: Option<String>,
    pane: Option<String>,
    prompt: Option<String>,
    thread: Option<String>,
    path: Option<String>,
    on: Vec<String>,
}

impl Table {
    /// # Errors
    /// A usage failure that says what is missing.
    pub(crate) fn wake(self) -> Result<Wake, Failure> {
        let needs = |value: Option<String>, key: &str| {
            value.ok_or_else(|| Failure::usage(format!("a wake of kind {:?} needs {key}", self.kind)))
        };
        let limit = self.timeout.as_deref().map(crate::units::parse_duration).transpose()?;
        let usual = if self.kind == "tmux" { PANE_LIMIT_MS } else { EXEC_LIMIT_MS };
        let timeout_ms = limit.map_or(usual, crate::clock::millis);
        let how = match self.kind.as_str() {
            "exec" => Delivery::Exec { command: needs(self.command, "command")?, timeout_ms },
            "webhook" => Delivery::Webhook { url: needs(self.url, "url")?, key: self.key, ca: self.ca },
            "tmux" => {
                self.prompt.as_deref().map(outlast_tmux::pane::prompt_of).transpose()?;
                Delivery::Tmux {
                    pane: needs(self.pane, "pane")?,
                    prompt: self.prompt,
                    timeout_ms,
                    pinned: None,
                }
            }
            "codex" => Delivery::Codex { thread: self.thread },
            "file" => Delivery::File { path: needs(self.path, "path")? },
            other => return Err(unknown(other)),
        };
        let on = self.on.iter().map(|word| EntryKind::wanted(word)).collect::<Result<_, _>>()?;
        Ok(Wake { how, on })
    }
}

fn unknown(kind: &str) -> Failure {
    Failure::usage(format!("{kind:?} is no way to wake somebody"))
        .hint("choose among: exec:COMMAND, webhook:URL, tmux:PANE, codex, codex:THREAD, file:PATH")
}

impl Wake {
    /// Reads `exec:COMMAND`, `webhook:URL`, `tmux:PANE`, `codex[:THREAD]` or `file:PATH`.
    ///
    /// # Errors
    /// A usage failure that shows the forms.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let (kind, target) = text.split_once(':').unwrap_or((text, ""));
        let how = match (kind, target) {
            ("codex", "") => Delivery::Codex { thread: None },
            (_, "") => return Err(unknown(text)),
            ("exec", command) => Delivery::Exec { command: command.into(), timeout_ms: EXEC_LIMIT_MS },
            ("webhook", url) => Delivery::Webhook { url: url.into(), key: None, ca: None },
            ("tmux", pane) => {
                Delivery::Tmux { pane: pane.into(), prompt: None, timeout_ms: PANE_LIMIT_MS, pinned: None }
            }
            ("codex", thread) => Delivery::Codex { thread: Some(thread.into()) },
            ("file", path) => {
                let path = std::path::absolute(path).map_err(|error| Failure::usage(error.to_string()))?;
                Delivery::File { path: path.to_string_lossy().into_owned() }
            }
            _ => return Err(unknown(kind)),
        };
        Ok(Self { how, on: Vec::new() })
    }

    /// Notes which pane is meant, while whoever means it is there: its number may be another's later.
    pub(crate) fn pin(&mut self, env: &BTreeMap<String, String>) {
        if let Delivery::Tmux { pane, pinned: pinned @ None, .. } = &mut self.how {
            *pinned = Tmux::of_env(env).pane(pane).ok().map(|pane| pane.identity().clone());
        }
    }

    pub(crate) fn wants(&self, entry: &Entry) -> bool {
        self.on.is_empty() || self.on.contains(&entry.event)
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self.how {
            Delivery::Exec { .. } => "exec",
            Delivery::Webhook { .. } => "webhook",
            Delivery::Tmux { .. } => "tmux",
            Delivery::Codex { .. } => "codex",
            Delivery::File { .. } => "file",
        }
    }

    pub(crate) fn target(&self) -> String {
        match &self.how {
            Delivery::Exec { command, .. } => command.clone(),
            Delivery::Webhook { url, .. } => url.clone(),
            Delivery::Tmux { pane, .. } => pane.clone(),
            Delivery::Codex { thread } => thread.clone().unwrap_or_default(),
            Delivery::File { path } => path.clone(),
        }
    }

    /// Tries, without waking anybody, whether it will happen for a job with this environment.
    #[must_use]
    pub fn will(&self, env: &BTreeMap<String, String>, tells: bool) -> WakePlan {
        let tried = if tells { self.try_it(env) } else { Err("the job tells nothing: see --notify".into()) };
        let (will, why) = match tried {
            Ok(why) => (true, why),
            Err(why) => (false, why),
        };
        let on = if self.on.is_empty() {
            String::new()
        } else {
            format!(", on {}", self.on.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", "))
        };
        WakePlan { kind: self.kind(), target: self.target(), fires: will, why: format!("{why}{on}") }
    }

    fn try_it(&self, env: &BTreeMap<String, String>) -> Result<String, String> {
        match &self.how {
            Delivery::Exec { timeout_ms, .. } => {
                Ok(format!("run by the keeper with the event on stdin, for {timeout_ms} ms at most"))
            }
            Delivery::Webhook { url, key, ca } => {
                let mut how = "without TLS".to_owned();
                if webhook::Target::parse(url)?.tls {
                    let cert_file = env.get("SSL_CERT_FILE").map(String::as_str);
                    let trusted = tls::trusted(ca.as_deref(), cert_file)?;
                    how = format!("over TLS, with the certificates of {}", trusted.display());
                }
                let signed = if key.is_some() { "signed" } else { "not signed: no key in the settings" };
                Ok(format!("posted up to {} times {how}, {signed}", webhook::MAX_TRIES))
            }
            Delivery::Tmux { pane, timeout_ms, .. } => {
                let found = Tmux::of_env(env).pane(pane).map_err(|failure| failure.message)?;
                let (pane, tried) = (found.id(), timeout_ms / 1000);
                Ok(format!(
                    "typed into {pane} if an agent waits there at an empty input line within {tried} s"
                ))
            }
            Delivery::Codex { thread } => {
                let thread = thread.as_ref().or_else(|| env.get("CODEX_THREAD_ID"));
                let Some(thread) = thread else {
                    return Err("no thread is known: CODEX_THREAD_ID is not set".into());
                };
                let path = env.get("PATH").map_or("", String::as_str);
                if !std::env::split_paths(path).any(|folder| folder.join("codex").is_file()) {
                    return Err("there is no codex on PATH".into());
                }
                Ok(format!("queued for thread {thread}"))
            }
            Delivery::File { path } => {
                let folder = Path::new(path).parent().unwrap_or(Path::new("/"));
                if folder.is_dir() {
                    Ok("appended as a line of JSON".into())
                } else {
                    Err(format!("there is no folder {}", folder.display()))
                }
            }
        }
    }
}

/// What is typed or queued for an agent: says that a machine wrote it, which job, what happened, and what tells more.
/// It holds no byte of the job's output, and nothing that a shell would act on but plain words.
#[must_use]
pub fn notice(entries: &[&Entry]) -> String {
    let Some(last) = entries.last() else { return String::new() };
    let name = last.name.as_deref().filter(|name| is_plain(name));
    let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
    let how = if let Some(EventKind::Exit { state }) = &last.detail { ended(state) } else { String::new() };
    let more = match entries.len() {
        1 if is_plain(&last.more) && last.more.len() <= LONGEST_NOTICE / 2 => last.more.clone(),
        1 => "outlast events".to_owned(),
        n => format!("outlast events, {n} of them"),
    };
    format!("[outlast: automatic notice] job {}{name} {}{how} | more: {more}", last.job, last.event)
}

/// How a job ended, in words of the kernel alone.
fn ended(state: &State) -> String {
    let how = match state.receipt().map(|receipt| &receipt.outcome) {
        Some(Outcome::Exited { code }) => format!(", exit code {code}"),
        Some(Outcome::Signalled { signal, .. }) if is_plain(signal) => format!(", {signal}"),
        Some(Outcome::Signalled { .. } | Outcome::NotStarted { .. }) | None => String::new(),
    };
    format!(": {}{how}", state.name())
}

/// Words that mean nothing else to a shell or to an agent.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || " ._-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Handle;

    #[test]
    fn a_notice_is_short_and_holds_nothing_of_the_job() {
        let mut entry = Entry::about(Handle::new(7), Some("web"), EntryKind::Exit, "$(rm x)".repeat(50));
        entry.more = "outlast read 7 --tail 20".into();
        let said = notice(&[&entry]);
        assert!(said.len() <= LONGEST_NOTICE, "{}", said.len());
        assert_eq!(said, "[outlast: automatic notice] job 7 (web) exit | more: outlast read 7 --tail 20");
        entry.name = Some("$(touch x)".into());
        entry.more = "outlast read 7; touch x".into();
        assert_eq!(notice(&[&entry]), "[outlast: automatic notice] job 7 exit | more: outlast events");
    }

    #[test]
    fn what_wakes_is_named_in_the_words_of_waits_and_a_wrong_word_is_refused() {
        let table = |on: &str| Table {
            kind: "file".into(),
            path: Some("/x".into()),
            on: vec![on.into()],
            ..Table::default()
        };
        for word in ["exit", "ended"] {
            let wake = table(word).wake().unwrap();
            assert!(wake.wants(&Entry::about(Handle::new(1), None, EntryKind::Exit, "")), "{word}");
            assert!(!wake.wants(&Entry::about(Handle::new(1), None, EntryKind::Quiet, "")), "{word}");
        }
        let refused = table("exits").wake().unwrap_err();
        assert!(
            refused.message.contains("exits") && refused.to_string().contains("awaiting_input"),
            "{refused}"
        );
    }

    #[test]
    fn wakes_are_read_and_bad_ones_named() {
        assert_eq!(Wake::parse("exec:notify-send hi").unwrap().target(), "notify-send hi");
        assert_eq!(Wake::parse("tmux:%3").unwrap().kind(), "tmux");
        assert!(Wake::parse("pigeon:home").unwrap_err().message.contains("pigeon"));
        let env = BTreeMap::from([("SSL_CERT_FILE".to_owned(), "/no/such/file".to_owned())]);
        let will = Wake::parse("webhook:https://example.org/x").unwrap().will(&env, true);
        assert!(!will.fires && will.why.contains("/no/such/file"), "{will:?}");
    }
}
