//! How far each job's output was shown to a session's editor, on the disk: `session/resume` goes on from there.
//!
//! `<home>/acp/shown-<owner>.json`, one entry for each tool call that is still open.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_job::Handle;
use outlast_job::client::Lines;
use outlast_job::registry::replace::{Durability, read_small, replace};
use outlast_job::registry::stable_name::stable_name;
use outlast_job::request::Stream;
use serde::{Deserialize, Serialize};

/// An open tool call of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Place {
    /// Its id.
    pub(crate) call: String,
    /// Everything before this offset of the output was shown.
    pub(crate) output: u64,
    /// The same of stderr.
    pub(crate) stderr: u64,
}

/// The open tool calls of a session.
#[derive(Debug)]
pub(crate) struct Shown {
    dir: Arc<OwnedFd>,
    name: String,
    places: Mutex<BTreeMap<Handle, Place>>,
}

impl Shown {
    /// What was written down for an owner of jobs.
    pub(crate) fn open(dir: Arc<OwnedFd>, owner: &str) -> Self {
        let name = format!("shown-{}.json", stable_name(owner));
        let saved = read_small(&*dir, &name, 1 << 20).unwrap_or_default();
        let places = serde_json::from_slice(&saved).unwrap_or_default();
        Self { dir, name, places: Mutex::new(places) }
    }

    /// Every open tool call.
    pub(crate) fn open_calls(&self) -> Vec<(Handle, Place)> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.iter().map(|(job, place)| (*job, place.clone())).collect()
    }

    /// A tool call begins.
    pub(crate) fn begin(&self, job: Handle, call: &str) {
        self.change(|places| {
            places.insert(job, Place { call: call.to_owned(), ..Place::default() });
        });
    }

    /// A batch was sent.
    pub(crate) fn sent(&self, job: Handle, lines: &Lines) {
        self.change(|places| {
            if let Some(place) = places.get_mut(&job) {
                match lines.stream {
                    Stream::Output => place.output = lines.batch.to,
                    Stream::Stderr => place.stderr = lines.batch.to,
                }
            }
        });
    }

    /// The final update was sent.
    pub(crate) fn ended(&self, job: Handle) {
        self.change(|places| {
            places.remove(&job);
        });
    }

    /// If it cannot be saved, a later `session/resume` shows some lines again.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<Handle, Place>)) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut places);
        let _ = replace(
            &*self.dir,
            &self.name,
            &serde_json::to_vec(&*places).unwrap_or_default(),
            Durability::Process,
        );
    }
}
