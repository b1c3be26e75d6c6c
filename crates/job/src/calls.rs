//! Tool calls as they are noted for `outlast telemetry`: by the MCP server, a line each, in the home.

use std::ffi::OsString;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The log, and the one before it.
pub const FILE: &str = "calls.jsonl";
/// See [`FILE`].
pub const ROTATED_FILE: &str = "calls.1.jsonl";
/// Beyond this size the log takes the place of the one before it.
pub const MAX_BYTES: u64 = 4 << 20;
/// What telemetry has sent of this home.
pub const TELEMETRY_FILE: &str = "telemetry.json";
/// Variables that name a collector.
const COLLECTOR: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEntry {
    /// When it began, in milliseconds since 1970.
    pub at: u64,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// Which tool.
    pub tool: String,
    /// Who called.
    pub session: String,
    /// Whether it was answered without a failure.
    pub ok: bool,
    /// The trace that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// Whether somebody wants to know of calls in this home.
pub fn is_wanted(home: &Path, get: impl Fn(&str) -> Option<OsString>) -> bool {
    home.join(TELEMETRY_FILE).exists()
        || COLLECTOR.iter().any(|name| get(name).is_some_and(|url| !url.is_empty()))
}

/// How far somebody has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Place {
    /// Which file: its inode.
    pub file: u64,
    /// Where in it.
    pub offset: u64,
}

/// The calls after a place, and where they end; each with its own place, which no other call has.
#[must_use]
pub fn after(home: &Path, place: Place) -> (Vec<(Place, CallEntry)>, Place) {
    use std::os::unix::fs::MetadataExt;
    let (mut found, mut now) = (Vec::new(), place);
    for name in [ROTATED_FILE, FILE] {
        let Ok(mut file) = std::fs::File::open(home.join(name)) else { continue };
        let Ok(ino) = file.metadata().map(|data| data.ino()) else { continue };
        let from = if ino == place.file { place.offset } else { 0 };
        // The one before is of interest only to who has not read all of it.
        if name == ROTATED_FILE && ino != place.file && place.file != 0 {
            continue;
        }
        let mut text = Vec::new();
        if file.seek(SeekFrom::Start(from)).and_then(|_| file.read_to_end(&mut text)).is_err() {
            continue;
        }
        let mut at = from;
        // A line that is not whole yet is read the next time.
        for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            if let Ok(entry) = serde_json::from_slice(line) {
                found.push((Place { file: ino, offset: at }, entry));
            }
            at += line.len() as u64;
        }
        now = Place { file: ino, offset: at };
    }
    (found, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_once_also_across_a_rotation_and_half_a_line_waits() {
        let home = tempfile::tempdir().unwrap();
        let line = |at: u64| {
            let entry =
                CallEntry { at, ms: 1, tool: "t".into(), session: "s".into(), ok: true, traceparent: None };
            format!("{}\n", serde_json::to_string(&entry).unwrap())
        };
        let path = home.path().join(FILE);
        let half = line(3);
        std::fs::write(&path, format!("{}{}{}", line(1), line(2), &half[..10])).unwrap();
        let times =
            |found: &[(Place, CallEntry)]| found.iter().map(|(_, entry)| entry.at).collect::<Vec<_>>();
        let (found, place) = after(home.path(), Place::default());
        assert_eq!(times(&found), [1, 2]);
        std::fs::write(&path, format!("{}{}{half}", line(1), line(2))).unwrap();
        std::fs::rename(&path, home.path().join(ROTATED_FILE)).unwrap();
        std::fs::write(&path, line(4)).unwrap();
        let (found, place) = after(home.path(), place);
        assert_eq!(times(&found), [3, 4]);
        assert!(after(home.path(), place).0.is_empty());
        assert!(is_wanted(home.path(), |name| (name == COLLECTOR[1]).then(|| "http://c".into())));
        assert!(!is_wanted(home.path(), |_| None), "nothing is noted that nobody reads");
    }
}
