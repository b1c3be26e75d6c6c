//! Do not disturb: panes and sessions for which nothing is delivered now. Orders wait in the spool meanwhile.

use serde::{Deserialize, Serialize};

use super::Delivery;
use super::spool::{Order, Spool};
use crate::failure::Failure;
use crate::registry::replace::{Durability, read_small, replace};
use outlast_tmux::Identity;

const FILE: &str = "paused.json";
/// More are refused.
const MAX_PAUSES: usize = 100;

/// Who is not to be disturbed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whom {
    /// A pane of a tmux server.
    Pane(Identity),
    /// Whatever the jobs of a session have to tell.
    Session(String),
}

/// A pause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// For whom.
    pub whom: Whom,
    /// Until when, in milliseconds since 1970; none until it is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

impl Pause {
    fn is_about(&self, order: &Order) -> bool {
        match &self.whom {
            Whom::Session(session) => *session == order.session,
            Whom::Pane(identity) => match &order.wake.how {
                Delivery::Tmux { pinned: Some(pinned), .. } => pinned.is_same_pane(identity),
                Delivery::Tmux { pane, .. } => pane == identity.id(),
                Delivery::Exec { .. }
                | Delivery::Webhook { .. }
                | Delivery::Agent { .. }
                | Delivery::Codex { .. }
                | Delivery::File { .. } => false,
            },
        }
    }

    fn lasts(&self, now: u64) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

impl Spool {
    /// The pauses that last.
    #[must_use]
    pub fn pauses(&self) -> Vec<Pause> {
        let bytes = read_small(self.as_dir(), FILE, 256 << 10).unwrap_or_default();
        let mut all: Vec<Pause> = serde_json::from_slice(&bytes).unwrap_or_default();
        let now = crate::clock::now_ms();
        all.retain(|pause| pause.lasts(now));
        all
    }

    /// The pause that an order has to wait for.
    #[must_use]
    pub fn pause_of(&self, order: &Order) -> Option<Pause> {
        self.pauses().into_iter().find(|pause| pause.is_about(order))
    }

    /// Begins a pause, or changes its end.
    ///
    /// # Errors
    /// When there are too many, or the disk is full.
    pub fn pause(&self, pause: Pause) -> Result<(), Failure> {
        let mut all = self.pauses();
        all.retain(|other| other.whom != pause.whom);
        if all.len() >= MAX_PAUSES {
            return Err(Failure::usage(format!("{MAX_PAUSES} panes and sessions are paused already"))
                .hint("end some: outlast wakes resume --all"));
        }
        all.push(pause);
        self.keep_pauses(&all)
    }

    /// Ends pauses: that of somebody, or all; says how many.
    ///
    /// # Errors
    /// A full disk.
    pub fn resume(&self, whom: Option<&Whom>) -> Result<usize, Failure> {
        let mut all = self.pauses();
        let before = all.len();
        all.retain(|pause| whom.is_some_and(|whom| pause.whom != *whom));
        self.keep_pauses(&all)?;
        Ok(before - all.len())
    }

    fn keep_pauses(&self, all: &[Pause]) -> Result<(), Failure> {
        replace(self.as_dir(), FILE, &crate::wire::line(&all), Durability::Machine)
            .map_err(|error| Failure::system("the pause can't be written down", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Home;
    use crate::wakes::Wake;

    #[test]
    fn a_pause_holds_back_its_session_and_ends() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::open(&Home::open(folder.path()).unwrap()).unwrap();
        let order = |session: &str| Order::new(session, Wake::parse("exec:true").unwrap(), Vec::new());
        let whom = Whom::Session("s".into());
        spool.pause(Pause { whom: whom.clone(), until: None }).unwrap();
        assert!(spool.pause_of(&order("s")).is_some() && spool.pause_of(&order("t")).is_none());
        // A new one of the same replaces it.
        spool.pause(Pause { whom: whom.clone(), until: Some(1) }).unwrap();
        assert!(spool.pause_of(&order("s")).is_none(), "it is over");
        spool.pause(Pause { whom: whom.clone(), until: None }).unwrap();
        assert_eq!(spool.resume(Some(&whom)).unwrap(), 1);
        assert!(spool.pauses().is_empty());
    }
}
