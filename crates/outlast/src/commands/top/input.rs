//! What keys do.

use std::time::Duration;

use outlast_job::Handle;
use outlast_policy::OrderKind;
use outlast_protocol::AwaitingKind;

use super::actions::{Errand, Typing};
use super::jobs::Need;
use super::keys::Key;
use super::looker::Look;
use super::{Next, Top};

/// What the person is doing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Browse,
    Help,
    /// The filter is being typed.
    Filter,
    /// Something for a job is being typed.
    Type(Handle, Typing, String),
    /// A job is to be ended: really?
    Kill(Handle),
    /// A job that runs is to be started again: really?
    Rerun(Handle),
    /// A program of a job wants to be executed: the question's number, and what it says.
    Approve(Handle, u64, String),
    /// The logs of these jobs.
    Merged(Vec<Handle>),
    /// A job's past, this many milliseconds after its start.
    Timeline(Handle, u64),
}

/// By how many rows a page moves.
const PAGE: isize = 10;

impl Top<'_> {
    pub(super) fn press(&mut self, key: Key) -> Next {
        self.message = None;
        match (&self.mode, key) {
            // Out, from anywhere.
            (_, Key::Ctrl('c')) => return Next::Leave,
            (_, Key::Ctrl('z')) => return Next::Stop,
            (Mode::Browse, _) => return self.browse(key),
            (Mode::Help, _) => self.mode = Mode::Browse,
            (Mode::Filter, _) => self.filter(key),
            (Mode::Type(..), _) => return self.type_line(key),
            (Mode::Kill(handle), Key::Char('y' | 'Y')) => {
                let handle = *handle;
                self.mode = Mode::Browse;
                return self.kill(handle);
            }
            (Mode::Rerun(handle), Key::Char('y' | 'Y')) => {
                let handle = *handle;
                return self.rerun(handle);
            }
            (Mode::Approve(handle, question, _), Key::Char(answer @ ('y' | 'n'))) => {
                let (handle, question) = (*handle, *question);
                self.mode = Mode::Browse;
                self.answer(handle, question, answer == 'y');
            }
            (Mode::Kill(_) | Mode::Rerun(_), _) => {
                self.mode = Mode::Browse;
                self.message = Some("nothing was done".into());
            }
            (Mode::Approve(..), _) => self.mode = Mode::Browse,
            (Mode::Merged(_), _) => self.scroll(key),
            (Mode::Timeline(..), _) => self.travel(key),
        }
        Next::Stay
    }

    fn browse(&mut self, key: Key) -> Next {
        let before = self.jobs.chosen().map(|row| row.handle);
        match key {
            Key::Char('q') => return Next::Leave,
            Key::Escape if !self.jobs.filter.is_empty() => self.jobs.set_filter(String::new()),
            Key::Char('j') | Key::Down => self.jobs.step(1),
            Key::Up => self.jobs.step(-1),
            Key::PageDown => self.jobs.step(PAGE),
            Key::PageUp => self.jobs.step(-PAGE),
            Key::Home | Key::Char('g') => self.jobs.step(isize::MIN),
            Key::End | Key::Char('G') => self.jobs.step(isize::MAX),
            Key::Enter => self.wide = !self.wide,
            Key::Char('?' | 'h') => self.mode = Mode::Help,
            Key::Char('/') => self.mode = Mode::Filter,
            Key::Char(' ') => {
                self.jobs.toggle_mark();
                self.jobs.step(1);
            }
            Key::Char('m') => return self.merge(),
            Key::Char(_) => return self.about_chosen(key),
            _ => {}
        }
        if self.jobs.chosen().map(|row| row.handle) != before {
            self.look_soon(Duration::ZERO);
        }
        Next::Stay
    }

    /// Keys that are about the chosen job.
    fn about_chosen(&mut self, key: Key) -> Next {
        let Some(row) = self.jobs.chosen() else { return Next::Stay };
        let (handle, live) = (row.handle, row.is_live());
        let kind = row.awaiting_input.as_ref().map(|awaiting| awaiting.kind);
        let asks_approval =
            Need::of(row) == Need::Asks && matches!(kind, None | Some(AwaitingKind::Approval));
        match key {
            Key::Char('a' | 's' | 'S' | 'k') if !live => {
                self.message =
                    Some(format!("job {handle} has ended; r starts it again, t shows its timeline"));
            }
            Key::Char('a') => return Next::Errand(Errand::Attach(handle)),
            Key::Char('s') if asks_approval => self.ask_approval(handle),
            Key::Char('s') if kind == Some(AwaitingKind::Password) => {
                return Next::Errand(Errand::Secret(handle));
            }
            Key::Char('s') => self.mode = Mode::Type(handle, Typing::Line, String::new()),
            Key::Char('S') => self.mode = Mode::Type(handle, Typing::Keys, String::new()),
            Key::Char('k') => self.mode = Mode::Kill(handle),
            Key::Char('r') if live => self.mode = Mode::Rerun(handle),
            Key::Char('r') => return self.rerun(handle),
            Key::Char('t') => return self.open_timeline(handle),
            _ => {}
        }
        Next::Stay
    }

    fn rerun(&mut self, handle: Handle) -> Next {
        self.mode = Mode::Browse;
        self.jobs.expect_new();
        Next::Errand(Errand::Rerun(handle))
    }

    /// The filter works while it is typed.
    fn filter(&mut self, key: Key) {
        let mut filter = self.jobs.filter.clone();
        match key {
            Key::Enter => self.mode = Mode::Browse,
            Key::Escape => {
                filter.clear();
                self.mode = Mode::Browse;
            }
            Key::Up => self.jobs.step(-1),
            Key::Down => self.jobs.step(1),
            key => edit(&mut filter, key),
        }
        self.jobs.set_filter(filter);
        self.look_soon(Duration::ZERO);
    }

    fn type_line(&mut self, key: Key) -> Next {
        let Mode::Type(handle, typing, mut text) = std::mem::replace(&mut self.mode, Mode::Browse) else {
            return Next::Stay;
        };
        match key {
            Key::Escape => {}
            Key::Enter => return self.send(handle, typing, text),
            key => {
                edit(&mut text, key);
                self.mode = Mode::Type(handle, typing, text);
            }
        }
        Next::Stay
    }

    fn merge(&mut self) -> Next {
        let handles = self.jobs.marked_or_chosen();
        if handles.is_empty() {
            return Next::Stay;
        }
        if !self.is_free(OrderKind::Follow) {
            return Next::Errand(Errand::Logs(handles));
        }
        self.merged.clear();
        self.scrolled = 0;
        self.mode = Mode::Merged(handles);
        self.look_soon(Duration::ZERO);
        Next::Stay
    }

    fn scroll(&mut self, key: Key) {
        let most = self.merged.len();
        match key {
            Key::Up | Key::Char('k') => self.scrolled = (self.scrolled + 1).min(most),
            Key::Down | Key::Char('j') => self.scrolled = self.scrolled.saturating_sub(1),
            Key::PageUp => self.scrolled = (self.scrolled + PAGE.unsigned_abs()).min(most),
            Key::PageDown => self.scrolled = self.scrolled.saturating_sub(PAGE.unsigned_abs()),
            Key::Home => self.scrolled = most,
            Key::End => self.scrolled = 0,
            Key::Escape | Key::Enter | Key::Char('q' | 'm') => self.back(),
            _ => {}
        }
    }

    fn back(&mut self) {
        self.mode = Mode::Browse;
        self.look_soon(Duration::ZERO);
    }

    fn open_timeline(&mut self, handle: Handle) -> Next {
        if !self.is_free(OrderKind::Replay) {
            return Next::Errand(Errand::Replay(handle));
        }
        (self.story, self.then) = (None, None);
        self.mode = Mode::Timeline(handle, u64::MAX);
        self.looker.look(Look::Story(handle));
        Next::Stay
    }

    /// Goes to another moment of a job's past.
    fn travel(&mut self, key: Key) {
        let Mode::Timeline(handle, at) = self.mode else { return };
        let Some((_, story)) = &self.story else {
            if matches!(key, Key::Escape | Key::Char('q' | 't')) {
                self.back();
            }
            return;
        };
        let step = (story.total_ms / 60).max(1);
        let to = match key {
            Key::Left => at.saturating_sub(step),
            Key::Right => at + step,
            Key::PageUp => at.saturating_sub(step * 10),
            Key::PageDown => at + step * 10,
            Key::Home => 0,
            Key::End => story.total_ms,
            Key::Char('n') | Key::Down => story.beside(at, true).unwrap_or(at),
            Key::Char('p') | Key::Up => story.beside(at, false).unwrap_or(at),
            Key::Escape | Key::Enter | Key::Char('q' | 't') => return self.back(),
            _ => at,
        };
        let to = to.min(story.total_ms);
        if to != at {
            self.mode = Mode::Timeline(handle, to);
            self.looker.look(Look::Then(handle, to));
        }
    }
}

fn edit(text: &mut String, key: Key) {
    match key {
        Key::Char(c) => text.push(c),
        Key::Backspace => {
            text.pop();
        }
        Key::Ctrl('u') => text.clear(),
        Key::Ctrl('w') => {
            let end = text.trim_end().rfind(' ').map_or(0, |at| at + 1);
            text.truncate(end);
        }
        _ => {}
    }
}
