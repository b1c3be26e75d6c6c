//! The lines of several jobs in the order of their times, each with its job's name.

use std::collections::VecDeque;

use outlast_cli::LogsArgs;
use outlast_job::client::{Follower, News, Piece, fold_from};
use outlast_job::clock::now_ms;
use outlast_job::request::{Fact, ReadBytes, Stream};
use outlast_job::{Failure, Handle, Job};
use outlast_stream::{FoldOutput, Pipeline};
use rustix::event::{PollFd, PollFlags, poll};

use super::{beginning, facts};
use crate::human;
use crate::last_job::reference;
use crate::output::Output;

/// How much of a log is read at once.
const PIECE: usize = 64 << 10;
/// The colours of the names, one job after the other.
const COLOURS: [&str; 6] = ["36", "33", "32", "35", "34", "91"];

/// Shows the lines of jobs, and goes on if asked to.
pub(super) fn show(jobs: &[Job], args: &LogsArgs, out: &mut Output) -> Result<(), Failure> {
    let names: Vec<String> = jobs.iter().map(name).collect::<Result<_, _>>()?;
    let widest = names.iter().map(|name| human::width(name)).max().unwrap_or(0);
    let prefix = |(at, name): (usize, &String)| {
        let prefix = format!("{name}{} |", " ".repeat(widest - human::width(name)));
        out.styled(COLOURS[at % COLOURS.len()], &prefix)
    };
    let mut shown = Shown {
        prefixes: names.iter().enumerate().map(prefix).collect(),
        merged: Merged::open(jobs, args)?,
        timestamps: args.timestamps,
    };
    // Before what is there is read: nothing that comes meanwhile is missed.
    let mut followers = Vec::new();
    if args.follow {
        for job in jobs {
            followers.push(Some(job.follow()?));
        }
    }
    shown.merge(out)?;
    while followers.iter().any(Option::is_some) {
        wait_for_news(&followers);
        for (follower, job) in followers.iter_mut().zip(jobs) {
            let is_over = follower.as_mut().map(|follower| hear(job, follower)).transpose()?;
            if is_over == Some(true) {
                *follower = None;
            }
        }
        if !shown.merge(out)? {
            return Ok(());
        }
    }
    shown.finish(out);
    // A person who saw what an ended job printed has read it.
    for job in jobs {
        let _ = job.info_to_show();
    }
    Ok(())
}

fn name(job: &Job) -> Result<String, Failure> {
    let info = job.info()?;
    Ok(reference(info.handle, info.name.as_deref()))
}

/// A reader for each stream of a job.
fn readers(which: usize, job: &Job, args: &LogsArgs) -> Result<Vec<LineReader>, Failure> {
    let info = job.info()?;
    let streams: &[Stream] =
        if info.has_terminal() { &[Stream::Output] } else { &[Stream::Output, Stream::Stderr] };
    let reader = |stream: &Stream| {
        let from = beginning(job, args, *stream)?;
        Ok(LineReader {
            job: job.clone(),
            name: info.name.clone(),
            stream: *stream,
            offset: from,
            which,
            started: info.created_at,
            facts: facts(job, *stream)?,
            next_fact: 0,
            fold: fold_from(&info, from),
            text: FoldOutput::default(),
            partial: Vec::new(),
            partial_at: 0,
            lines: VecDeque::new(),
        })
    };
    streams.iter().map(reader).collect()
}

fn wait_for_news(followers: &[Option<Follower>]) {
    let mut fds: Vec<PollFd<'_>> = followers
        .iter()
        .flatten()
        .filter_map(Follower::fd)
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    if !fds.is_empty() {
        let _ = poll(&mut fds, None);
    }
}

/// Takes in all that has come; says whether the job is over.
fn hear(job: &Job, follower: &mut Follower) -> Result<bool, Failure> {
    while let Some(news) = follower.next_now()? {
        if matches!(news, News::Over) {
            return Ok(true);
        }
    }
    Ok(job.has_ended_on_record())
}

/// All that is shown.
struct Shown {
    merged: Merged,
    /// What is before the lines of each job.
    prefixes: Vec<String>,
    timestamps: bool,
}

impl Shown {
    /// Prints all lines that are there, the oldest first; says whether somebody still reads them.
    fn merge(&mut self, out: &mut Output) -> Result<bool, Failure> {
        while let Some(Line { which, name, handle, stream, at, text }) = self.merged.next()? {
            let written = if out.json {
                let stream = if stream == Stream::Stderr { "stderr" } else { "output" };
                out.value(&serde_json::json!({
                    "handle": handle, "name": name, "at": at, "stream": stream, "line": text
                }))
            } else {
                let prefix = if self.prefixes.len() > 1 {
                    format!("{} ", self.prefixes[which])
                } else {
                    String::new()
                };
                let time = if self.timestamps { format!("{} ", human::timestamp(at)) } else { String::new() };
                out.line(&format!("{prefix}{time}{text}"))
            };
            if !written {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lines without an end are lines too.
    fn finish(&mut self, out: &mut Output) {
        self.merged.readers.iter_mut().for_each(LineReader::finish);
        let _ = self.merge(out);
    }
}

/// The lines of several jobs, in the order of their times.
pub(in crate::commands) struct Merged {
    readers: Vec<LineReader>,
}

/// One of them.
pub(in crate::commands) struct Line {
    /// Which of the jobs, counted from 0.
    pub(in crate::commands) which: usize,
    name: Option<String>,
    handle: Handle,
    stream: Stream,
    /// When it was printed, in milliseconds since 1970.
    at: u64,
    pub(in crate::commands) text: String,
}

impl Merged {
    pub(in crate::commands) fn open(jobs: &[Job], args: &LogsArgs) -> Result<Self, Failure> {
        let each = jobs.iter().enumerate().map(|(which, job)| readers(which, job, args));
        Ok(Self { readers: each.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect() })
    }

    /// The oldest line that was not handed out yet; none if there is no more so far.
    pub(in crate::commands) fn next(&mut self) -> Result<Option<Line>, Failure> {
        for reader in &mut self.readers {
            reader.fill()?;
        }
        let with_lines = self.readers.iter_mut().filter(|reader| !reader.lines.is_empty());
        let oldest = with_lines.min_by_key(|reader| reader.lines.front().map(|line| line.0));
        Ok(oldest.and_then(|reader| {
            let (at, text) = reader.lines.pop_front()?;
            let (which, stream) = (reader.which, reader.stream);
            Some(Line { which, name: reader.name.clone(), handle: reader.job.handle(), stream, at, text })
        }))
    }
}

/// The lines of one stream, each with the time at which it was printed.
struct LineReader {
    job: Job,
    name: Option<String>,
    stream: Stream,
    offset: u64,
    which: usize,
    /// When the job was started, in milliseconds since 1970.
    started: u64,
    facts: Vec<Fact>,
    next_fact: usize,
    fold: Pipeline,
    text: FoldOutput,
    partial: Vec<u8>,
    partial_at: u64,
    lines: VecDeque<(u64, String)>,
}

impl LineReader {
    /// Reads on until there is a line, or nothing more.
    fn fill(&mut self) -> Result<(), Failure> {
        while self.lines.is_empty() {
            let mut piece = Vec::new();
            let read =
                ReadBytes { stream: self.stream, from: self.offset, max: PIECE, ..ReadBytes::default() };
            let mut lost = 0;
            // One piece at a time: the end that is returned is that of the whole log.
            self.job.read_pieces(read, |part| match part {
                Piece::Bytes(bytes) => {
                    piece.extend_from_slice(bytes);
                    false
                }
                Piece::Lost { from, to } => {
                    lost = to - from;
                    piece.extend_from_slice(
                        format!("\r\n[{lost} bytes are gone, from {from} to {to}]\r\n").as_bytes(),
                    );
                    false
                }
            })?;
            if piece.is_empty() {
                return Ok(());
            }
            self.take(&piece, lost);
        }
        Ok(())
    }

    fn take(&mut self, piece: &[u8], lost: u64) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            if lost == 0 {
                self.offset += part.len() as u64;
            }
            self.fold.feed(part, &mut self.text);
            let at = self.time();
            self.take_text(at);
        }
        self.offset += lost;
    }

    fn take_text(&mut self, at: u64) {
        for byte in std::mem::take(&mut self.text.text) {
            if self.partial.is_empty() {
                self.partial_at = at;
            }
            if byte == b'\n' {
                let line = String::from_utf8_lossy(&self.partial).into_owned();
                self.lines.push_back((self.partial_at, line));
                self.partial.clear();
            } else {
                self.partial.push(byte);
            }
        }
        self.text.clear();
    }

    /// When what ends at the offset was printed: as it was noted, else now.
    fn time(&mut self) -> u64 {
        let is_before = |fact: &&Fact| fact.offset < self.offset;
        self.next_fact += self.facts[self.next_fact..].iter().take_while(is_before).count();
        self.facts.get(self.next_fact).map_or_else(now_ms, |fact| self.started + fact.at_ms)
    }

    fn finish(&mut self) {
        self.fold.finish(&mut self.text);
        let at = self.time();
        self.take_text(at);
        if !self.partial.is_empty() {
            let line = String::from_utf8_lossy(&std::mem::take(&mut self.partial)).into_owned();
            self.lines.push_back((self.partial_at, line));
        }
    }
}
