//! A job as a recording: its bytes and sizes with their times, from the log and its timing.

use std::sync::{Arc, Mutex, PoisonError};

use outlast_protocol::request::{FactKind, Moment, ReadBytes, Stream};
use outlast_stream::{Config, FoldOutput, Pipeline};

use super::LocalJob;
use super::moments::{Moments, Place};
use super::read::{Piece, Range};
use crate::elsewhere::ElsewhereJob;
use crate::failure::Failure;
use crate::lifecycle::Outcome as End;
use crate::log::timing::{self, Fact};
use crate::registry::format::Info;
use crate::registry::layout;
use crate::search::{begin_at, whole_fold_config};
use crate::spec::{Size, Streams};
use crate::wire::{Cursor, ScreenShot};

/// What happened at a time.
#[derive(Debug, PartialEq, Eq)]
pub enum Played<'a> {
    /// Bytes came.
    Output(&'a [u8]),
    /// The terminal got a new size.
    Resized(Size),
}

/// A job as a recording.
#[derive(Debug)]
pub struct Recording {
    info: Info,
    facts: Arc<Vec<Fact>>,
    output: Source,
    errors: Source,
    /// What is kept between two questions; nothing for who must not see all, or from elsewhere.
    moments: Option<Arc<Mutex<Moments>>>,
}

/// Where the bytes of a recording are.
#[derive(Debug)]
enum Source {
    Here(Range),
    There { job: ElsewhereJob, stream: Stream, end: u64 },
}

impl Source {
    /// Hands out a part of it, until told to stop; says whether it was not.
    fn part(&self, from: u64, to: u64, mut each: impl FnMut(&[u8]) -> bool) -> bool {
        let mut going = true;
        let mut piece = |_, piece: Piece<'_>| {
            if let Piece::Bytes(bytes) = piece {
                going = each(bytes);
            }
            going
        };
        match self {
            Self::Here(range) => range.part(from.min(range.to()), to.min(range.to())).pieces(piece),
            Self::There { job, stream, end } => {
                // A machine that is gone by now has no more bytes for us.
                let (from, to) = (from.min(*end), Some(to.min(*end)));
                let range = ReadBytes { stream: *stream, from, to, ..ReadBytes::default() };
                let _ = job.pieces(range, &mut piece);
            }
        }
        going
    }
}

impl LocalJob {
    /// What is needed to play it again, as far as it has got.
    ///
    /// # Errors
    /// When the job's record can't be read.
    pub(crate) fn recording(&self) -> Result<Recording, Failure> {
        let info = self.info()?;
        let facts = self.facts();
        let output = self.range(Stream::Output, 0, None)?;
        let errors = self.range(Stream::Stderr, 0, None)?;
        // What is hidden may change: nothing is kept for those from whom something is.
        let moments = (!self.masked).then(|| Arc::clone(&self.open.moments));
        if let Some(moments) = &moments {
            moments.lock().unwrap_or_else(PoisonError::into_inner).check(&info.gone);
        }
        Ok(Recording { info, facts, output: Source::Here(output), errors: Source::Here(errors), moments })
    }
}

impl Recording {
    /// That of a job on another machine.
    pub(crate) fn of_elsewhere(job: &ElsewhereJob, info: Info, ends: [u64; 2]) -> Result<Self, Failure> {
        let fact = |fact: outlast_protocol::request::Fact| Fact {
            at_ms: fact.at_ms,
            offset: fact.offset,
            what: match fact.kind {
                FactKind::Output => timing::FactKind::Output,
                FactKind::Stderr => timing::FactKind::Stderr,
                FactKind::Resized(size) => timing::FactKind::Resized(size),
            },
        };
        let facts = Arc::new(job.facts()?.into_iter().map(fact).collect());
        let source = |stream, end| Source::There { job: job.clone(), stream, end };
        let (output, errors) = (source(Stream::Output, ends[0]), source(Stream::Stderr, ends[1]));
        Ok(Self { info, facts, output, errors, moments: None })
    }
}

impl LocalJob {
    /// When it printed what.
    pub(super) fn facts(&self) -> Arc<Vec<Fact>> {
        let file = self.open.dir.file(layout::TIMING);
        let length = std::fs::metadata(&file).map_or(0, |file| file.len());
        let mut moments = self.open.moments.lock().unwrap_or_else(PoisonError::into_inner);
        moments.facts(length, || timing::parse(&std::fs::read_to_string(&file).unwrap_or_default()))
    }
}

impl Recording {
    /// The size the terminal had at the start: sizes are noted when they change, and the record has the last.
    fn first_size(&self) -> Size {
        let resized = self.facts.iter().any(|fact| matches!(fact.what, timing::FactKind::Resized(_)));
        match self.info.streams {
            Streams::Terminal(size) if !resized => size,
            _ => self.info.started_size.unwrap_or_default(),
        }
    }

    /// Hands out everything in the order it happened, with milliseconds since the start, until told to stop.
    pub fn events(&self, mut each: impl FnMut(u64, Played<'_>) -> bool) {
        self.events_from(Place::default(), |_, at, what| each(at, what));
    }

    /// The same from a place on; each with the place of the fact that it belongs to.
    fn events_from(&self, from: Place, mut each: impl FnMut(Place, u64, Played<'_>) -> bool) {
        let mut at = from.at;
        let mut last_ms =
            from.fact.checked_sub(1).and_then(|before| self.facts.get(before)).map_or(0, |fact| fact.at_ms);
        for (index, fact) in self.facts.iter().enumerate().skip(from.fact) {
            let place = Place { fact: index, at };
            last_ms = fact.at_ms;
            let stream = usize::from(fact.what == timing::FactKind::Stderr);
            let going = match fact.what {
                timing::FactKind::Resized(size) => each(place, fact.at_ms, Played::Resized(size)),
                timing::FactKind::Output | timing::FactKind::Stderr => {
                    let from = at[stream];
                    at[stream] = fact.offset.max(from);
                    self.bytes(stream, from, fact.offset, |bytes| {
                        each(place, fact.at_ms, Played::Output(bytes))
                    })
                }
            };
            if !going {
                return;
            }
        }
        // What came after the last fact: of a job that still runs, or whose keeper died.
        for (stream, from) in at.into_iter().enumerate() {
            let place = Place { fact: self.facts.len(), at };
            self.bytes(stream, from, u64::MAX, |bytes| each(place, last_ms, Played::Output(bytes)));
        }
    }

    fn bytes(&self, stream: usize, from: u64, to: u64, each: impl FnMut(&[u8]) -> bool) -> bool {
        let source = if stream == 0 { &self.output } else { &self.errors };
        source.part(from, to, each)
    }

    /// The fold as it was at a moment.
    pub(crate) fn fold_until(&self, moment: Moment) -> Pipeline {
        let nearest = |beneath| {
            let moments = self.moments.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
            moments.nearest(&self.facts, moment, beneath)
        };
        if let Some(kept) = nearest(false) {
            let fold = Pipeline::from_keyframe(self.first_config(), &kept.keyframe);
            let fold = self.fold_from(fold, kept.place, moment);
            if !kept.keyframe.is_alternate() || fold.is_alternate() {
                return fold;
            }
            // The program has left its screen since: what was beneath it is to be shown.
            if let Some(kept) = nearest(true) {
                let fold = Pipeline::from_keyframe(self.first_config(), &kept.keyframe);
                return self.fold_from(fold, kept.place, moment);
            }
        }
        self.fold_from(self.first_fold(), Place::default(), moment)
    }

    /// Goes on from a place to a moment. Where that is far, keyframes are left on the way.
    fn fold_from(&self, mut fold: Pipeline, from: Place, moment: Moment) -> Pipeline {
        let mut outcome = FoldOutput::default();
        let (mut seen, mut last_ms, mut soon) = (from, 0, false);
        let mut was_alternate = fold.is_alternate();
        self.events_from(from, |place, at, what| {
            if matches!(moment, Moment::Time(time) if at > time) {
                return false;
            }
            if place != seen
                && let Some(moments) = &self.moments
            {
                // Of what came before, a screen is kept now and then, and soon after what a keyframe cannot be used across.
                soon |= was_alternate && !fold.is_alternate();
                was_alternate = fold.is_alternate();
                let mut moments = moments.lock().unwrap_or_else(PoisonError::into_inner);
                let at = (place, last_ms);
                soon &= !moments.keep(&mut fold, self.first_config(), at, soon);
                seen = place;
            }
            last_ms = at;
            soon |= matches!(what, Played::Resized(_));
            match what {
                Played::Resized(size) => {
                    fold.resize(in_cells(size), &mut outcome);
                }
                Played::Output(bytes) => {
                    let left = match moment {
                        Moment::Offset(offset) => offset.saturating_sub(fold.offset()),
                        Moment::Time(_) => u64::MAX,
                    };
                    let len = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    fold.feed(&bytes[..len], &mut outcome);
                    outcome.clear();
                    return len == bytes.len();
                }
            }
            outcome.clear();
            true
        });
        fold
    }

    /// Hands out the screen after each change, with milliseconds since the start. Changes closer together than `step_ms`
    /// are shown together.
    pub fn screens(&self, step_ms: u64, mut each: impl FnMut(u64, &ScreenShot) -> bool) {
        let mut fold = self.first_fold();
        let mut outcome = FoldOutput::default();
        let mut due: Option<u64> = Some(0);
        let mut going = true;
        self.events(|at, what| {
            // What was printed before this moment had the time to be seen.
            if let Some(then) = due.filter(|then| at >= *then + step_ms) {
                going = each(then, &shot(&mut fold, true));
                due = None;
            }
            match what {
                Played::Resized(size) => fold.resize(in_cells(size), &mut outcome),
                Played::Output(bytes) => fold.feed(bytes, &mut outcome),
            }
            outcome.clear();
            let _ = due.get_or_insert(at);
            going
        });
        if going && let Some(then) = due {
            each(then, &shot(&mut fold, true));
        }
    }

    /// What draws the screen as it was at a moment on a terminal of this size.
    #[must_use]
    pub fn paint_at(&self, at_ms: u64, own: Size) -> Vec<u8> {
        let mut fold = self.fold_until(Moment::Time(at_ms));
        if fold.screen().size == in_cells(own) { fold.repaint() } else { fold.repaint_within(in_cells(own)) }
    }

    fn first_config(&self) -> Config {
        Config { size: in_cells(self.first_size()), ..whole_fold_config(&self.info) }
    }

    fn first_fold(&self) -> Pipeline {
        Pipeline::resume(self.first_config(), &begin_at(0))
    }

    /// The recording as asciicast, a line at a time. Version 3 counts time from the event before, version 2 from the
    /// start.
    /// Each of the marks, in their order, is a marker at its time in milliseconds: players can jump there.
    pub fn write_cast(
        &self,
        version: CastVersion,
        marks: &[(u64, String)],
        mut line: impl FnMut(&str) -> bool,
    ) {
        if !line(&self.cast_header(version).to_string()) {
            return;
        }
        let mut last = 0;
        let mut held = Vec::new();
        let mut time = |at: u64| {
            let at = at.max(last);
            let gap = at - last;
            last = at;
            let ms = match version {
                CastVersion::Two => at,
                CastVersion::Three => gap,
            };
            ms as f64 / 1000.0
        };
        let mut last_at = 0;
        let mut marks = marks.iter().peekable();
        self.events(|at, what| {
            last_at = at;
            while let Some((at, label)) = marks.next_if(|(mark, _)| *mark <= at) {
                if !line(&serde_json::json!([time(*at), "m", label]).to_string()) {
                    return false;
                }
            }
            match what {
                Played::Resized(size) => {
                    let size = format!("{}x{}", size.cols, size.rows);
                    line(&serde_json::json!([time(at), "r", size]).to_string())
                }
                Played::Output(bytes) => {
                    held.extend_from_slice(bytes);
                    let whole = whole_characters(&held);
                    let text = String::from_utf8_lossy(&held[..whole]).into_owned();
                    held.drain(..whole);
                    text.is_empty() || line(&serde_json::json!([time(at), "o", text]).to_string())
                }
            }
        });
        // A character that was broken off at the very end.
        if !held.is_empty() && !line(&serde_json::json!([time(last_at), "o", "\u{fffd}"]).to_string()) {
            return;
        }
        // Steps that printed nothing after the last output, or together with it.
        for (at, label) in marks {
            if !line(&serde_json::json!([time(*at), "m", label]).to_string()) {
                return;
            }
        }
        if let (Some(receipt), CastVersion::Three) = (self.info.state.receipt(), version) {
            let code = match receipt.outcome {
                End::Exited { code } => code,
                End::Signalled { .. } | End::NotStarted { .. } => 1,
            };
            let at = receipt.ended_at.saturating_sub(self.info.created_at);
            line(&serde_json::json!([time(at), "x", code.to_string()]).to_string());
        }
    }

    fn cast_header(&self, version: CastVersion) -> serde_json::Value {
        let Size { cols, rows } = self.first_size();
        let title = self.info.name.as_deref().unwrap_or(&self.info.command);
        let (timestamp, command) = (self.info.created_at / 1000, &self.info.command);
        match version {
            CastVersion::Two => serde_json::json!({
                "version": 2, "width": cols, "height": rows, "timestamp": timestamp, "command": command,
                "title": title, "env": { "TERM": "xterm-256color" },
            }),
            CastVersion::Three => serde_json::json!({
                "version": 3, "term": { "cols": cols, "rows": rows, "type": "xterm-256color" },
                "timestamp": timestamp, "command": command, "title": title,
            }),
        }
    }
}

/// A version of the asciicast format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastVersion {
    /// That of asciinema before 3.0.
    Two,
    /// That of asciinema 3.0.
    Three,
}

fn in_cells(size: Size) -> outlast_stream::Size {
    outlast_stream::Size { cols: size.cols, rows: size.rows }
}

/// The screen of a fold.
pub(super) fn shot(fold: &mut Pipeline, styled: bool) -> ScreenShot {
    let shot = fold.screen();
    let narrow = |cell: usize| u16::try_from(cell).unwrap_or(u16::MAX);
    ScreenShot {
        size: Size { cols: shot.size.cols, rows: shot.size.rows },
        rows: if styled { fold.styled_screen() } else { shot.rows },
        scrollback: Vec::new(),
        cursor: Cursor {
            row: narrow(shot.cursor.row),
            col: narrow(shot.cursor.col),
            visible: shot.cursor.visible,
        },
        title: shot.title,
        alternate: shot.alternate,
        bracketed_paste: shot.modes.bracketed_paste,
        application_cursor: shot.modes.application_cursor,
        bells: shot.bells,
        offset: fold.offset(),
    }
}

/// How many of the bytes do not end within a character.
fn whole_characters(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let needs = match bytes[at] {
            0x80..0xc0 => continue,
            0xf0.. => 4,
            0xe0.. => 3,
            0xc0.. => 2,
            _ => 1,
        };
        return if needs > back { at } else { bytes.len() };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::spec::{Handle, KeeperSpec};

    /// A job that prints lines, draws a full screen, leaves it, and gets other sizes.
    fn recording(moments: Option<Moments>) -> Recording {
        let (mut log, mut facts) = (Vec::new(), Vec::new());
        let mut size = Size { cols: 40, rows: 10 };
        for round in 0_u16..400 {
            let at_ms = u64::from(round) * 10;
            match round % 100 {
                30 => log.extend_from_slice(b"\x1b[?1049h\x1b[2J"),
                70 => log.extend_from_slice(b"\x1b[?1049l"),
                90 => {
                    size = Size { cols: 30 + round % 37, rows: 8 + round % 7 };
                    let what = timing::FactKind::Resized(size);
                    facts.push(Fact { at_ms, offset: log.len() as u64, what });
                }
                _ => {}
            }
            if (30..70).contains(&(round % 100)) {
                let (row, col) = (1 + round % 9, 1 + round % 30);
                log.extend_from_slice(
                    format!("\x1b[{row};{col}H\x1b[3{}mround {round}\x1b[0m", round % 8).as_bytes(),
                );
            } else {
                log.extend_from_slice(format!("line {round} \x1b[1mbold\x1b[0m\r\n").as_bytes());
            }
            let what = timing::FactKind::Output;
            facts.push(Fact { at_ms, offset: log.len() as u64, what });
        }
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&log).unwrap();
        let mut info = crate::registry::format::claimed(Handle::new(1), &KeeperSpec::shell("true"), 0);
        info.streams = Streams::Terminal(size);
        info.started_size = Some(Size { cols: 40, rows: 10 });
        let errors = Range::of_file(tempfile::tempfile().unwrap().into(), info.streams);
        Recording {
            output: Source::Here(Range::of_file(file.into(), info.streams)),
            errors: Source::Here(errors),
            info,
            facts: Arc::new(facts),
            moments: moments.map(|moments| Arc::new(Mutex::new(moments))),
        }
    }

    #[test]
    fn keyframes_change_no_screen_of_the_past() {
        let (plain, quick) = (recording(None), recording(Some(Moments::near(300, 1))));
        let same = |moment: Moment| {
            let (here, there) =
                (shot(&mut plain.fold_until(moment), true), shot(&mut quick.fold_until(moment), true));
            assert_eq!(here, there, "{moment:?}");
        };
        same(Moment::Time(u64::MAX));
        assert!(quick.moments.as_ref().unwrap().lock().unwrap().count() > 10);
        for round in (0..4000).step_by(35).chain((0..4000).rev().step_by(70)) {
            same(Moment::Time(round));
            same(Moment::Offset(round * 2));
        }
    }

    #[test]
    fn a_moment_near_the_end_is_found_without_the_beginning() {
        let quick = recording(Some(Moments::near(300, 1)));
        quick.fold_until(Moment::Time(u64::MAX));
        let moments = quick.moments.as_ref().unwrap().lock().unwrap();
        let kept = moments.nearest(&quick.facts, Moment::Time(3850), false).unwrap();
        assert!(
            quick.facts.len() - kept.place.fact < 60,
            "fact {} of {}",
            kept.place.fact,
            quick.facts.len()
        );
    }

    #[test]
    fn keyframes_are_bounded() {
        let quick = recording(Some(Moments::near(1, 1)));
        quick.fold_until(Moment::Time(u64::MAX));
        for _ in 0..3 {
            quick.fold_until(Moment::Time(2000));
        }
        assert!(quick.moments.as_ref().unwrap().lock().unwrap().count() <= 512);
    }
}
