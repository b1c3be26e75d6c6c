//! A line for each tool call, for `outlast telemetry`: which tool, when, how long, for which trace. Arguments and answers stay out of it.
//!
//! It is written only where somebody wants spans: telemetry has run for this home, or a collector is named in the environment.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use outlast_job::calls::{CallEntry, FILE, MAX_BYTES, ROTATED_FILE, is_wanted};
use outlast_job::clock::{millis, now_ms};

/// Where calls are noted; nowhere if nobody wants it.
#[derive(Clone, Debug)]
pub(crate) struct CallLog {
    home: Option<PathBuf>,
}

/// A call that goes on.
pub(crate) struct OpenCall<'a> {
    log: &'a CallLog,
    entry: CallEntry,
    since: Instant,
}

impl CallLog {
    pub(crate) fn of(home: &Path) -> Self {
        Self { home: is_wanted(home, |name| std::env::var_os(name)).then(|| home.to_owned()) }
    }

    /// A call begins; none if nobody wants to know.
    pub(crate) fn begin(&self, tool: &str, session: &str, env: &[(String, String)]) -> Option<OpenCall<'_>> {
        self.home.as_ref()?;
        let traceparent = env.iter().find(|(name, _)| name == "TRACEPARENT").map(|(_, value)| value.clone());
        let entry = CallEntry {
            at: now_ms(),
            ms: 0,
            tool: tool.into(),
            session: session.into(),
            ok: false,
            traceparent,
        };
        Some(OpenCall { log: self, entry, since: Instant::now() })
    }

    fn write(&self, entry: &CallEntry) -> std::io::Result<()> {
        let Some(home) = &self.home else { return Ok(()) };
        let path = home.join(FILE);
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let mut file = std::fs::File::options().create(true).append(true).open(&path)?;
        if file.metadata()?.len() > MAX_BYTES {
            std::fs::rename(&path, home.join(ROTATED_FILE))?;
            file = std::fs::File::options().create(true).append(true).open(&path)?;
        }
        file.write_all(&line)
    }
}

impl OpenCall<'_> {
    /// It is over.
    pub(crate) fn end(mut self, ok: bool) {
        (self.entry.ms, self.entry.ok) = (millis(self.since.elapsed()), ok);
        // What cannot be noted is missing at the collector, and nowhere else.
        let _ = self.log.write(&self.entry);
    }
}
