//! What the terminal answers to a program's queries.
//!
//! One responder answers, in the order of the queries, with fixed texts. No answer repeats anything from the
//! output, so output cannot inject input. Titles, clipboards, settings and files are never reported.
//!
//! Answers are rate limited by the bytes that came, not by reads or time, so that a replay gives the same
//! answers, and a flood of queries cannot fill the program's input.

use crate::modes::Modes;
use crate::scan::Params;
use crate::size::Size;

/// Bytes of answers that may be sent in one burst.
const MAX_BURST: u64 = 4096;
/// The size of a character cell in pixels, that of a common font, for programs that ask.
const CELL_PIXELS: (usize, usize) = (8, 16);

/// Sends answers, within the rate limit.
#[derive(Debug)]
pub(crate) struct Responder {
    allowance: u64,
    /// The log offset up to which the allowance was credited.
    counted_to: u64,
}

/// What a control sequence asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Query {
    /// It is not a query.
    None,
    /// The cursor's position, which only the screen knows.
    Cursor,
    /// A query with this answer.
    Answer(String),
}

impl Responder {
    pub(crate) fn new(offset: u64) -> Self {
        Self { allowance: MAX_BURST, counted_to: offset }
    }

    /// Writes an answer if the rate limit allows it.
    pub(crate) fn answer(&mut self, answer: &str, offset: u64, replies: &mut Vec<u8>) {
        let earned = offset.saturating_sub(self.counted_to);
        self.counted_to = self.counted_to.max(offset);
        self.allowance = self.allowance.saturating_add(earned).min(MAX_BURST);
        let price = answer.len() as u64;
        if price <= self.allowance {
            self.allowance -= price;
            replies.extend_from_slice(answer.as_bytes());
        }
    }
}

/// What a control sequence asks.
pub(crate) fn query(params: &Params, last: u8, modes: &Modes, size: Size) -> Query {
    let first = params.values()[0];
    let answer = match (params.prefix, params.intermediate, last) {
        (0, 0, b'c') if first == 0 => "\x1b[?6c".to_owned(),
        // The engine's own identity: with another terminal's, programs would use features that it lacks.
        (b'>', 0, b'c') if first == 0 => "\x1b[>0;2600;1c".to_owned(),
        (0, 0, b'n') if first == 5 => "\x1b[0n".to_owned(),
        (0, 0, b'n') if first == 6 => return Query::Cursor,
        (b'>', 0, b'q') if first == 0 => format!("\x1bP>|outlast({})\x1b\\", env!("CARGO_PKG_VERSION")),
        (b'?', b'$', b'p') => format!("\x1b[?{first};{}$y", modes.private_state(first)),
        (0, b'$', b'p') => format!("\x1b[{first};{}$y", modes.standard_state(first)),
        (b'?', 0, b'u') => "\x1b[?0u".to_owned(),
        (0, 0, b't') => match first {
            14 => format!("\x1b[4;{};{}t", size.lines() * CELL_PIXELS.1, size.columns() * CELL_PIXELS.0),
            16 => format!("\x1b[6;{};{}t", CELL_PIXELS.1, CELL_PIXELS.0),
            18 => format!("\x1b[8;{};{}t", size.lines(), size.columns()),
            _ => return Query::None,
        },
        _ => return Query::None,
    };
    Query::Answer(answer)
}

/// The answer to a colour query (OSC 4, 10, 11, 12); `None` for everything else.
pub(crate) fn colour(body: &[u8], ended_by_bell: bool) -> Option<String> {
    let body = std::str::from_utf8(body).ok()?;
    let end = if ended_by_bell { "\x07" } else { "\x1b\\" };
    let rgb = |red: u8, green: u8, blue: u8| {
        format!("rgb:{red:02x}{red:02x}/{green:02x}{green:02x}/{blue:02x}{blue:02x}")
    };
    match body {
        "10;?" | "12;?" => Some(format!("\x1b]{};{}{end}", &body[..2], rgb(0xd8, 0xd8, 0xd8))),
        "11;?" => Some(format!("\x1b]11;{}{end}", rgb(0x18, 0x18, 0x18))),
        _ => {
            let index: u8 = body.strip_prefix("4;")?.strip_suffix(";?")?.parse().ok()?;
            let (red, green, blue) = palette(index);
            Some(format!("\x1b]4;{index};{}{end}", rgb(red, green, blue)))
        }
    }
}

/// The common palette of 256 colours: 16 of VGA, a cube, and greys.
fn palette(index: u8) -> (u8, u8, u8) {
    match index {
        0..=15 => {
            let level = |bit: u8| match (index & bit != 0, index > 7) {
                (true, true) => 0xff,
                (true, false) => 0xaa,
                (false, true) => 0x55,
                (false, false) => 0x00,
            };
            (level(1), level(2), level(4))
        }
        16..=231 => {
            let step = |value: u8| if value == 0 { 0 } else { 55 + value * 40 };
            let cube = index - 16;
            (step(cube / 36), step(cube / 6 % 6), step(cube % 6))
        }
        232..=255 => {
            let grey = 8 + (index - 232) * 10;
            (grey, grey, grey)
        }
    }
}
