//! Looks at a job's screen.

use outlast_job::{Failure, Job, Kind};

use super::Engine;
use crate::answer::{Answer, Screen};
use crate::printed;

impl Engine {
    pub(crate) fn screen(&self, job: &Job, scrollback: usize, budget: usize) -> Result<Answer, Failure> {
        let screen = match job.screen(false, scrollback) {
            Ok(shot) => Screen::from(shot),
            Err(failure) if failure.kind == Kind::NotRunning => last_screen(job)?,
            Err(failure) => return Err(failure),
        };
        let info = job.info_to_show()?;
        let mut answer = Answer::of((job, self.words), &info);
        if !info.has_terminal() {
            let handle = job.handle();
            return Err(Failure::usage(format!("job {handle} runs on pipes and has no screen"))
                .hint(self.words.read_new(&handle.to_string())));
        }
        if let Some(cursor) = screen.cursor {
            let (columns, rows) = (screen.columns.unwrap_or(0), screen.rows.unwrap_or(0));
            let full = screen.modes.is_some_and(|modes| modes.alternate_screen);
            answer.note(format!(
                "{columns}x{rows}, cursor at row {}, column {}{}{}",
                cursor.row,
                cursor.column,
                if cursor.visible { "" } else { " (hidden)" },
                if full { ", a full-screen program" } else { "" },
            ));
        } else {
            answer.note("this is its last screen");
        }
        if !screen.title.is_empty() {
            answer.note(format!("title: {:?}", screen.title));
        }
        answer.facts.screen = Some(bounded(screen, budget));
        Ok(answer)
    }
}

/// What the terminal showed when the job ended.
fn last_screen(job: &Job) -> Result<Screen, Failure> {
    let text = printed::shown(job.last_screen()?.unwrap_or_default().trim_end());
    Ok(Screen {
        text,
        cursor: None,
        columns: None,
        rows: None,
        title: String::new(),
        modes: None,
        scrollback: String::new(),
    })
}

/// The newest of it that fits.
fn bounded(mut screen: Screen, budget: usize) -> Screen {
    screen.text = newest(&screen.text, budget);
    screen.scrollback = newest(&screen.scrollback, budget - screen.text.len());
    screen
}

fn newest(text: &str, budget: usize) -> String {
    if text.len() <= budget {
        return text.to_owned();
    }
    let cut = text.ceil_char_boundary(text.len() - budget);
    let cut = text[cut..].find('\n').map_or(cut, |line| cut + line + 1);
    text[cut..].to_owned()
}
