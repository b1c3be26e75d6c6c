//! Who a browser is, and what it may do.

use outlast_job::{Failure, Kind};

/// Who has authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Visitor {
    /// The user whose jobs they are, in front of a browser.
    Owner {
        /// They only look.
        read_only: bool,
        /// Names this browser's tab to keepers: nobody else can guess it.
        holder: String,
    },
    /// Somebody with a share: one job, only to look, and without its secrets.
    Guest {
        /// Which job.
        job: String,
        /// Until when, in milliseconds since 1970.
        until: u64,
    },
}

/// What is needed for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs<'a> {
    /// Nothing of any job is told.
    Nothing,
    /// To look at the screen of one job, without its secrets.
    Screen(&'a str),
    /// To look at everything, as its owner does.
    Look,
    /// To change something.
    Act,
}

impl Visitor {
    /// # Errors
    /// [`Kind::Denied`].
    pub(crate) fn may(&self, needs: Needs<'_>) -> Result<(), Failure> {
        match (self, needs) {
            (_, Needs::Nothing) | (Self::Owner { .. }, Needs::Screen(_) | Needs::Look) => Ok(()),
            (Self::Owner { read_only: false, .. }, Needs::Act) => Ok(()),
            (Self::Owner { read_only: true, .. }, Needs::Act) => {
                Err(denied("this view is read-only").hint("start it without --read-only to change something"))
            }
            (Self::Guest { job, .. }, Needs::Screen(wanted)) if job == wanted => Ok(()),
            (Self::Guest { .. }, Needs::Screen(_) | Needs::Look | Needs::Act) => {
                Err(denied("this link only shows the screen of one job"))
            }
        }
    }

    pub(crate) fn is_owner(&self) -> bool {
        match self {
            Self::Owner { .. } => true,
            Self::Guest { .. } => false,
        }
    }
}

fn denied(message: &str) -> Failure {
    Failure::new(Kind::Denied, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_sees_one_screen_and_nothing_else() {
        let guest = Visitor::Guest { job: "3".into(), until: 9 };
        assert!(guest.may(Needs::Nothing).is_ok() && guest.may(Needs::Screen("3")).is_ok());
        for refused in [Needs::Screen("4"), Needs::Screen("03"), Needs::Screen(""), Needs::Look, Needs::Act] {
            assert_eq!(guest.may(refused).unwrap_err().kind, Kind::Denied, "{refused:?}");
        }
    }

    #[test]
    fn who_only_looks_changes_nothing() {
        let owner = Visitor::Owner { read_only: true, holder: "h".into() };
        assert!(owner.may(Needs::Look).is_ok());
        assert_eq!(owner.may(Needs::Act).unwrap_err().kind, Kind::Denied);
    }
}
