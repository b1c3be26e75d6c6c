//! Binds an answer to its question: the call that it was asked for, the session, a time, and one use.
//!
//! In the newer protocol the client calls again with the answer, so an answer could be made up, kept for another call,
//! or used twice. The question carries a keyed hash over all of these, which only we can make, and the call that
//! answers must bring it back. The key and the used ones are in the home: all servers of a home share them.

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_job::clock::now_ms;
use ring::hmac;
use rmcp::model::CallToolRequestParams;
use serde_json::Value;

/// How long an answer counts.
const LIFETIME: Duration = Duration::from_secs(600);
/// The folder of the key and of the used answers, in the home.
const FOLDER: &str = "approvals";
const KEY: &str = "key";
const KEY_BYTES: usize = 32;

/// What an answer is bound to.
#[derive(Debug)]
pub(crate) struct Binding {
    folder: PathBuf,
    order: Vec<u8>,
}

impl Binding {
    /// For the question of that name and text, about a call of a session.
    pub(crate) fn new(
        home: &Path,
        session: &str,
        (name, text): (&str, &str),
        request: &CallToolRequestParams,
    ) -> Self {
        let mut order = Vec::new();
        let arguments = request.arguments.clone().map(Value::Object).unwrap_or_default();
        let mut said = String::new();
        canonical(&arguments, &mut said);
        for part in [session, name, text, &request.name, &said] {
            order.extend_from_slice(&(part.len() as u64).to_le_bytes());
            order.extend_from_slice(part.as_bytes());
        }
        Self { folder: home.join(FOLDER), order }
    }

    /// What the question carries.
    pub(crate) fn seal(&self) -> std::io::Result<String> {
        let until = now_ms() + LIFETIME.as_millis() as u64;
        let mut nonce = [0; 16];
        outlast_job::system::random(&mut nonce)?;
        let nonce = hex(&nonce);
        Ok(format!("1.{until}.{nonce}.{}", self.mac(&until.to_string(), &nonce)?))
    }

    /// Whether this answers our question, in time and for the first time. It is used up by that.
    pub(crate) fn use_up(&self, state: &str) -> bool {
        let mut fields = state.split('.');
        let (Some("1"), Some(until), Some(nonce), Some(mac), None) =
            (fields.next(), fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return false;
        };
        let is_nonce = nonce.len() == 32 && nonce.bytes().all(|byte| byte.is_ascii_hexdigit());
        let in_time = until.parse::<u64>().is_ok_and(|until| now_ms() <= until);
        let ours = self.mac(until, nonce).is_ok_and(|ours| is_same(&ours, mac));
        if !(is_nonce && in_time && ours) {
            return false;
        }
        self.forget_old();
        // The process that makes the file is the first; what can't be noted does not count.
        private().create_new(true).write(true).open(self.folder.join(nonce)).is_ok()
    }

    fn mac(&self, until: &str, nonce: &str) -> std::io::Result<String> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.key()?);
        let mut mac = hmac::Context::with_key(&key);
        for part in [until.as_bytes(), b".", nonce.as_bytes(), b".", &self.order] {
            mac.update(part);
        }
        Ok(hex(mac.sign().as_ref()))
    }

    /// The key of the home, made by the first who needs it.
    fn key(&self) -> std::io::Result<[u8; KEY_BYTES]> {
        let path = self.folder.join(KEY);
        for _ in 0..2 {
            let mut key = [0; KEY_BYTES];
            let read = private().read(true).open(&path).and_then(|mut file| file.read_exact(&mut key));
            match read {
                Ok(()) => return Ok(key),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            std::fs::DirBuilder::new().recursive(true).create(&self.folder)?;
            outlast_job::system::random(&mut key)?;
            let draft = self.folder.join(format!("{KEY}.{}.{}", std::process::id(), now_ms()));
            private().create_new(true).write(true).open(&draft)?.write_all(&key)?;
            // The first one counts.
            let _ = std::fs::hard_link(&draft, &path);
            std::fs::remove_file(&draft)?;
        }
        Err(std::io::ErrorKind::NotFound.into())
    }

    /// Removes notes of answers that no longer count anyway.
    fn forget_old(&self) {
        let old = |entry: &std::fs::DirEntry| {
            let age = entry.metadata().ok()?.modified().ok()?.elapsed().ok()?;
            Some(age > LIFETIME * 2)
        };
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name() != KEY && old(&entry) == Some(true) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// A file for us alone, never through a link.
fn private() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    options.mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    options
}

/// The same text for the same value, in whatever order its keys came.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            text.push('{');
            for key in keys {
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                canonical(&fields[key], text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string())
        }
    }
}

/// Whether two texts are the same, in a time that does not tell where they differ.
fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn binding(home: &Path, session: &str, text: &str, arguments: Value) -> Binding {
        let request = json!({"name": "kill", "arguments": arguments});
        let request: CallToolRequestParams = serde_json::from_value(request).unwrap();
        Binding::new(home, session, ("confirm", text), &request)
    }

    #[test]
    fn an_answer_counts_for_its_own_call_and_once() {
        let home = tempfile::tempdir().unwrap();
        let arguments = || json!({"handle": 1, "signal": "TERM"});
        let asked = binding(home.path(), "me", "May it?", arguments());
        let state = asked.seal().unwrap();
        for other in [
            binding(home.path(), "you", "May it?", arguments()),
            binding(home.path(), "me", "May it not?", arguments()),
            binding(home.path(), "me", "May it?", json!({"handle": 2, "signal": "TERM"})),
        ] {
            assert!(!other.use_up(&state));
        }
        assert!(!asked.use_up("1.9.00.00") && !asked.use_up(""));
        // Another server of the same home, and the keys in another order.
        let again = binding(home.path(), "me", "May it?", json!({"signal": "TERM", "handle": 1}));
        assert!(again.use_up(&state));
        assert!(!asked.use_up(&state) && !again.use_up(&state));
    }

    #[test]
    fn an_answer_of_another_time_or_home_does_not_count() {
        let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let asked = binding(home.path(), "me", "May it?", json!({}));
        let state = asked.seal().unwrap();
        assert!(!binding(other.path(), "me", "May it?", json!({})).use_up(&state));
        let fields: Vec<&str> = state.split('.').collect();
        let past = format!("1.{}.{}.{}", 7, fields[2], asked.mac("7", fields[2]).unwrap());
        assert!(!asked.use_up(&past));
        let longer = format!("1.{}0.{}.{}", fields[1], fields[2], fields[3]);
        assert!(!asked.use_up(&longer));
    }
}
