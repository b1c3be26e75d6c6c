//! The one error type at the edge: what is wrong, and what to do next.
//!
//! Inside, errors are typed where they arise; a front end only ever sees a [`Failure`].

use std::fmt;

use crate::hint::Hint;
use crate::host::HostName;

/// What sort of trouble it is. Front ends turn it into an exit code or an error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request itself is wrong: a bad pattern, an unknown signal, an impossible size.
    Usage,
    /// No job has that handle or name.
    NoSuchJob,
    /// The job has ended, and what was asked for needs a running one.
    NotRunning,
    /// The command could not be started.
    CannotStart,
    /// Not allowed.
    Denied,
    /// The home can't be used as it is.
    BadHome,
    /// Written by a newer Outlast.
    UnknownFormat,
    /// The keeper died while it was asked: nobody knows whether it did what it was asked.
    OutcomeUnknown,
    /// There is no free place for the job, and it was not to be queued.
    Busy,
    /// Another machine cannot be reached. Its jobs go on.
    Unreachable,
    /// The keeper did not answer as it should.
    Keeper,
    /// The system said no: disk, memory, files.
    System,
}

impl Kind {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Usage => "usage",
            Kind::NoSuchJob => "no_such_job",
            Kind::NotRunning => "not_running",
            Kind::CannotStart => "cannot_start",
            Kind::Denied => "denied",
            Kind::BadHome => "bad_home",
            Kind::UnknownFormat => "unknown_format",
            Kind::OutcomeUnknown => "outcome_unknown",
            Kind::Busy => "busy",
            Kind::Unreachable => "unreachable",
            Kind::Keeper => "keeper",
            Kind::System => "system",
        }
    }

    /// The kind of that name; what a newer keeper may invent reads as [`Kind::Keeper`].
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        [
            Kind::Usage,
            Kind::NoSuchJob,
            Kind::NotRunning,
            Kind::CannotStart,
            Kind::Denied,
            Kind::BadHome,
            Kind::UnknownFormat,
            Kind::OutcomeUnknown,
            Kind::Busy,
            Kind::Unreachable,
            Kind::System,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
        .unwrap_or(Kind::Keeper)
    }
}

/// What is wrong, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The sort of trouble.
    pub kind: Kind,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to call or change next.
    pub hint: Option<Hint>,
}

impl Failure {
    /// A failure without a hint.
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The request is wrong.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// The failure of another machine as it reads here: it names the machine, and its jobs with their host.
    #[must_use]
    pub fn seen_from_here(self, host: HostName) -> Self {
        let hint = self.hint.map(|hint| hint.seen_from_here(host));
        Self { message: format!("{host}: {}", self.message), hint, ..self }
    }

    /// The system refused something; `what` says what we were doing.
    #[must_use]
    pub fn system(what: impl fmt::Display, error: impl fmt::Display) -> Self {
        Self::new(Kind::System, format!("{what}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\n  {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
