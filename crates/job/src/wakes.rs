//! Wakes: ways to tell somebody who is not listening. A push is only a pointer to the outbox.
//!
//! The keeper starts a helper, which is this same program ([`deliver`]), and goes on. The helper does what may take
//! time: run a command, try a server again, wait for a pane to be free. It may outlive the keeper. What it can't
//! deliver becomes an entry of the outbox.

pub mod bounded;
pub(crate) mod deliver;
mod tls;
mod webhook;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::outbox::Entry;
use crate::tmux::Tmux;

/// No notice in a terminal is longer.
pub const LONGEST_NOTICE: usize = 200;
/// How long a command may take, unless told otherwise.
const EXEC_LIMIT_MS: u64 = 10_000;

/// Somebody to wake, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wake {
    /// How.
    #[serde(flatten)]
    pub how: How,
    /// For which kinds of entries; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<String>,
}

/// A way to wake somebody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum How {
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

/// Whether a wake will really happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Will {
    /// `exec`, `webhook`, `tmux`, `codex` or `file`.
    pub kind: &'static str,
    /// Whom or what.
    pub target: String,
    /// Whether it will.
    pub will: bool,
    /// Why, or why not.
    pub why: String,
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
        let limit = self.timeout.as_deref().map(crate::registry::sweep::parse_duration).transpose()?;
        let timeout_ms = limit.map_or(EXEC_LIMIT_MS, crate::clock::millis);
        let how = match self.kind.as_str() {
            "exec" => How::Exec { command: needs(self.command, "command")?, timeout_ms },
            "webhook" => How::Webhook { url: needs(self.url, "url")?, key: self.key, ca: self.ca },
            "tmux" => {
                self.prompt.as_deref().map(crate::tmux::pane::prompt_of).transpose()?;
                How::Tmux { pane: needs(self.pane, "pane")?, prompt: self.prompt }
            }
            "codex" => How::Codex { thread: self.thread },
            "file" => How::File { path: needs(self.path, "path")? },
            other => return Err(unknown(other)),
        };
        Ok(Wake { how, on: self.on })
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
            ("codex", "") => How::Codex { thread: None },
            (_, "") => return Err(unknown(text)),
            ("exec", command) => How::Exec { command: command.into(), timeout_ms: EXEC_LIMIT_MS },
            ("webhook", url) => How::Webhook { url: url.into(), key: None, ca: None },
            ("tmux", pane) => How::Tmux { pane: pane.into(), prompt: None },
            ("codex", thread) => How::Codex { thread: Some(thread.into()) },
            ("file", path) => {
                let path = std::path::absolute(path).map_err(|error| Failure::usage(error.to_string()))?;
                How::File { path: path.to_string_lossy().into_owned() }
            }
            _ => return Err(unknown(kind)),
        };
        Ok(Self { how, on: Vec::new() })
    }

    pub(crate) fn wants(&self, entry: &Entry) -> bool {
        self.on.is_empty() || self.on.contains(&entry.event)
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self.how {
            How::Exec { .. } => "exec",
            How::Webhook { .. } => "webhook",
            How::Tmux { .. } => "tmux",
            How::Codex { .. } => "codex",
            How::File { .. } => "file",
        }
    }

    pub(crate) fn target(&self) -> String {
        match &self.how {
            How::Exec { command, .. } => command.clone(),
            How::Webhook { url, .. } => url.clone(),
            How::Tmux { pane, .. } => pane.clone(),
            How::Codex { thread } => thread.clone().unwrap_or_default(),
            How::File { path } => path.clone(),
        }
    }

    /// Tries, without waking anybody, whether it will happen for a job with this environment.
    #[must_use]
    pub fn will(&self, env: &BTreeMap<String, String>, tells: bool) -> Will {
        let tried = if tells { self.try_it(env) } else { Err("the job tells nothing: see --notify".into()) };
        let (will, why) = match tried {
            Ok(why) => (true, why),
            Err(why) => (false, why),
        };
        let on = if self.on.is_empty() { String::new() } else { format!(", on {}", self.on.join(", ")) };
        Will { kind: self.kind(), target: self.target(), will, why: format!("{why}{on}") }
    }

    fn try_it(&self, env: &BTreeMap<String, String>) -> Result<String, String> {
        match &self.how {
            How::Exec { timeout_ms, .. } => {
                Ok(format!("run by the keeper with the event on stdin, for {timeout_ms} ms at most"))
            }
            How::Webhook { url, key, ca } => {
                let mut how = "without TLS".to_owned();
                if webhook::Target::parse(url)?.tls {
                    let cert_file = env.get("SSL_CERT_FILE").map(String::as_str);
                    let trusted = tls::trusted(ca.as_deref(), cert_file)?;
                    how = format!("over TLS, with the certificates of {}", trusted.display());
                }
                let signed = if key.is_some() { "signed" } else { "not signed: no key in the settings" };
                Ok(format!("posted up to {} times {how}, {signed}", webhook::TRIES))
            }
            How::Tmux { pane, .. } => {
                let found = Tmux::of_env(env).pane(pane).map_err(|failure| failure.message)?;
                Ok(format!("typed into {} when nobody types there", found.id()))
            }
            How::Codex { thread } => {
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
            How::File { path } => {
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

/// What is typed or queued for an agent: says that a machine wrote it, which job, why, and what tells more.
#[must_use]
pub fn notice(entries: &[&Entry]) -> String {
    let Some(last) = entries.last() else { return String::new() };
    let name = last.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let head = format!("[outlast: automatic notice] job {}{name} {}: ", last.job, last.event);
    let more = match entries.len() {
        1 => last.more.clone(),
        n => format!("outlast events, {n} of them"),
    };
    let tail = format!(" | more: {more}");
    let room = LONGEST_NOTICE.saturating_sub(head.len() + tail.len());
    let text = &last.text[..last.text.floor_char_boundary(room.min(last.text.len()))];
    let mut notice = format!("{head}{text}{tail}");
    notice.truncate(notice.floor_char_boundary(LONGEST_NOTICE));
    notice
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Handle;

    #[test]
    fn a_notice_is_short_and_says_what_it_is() {
        let mut entry = Entry::about(Handle(7), Some("web"), "ended", "ü".repeat(500));
        entry.more = "outlast read 7 --tail 20".into();
        let notice = notice(&[&entry]);
        assert!(notice.len() <= LONGEST_NOTICE, "{}", notice.len());
        assert!(notice.starts_with("[outlast: automatic notice] job 7 (web) ended: "), "{notice}");
        assert!(notice.ends_with("| more: outlast read 7 --tail 20"), "{notice}");
    }

    #[test]
    fn wakes_are_read_and_bad_ones_named() {
        assert_eq!(Wake::parse("exec:notify-send hi").unwrap().target(), "notify-send hi");
        assert_eq!(Wake::parse("tmux:%3").unwrap().kind(), "tmux");
        assert!(Wake::parse("pigeon:home").unwrap_err().message.contains("pigeon"));
        let env = BTreeMap::from([("SSL_CERT_FILE".to_owned(), "/no/such/file".to_owned())]);
        let will = Wake::parse("webhook:https://example.org/x").unwrap().will(&env, true);
        assert!(!will.will && will.why.contains("/no/such/file"), "{will:?}");
    }
}
