//! Writes to the session's outbox what the notifier decides to tell, and starts the helper that wakes those who
//! is to be woken. Orders to wake are in the spool before their entries are in the outbox. Nothing here waits: not for
//! the lock, not for the disk, not for the helper.

use std::collections::HashSet;

use outlast_pty::procfs::Proc;
use rustix::process::Pid;

use super::conditions::Conditions;
use super::core::{Input, Notifier, is_pushed};
use super::inherited::Inherited;
use super::{Keeper, Net};
use crate::outbox::{Entry, Outbox};
use crate::registry::JobDir;
use crate::registry::format::Info;
use crate::registry::layout;
use crate::registry::replace::{Durability, replace};
use crate::wakes::deliver::{self, Scope};
use crate::wakes::spool::{Order, Spool};
use crate::wakes::{Standing, Wake};
use crate::wire::event::{EntryKind, EventKind};

/// Whether a job's log of events has its end.
pub(super) fn is_end_noted(job: &JobDir) -> bool {
    job.events().iter().any(|event| matches!(event.what, EventKind::Exit { .. }))
}

/// Whether a dead keeper has told all that there was to tell about a job that has ended.
pub(super) fn is_all_told(inherited: &Inherited, info: &Info) -> bool {
    let conditions = super::watches::conditions_of(inherited, info, 0);
    is_end_noted(&inherited.job)
        && notifier(inherited, info, &conditions, None).is_quiet()
        && !has_orders(inherited)
        && helper_of(inherited).is_none()
}

/// Whether wakes of the job are neither delivered nor given up.
pub(super) fn has_orders(inherited: &Inherited) -> bool {
    Spool::existing(&inherited.home).is_some_and(|spool| spool.has_pending(inherited.job.handle()))
}

/// The helper that a dead keeper has started, if it is still at work.
pub(super) fn helper_of(inherited: &Inherited) -> Option<Pid> {
    let (pid, started) = inherited.shared.helper()?;
    let alive = outlast_pty::procfs::stat(pid).is_some_and(|process| process.is_alive());
    (alive && outlast_pty::procfs::start_time(pid) == Some(started)).then_some(pid)
}

/// Whom to wake: those that the job was given, and those of the settings.
fn wakes(inherited: &Inherited) -> Vec<Wake> {
    let (session, env) = (&inherited.spec.session, &inherited.spec.wake_env);
    let set = inherited.settings.wakes.iter().filter(|wake| wake.applies(session, env));
    inherited.spec.wakes.iter().chain(set).cloned().collect()
}

/// Writes down whom to wake for what, should nobody be left who knows. Before the command runs: keeper and heir may be
/// killed at once after it has begun. A full disk does not keep a job from running: its keeper knows them by heart.
pub(super) fn save_wakes(inherited: &Inherited) {
    let wakes = wakes(inherited);
    if !wakes.is_empty() {
        let bytes = crate::wire::line(&Standing { wakes });
        let _ = replace(&inherited.job, layout::WAKES, &bytes, Durability::Process);
    }
}

/// A notifier that takes up where a dead keeper was: events that are written down and were not told are told
/// now. `helper` is its helper, if that is still at work.
pub(super) fn notifier(
    inherited: &Inherited,
    info: &Info,
    conditions: &Conditions,
    helper: Option<Pid>,
) -> Notifier {
    let wakes = !wakes(inherited).is_empty();
    let past = inherited.job.events();
    let (mut told, mut end_told) = (inherited.shared.told(), inherited.shared.end_told());
    // On a full disk there may be entries in the outbox, which keeps room for them, and no events in the job's own file.
    if (!past.is_empty() || info.takeovers > 0)
        && let Ok(outbox) = Outbox::open(&inherited.home, &info.session)
    {
        // It may have died between telling and noting that it has.
        for entry in outbox.entries(0).into_iter().filter(|entry| entry.job == info.handle) {
            told = told.max(entry.seq);
            end_told |= entry.event == EntryKind::Exit;
        }
    }
    let mut notifier = Notifier::new(info.handle, info.name.clone(), wakes, end_told);
    let now = std::time::Instant::now();
    let untold = past.iter().filter(|event| event.seq > told && conditions.tells(&event.what));
    untold.for_each(|event| notifier.note(event, now));
    if wakes {
        notifier.take_up_wakes(helper.is_some(), has_orders(inherited), now);
    }
    notifier
}

impl Keeper {
    pub(super) fn outbox(&self) -> Option<Outbox> {
        Outbox::open(&self.inherited.home, &self.inherited.spec.session).ok()
    }

    /// Reserves disk space for what will be told.
    pub(super) fn reserve_outbox(&self) {
        if !self.inherited.spec.notify.is_nothing()
            && let Some(outbox) = self.outbox()
        {
            outbox.hold_room();
        }
    }

    /// Writes orders to wake somebody for these entries; returns why not, if not.
    fn file_orders(&self, entries: &[Entry]) -> Option<String> {
        let mut failed = None;
        for wake in wakes(&self.inherited) {
            let wanted: Vec<Entry> = entries.iter().filter(|entry| wake.wants(entry)).cloned().collect();
            if wanted.is_empty() {
                continue;
            }
            let order = Order::new(&self.inherited.spec.session, wake, wanted);
            let filed = Spool::open(&self.inherited.home)
                .map_err(Into::into)
                .and_then(|spool| spool.add(self.inherited.job.handle(), &order));
            if let Err(error) = filed {
                let (kind, target) = (order.wake.kind(), order.wake.target());
                failed = Some(format!("{kind} {target:?} could not be noted: {error}"));
            }
        }
        failed
    }

    pub(super) fn append_outbox(&mut self, mut entries: Vec<Entry>) -> Input<'static> {
        let shared = self.inherited.shared;
        // Entries may come back because somebody held the lock: their orders are written once.
        let filed = shared.filed();
        let due: Vec<Entry> =
            entries.iter().filter(|entry| entry.seq > filed && is_pushed(entry)).cloned().collect();
        let unfiled = self.file_orders(&due);
        if let Some(seq) = due.iter().map(|entry| entry.seq).max() {
            shared.set_filed(seq);
        }
        let written = self.outbox().is_some_and(|outbox| outbox.try_append(&mut entries).is_ok());
        if written {
            if let Some(seq) = entries.iter().map(|entry| entry.seq).max() {
                shared.set_told(seq.max(shared.told()));
            }
            if entries.iter().any(|entry| entry.event == EntryKind::Exit) {
                shared.set_end_told();
            }
        }
        Input::OutboxAppended { entries, written, unfiled }
    }

    /// Starts a helper for the job's orders in the spool. These entries are not about events of the job, and have
    /// none yet.
    pub(super) fn wake(&mut self, entries: &[Entry]) -> Input<'static> {
        let own: Vec<Entry> = entries.iter().filter(|entry| entry.seq == 0).cloned().collect();
        let unfiled = self.file_orders(&own);
        let Inherited { spec, home, job, shared, .. } = &self.inherited;
        let folder = spec.wake_folder.as_deref().map(std::path::Path::new);
        match deliver::begin(Scope::Job(job.handle()), home, &spec.wake_env, folder) {
            Ok(helper) => {
                // We reap it.
                let helper = Pid::from_child(&helper);
                if let Some(started) = outlast_pty::procfs::start_time(helper) {
                    shared.set_helper(helper, started);
                }
                self.helper = Some(helper);
                Input::HelperStarted { failed: unfiled }
            }
            Err(error) => Input::HelperFailed(format!("the helper that wakes could not be started: {error}")),
        }
    }

    /// Leaves out the helper and an heir of ours, and all below them: they are not part of the job.
    pub(super) fn without_our_own(&self, mut processes: Vec<Proc>) -> Vec<Proc> {
        let heir = match self.net {
            Net::Child(heir) => Some(heir),
            Net::Parent | Net::None => None,
        };
        let mut ours: HashSet<Pid> = self.helper.into_iter().chain(heir).collect();
        if ours.is_empty() {
            return processes;
        }
        loop {
            let before = ours.len();
            let below = |p: &&Proc| p.ppid.is_some_and(|parent| ours.contains(&parent));
            let more: Vec<Pid> = processes.iter().filter(below).map(|p| p.pid).collect();
            ours.extend(more);
            if ours.len() == before {
                break;
            }
        }
        processes.retain(|process| !ours.contains(&process.pid));
        processes
    }

    /// The last line of the transcript that is not blank.
    pub(super) fn last_line_of_transcript(&self) -> String {
        let Ok(file) = self.inherited.job.open(layout::TRANSCRIPT) else { return String::new() };
        let size = rustix::fs::fstat(&file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        let mut tail = vec![0; 1024];
        let got = crate::log::writer::read_exact_at(&file, &mut tail, size.saturating_sub(1024));
        let text = String::from_utf8_lossy(&tail[..got]).into_owned();
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
    }
}
