//! What a terminal's bytes mean.
//!
//! A job writes bytes; people and agents want lines, a screen, and to know when something was said. This crate
//! is that translation and nothing else: a pure fold over bytes and sizes. It opens no file, asks no clock, starts no
//! thread and knows no job. Feed it the same bytes in any pieces and it says the same.
//!
//! ```text
//! bytes ─ scan ─┬─ transcript   lines as a person would have read them      (page: while something is redrawn)
//!               ├─ screen       what the terminal shows now                 (a real engine, fed late)
//!               ├─ matching     patterns, while the text is printed
//!               ├─ replies      what the terminal answers
//!               └─ modes        what the program has asked of its terminal
//! ```
//!
//! [`Pipeline`] holds it together. The other direction, and views for those who look:
//! - [`Key`], [`encode`], [`typed`], [`typed_line`], [`paste`]: what keys and text send to a program in its present modes
//! - [`excerpt`](fn@excerpt): long text cut to what fits an answer
//! - [`visible`](fn@visible): text in which nothing acts or hides
//! - [`Passthrough`]: raw output that may reach a person's terminal
//! - [`LineStream`]: each line once, as it comes; [`plain`](fn@plain): without what only a terminal understands
//! - [`Masks`], [`Redactor`]: secrets hidden, in what is there and while it comes

mod size;
mod scan;
mod modes;
mod charset;
mod page;
mod transcript;
mod pattern;
mod matching;
mod replies;
mod screen;
mod checkpoint;
mod outcome;
mod pipeline;
mod keys;
mod excerpt;
mod visible;
mod passthrough;
mod line_stream;
mod mask;
mod line_batch;
mod plain;

pub use checkpoint::Checkpoint;
pub use excerpt::{Excerpt, excerpt};
pub use keys::{Base, Key, UnknownKey, encode, paste, typed, typed_line};
pub use line_batch::{LeftOut, LineBatch, LineBatches};
pub use line_stream::{CUT_MARK, LineStream, MAX_LINE_CHARS};
pub use mask::{BadMask, CONTEXT as MASK_CONTEXT, Masks, Redactor, SHORTEST as SHORTEST_SECRET};
pub use matching::Hit;
pub use modes::Modes;
pub use outcome::Outcome;
pub use passthrough::Passthrough;
pub use pattern::{MAX_PATTERN_BYTES, MAX_PATTERNS, PatternError, PatternSet};
pub use pipeline::{Config, Pipeline, scan};
pub use plain::plain;
pub use screen::{CursorPosition, Snapshot};
pub use size::Size;
pub use visible::visible;
