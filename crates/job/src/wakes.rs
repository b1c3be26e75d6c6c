//! Wakes: ways to tell somebody who is not listening. A push is only a pointer to the outbox.
//!
//! The keeper writes an order into the home's [`spool`], then starts a helper, which is this same program ([`deliver`]),
//! and goes on. The helper does what may take time: run a command, try a server again, wait for a pane to be free. The
//! keeper stays until all its orders are final; should it die, the next process of the home goes on with them. What
//! can't be delivered becomes an entry of the outbox.

mod agent;
pub(crate) mod attempt;
pub(crate) mod deliver;
mod left;
mod notice;
pub mod paused;
pub mod spool;
mod tls;
mod webhook;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::outbox::Entry;
use crate::registry::Home;
use crate::wire::event::EntryKind;
pub use agent::{ring, wait_as_hook};
pub use attempt::Trouble as PostTrouble;
pub use left::{cancel, go_on, retry};
pub use notice::{LONGEST_NOTICE, SUBMISSION_ASKS, SUBMISSION_DEADLINE};
use outlast_protocol::WakeKind;
pub use outlast_protocol::report::WakePlan;
use outlast_protocol::wake::WakeEffect;
use outlast_tmux::{Identity, NoticeShell, Tmux};
pub use webhook::post_json;

/// How long a command may take, unless told otherwise.
const EXEC_LIMIT_MS: u64 = 10_000;
/// How long it is tried to type a notice into a pane, unless told otherwise.
const PANE_LIMIT_MS: u64 = 300_000;

/// How long an order waits until its agent takes it, unless told otherwise.
const AGENT_LIMIT_MS: u64 = 3_600_000;
/// Where Codex names the thread that a process belongs to.
const THREAD: &str = "CODEX_THREAD_ID";

fn pane_limit() -> u64 {
    PANE_LIMIT_MS
}

fn agent_limit() -> u64 {
    AGENT_LIMIT_MS
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
        /// The shell at whose prompt it may be typed, in a form that this shell ignores. Only a person's settings say so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shell: Option<NoticeShell>,
        /// How long it is tried, in milliseconds.
        #[serde(default = "pane_limit")]
        timeout_ms: u64,
        /// Which pane that was when the job was started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pinned: Option<Identity>,
        /// For the job of a submission: what is typed when it has ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        says: Option<Says>,
    },
    /// The agent that the job belongs to, by its own means.
    Agent {
        /// How long it is tried, in milliseconds.
        #[serde(default = "agent_limit")]
        timeout_ms: u64,
    },
    /// A message queued for a Codex thread.
    Codex {
        /// The thread; none means `$CODEX_THREAD_ID` of the process that started the job.
        thread: Option<String>,
    },
    /// A line of JSON at the end of a file.
    File {
        /// The file.
        path: String,
    },
}

/// What is typed when a submitted command is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "says", rename_all = "snake_case")]
pub enum Says {
    /// How it went, in our words.
    HowItWent,
    /// What the caller wants to be told, whatever happened.
    Own {
        /// One line.
        text: String,
    },
}

impl Says {
    /// # Errors
    /// When it is more than a line that can be seen as a whole in a pane, or has control characters.
    pub fn own(text: &str) -> Result<Self, Failure> {
        if text.chars().any(char::is_control) || text.len() > LONGEST_NOTICE {
            let why =
                format!("a notice is one line of at most {LONGEST_NOTICE} bytes: it must be seen as a whole");
            return Err(Failure::usage(why).hint("say more in a file, and name the file in the notice"));
        }
        Ok(Says::Own { text: text.to_owned() })
    }
}

/// Whom to wake for what a job has to tell: kept in its folder, for the process that finds its keeper dead.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Standing {
    pub(crate) wakes: Vec<Wake>,
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
    shell: Option<String>,
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
        let kind: WakeKind = self.kind.parse().map_err(|_| unknown(&self.kind))?;
        let usual = match kind {
            WakeKind::Tmux => PANE_LIMIT_MS,
            WakeKind::Agent => AGENT_LIMIT_MS,
            WakeKind::Exec | WakeKind::Webhook | WakeKind::Codex | WakeKind::File => EXEC_LIMIT_MS,
        };
        let timeout_ms = limit.map_or(usual, crate::clock::millis);
        let how = match kind {
            WakeKind::Exec => Delivery::Exec { command: needs(self.command, "command")?, timeout_ms },
            WakeKind::Webhook => {
                Delivery::Webhook { url: needs(self.url, "url")?, key: self.key, ca: self.ca }
            }
            WakeKind::Tmux => {
                self.prompt.as_deref().map(outlast_tmux::prompt::prompt_of).transpose()?;
                Delivery::Tmux {
                    pane: needs(self.pane, "pane")?,
                    prompt: self.prompt,
                    shell: self.shell.as_deref().map(NoticeShell::named).transpose()?,
                    timeout_ms,
                    pinned: None,
                    says: None,
                }
            }
            WakeKind::Agent => Delivery::Agent { timeout_ms },
            WakeKind::Codex => Delivery::Codex { thread: self.thread },
            WakeKind::File => Delivery::File { path: needs(self.path, "path")? },
        };
        let on = self.on.iter().map(|word| EntryKind::wanted(word)).collect::<Result<_, _>>()?;
        Ok(Wake { how, on })
    }
}

fn unknown(kind: &str) -> Failure {
    Failure::usage(format!("{kind:?} is not a way to wake somebody"))
        .hint(format!("choose among: {}", WakeKind::usages()))
}

impl Wake {
    /// Reads what is written after `--wake`: see [`WakeKind::usage`].
    ///
    /// # Errors
    /// A usage failure that shows the forms.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let (kind, target) = text.split_once(':').unwrap_or((text, ""));
        let kind: WakeKind = kind.parse().map_err(|_| unknown(kind))?;
        let is_said = match kind {
            WakeKind::Codex => true,
            WakeKind::Agent => target.is_empty(),
            WakeKind::Exec | WakeKind::Webhook | WakeKind::Tmux | WakeKind::File => !target.is_empty(),
        };
        if !is_said {
            return Err(unknown(text));
        }
        let how = match kind {
            WakeKind::Exec => Delivery::Exec { command: target.into(), timeout_ms: EXEC_LIMIT_MS },
            WakeKind::Webhook => Delivery::Webhook { url: target.into(), key: None, ca: None },
            WakeKind::Tmux => Delivery::Tmux {
                pane: target.into(),
                prompt: None,
                shell: None,
                timeout_ms: PANE_LIMIT_MS,
                pinned: None,
                says: None,
            },
            WakeKind::Agent => Delivery::Agent { timeout_ms: AGENT_LIMIT_MS },
            WakeKind::Codex => {
                Delivery::Codex { thread: Some(target.to_owned()).filter(|thread| !thread.is_empty()) }
            }
            WakeKind::File => {
                let path = std::path::absolute(target).map_err(|error| Failure::usage(error.to_string()))?;
                Delivery::File { path: path.to_string_lossy().into_owned() }
            }
        };
        Ok(Self { how, on: Vec::new() })
    }

    /// As a request of a host has it.
    #[must_use]
    pub fn to_request(&self) -> serde_json::Value {
        // Nothing in it can fail to serialise.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// What a wake in a request for this host would run or write here, for rules about commands.
    ///
    /// # Errors
    /// A usage failure that says what is wrong.
    pub fn effect_of(value: &serde_json::Value) -> Result<WakeEffect, Failure> {
        Ok(match Self::requested(value.clone())?.how {
            Delivery::Exec { command, .. } => WakeEffect::RunsLine(command),
            Delivery::File { path } => WakeEffect::WritesFile(path),
            Delivery::Webhook { .. }
            | Delivery::Tmux { .. }
            | Delivery::Agent { .. }
            | Delivery::Codex { .. } => WakeEffect::Tells,
        })
    }

    /// Reads what a request of a host has.
    ///
    /// # Errors
    /// A usage failure that says what is wrong.
    pub(crate) fn requested(value: serde_json::Value) -> Result<Self, Failure> {
        serde_json::from_value(value).map_err(|error| Failure::usage(format!("invalid wake: {error}")))
    }

    /// Notes which pane is meant, while the caller is there: its number may be another's later.
    pub(crate) fn pin(&mut self, env: &BTreeMap<String, String>) {
        if let Delivery::Tmux { pane, pinned: pinned @ None, .. } = &mut self.how {
            let found = Tmux::of_env(env).pane(pane).ok();
            *pinned = found.map(|pane| pane.for_its_program().identity().clone());
        }
    }

    /// Whether a wake of the settings is about a job of this session: a person's own job has no agent to wake.
    pub(crate) fn applies(&self, session: &str, env: &BTreeMap<String, String>) -> bool {
        match self.how {
            Delivery::Agent { .. } => {
                let agent = crate::session::conversation(session).and_then(crate::session::agent_lives);
                agent.is_some() || env.contains_key(THREAD)
            }
            Delivery::Exec { .. }
            | Delivery::Webhook { .. }
            | Delivery::Tmux { .. }
            | Delivery::Codex { .. }
            | Delivery::File { .. } => true,
        }
    }

    pub(crate) fn wants(&self, entry: &Entry) -> bool {
        self.on.is_empty() || self.on.contains(&entry.event)
    }

    /// In which way.
    #[must_use]
    pub fn kind(&self) -> WakeKind {
        match self.how {
            Delivery::Exec { .. } => WakeKind::Exec,
            Delivery::Webhook { .. } => WakeKind::Webhook,
            Delivery::Tmux { .. } => WakeKind::Tmux,
            Delivery::Agent { .. } => WakeKind::Agent,
            Delivery::Codex { .. } => WakeKind::Codex,
            Delivery::File { .. } => WakeKind::File,
        }
    }

    /// Whom, in the user's words.
    #[must_use]
    pub fn target(&self) -> String {
        match &self.how {
            Delivery::Exec { command, .. } => command.clone(),
            Delivery::Webhook { url, .. } => url.clone(),
            Delivery::Tmux { pane, .. } => pane.clone(),
            Delivery::Agent { .. } => String::new(),
            Delivery::Codex { thread } => thread.clone().unwrap_or_default(),
            Delivery::File { path } => path.clone(),
        }
    }

    /// Tries, without waking anybody, whether it will happen for a job with this environment.
    #[must_use]
    pub fn will(&self, env: &BTreeMap<String, String>, tells: bool) -> WakePlan {
        self.plan(tells, || self.try_it(env))
    }

    /// As [`will`](Self::will), for a job of a session of this home.
    pub(crate) fn will_for(
        &self,
        (home, session): (&Home, &str),
        env: &BTreeMap<String, String>,
        tells: bool,
    ) -> WakePlan {
        self.plan(tells, || match self.how {
            Delivery::Agent { .. } => match agent::means(home, session, env) {
                agent::Means::Queue => Ok(format!("queued for its thread {}", env[THREAD])),
                agent::Means::Hook => Ok("by its own hook, when it is idle".into()),
                agent::Means::Pane(pane, _) => Ok(format!("typed into its pane {pane} when it is idle")),
                agent::Means::None(why) => Err(why.to_owned()),
            },
            Delivery::Exec { .. }
            | Delivery::Webhook { .. }
            | Delivery::Tmux { .. }
            | Delivery::Codex { .. }
            | Delivery::File { .. } => self.try_it(env),
        })
    }

    fn plan(&self, tells: bool, try_it: impl FnOnce() -> Result<String, String>) -> WakePlan {
        let tried = if tells { try_it() } else { Err("the job tells nothing: see --notify".into()) };
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
                Ok(format!("posted up to {} times {how}, {signed}", attempt::MAX_TRIES))
            }
            Delivery::Tmux { pane, timeout_ms, pinned, says, shell, .. } => {
                let tmux =
                    pinned.as_ref().map_or_else(|| Tmux::of_env(env), |pinned| Tmux::of_pane(pinned, env));
                let found = tmux.pane(pane).map_err(|failure| failure.message)?;
                if let Some(shell) = found.shell().filter(|_| says.is_some()) {
                    return Err(format!(
                        "not typed while {shell} is in the foreground there: see outlast wait or outlast events"
                    ));
                }
                let (pane, tried) = (found.id(), timeout_ms / 1000);
                if let Some(shell) = shell {
                    let shell = shell.name();
                    return Ok(format!(
                        "typed into {pane} if {shell} is there at an empty prompt within {tried} s"
                    ));
                }
                Ok(format!(
                    "typed into {pane} if an agent waits there at an empty input line within {tried} s"
                ))
            }
            Delivery::Agent { .. } => Ok("by the agent's own means".into()),
            Delivery::Codex { thread } => {
                let Some(thread) = thread.as_ref().or_else(|| env.get(THREAD)) else {
                    return Err(format!("no thread is known: {THREAD} is not set"));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Handle;

    /// A new kind says here how it is written, in a table and after `--wake`.
    #[test]
    fn each_kind_is_read_from_a_table_and_from_words() {
        for kind in WakeKind::ALL {
            let (words, table) = match kind {
                WakeKind::Exec => ("exec:true", Table { command: Some("true".into()), ..Table::default() }),
                WakeKind::Webhook => {
                    ("webhook:http://x", Table { url: Some("http://x".into()), ..Table::default() })
                }
                WakeKind::Tmux => ("tmux:%1", Table { pane: Some("%1".into()), ..Table::default() }),
                WakeKind::Agent => ("agent", Table::default()),
                WakeKind::Codex => ("codex", Table::default()),
                WakeKind::File => ("file:/x", Table { path: Some("/x".into()), ..Table::default() }),
            };
            let parsed = Wake::parse(words).unwrap();
            assert_eq!(parsed.kind(), *kind, "{words}");
            assert_eq!(Table { kind: kind.name().into(), ..table }.wake().unwrap(), parsed, "{words}");
            assert_eq!(Wake::requested(parsed.to_request()).unwrap(), parsed, "{words}");
        }
        assert!(Wake::parse("agent:smith").is_err(), "it is whoever the job belongs to");
        let refused = Wake::parse("pigeon:x").unwrap_err();
        assert!(refused.to_string().contains(&WakeKind::usages()), "{refused}");
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
        assert_eq!(Wake::parse("tmux:%3").unwrap().kind(), WakeKind::Tmux);
        assert!(Wake::parse("pigeon:home").unwrap_err().message.contains("pigeon"));
        let env = BTreeMap::from([("SSL_CERT_FILE".to_owned(), "/no/such/file".to_owned())]);
        let will = Wake::parse("webhook:https://example.org/x").unwrap().will(&env, true);
        assert!(!will.fires && will.why.contains("/no/such/file"), "{will:?}");
    }
}
