//! Listening to a pane: told by tmux, or looking where tmux can't tell.

use std::time::{Duration, Instant};

use super::control::{Control, Happened};
use super::pane::{Held, LOOK, Pane};
use super::typing;
use outlast_protocol::failure::Failure;

/// Reasons that were said already: a verdict that changes to and fro fills no log.
#[derive(Debug, Default)]
pub(super) struct Said(Vec<Held>);

impl Said {
    pub(super) fn once(&mut self, held: &Held, say: &mut dyn FnMut(&Held)) {
        if !self.0.iter().any(|said| said.is_like(held)) {
            self.0.push(held.clone());
            say(held);
        }
    }
}

/// Listens to a pane: told by tmux, or looking where tmux can't tell.
#[derive(Debug)]
pub struct Listener {
    control: Option<Control>,
    pane: Pane,
}

impl Listener {
    pub(super) fn new(control: Option<Control>, pane: Pane) -> Self {
        Self { control, pane }
    }

    /// Sleeps until something happens in the pane or the deadline comes. Without a control client, every moment
    /// may have brought something.
    pub fn wait(&mut self, deadline: Instant) -> Happened {
        let Some(control) = &mut self.control else {
            std::thread::sleep(deadline.saturating_duration_since(Instant::now()).min(LOOK));
            return Happened { output: true, changed: true, over: false };
        };
        let happened = control.wait(deadline);
        if happened.over {
            self.control = None;
        }
        happened
    }

    /// Whether tmux tells us what happens.
    pub(super) fn is_told(&self) -> bool {
        self.control.is_some()
    }

    /// Takes what has happened up to now; without a control client, anything may have.
    pub(super) fn hear(&mut self) -> Happened {
        self.wait(Instant::now())
    }

    /// Has tmux do something, if a condition holds at that moment, over the line that is open already: that is much
    /// quicker than another client. None where there is no such line.
    pub(super) fn only_if(&mut self, condition: &str, then: &str) -> Option<(bool, Happened)> {
        let done = self.control.as_mut()?.only_if(self.pane.id(), condition, then);
        if done.is_none() {
            self.control = None;
        }
        done
    }

    /// Lets time pass; says what happened meanwhile.
    pub fn pass(&mut self, time: Duration) -> Happened {
        let until = Instant::now() + time;
        let mut all = Happened::default();
        while Instant::now() < until {
            let happened = self.wait(until);
            all.output |= happened.output;
            all.changed |= happened.changed;
            all.over |= happened.over;
        }
        all
    }

    /// Waits until the pane is free; says why not, each reason once.
    pub(super) fn until_free(
        &mut self,
        deadline: Instant,
        said: &mut Said,
        say: &mut dyn FnMut(&Held),
    ) -> Result<(), Failure> {
        loop {
            let Some(held) = self.pane.free()? else { return Ok(()) };
            said.once(&held, say);
            if Instant::now() >= deadline {
                return Err(typing::nothing_typed(&self.pane, &held));
            }
            self.wait(deadline.min(Instant::now() + LOOK));
        }
    }
}
