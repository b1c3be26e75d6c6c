//! Reads what a job printed, straight from its files: as text a person would have read, or as raw bytes.
//!
//! Every answer is bounded and costs what it returns, not what the job wrote: a long range is cut in the middle,
//! at lines, before it is folded, so the exact bytes that were left out can be named and read by another call.

mod text_fold;

use std::os::fd::{AsFd, OwnedFd};

use outlast_protocol::request::{Answer, JobRequest, Lines, ReadBytes, ReadText, Stream, Text};
use outlast_stream::Pipeline;
use rustix::fs::{AtFlags, statat};

use super::LocalJob;
use super::log_slice::{Folded, LogSlice};
use crate::elsewhere::{BYTES_PER_ANSWER, ElsewhereJob};
use crate::failure::Failure;
use crate::log::gone::Gone;
use crate::log::writer::read_exact_at;
use crate::registry::format::Info;
use crate::registry::layout;
use crate::registry::replace::read_small;
use crate::search::{Hiding, begin_at, fold_config, read_masked};
use crate::secrets::{self, SharedMasks};
use crate::spec::Streams;
pub(super) use text_fold::Fold;

/// The default bound of an answer.
pub const MAX_OUTPUT: usize = 16_384;
/// Larger than any screen we write.
const MAX_SCREEN: usize = 64 << 20;
/// Room for the line that a door puts where something is left out.
const MARK_LINE: usize = 160;
/// How much is read at once.
const PIECE: usize = 64 << 10;
/// In how much of the end of a log its last lines are looked for first.
const LAST_LINES: u64 = 4 << 10;
/// After how much it is looked whether the text has outgrown its bound.
const STEP: usize = 8 << 10;

impl LocalJob {
    /// The end of the log.
    #[must_use]
    pub(crate) fn log_end(&self) -> u64 {
        self.stream_end(Stream::Output)
    }

    /// The end of one stream's log.
    #[must_use]
    pub(crate) fn stream_end(&self, stream: Stream) -> u64 {
        // What could not be written at the end of the log has its offsets all the same.
        let on_disk = || self.open_log(stream).map_or(0, |log| size(&log));
        self.record().map_or_else(|_| on_disk(), |info| self.end_of(stream, &info))
    }

    /// The same, for those who have read the record already.
    pub(crate) fn end_of(&self, stream: Stream, info: &Info) -> u64 {
        let on_disk = statat(&self.open.dir, log_name(stream), AtFlags::SYMLINK_NOFOLLOW);
        let on_disk = on_disk.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        on_disk.max(gone_of(info, stream).end())
    }

    fn open_log(&self, stream: Stream) -> Option<OwnedFd> {
        self.open.dir.open(log_name(stream)).ok()
    }

    /// Opens a range of a stream for reading.
    ///
    /// # Errors
    /// When the job's record can't be read.
    pub(crate) fn range(&self, stream: Stream, from: u64, to: Option<u64>) -> Result<Range, Failure> {
        let info = self.record()?;
        let whole = self.whole(stream, &info, self.masks()?);
        let to = to.unwrap_or(whole.to).min(whole.to);
        Ok(Range { from: from.min(to), to, ..whole })
    }

    /// All of a stream, for those who have read the record and the masks already.
    pub(crate) fn whole(&self, stream: Stream, info: &Info, masks: Option<SharedMasks>) -> Range {
        let log = self.open_log(stream);
        let gone = gone_of(info, stream).clone();
        let to = log.as_ref().map_or(0, size).max(gone.end());
        Range { log, from: 0, to, gone, streams: info.streams, masks }
    }

    /// The range that is to be read as text.
    pub(crate) fn range_of(&self, read: &ReadText) -> Result<Range, Failure> {
        let info = self.record()?;
        let mut range = self.range(read.stream, read.from, read.to)?;
        range.leave_out(unreadable_of(&info, read.stream));
        Ok(range.only(read.lines))
    }

    /// A range as text, within its bound: the head and the tail.
    pub(crate) fn text(&self, read: &ReadText) -> Result<Text, Failure> {
        Ok(self.range_of(read)?.excerpt_with(read.max, read.reserve.unwrap_or(MARK_LINE)))
    }
}

impl LocalJob {
    /// What its terminal showed last; none where that was not saved.
    pub(crate) fn last_screen(&self) -> Result<Option<String>, Failure> {
        match read_small(&self.open.dir, layout::SCREEN, MAX_SCREEN) {
            Ok(bytes) => self.hide(&String::from_utf8_lossy(&bytes)).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Its own events, a JSON object a line: the newest that fit.
    pub(crate) fn event_lines(&self, max: usize) -> Result<String, Failure> {
        let broken =
            |error| Failure::system(format!("cannot read the events of job {}", self.handle()), error);
        let lines = self.open.dir.event_lines(max).map_err(broken)?;
        self.hide(&String::from_utf8_lossy(&lines))
    }
}

/// All of a range of a job on another machine as text. The fold goes on from answer to answer.
pub(crate) fn text_from_elsewhere(
    job: &ElsewhereJob,
    streams: Streams,
    read: &ReadText,
    mut each: impl FnMut(&[u8]) -> bool,
) -> Result<(), Failure> {
    // A program that goes back and forth on its screen may put a secret together only in the text.
    let hidden = |text: &[u8]| -> Result<Vec<u8>, Failure> {
        if !job.is_masked() {
            return Ok(text.to_vec());
        }
        match job.ask(JobRequest::Hide { text: String::from_utf8_lossy(text).into_owned() })? {
            Answer::Hidden(text) => Ok(text.into_bytes()),
            other => Err(crate::elsewhere::unexpected(&other)),
        }
    };
    // Where the range begins is known with its first bytes.
    let mut fold: Option<Fold> = None;
    let mut going = Ok(true);
    job.pieces(first_bytes(read), |at, piece| {
        let fold = fold.get_or_insert_with(|| Fold::new(streams, at));
        fold.piece(at, &piece);
        fold.take_settled(&mut |settled| {
            going = hidden(settled).map(|text| each(&text));
            matches!(going, Ok(true))
        })
    })?;
    if going? && let Some(mut fold) = fold {
        fold.finish();
        each(&hidden(&fold.text)?);
    }
    Ok(())
}

/// What is asked for first where all of a range is read as text.
#[must_use]
pub fn first_bytes(read: &ReadText) -> ReadBytes {
    let ReadText { stream, from, to, lines, .. } = *read;
    ReadBytes { stream, from, to, lines, max: BYTES_PER_ANSWER, as_is: false }
}

/// A fold for a job's output that knows nothing of what came before an offset.
#[must_use]
pub fn fold_from(info: &Info, offset: u64) -> Pipeline {
    Pipeline::resume(fold_config(info.streams), &begin_at(offset))
}

fn log_name(stream: Stream) -> &'static str {
    match stream {
        Stream::Output => layout::OUTPUT,
        Stream::Stderr => layout::ERRORS,
    }
}

/// What of a stream a keeper died of.
pub(super) fn unreadable_of(info: &Info, stream: Stream) -> &Gone {
    match stream {
        Stream::Output => &info.unreadable,
        Stream::Stderr => &info.errors_unreadable,
    }
}

fn gone_of(info: &Info, stream: Stream) -> &Gone {
    match stream {
        Stream::Output => &info.gone,
        Stream::Stderr => &info.errors_gone,
    }
}

/// How many bytes are folded for a text of a given size: about as many, and where they turn out to be much less text, a few
/// times more.
fn spans(budget: usize) -> [u64; 2] {
    let budget = budget as u64;
    [budget + budget / 4 + 4096, 4 * budget + 4096]
}

fn size(log: &OwnedFd) -> u64 {
    rustix::fs::fstat(log).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
}

/// A range of a log.
#[derive(Debug)]
pub(crate) struct Range {
    log: Option<OwnedFd>,
    from: u64,
    to: u64,
    gone: Gone,
    streams: Streams,
    /// What must be hidden.
    masks: Option<SharedMasks>,
}

#[cfg(test)]
impl Range {
    /// All of a file, with nothing hidden.
    pub(super) fn of_file(log: OwnedFd, streams: Streams) -> Self {
        let to = size(&log);
        Self { log: Some(log), from: 0, to, gone: Gone::default(), streams, masks: None }
    }
}

/// How far from a range the rest of a secret may have been drawn.
const DRAWN_WITHIN: u64 = 64 << 10;

/// A piece of a range.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes as the job wrote them.
    Bytes(&'a [u8]),
    /// These offsets are not in the log any more.
    Lost {
        /// The first.
        from: u64,
        /// Just after the last.
        to: u64,
    },
}

impl Range {
    /// Where it begins.
    #[must_use]
    pub(crate) fn from(&self) -> u64 {
        self.from
    }

    /// Whether some of it is not in the log any more.
    pub(super) fn has_gaps(&self) -> bool {
        self.gone.bytes_in(self.from, self.to) > 0
    }

    /// Also leaves out what nobody can interpret.
    pub(crate) fn leave_out(&mut self, unreadable: &Gone) {
        for (from, to) in unreadable.ranges() {
            self.gone.add(*from, *to);
        }
    }

    /// Where it ends.
    #[must_use]
    pub(crate) fn to(&self) -> u64 {
        self.to
    }

    /// Hands out all of it in order, until `each` says stop.
    pub(crate) fn pieces(&self, each: impl FnMut(u64, Piece<'_>) -> bool) {
        self.pieces_as(Hiding::All, each);
    }

    /// The same to be folded into text, in which secrets are [hidden again](Self::hide_again).
    pub(super) fn pieces_for_text(&self, each: impl FnMut(u64, Piece<'_>) -> bool) {
        self.pieces_as(Hiding::Complete, each);
    }

    fn pieces_as(&self, hiding: Hiding, mut each: impl FnMut(u64, Piece<'_>) -> bool) {
        let Some(log) = &self.log else { return };
        let mut at = self.from;
        let longest = self.to.saturating_sub(self.from).min(PIECE as u64);
        let mut buffer = vec![0; usize::try_from(longest).unwrap_or(PIECE)];
        while at < self.to {
            let gone = self.gone.next(at).unwrap_or((u64::MAX, u64::MAX));
            if gone.0 <= at {
                let to = gone.1.min(self.to);
                if !each(at, Piece::Lost { from: at, to }) {
                    return;
                }
                at = to;
                continue;
            }
            let want = (self.to.min(gone.0) - at).min(PIECE as u64);
            let want = usize::try_from(want).unwrap_or(PIECE);
            let got = match &self.masks {
                Some(masks) => read_masked(log.as_fd(), &mut buffer[..want], at, (masks, hiding)),
                None => read_exact_at(log.as_fd(), &mut buffer[..want], at),
            };
            if got == 0 || !each(at, Piece::Bytes(&buffer[..got])) {
                return;
            }
            at += got as u64;
        }
    }

    /// The same range with other borders.
    #[must_use]
    pub(crate) fn part(&self, from: u64, to: u64) -> Self {
        let log = self.log.as_ref().and_then(|log| log.try_clone().ok());
        Self { log, from, to, gone: self.gone.clone(), streams: self.streams, masks: self.masks.clone() }
    }

    /// All of it as text, without a bound: for files and pipes.
    pub(crate) fn fold(&self, mut each: impl FnMut(&[u8]) -> bool) {
        let mut fold = Fold::new(self.streams, self.from);
        let mut going = true;
        self.pieces_for_text(|at, piece| {
            fold.piece(at, &piece);
            // A line that may still be redrawn is not out of the fold's hands yet.
            going = fold.take_settled(&mut |settled| {
                let mut settled = settled.to_vec();
                self.hide_again(&mut settled);
                each(&settled)
            });
            going
        });
        if going {
            fold.finish();
            self.hide_again(&mut fold.text);
            each(&fold.text);
        }
    }

    /// A program that goes back and forth on its screen may put a secret together only in the text.
    fn hide_again(&self, text: &mut [u8]) {
        if let Some(masks) = &self.masks {
            secrets::with(masks, |masks| masks.hide(text));
        }
    }

    /// Whether a secret is in it that is not one piece in the bytes: a program has gone back and forth on its screen, and only
    /// there it is whole. A part of it may be outside of this range, so some more is looked at on both sides.
    pub(super) fn draws_a_secret(&self, end: u64) -> bool {
        let Some(masks) = &self.masks else { return false };
        let around = self.part(self.from.saturating_sub(DRAWN_WITHIN), (self.to + DRAWN_WITHIN).min(end));
        let mut fold = Fold::new(self.streams, around.from);
        let mut found = false;
        around.pieces_for_text(|at, piece| {
            fold.piece(at, &piece);
            let screen = fold.pipeline.screen().rows.join("\n");
            found |= secrets::with(masks, |masks| masks.knows_part_of(screen.as_bytes()));
            !found
        });
        fold.finish();
        found || secrets::with(masks, |masks| masks.knows_part_of(&fold.text))
    }

    /// A fold for what comes from an offset on.
    pub(super) fn fold_at(&self, from: u64) -> Fold {
        Fold::new(self.streams, from)
    }

    /// All of it as text, if that is at most `max` bytes.
    fn whole_text_within(&self, max: usize) -> Option<String> {
        let mut fold = Fold::new(self.streams, self.from);
        // A program may still take back what it has drawn, but no more than fits on a screen.
        let most = max + PIECE;
        self.pieces_for_text(|at, piece| {
            match piece {
                Piece::Bytes(bytes) => {
                    for (i, part) in bytes.chunks(STEP).enumerate() {
                        fold.piece(at + (i * STEP) as u64, &Piece::Bytes(part));
                        if fold.text.len() > most {
                            return false;
                        }
                    }
                }
                gone @ Piece::Lost { .. } => {
                    fold.piece(at, &gone);
                }
            }
            fold.text.len() <= most
        });
        if fold.text.len() > most {
            return None;
        }
        Some(self.finished(fold)).filter(|text| text.len() <= max)
    }

    pub(super) fn finished(&self, mut fold: Fold) -> String {
        fold.finish();
        self.hide_again(&mut fold.text);
        String::from_utf8_lossy(&fold.text).into_owned()
    }

    /// Only some of its lines.
    #[must_use]
    pub(crate) fn only(self, lines: Option<Lines>) -> Self {
        match lines {
            None => self,
            Some(Lines::First(count)) => self.first_lines(count),
            Some(Lines::Last(count)) => self.last_lines(count),
        }
    }

    /// At most `max` bytes of text: the head and the tail.
    #[must_use]
    pub(crate) fn excerpt(&self, max: usize) -> Text {
        self.excerpt_with(max, MARK_LINE)
    }

    /// The same; where something is left out, `reserve` of them are kept free for the words that say so. It is cut
    /// between lines, unless one line is larger than all there is room for.
    #[must_use]
    pub(crate) fn excerpt_with(&self, max: usize, reserve: usize) -> Text {
        let answer = |head: String, tail: String, omitted: Option<(u64, u64)>| Text {
            head,
            tail,
            omitted,
            from: self.from,
            offset: self.to,
            lost_bytes: self.gone.bytes_in(self.from, self.to),
            ends_line: self.ends_a_line(),
        };
        // Raw bytes are mostly text; a range this much larger can't fit, and is not even looked at whole.
        if self.to - self.from <= 16 * max as u64 + PIECE as u64
            && let Some(text) = self.whole_text_within(max)
        {
            return answer(text, String::new(), None);
        }
        let budget = max.saturating_sub(reserve);
        let head = self.head(budget / 4);
        let (from, used) = head.as_ref().map_or((self.from, 0), |(text, end)| (*end, text.len()));
        let tail = self.tail(budget - used, from);
        // A line larger than all there is room for is cut. If whole lines fill most of the room, it is left out.
        let (head, head_end) = match (head, &tail) {
            (Some(head), _) => head,
            (None, Some((tail, _))) if tail.len() > budget - budget / 4 => (String::new(), self.from),
            (None, _) => self.begin_of_line(budget / 4),
        };
        let (tail, tail_start) = tail.unwrap_or_else(|| self.end_of_line(budget - head.len(), head_end));
        answer(head, tail, Some((head_end, tail_start)))
    }

    /// As many whole lines from the beginning as fit, and where they end; none if not one fits.
    fn head(&self, budget: usize) -> Option<(String, u64)> {
        for span in spans(budget).into_iter().filter(|_| budget > 0) {
            let slice = LogSlice::of(self.part(self.from, self.to.min(self.from + span)));
            let Folded { text, mut line_ends } = slice.fold(self.from);
            if slice.to() == self.to {
                line_ends.push((slice.to(), text.len()));
            }
            let mut fitting = line_ends.partition_point(|(_, len)| *len <= budget);
            let may_need_more = slice.to() < self.to && span == spans(budget)[0];
            if may_need_more && (fitting == 0 || fitting == line_ends.len()) {
                continue;
            }
            // Mostly the first try fits; text that a program still draws at may come in late.
            while fitting > 0 {
                let end = line_ends[fitting - 1].0;
                let text = slice.text(self.from, end);
                if text.len() <= budget && end > self.from {
                    return Some((text, end));
                }
                fitting /= 2;
            }
        }
        None
    }

    /// The beginning of a line that is too long.
    fn begin_of_line(&self, budget: usize) -> (String, u64) {
        let slice = LogSlice::of(self.part(self.from, self.to.min(self.from + spans(budget)[0])));
        let end = slice.character_at((self.from + budget as u64 / 2).min(self.to));
        let mut text = slice.text(self.from, end);
        text.truncate(text.floor_char_boundary(budget));
        (text, end)
    }

    /// As many whole lines up to the end as fit, and where they begin; none if not one fits.
    fn tail(&self, budget: usize, not_before: u64) -> Option<(String, u64)> {
        for span in spans(budget) {
            let start = self.to.saturating_sub(span).max(not_before);
            let slice = LogSlice::of(self.part(start, self.to));
            let may_need_more = start > not_before && span == spans(budget)[0];
            let first = if start == not_before { Some(start) } else { slice.first_line_end() };
            if let Some(first) = first.filter(|first| *first < self.to) {
                let Folded { text, line_ends } = slice.fold(first);
                let begins = std::iter::once((first, 0)).chain(line_ends).filter(|(at, _)| *at < self.to);
                let fitting = |(_, begin): &(u64, usize)| text.len().saturating_sub(*begin) <= budget;
                let fits = begins.into_iter().find(fitting);
                if let Some((at, begin)) = fits.filter(|(at, _)| *at > first || !may_need_more) {
                    return Some((text.get(begin..).unwrap_or_default().to_owned(), at));
                }
            }
        }
        None
    }

    /// The end of a line that is too long.
    fn end_of_line(&self, budget: usize, not_before: u64) -> (String, u64) {
        let start = self.to.saturating_sub(spans(budget)[0]).max(not_before);
        let slice = LogSlice::of(self.part(start, self.to));
        // Bytes that are not text take more room than they were.
        for share in [1, 3] {
            let from = slice.character_at(self.to.saturating_sub(budget as u64 / share)).max(not_before);
            let text = slice.text(from, self.to);
            if text.len() <= budget || share == 3 {
                let cut = text.ceil_char_boundary(text.len().saturating_sub(budget));
                return (text[cut..].to_owned(), from);
            }
        }
        (String::new(), self.to)
    }

    /// Whether its last byte ends a line; so does what is gone, and nothing at all.
    #[must_use]
    pub(crate) fn ends_a_line(&self) -> bool {
        let mut ends = true;
        self.part(self.to.saturating_sub(1).max(self.from), self.to).pieces_as(
            Hiding::Nothing,
            |_, piece| {
                ends = matches!(piece, Piece::Lost { .. } | Piece::Bytes([.., b'\n']));
                true
            },
        );
        ends
    }

    /// The offsets just after each line feed; nothing that is hidden is one.
    fn line_ends(&self) -> Vec<u64> {
        let mut ends = Vec::new();
        self.pieces_as(Hiding::Nothing, |at, piece| {
            match piece {
                Piece::Bytes(bytes) => {
                    let feeds = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
                    ends.extend(feeds.map(|(i, _)| at + i as u64 + 1));
                }
                Piece::Lost { to, .. } => ends.push(to),
            }
            true
        });
        ends
    }

    /// The last lines of it: as many as are asked for.
    #[must_use]
    pub(crate) fn last_lines(&self, count: usize) -> Self {
        let mut span = LAST_LINES;
        loop {
            let start = self.to.saturating_sub(span).max(self.from);
            let part = self.part(start, self.to);
            let ends = part.line_ends();
            // A line feed at the very end closes the last line, it does not begin another.
            let inner: Vec<u64> = ends.into_iter().filter(|end| *end < self.to).collect();
            if inner.len() >= count && count > 0 {
                return self.part(inner[inner.len() - count], self.to);
            }
            if start == self.from {
                return if count == 0 { self.part(self.to, self.to) } else { part };
            }
            span *= 4;
        }
    }

    /// The first lines of it: as many as are asked for.
    #[must_use]
    pub(crate) fn first_lines(&self, count: usize) -> Self {
        if count == 0 {
            return self.part(self.from, self.from);
        }
        let mut left = count;
        let mut end = self.to;
        self.pieces_as(Hiding::Nothing, |at, piece| {
            if let Piece::Bytes(bytes) = piece {
                for (i, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
                    left = left.saturating_sub(1);
                    if left == 0 {
                        end = at + i as u64 + 1;
                        return false;
                    }
                }
            }
            left > 0
        });
        self.part(self.from, end)
    }
}
