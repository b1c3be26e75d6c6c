//! A person who has taken over: while they hold the job, nobody else types into it.
//!
//! Other callers that send input meanwhile are told so at once; nothing is queued for later. A hold ends when it is given back, when
//! the person has typed nothing for a while, and soon after the last connection that showed the job to its holder is gone.

use std::time::{Duration, Instant};

use super::{Client, Core, Effects, Now, PeerId};
use crate::failure::{Failure, Kind};
use crate::wire::event::EventKind;
use crate::wire::{Answer, Hold};
use outlast_protocol::{Call, Hint};

/// For how long a hold outlasts the last connection of its holder: a page that is loaded again keeps it.
const GRACE_AFTER_DISCONNECT: Duration = Duration::from_secs(30);
/// A holder who types nothing for this long has given the job back.
const IDLE_LIMIT: Duration = Duration::from_secs(600);
/// The longest name of a holder, and the longest words for who that is.
const MAX_NAME: usize = 128;

/// Who holds the job.
#[derive(Debug)]
pub(super) struct Holding {
    holder: String,
    by: String,
    typed_at: Instant,
    /// Since when no connection shows the job to the holder.
    alone_since: Option<Instant>,
}

impl Holding {
    /// When it ends by itself, and why.
    fn end(&self) -> (Instant, &'static str) {
        let idle = (self.typed_at + IDLE_LIMIT, "nothing was typed for 10 minutes");
        match self.alone_since {
            Some(since) if since + GRACE_AFTER_DISCONNECT < idle.0 => {
                (since + GRACE_AFTER_DISCONNECT, "the connection was lost")
            }
            Some(_) | None => idle,
        }
    }
}

impl Core {
    /// Who holds the job, in words.
    pub(super) fn held_by(&self) -> Option<String> {
        self.holding.as_ref().map(|holding| holding.by.clone())
    }

    pub(super) fn hold_deadline(&self) -> Option<Instant> {
        self.holding.as_ref().map(|holding| holding.end().0)
    }

    /// Somebody takes the job over, or gives it back. A person may take it over from another.
    pub(super) fn on_hold(&mut self, client: Client, hold: Hold, now: Now, effects: &mut Effects) {
        if hold.holder.is_empty() || hold.holder.len() > MAX_NAME || hold.by.len() > MAX_NAME {
            let failure = Failure::usage("a holder has a name of 1 to 128 bytes");
            return effects.reply(client, Answer::Error(failure.into()));
        }
        if let Err(failure) = self.check_running() {
            return effects.reply(client, Answer::Error(failure.into()));
        }
        let is_holder = self.holding.as_ref().is_some_and(|holding| holding.holder == hold.holder);
        if hold.take && is_holder {
            if let Some(holding) = &mut self.holding {
                holding.typed_at = now.at;
            }
        } else if hold.take {
            self.release("somebody else took it over", now, effects);
            let by = self.hide(&hold.by);
            let alone_since = (!self.is_shown_to(&hold.holder)).then_some(now.at);
            self.holding =
                Some(Holding { holder: hold.holder, by: by.clone(), typed_at: now.at, alone_since });
            self.event(EventKind::Taken { by }, now, effects);
        } else if is_holder {
            self.release("it was given back", now, effects);
        }
        effects.reply(client, Answer::Done {});
    }

    /// Whether this client may type as far as a hold is concerned. A person who is attached may, too.
    pub(super) fn check_hold(
        &mut self,
        peer: PeerId,
        holder: Option<&str>,
        now: Instant,
    ) -> Result<(), Failure> {
        let is_person = self.is_attached(peer);
        let Some(holding) = &mut self.holding else { return Ok(()) };
        if holder == Some(holding.holder.as_str()) {
            holding.typed_at = now;
            return Ok(());
        }
        if is_person {
            return Ok(());
        }
        let (handle, by) = (self.record.handle(), holding.by.clone());
        Err(Failure::new(
            Kind::Denied,
            format!("job {handle} is held by a person ({by}) who types into it; nothing was typed"),
        )
        .hint(
            Hint::call("look at its screen (", Call::Screen(handle.to_string()))
                .and("); an event says when it is given back"),
        ))
    }

    /// Whether the client that types is the holder: then no other person's typing is in its way.
    pub(super) fn is_holder(&self, holder: Option<&str>) -> bool {
        self.holding.as_ref().is_some_and(|holding| holder == Some(holding.holder.as_str()))
    }

    /// Who looks has changed: a hold whose holder sees nothing any more ends soon.
    pub(super) fn settle_hold(&mut self, now: Instant) {
        let Some(holder) = self.holding.as_ref().map(|holding| holding.holder.clone()) else { return };
        let is_shown = self.is_shown_to(&holder);
        if let Some(holding) = &mut self.holding {
            holding.alone_since = if is_shown { None } else { Some(holding.alone_since.unwrap_or(now)) };
        }
    }

    pub(super) fn end_hold_on_time(&mut self, now: Now, effects: &mut Effects) {
        let Some((at, why)) = self.holding.as_ref().map(Holding::end) else { return };
        if at <= now.at {
            self.release(why, now, effects);
        }
    }

    /// The command has ended: nobody types any more.
    pub(super) fn forget_hold(&mut self) {
        self.holding = None;
    }

    fn release(&mut self, why: &str, now: Now, effects: &mut Effects) {
        let Some(holding) = self.holding.take() else { return };
        self.event(EventKind::GivenBack { by: holding.by, why: why.into() }, now, effects);
    }
}
