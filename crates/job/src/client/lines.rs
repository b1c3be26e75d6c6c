//! A job's output as lines, while it runs: batches in order, until the last one at its end.
//!
//! A parallel observer: it reads the log as every reader does, takes nothing from anybody, and slows nobody. A batch
//! goes out 200 ms after its first output, or at once when the job ends. A slow reader gets less, with counts and
//! offsets of what is missing, and never something out of order.

use std::time::{Duration, Instant};

use outlast_protocol::request::Stream;
use outlast_stream::{LineBatch, LineBatches, Passthrough};

use super::{Follower, Job, News, Piece};
use crate::failure::Failure;
use crate::registry::format::Info;
use crate::wire::event::EventKind;

/// How long output is gathered.
const BATCH: Duration = Duration::from_millis(200);
/// How much text goes into a batch: a line of the longest kind, with others beside it.
const MAX_BATCH_BYTES: usize = 256 << 10;
/// More than this between two looks is not read but skipped, up to the last megabyte.
const TOO_MUCH: u64 = 8 << 20;
/// How much of it is still read.
const NEWEST: u64 = 1 << 20;
/// How soon a job that is being started is looked at again.
const STARTING: Duration = Duration::from_millis(5);
/// How many raw bytes go with a batch.
const MOST_RAW: usize = 256 << 10;

/// How lines are gathered.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How long.
    pub batch: Duration,
    /// How much text.
    pub most: usize,
    /// Whether what a terminal would draw is wanted as well.
    pub drawn: bool,
    /// Where stderr begins, for a job on pipes.
    pub stderr_from: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { batch: BATCH, most: MAX_BATCH_BYTES, drawn: false, stderr_from: 0 }
    }
}

/// A batch of one of the job's streams.
#[derive(Clone, Debug)]
pub struct Lines {
    /// Which: in pipe mode stderr comes apart.
    pub stream: Stream,
    /// The lines, and where they are.
    pub batch: LineBatch,
    /// If it was asked for: the same output as it may go to a terminal, unfinished lines too.
    pub drawn: Vec<u8>,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// It is delivered.
    Taken,
    /// Not now: it is offered again with what comes meanwhile.
    Busy,
    /// Nobody wants any more.
    Stop,
}

struct Gathering {
    stream: Stream,
    batches: LineBatches,
    filter: Passthrough,
    drawn: Vec<u8>,
}

impl Job {
    /// Hands out lines from an offset on until the job has ended, then returns its record; none when `give` said
    /// [`Given::Stop`].
    ///
    /// # Errors
    /// When the job's files can't be read.
    pub fn stream_lines(
        &self,
        from: u64,
        pace: &Pace,
        mut give: impl FnMut(&Lines) -> Given,
    ) -> Result<Option<Info>, Failure> {
        let mut gatherings = vec![Gathering::new(Stream::Output, from, pace)];
        if !self.info()?.has_terminal() {
            gatherings.push(Gathering::new(Stream::Stderr, pace.stderr_from, pace));
        }
        self.until_started()?;
        let mut follower = self.follow()?;
        // What is there already needs no news.
        let mut due = Some(Instant::now() + pace.batch);
        loop {
            let ended = self.hear(&mut follower, &mut due, pace)?;
            if !ended && due.is_none_or(|at| Instant::now() < at) {
                continue;
            }
            due = None;
            for gathering in &mut gatherings {
                gathering.read(self, pace)?;
                if ended {
                    gathering.batches.finish();
                }
                match gathering.hand_out(&mut give) {
                    Given::Taken => {}
                    Given::Stop => return Ok(None),
                    Given::Busy if ended => {
                        while gathering.hand_out(&mut give) == Given::Busy {
                            std::thread::sleep(pace.batch);
                        }
                    }
                    Given::Busy => due = Some(Instant::now() + pace.batch),
                }
            }
            if ended {
                return self.info().map(Some);
            }
        }
    }

    /// Waits until the command runs or will never run; returns the job's record. A job that somebody else starts is seen
    /// a moment before there is a keeper to ask.
    ///
    /// # Errors
    /// When the job's files can't be read.
    pub fn until_started(&self) -> Result<Info, Failure> {
        loop {
            let info = self.info()?;
            if info.process.is_some() || !info.state.is_live() {
                return Ok(info);
            }
            std::thread::sleep(STARTING);
        }
    }

    /// Waits for news or until the next batch is due; true when the job has ended.
    fn hear(&self, follower: &mut Follower, due: &mut Option<Instant>, pace: &Pace) -> Result<bool, Failure> {
        match follower.next(*due)? {
            Some(News::Grown(_)) => *due = due.or_else(|| Some(Instant::now() + pace.batch)),
            Some(News::Event(event)) => {
                if matches!(event.what, EventKind::Exit { .. }) {
                    return Ok(true);
                }
            }
            Some(News::Changed | News::Attached(_)) => {}
            Some(News::Over) if !self.info()?.state.is_live() => return Ok(true),
            // Started, and its keeper is on the way to its socket.
            Some(News::Over) => {
                std::thread::sleep(STARTING);
                follower.knock()?;
            }
            None => return Ok(self.has_ended_on_record()),
        }
        Ok(false)
    }
}

impl Gathering {
    fn new(stream: Stream, from: u64, pace: &Pace) -> Self {
        let batches = LineBatches::new(from, pace.most);
        Self { stream, batches, filter: Passthrough::new(), drawn: Vec::new() }
    }

    fn read(&mut self, job: &Job, pace: &Pace) -> Result<(), Failure> {
        let end = job.stream_end(self.stream);
        if end.saturating_sub(self.batches.offset()) > TOO_MUCH {
            self.skip_to(end - NEWEST, pace);
        }
        let from = self.batches.offset();
        job.pieces(self.stream, from, Some(end), |_, piece| {
            match piece {
                Piece::Bytes(bytes) => {
                    self.batches.feed(bytes);
                    if pace.drawn {
                        self.filter.pass(bytes, &mut self.drawn);
                    }
                }
                Piece::Lost { to, .. } => self.skip_to(to, pace),
            }
            true
        })?;
        if self.drawn.len() > MOST_RAW {
            let cut = self.drawn.len() - MOST_RAW / 2;
            let rest = self.drawn.split_off(cut);
            self.drawn = format!("\x1b[0m\r\n[... {cut} bytes left out ...]\r\n").into_bytes();
            self.drawn.extend_from_slice(&rest);
        }
        Ok(())
    }

    fn skip_to(&mut self, offset: u64, pace: &Pace) {
        let missing = offset - self.batches.offset();
        self.batches.skip_to(offset);
        if pace.drawn {
            self.filter = Passthrough::new();
            self.drawn
                .extend_from_slice(format!("\x1b[0m\r\n[... {missing} bytes left out ...]\r\n").as_bytes());
        }
    }

    fn hand_out(&mut self, give: &mut impl FnMut(&Lines) -> Given) -> Given {
        if self.batches.is_empty() && self.drawn.is_empty() {
            return Given::Taken;
        }
        let lines = Lines {
            stream: self.stream,
            batch: self.batches.batch(),
            drawn: std::mem::take(&mut self.drawn),
        };
        let given = give(&lines);
        match given {
            Given::Taken => self.batches.clear(),
            Given::Busy => self.drawn = lines.drawn,
            Given::Stop => {}
        }
        given
    }
}
