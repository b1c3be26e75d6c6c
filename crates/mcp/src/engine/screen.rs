//! Looks at a job's screen, and remembers which rows a session has seen.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use outlast_job::request::{JobRequest, Screen as Shot};
use outlast_job::{Failure, Handle, Job, Kind};

use super::Engine;
use crate::answer::{Answer, Body, Screen};
use crate::printed;
use crate::screen_view::{self, Row, ShownRows};

/// More screens than this are not remembered: they are shown whole again.
const MAX_SCREENS: usize = 64;

/// The rows that each session was shown of each job. Should they be forgotten, all rows are shown.
#[derive(Debug, Default)]
pub(crate) struct Shown(Mutex<HashMap<(String, Handle), Vec<Row>>>);

impl Shown {
    /// Which rows to show, and remembers them.
    pub(super) fn show(&self, session: &str, job: Handle, rows: Vec<Row>) -> ShownRows {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_SCREENS {
            known.clear();
        }
        match known.insert((session.to_owned(), job), rows.clone()) {
            Some(before) => ShownRows::Changed(screen_view::changed(&before, &rows)),
            None => ShownRows::All(rows),
        }
    }
}

impl Engine {
    /// The screen as it is, without marks or numbers.
    pub(crate) fn screen_text(&self, job: &Job) -> Result<String, Failure> {
        let shot = match job.screen(false, 0) {
            Ok(shot) => shot,
            Err(failure) if failure.kind == Kind::NotRunning => {
                return Ok(printed::shown(job.last_screen()?.unwrap_or_default().trim_end()));
            }
            Err(failure) => return Err(failure),
        };
        Ok(printed::shown(shot.rows.join("\n").trim_end()))
    }

    /// The whole screen.
    pub(crate) fn screen(
        &self,
        session: &str,
        job: &Job,
        scrollback: usize,
        budget: usize,
    ) -> Result<Answer, Failure> {
        let now = Shot { at: None, styled: true, scrollback };
        job.expect([JobRequest::Screen(now)]);
        let info = job.info_to_show()?;
        let mut answer = Answer::of((job, self.words), &info);
        answer.budget = budget;
        if !info.has_terminal() {
            let handle = job.handle();
            return Err(Failure::usage(format!("job {handle} runs on pipes and has no screen"))
                .hint(self.words.read_new(&handle.to_string())));
        }
        let shot = match job.screen(true, scrollback) {
            Ok(shot) => shot,
            Err(failure) if failure.kind == Kind::NotRunning => {
                answer.note("its last screen");
                let text = newest(&printed::shown(job.last_screen()?.unwrap_or_default().trim_end()), budget);
                answer.facts.screen = Some(Screen { text: text.clone(), ..Screen::default() });
                answer.body = Body::Rows(text);
                return Ok(answer);
            }
            Err(failure) => return Err(failure),
        };
        let rows = screen_view::rows(&shot, shot.alternate);
        self.screens.show(session, job.handle(), rows.clone());
        answer.note(format!(
            "{}x{}{}",
            shot.size.cols,
            shot.size.rows,
            if shot.alternate { ", a full-screen program" } else { "" },
        ));
        if !shot.title.is_empty() {
            answer.note(format!("title {:?}", shot.title));
        }
        answer.show_rows(ShownRows::All(rows), &shot);
        let above = answer.facts.screen.as_ref().map(|screen| screen.scrollback.clone()).unwrap_or_default();
        if let Body::Rows(text) = &mut answer.body
            && !above.is_empty()
        {
            *text = newest(&format!("{above}\n{text}"), budget);
        }
        Ok(answer)
    }
}

/// The newest of a text that fits.
fn newest(text: &str, budget: usize) -> String {
    if text.len() <= budget {
        return text.to_owned();
    }
    let cut = text.ceil_char_boundary(text.len() - budget);
    let cut = text[cut..].find('\n').map_or(cut, |line| cut + line + 1);
    text[cut..].to_owned()
}
