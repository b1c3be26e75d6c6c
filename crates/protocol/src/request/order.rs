//! Which requests must not be carried out twice, which are waits, and which machine a request is about.

use super::{JobRequest, Request, WaitAny};
use crate::host::HostName;

impl Request {
    /// Whether it must not be carried out twice: such a request gets the name of an order when it goes over a pipe.
    #[must_use]
    pub fn is_order(&self) -> bool {
        match self {
            Self::Start(_) | Self::Remove { .. } | Self::Prune { .. } => true,
            Self::Job { ask, .. } => ask.is_order(),
            Self::PlanWakes(_)
            | Self::Find { .. }
            | Self::FindShell { .. }
            | Self::List(_)
            | Self::Load {}
            | Self::Wait(_)
            | Self::Events(_)
            | Self::Ack(_) => false,
        }
    }

    /// Whether it may take as long as somebody waits: its answer comes when it is over. All others are answered at once.
    #[must_use]
    pub fn as_wait(&self) -> Option<&WaitAny> {
        match self {
            Self::Wait(wait) => Some(wait),
            Self::Start(_)
            | Self::PlanWakes(_)
            | Self::Find { .. }
            | Self::FindShell { .. }
            | Self::List(_)
            | Self::Load {}
            | Self::Job { .. }
            | Self::Events(_)
            | Self::Ack(_)
            | Self::Remove { .. }
            | Self::Prune { .. } => None,
        }
    }

    /// The machine that it is about, as far as it names a job: none for the one that is asked.
    #[must_use]
    pub fn host(&self) -> Option<HostName> {
        match self {
            Self::Job { job, .. } | Self::Remove { job } => job.host(),
            Self::Wait(wait) => wait.waits.first().and_then(|one| one.job.host()),
            Self::Start(_)
            | Self::PlanWakes(_)
            | Self::Find { .. }
            | Self::FindShell { .. }
            | Self::List(_)
            | Self::Load {}
            | Self::Events(_)
            | Self::Ack(_)
            | Self::Prune { .. } => None,
        }
    }
}

impl JobRequest {
    /// As [`Request::is_order`].
    #[must_use]
    pub fn is_order(&self) -> bool {
        match self {
            Self::Send { .. }
            | Self::Secret { .. }
            | Self::Kill { .. }
            | Self::Signal { .. }
            | Self::AnswerQuestion { .. }
            | Self::Watch { .. }
            | Self::Unwatch { .. }
            | Self::Step(_)
            | Self::EndStep { .. } => true,
            Self::Info { .. }
            | Self::Receipt
            | Self::Status
            | Self::Details
            | Self::Pin { .. }
            | Self::Processes
            | Self::LeftBehind
            | Self::Hide { .. }
            | Self::Files
            | Self::End { .. }
            | Self::ReadText(_)
            | Self::ReadBytes(_)
            | Self::Grep(_)
            | Self::Screen(_)
            | Self::LastScreen
            | Self::Outcome
            | Self::Timing { .. }
            | Self::EventLines { .. }
            | Self::Typed
            | Self::Resize { .. }
            | Self::Shell { .. }
            | Self::Hold(_)
            | Self::Watches => false,
        }
    }
}
