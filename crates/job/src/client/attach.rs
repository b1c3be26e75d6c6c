//! A person in front of a job: its screen at once, then every byte as it comes, and keys the other way.

use std::os::fd::BorrowedFd;

use crate::elsewhere::{ElsewhereView, ViewNews};
use crate::failure::{Failure, Kind};
use crate::local::attach::{LocalView, REPLY_TIMEOUT};
use crate::local::follow::News;
use crate::spec::Size;
use crate::wire::event::Event;
use crate::wire::{Attach, Attached, Grown, base64};

/// Something a viewer is told.
#[derive(Debug)]
pub enum Seen {
    /// The log has grown.
    Grown(Grown),
    /// Something happened.
    Event(Event),
    /// The screen comes anew, perhaps in another size: see [`Viewing::repaint`].
    Repainted,
    /// What was typed did not arrive.
    Refused(Failure),
    /// The keeper has gone: attach again, unless the job has ended.
    Gone,
}

/// A person in front of a job.
#[derive(Debug)]
pub struct Viewing {
    view: View,
    /// What paints the screen as it was at [`offset`](Self::offset).
    pub repaint: Vec<u8>,
    /// Where the log goes on after the repaint.
    pub offset: u64,
    /// The size of the job's terminal.
    pub size: Size,
    /// How many people look at it now.
    pub viewers: usize,
}

#[derive(Debug)]
pub(super) enum View {
    Here(LocalView),
    There(ElsewhereView),
}

impl View {
    fn next_now(&mut self) -> Result<Option<ViewNews>, Failure> {
        match self {
            Self::Here(view) => view.next_now(),
            Self::There(view) => Ok(view.next_now()),
        }
    }

    /// The screen that it begins with.
    fn first(&mut self) -> Result<Option<ViewNews>, Failure> {
        match self {
            Self::Here(view) => view.next_now(),
            Self::There(view) => Ok(view.next(REPLY_TIMEOUT)),
        }
    }
}

impl Viewing {
    /// # Errors
    /// When the screen does not come.
    pub(super) fn new(mut view: View) -> Result<Self, Failure> {
        loop {
            match view.first()? {
                Some(ViewNews::News(News::Attached(attached))) => {
                    let (offset, size, viewers) = (attached.offset, attached.size, attached.viewers);
                    let mut viewing = Self { view, repaint: Vec::new(), offset, size, viewers };
                    viewing.take(&attached);
                    return Ok(viewing);
                }
                Some(ViewNews::Refused(failure)) => return Err(failure),
                Some(ViewNews::News(News::Over)) | None => {
                    return Err(Failure::new(Kind::Keeper, "the keeper did not show its screen in time"));
                }
                Some(ViewNews::News(News::Grown(_) | News::Event(_) | News::Changed)) => {}
            }
        }
    }

    fn take(&mut self, attached: &Attached) {
        self.repaint = base64::decode(&attached.repaint).unwrap_or_default();
        (self.offset, self.size, self.viewers) = (attached.offset, attached.size, attached.viewers);
    }

    /// What to wait on before [`next_now`](Self::next_now) has something.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        match &self.view {
            View::Here(view) => view.fd(),
            View::There(view) => view.fd(),
        }
    }

    /// Passes keys on, as they are.
    pub fn press(&mut self, bytes: &[u8]) -> bool {
        bytes.chunks(crate::wire::INPUT_PIECE).all(|piece| match &mut self.view {
            View::Here(view) => view.press(piece),
            View::There(view) => view.press(piece),
        })
    }

    /// Asks for the screen anew: the person's own terminal has another size, or has to be drawn again.
    pub fn look_again(&mut self, attach: &Attach) -> bool {
        match &mut self.view {
            View::Here(view) => view.look_again(attach),
            View::There(view) => view.look_again(attach),
        }
    }

    /// What has already come, without waiting.
    ///
    /// # Errors
    /// When the keeper speaks another protocol.
    pub fn next_now(&mut self) -> Result<Option<Seen>, Failure> {
        loop {
            return Ok(Some(match self.view.next_now()? {
                Some(ViewNews::News(News::Grown(grown))) => Seen::Grown(grown),
                Some(ViewNews::News(News::Event(event))) => Seen::Event(event),
                Some(ViewNews::News(News::Attached(attached))) => {
                    self.take(&attached);
                    Seen::Repainted
                }
                Some(ViewNews::News(News::Over)) => Seen::Gone,
                Some(ViewNews::News(News::Changed)) => continue,
                Some(ViewNews::Refused(failure)) => Seen::Refused(failure),
                None => return Ok(None),
            }));
        }
    }
}
