//! `outlast jobs --watch`: the list again whenever something has changed.
//!
//! Keepers tell; nobody is asked in between. Once a second the times on a screen go on by themselves.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use outlast_cli::JobsArgs;
use outlast_job::client::Waiting;
use outlast_job::client::signals::{Signal, Signals};
use outlast_job::request::Subscription;
use outlast_job::{Failure, Handle, Outlast};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::rows::{self, Filter, Row};
use super::{empty, list, print};
use crate::output::Output;
use crate::terminal;

/// Changes that come closer together are shown together.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// How often the times on a screen are drawn again.
const TICK: Duration = Duration::from_secs(1);
/// Another screen, no cursor, and rows that do not wrap.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &[u8] = b"\x1b[?7h\x1b[?25h\x1b[?1049l";

pub(super) fn watch(
    outlast: &Outlast,
    args: &JobsArgs,
    filter: &Filter,
    out: &mut Output,
) -> Result<i32, Failure> {
    let on_screen = std::io::stdout().is_terminal() && !out.json && !args.quiet;
    let mut watch = Watch {
        outlast,
        args,
        filter,
        signals: Signals::catch(&[Signal::INT, Signal::TERM, Signal::HUP, Signal::WINCH])
            .map_err(|error| Failure::system("signals can't be caught", error))?,
        news: Told::new(outlast)?,
        on_screen,
    };
    if on_screen {
        out.draw(ENTER);
    }
    let watched = watch.until_told_to_stop(out);
    if on_screen {
        out.draw(LEAVE);
    }
    watched.map(|()| 0)
}

struct Watch<'a> {
    outlast: &'a Outlast,
    args: &'a JobsArgs,
    filter: &'a Filter,
    signals: Signals,
    news: Told<'a>,
    on_screen: bool,
}

/// Why somebody woke up.
#[derive(PartialEq, Eq)]
enum Woken {
    Stop,
    News,
    Tick,
}

impl Watch<'_> {
    fn until_told_to_stop(&mut self, out: &mut Output) -> Result<(), Failure> {
        let mut shown = Vec::new();
        loop {
            // Before the list is made: what changes meanwhile is told.
            self.news.forget();
            let (rows, _) = list(self.outlast, self.args, self.filter)?;
            self.news.follow(&rows);
            let now: Vec<Row> = rows.iter().map(Row::without_times).collect();
            if self.on_screen {
                self.draw(&rows, out);
            } else if shown != now || shown.is_empty() {
                print(self.outlast, self.args, &rows, out);
            }
            shown = now;
            let listed = Instant::now();
            let until = listed + DEBOUNCE;
            loop {
                match self.sleep() {
                    Woken::Stop => return Ok(()),
                    Woken::News => break,
                    Woken::Tick => {
                        let ms = outlast_job::clock::millis(listed.elapsed());
                        let later: Vec<Row> = rows.iter().map(|row| row.later(ms)).collect();
                        self.draw(&later, out);
                    }
                }
            }
            if self.pause(until.saturating_duration_since(Instant::now())) {
                return Ok(());
            }
        }
    }

    /// Sleeps until something has happened.
    fn sleep(&self) -> Woken {
        let tick = self.on_screen.then_some(TICK);
        let mut fds =
            [PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&self.news.ours, PollFlags::IN)];
        let woken = poll(&mut fds, tick.map(timespec).as_ref());
        let has_news = !fds[1].revents().is_empty();
        if self.signals.take().into_iter().any(|signal| signal != Signal::WINCH) {
            return Woken::Stop;
        }
        if woken.is_ok() && has_news { Woken::News } else { Woken::Tick }
    }

    /// Lets a burst pass; says whether we are told to stop.
    fn pause(&self, time: Duration) -> bool {
        let mut fds = [PollFd::new(&self.signals, PollFlags::IN)];
        let _ = poll(&mut fds, Some(&timespec(time)));
        self.signals.take().into_iter().any(|signal| signal != Signal::WINCH)
    }

    fn draw(&self, rows: &[Row], out: &mut Output) {
        let height = terminal::size().map_or(24, |size| usize::from(size.rows));
        let mut lines = rows::table(rows, terminal::columns(), out);
        if lines.is_empty() {
            lines.push(empty(self.args).into());
        }
        if lines.len() > height {
            let more = lines.len() - height + 1;
            lines.truncate(height - 1);
            lines.push(format!("[{more} more]"));
        }
        let text: Vec<String> = lines.iter().map(|line| format!("{line}\x1b[K")).collect();
        out.draw(format!("\x1b[H{}\x1b[J", text.join("\r\n")).as_bytes());
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() }
}

/// What we are told of: the list, and each job in it that runs.
struct Told<'a> {
    outlast: &'a Outlast,
    ours: UnixStream,
    theirs: UnixStream,
    jobs: BTreeMap<Handle, Waiting>,
    _list: Waiting,
}

impl<'a> Told<'a> {
    fn new(outlast: &'a Outlast) -> Result<Self, Failure> {
        let broken = |error| Failure::system("changes can't be told", error);
        let (ours, theirs) = UnixStream::pair().map_err(broken)?;
        ours.set_nonblocking(true).map_err(broken)?;
        theirs.set_nonblocking(true).map_err(broken)?;
        let list = tell(outlast, &Subscription::JobList, &theirs)?;
        Ok(Self { outlast, ours, theirs, jobs: BTreeMap::new(), _list: list })
    }

    /// Follows those that run, and no others.
    fn follow(&mut self, rows: &[Row]) {
        self.jobs.retain(|handle, _| rows.iter().any(|row| row.handle == *handle && row.is_live()));
        for row in rows.iter().filter(|row| row.is_live()) {
            if self.jobs.contains_key(&row.handle) {
                continue;
            }
            // One that is gone by now is not in the next list.
            let of = Subscription::Job { job: row.handle };
            if let Ok(told) = tell(self.outlast, &of, &self.theirs) {
                self.jobs.insert(row.handle, told);
            }
        }
    }

    /// What was told so far is known.
    fn forget(&mut self) {
        let mut bytes = [0; 256];
        while matches!(self.ours.read(&mut bytes), Ok(1..)) {}
    }
}

fn tell(outlast: &Outlast, of: &Subscription, to: &UnixStream) -> Result<Waiting, Failure> {
    let mut to = to.try_clone().map_err(|error| Failure::system("changes can't be told", error))?;
    outlast.subscribe(of, move |_| {
        // Full means that somebody will look anyway.
        let _ = to.write(b"!");
        true
    })
}
