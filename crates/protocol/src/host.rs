//! What machines are called, and how a job is named that may be on another one: `17`, `web`, `gpu1/17`, `gpu1/web`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Kind};
use crate::hint::{Call, Hint};
use crate::job::Handle;

/// The longest name of a host, in bytes.
const MAX_NAME_BYTES: usize = 32;
/// What separates a host from a job.
const SEPARATOR: char = '/';

/// The name of a machine that is not this one. Names are short and plain, so a [`Handle`] can hold one and stay `Copy`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName {
    /// Padded with zeros.
    bytes: [u8; MAX_NAME_BYTES],
}

impl HostName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let end = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(MAX_NAME_BYTES);
        std::str::from_utf8(&self.bytes[..end]).unwrap_or_default()
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for HostName {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let fits = text.len() <= MAX_NAME_BYTES && text.chars().all(is_plain);
        if !fits || !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(Failure::usage(format!("invalid host name {text:?}")).hint(format!(
                "a host name is a letter, then letters, digits, '.', '_' or '-', at most {MAX_NAME_BYTES} in all"
            )));
        }
        let mut bytes = [0; MAX_NAME_BYTES];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self { bytes })
    }
}

/// A job as a user names it: by number or name, on this machine or another. This is the one place that parses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRef {
    /// The machine; none for this one.
    pub host: Option<HostName>,
    /// The number or name there.
    pub job: String,
}

impl FromStr for JobRef {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let Some((host, job)) = text.split_once(SEPARATOR) else {
            return Ok(Self { host: None, job: text.to_owned() });
        };
        // A path is an easy slip, and no job's name.
        let host = host.parse().map_err(|_| no_such_job(text))?;
        if job.is_empty() || job.contains(SEPARATOR) {
            return Err(no_such_job(text));
        }
        Ok(Self { host: Some(host), job: job.to_owned() })
    }
}

impl JobRef {
    /// The handle, if the job is named by its number.
    #[must_use]
    pub fn handle(&self) -> Option<Handle> {
        self.job.parse().ok().map(|number| Handle::new(number).on(self.host))
    }
}

fn no_such_job(text: &str) -> Failure {
    Failure::new(Kind::NoSuchJob, format!("there is no job {text:?}"))
        .hint(Hint::call("see all jobs: ", Call::AllJobs))
}

/// Puts a host's name before a number or a name of one of its jobs.
#[must_use]
pub fn on_host(host: HostName, job: &str) -> String {
    format!("{host}{SEPARATOR}{job}")
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host() {
            None => self.number().fmt(f),
            Some(host) => f.pad(&on_host(host, &self.number().to_string())),
        }
    }
}

impl FromStr for Handle {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        text.parse::<JobRef>()?.handle().ok_or_else(|| no_such_job(text))
    }
}

/// A handle in JSON: the number, or for another host `"gpu1/17"`.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenHandle {
    Here(u64),
    Elsewhere(String),
}

impl Serialize for Handle {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.host() {
            None => to.serialize_u64(self.number()),
            Some(_) => to.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Handle {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match WrittenHandle::deserialize(from)? {
            WrittenHandle::Here(number) => Ok(Handle::new(number)),
            WrittenHandle::Elsewhere(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_a_number_here_and_names_its_host_elsewhere() {
        for (text, json) in [("17", "17"), ("gpu1/17", "\"gpu1/17\"")] {
            let handle: Handle = text.parse().unwrap();
            assert_eq!(handle.to_string(), text);
            assert_eq!(serde_json::to_string(&handle).unwrap(), json);
            assert_eq!(serde_json::from_str::<Handle>(json).unwrap(), handle);
        }
        let elsewhere: Handle = "gpu1/17".parse().unwrap();
        assert_ne!(elsewhere, Handle::new(17));
        assert_eq!((elsewhere.number(), elsewhere.host().unwrap().as_str()), (17, "gpu1"));
    }

    #[test]
    fn a_reference_is_a_number_or_a_name_with_or_without_a_host() {
        let read = |text: &str| text.parse::<JobRef>();
        assert_eq!(read("web").unwrap(), JobRef { host: None, job: "web".into() });
        assert_eq!(read("gpu1/web").unwrap(), JobRef { host: "gpu1".parse().ok(), job: "web".into() });
        assert_eq!(read("gpu1/web").unwrap().handle(), None);
        for wrong in ["/web", "gpu1/", "a/b/c", "../x", "1/2", &format!("{}/1", "x".repeat(33))] {
            assert_eq!(read(wrong).unwrap_err().kind, Kind::NoSuchJob, "{wrong}");
        }
    }
}
