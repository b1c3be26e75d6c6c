//! The agent that a job belongs to, woken by its own means: Codex by its queue of messages, Claude Code and opencode by a hook
//! of ours that waits while they are idle; where there is none of these, by the tmux pane that the agent runs in.
//!
//! A hook takes orders out of the spool itself. Whoever is killed on the way leaves them there, so the next hook of that agent
//! tells them, and until then the helper of the job looks after them: it says so when their time is over.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use outlast_protocol::AgentState;
use outlast_pty::watched::Watched;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use super::attempt::Trouble;
use super::deliver::{Courier, Scope};
use super::notice::notice;
use super::spool::{Filed, Held, Spool};
use super::{Delivery, THREAD};
use crate::agents::{self, Caller};
use crate::clock::now_ms;
use crate::outbox::inotify::Inotify;
use crate::outbox::{Entry, Outbox};
use crate::registry::Home;
use crate::session::{agent_lives, conversation};
use crate::wire::event::EntryKind;

/// Agents that our hooks can wake: one by a hook that its own terminal waits for, one by a plugin.
const BY_HOOK: &str = "claude";
const BY_PLUGIN: &str = "opencode";
/// How long an order waits for the end of the agent's turn, counted from when it was written. After that it is handed over in
/// between: an agent that was interrupted does not say that it is idle.
const TURN_MS: u64 = 60_000;

/// How the agent of a session can be woken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// By Codex's queue of messages.
    Queue,
    /// By a hook of ours, which waits or will wait.
    Hook,
    /// By a notice in this pane of the tmux that these variables name.
    Pane(String, BTreeMap<String, String>),
    /// By nothing, and why.
    None(&'static str),
}

pub(super) fn means(home: &Home, session: &str, env: &BTreeMap<String, String>) -> Means {
    if env.contains_key(THREAD) {
        return Means::Queue;
    }
    let agent = conversation(session);
    if agent.is_some_and(|agent| agent_lives(agent) == Some(false)) {
        return Means::None("the agent has ended");
    }
    let told = agent.and_then(|agent| agents::last_word(home, &[agent.to_owned()]));
    if told.is_some_and(|told| can_wait(&told.agent, agent.and_then(pid_of))) {
        return Means::Hook;
    }
    let of_pane = |env: BTreeMap<String, String>| {
        let pane = env.get("TMUX_PANE").filter(|_| env.contains_key("TMUX")).cloned()?;
        Some(Means::Pane(pane, env))
    };
    of_pane(env.clone()).or_else(|| of_pane(environment_of(agent?)?)).unwrap_or(Means::None(
        "the agent has no hooks that wake it (outlast install --hooks), and runs in no tmux pane that is known",
    ))
}

/// Whether a hook of an agent may wait for what wakes it.
fn can_wait(agent: &str, pid: Option<Pid>) -> bool {
    agent == BY_PLUGIN || agent == BY_HOOK && pid.is_some_and(agents::is_interactive)
}

fn pid_of(agent: &str) -> Option<Pid> {
    Pid::from_raw(agent.split_once('-')?.0.parse().ok()?)
}

/// What an agent was started with.
fn environment_of(agent: &str) -> Option<BTreeMap<String, String>> {
    let bytes = std::fs::read(format!("/proc/{}/environ", pid_of(agent)?.as_raw_nonzero())).ok()?;
    let pairs =
        bytes.split(|byte| *byte == 0).filter_map(|pair| std::str::from_utf8(pair).ok()?.split_once('='));
    Some(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Waits, as a hook of the agent that runs this process, until a job of that agent has something to tell, and has it said:
/// once, in one notice. `unseen` leaves out what the agent knows already; `say` returns whether it was heard. False if there
/// is nothing to wait for: the agent has ended or is not interactive, or another hook of it waits.
pub fn wait_as_hook(
    home: &Home,
    agent: &str,
    unseen: impl Fn(&str, Vec<Entry>) -> Vec<Entry>,
    say: impl FnOnce(&str) -> bool,
) -> bool {
    let Some(caller) = Caller::find().filter(|caller| can_wait(agent, Some(caller.agent.pid))) else {
        return false;
    };
    let (Ok(home), Ok(spool)) = (Home::open(home.path()), Spool::open(home)) else { return false };
    let Ok(agent) = Watched::open(caller.agent.pid) else { return false };
    let Some(waits) = spool.wait_as(&caller.name()) else { return false };
    let inotify = Inotify::new();
    let watched = inotify.filter(|inotify| matches!(inotify.watch_spool(spool.path()), Ok(Some(_))));
    let Some(inotify) = watched else { return false };
    let courier = Courier::new(home, spool, Scope::All);
    let handed = loop {
        match courier.for_agent(&caller, &unseen) {
            Next::Tell(text, joined) => break courier.hand_over(joined, say(&text)),
            Next::Until(time) => {
                let left = time.map(|time| Timespec {
                    tv_sec: i64::try_from(time.saturating_sub(now_ms()) / 1000 + 1).unwrap_or(3600),
                    tv_nsec: 0,
                });
                let fds = &mut [
                    PollFd::from_borrowed_fd(inotify.fd(), PollFlags::IN),
                    PollFd::from_borrowed_fd(agent.as_fd(), PollFlags::IN),
                ];
                let _ = poll(fds, left.as_ref());
                inotify.changed();
                if fds[1].revents().intersects(PollFlags::IN | PollFlags::HUP) {
                    break false;
                }
            }
        }
    };
    courier.spool().no_longer_waits(waits, &caller.name());
    handed
}

/// Has hooks that wait look again: the agent is idle now.
pub fn ring(home: &Home) {
    if let Some(spool) = Spool::existing(home) {
        spool.ring();
    }
}

/// What a hook does next.
enum Next {
    /// Say this, for these orders.
    Tell(String, Vec<(Filed, Held)>),
    /// Wait for a change, or for this time.
    Until(Option<u64>),
}

impl Courier {
    /// The next notice for an agent, if it is time for one.
    fn for_agent(&self, caller: &Caller, unseen: &impl Fn(&str, Vec<Entry>) -> Vec<Entry>) -> Next {
        let mut pending = self.pending();
        pending.retain(|filed| {
            matches!(filed.order.wake.how, Delivery::Agent { .. }) && caller.is_of(&filed.order.session)
        });
        let is_busy =
            !pending.is_empty() && caller.state(self.home()).is_some_and(|state| state != AgentState::Idle);
        let mut soonest: Option<u64> = None;
        let now = now_ms();
        for filed in pending {
            let busy = is_busy.then_some(filed.order.made_at + TURN_MS);
            let pause = self.spool().pause_of(&filed.order).map(|pause| pause.until.unwrap_or(u64::MAX));
            let times = [busy, pause, Some(filed.progress.next_at)];
            let not_before = times.into_iter().flatten().max().unwrap_or(0);
            if now < not_before {
                soonest = Some(soonest.map_or(not_before, |other| other.min(not_before)));
                continue;
            }
            let mut joined = self.join(&filed);
            joined.retain_mut(|(other, _)| self.begin_try(other));
            if joined.is_empty() {
                // Somebody else has it in hand just now. Nothing tells when they let go of it.
                soonest = Some(soonest.map_or(now, |other| other.min(now)));
                continue;
            }
            let events = self.fresh(&filed.order.session, &joined, unseen);
            if events.is_empty() {
                // It was told in an answer, or withdrawn.
                joined.iter().for_each(|(other, _)| self.spool().remove(other.id));
                continue;
            }
            let again = joined.iter().any(|(other, _)| other.progress.tries > 1);
            let text = notice(&filed.order.wake, &events.iter().collect::<Vec<_>>(), again);
            return Next::Tell(text, joined);
        }
        Next::Until(soonest)
    }

    /// What of some orders the agent does not know.
    fn fresh(
        &self,
        session: &str,
        joined: &[(Filed, Held)],
        unseen: &impl Fn(&str, Vec<Entry>) -> Vec<Entry>,
    ) -> Vec<Entry> {
        let mut events: Vec<Entry> =
            joined.iter().flat_map(|(filed, _)| filed.order.events.clone()).collect();
        events.iter_mut().for_each(|entry| self.find_number(session, entry));
        let told = Outbox::existing(self.home(), session).map(|outbox| outbox.entries(0)).unwrap_or_default();
        let is_over = |entry: &Entry| {
            let later = |other: &&Entry| other.job == entry.job && other.n > entry.n;
            entry.event == EntryKind::AwaitingInput
                && told.iter().filter(later).any(|other| other.event.withdraws_question())
        };
        events.retain(|entry| !is_over(entry));
        unseen(session, events)
    }

    /// The agent has heard of these orders, or nobody was there to hear.
    fn hand_over(&self, joined: Vec<(Filed, Held)>, heard: bool) -> bool {
        for (filed, _held) in joined {
            if heard {
                self.spool().remove(filed.id);
            } else {
                self.on_trouble(filed, Trouble::Retry("the agent did not take it".into()));
            }
        }
        heard
    }

    /// Wakes the agent of an order's session in the best way that it has.
    pub(super) fn wake_agent(&self, filed: &Filed, timeout_ms: u64, heard: u64) {
        let env: BTreeMap<String, String> = std::env::vars().collect();
        let why = match means(self.home(), &filed.order.session, &env) {
            Means::Queue => return self.queue_notice(filed, None),
            Means::Pane(pane, env) => {
                return self.type_notice(filed, &super::deliver::InPane::named(&pane, timeout_ms), &env);
            }
            Means::Hook => {
                let until = filed.order.made_at + timeout_ms;
                if now_ms() < until {
                    return self.wait_for_change(heard, Some(until));
                }
                format!("the agent's hook did not take it within {} s", timeout_ms / 1000)
            }
            Means::None(why) => why.to_owned(),
        };
        let Some(_held) = self.spool().hold(filed.id, true) else { return };
        if let Some(mut filed) = self.spool().get(filed.id).filter(Filed::is_pending) {
            self.fail(&mut filed, &why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_own_means_go_before_its_pane() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let set = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let in_pane = set(&[("TMUX", "/s,1,0"), ("TMUX_PANE", "%3")]);
        assert_eq!(means(&home, "s", &in_pane), Means::Pane("%3".into(), in_pane.clone()));
        let with_thread = set(&[("TMUX", "/s,1,0"), ("TMUX_PANE", "%3"), (THREAD, "t")]);
        assert_eq!(means(&home, "s", &with_thread), Means::Queue);
        assert!(matches!(means(&home, "s", &set(&[])), Means::None(why) if why.contains("--hooks")));
        assert_eq!(means(&home, "c:/x#1-18446744073709551615", &in_pane), Means::None("the agent has ended"));
        // A hook has told how the agent is: that of the process above us.
        agents::tell(&home, BY_PLUGIN, AgentState::Working, "/x", "").unwrap();
        let session = Outbox::all(&home)[0].session().to_owned();
        assert_eq!(means(&home, &session, &in_pane), Means::Hook);
    }
}
