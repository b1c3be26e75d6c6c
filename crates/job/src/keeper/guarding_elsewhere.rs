//! The twin of what only Linux can: nothing is judged before it is executed, and a job with rules about that is not started.

use outlast_pty::spawn::Confinement;

use super::inherited::Inherited;
use crate::lifecycle::StartError;

/// What an heir would need to go on judging.
#[derive(Debug)]
pub(super) struct GuardEnds {
    pub(super) notes: Notes,
}

/// Numbers of questions, which nobody asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notes;

impl Notes {
    #[expect(clippy::unused_self, reason = "its twin counts in shared memory")]
    pub(super) fn next_question(self) -> u64 {
        1
    }
}

impl GuardEnds {
    #[expect(clippy::unnecessary_wraps, reason = "its twin opens sockets")]
    pub(super) fn open() -> std::io::Result<Self> {
        Ok(Self { notes: Notes })
    }
}

impl Inherited {
    /// There is no network of its own that a proxy could stand in.
    #[expect(clippy::unused_self, reason = "its twin starts a proxy")]
    pub(super) fn take_up_proxy(&mut self, _allowed_since: &[String]) {}

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "its twin sends a socket")]
    pub(super) fn send_listener(&self, _confinement: &mut Confinement) -> Result<(), StartError> {
        Ok(())
    }

    /// A rule is enforced, or the job does not start.
    pub(super) fn install_guard(
        &mut self,
        _confinement: &mut Confinement,
    ) -> Result<Option<String>, StartError> {
        match &self.spec.guard {
            Some(rules) if !rules.rules.is_empty() => Err(StartError {
                kind: "no_guard".into(),
                message: "the rules for programs of this job can't be enforced on this system".into(),
                hint: "guard = \"off\" in your policy.toml does without".into(),
            }),
            Some(_) | None => Ok(None),
        }
    }

    #[expect(clippy::unused_self, reason = "its twin goes on judging")]
    pub(super) fn take_up_guard(&mut self) {}
}
