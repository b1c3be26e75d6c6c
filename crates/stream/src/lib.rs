//! What a terminal's bytes mean.
//!
//! A job writes bytes. People and agents want lines, a screen, and to know when a pattern was printed. This
//! crate is that translation and nothing else: a pure fold over bytes and sizes. It opens no files, reads no
//! clock, starts no threads and knows nothing of jobs. The same bytes give the same result, in whatever
//! pieces they are fed.
//!
//! ```text
//! bytes ─ scan ─┬─ transcript   lines as a person would have read them      (page: while it is redrawn)
//!               ├─ screen       what the terminal shows now                 (a real engine, fed late)
//!               ├─ matching     patterns, while the text is printed
//!               ├─ replies      what the terminal answers
//!               └─ modes        what the program has asked of its terminal
//! ```
//!
//! [`Pipeline`] holds it together. The rest is for input and for readers:
//! - [`Key`], [`encode`], [`typed`], [`typed_line`], [`paste`]: the bytes that keys and text send in the
//!   program's modes
//! - [`visible`](fn@visible): makes control and invisible characters visible
//! - [`Passthrough`]: filters raw output on its way to a person's terminal
//! - [`LineStream`]: each line once, as it comes; [`plain`](fn@plain): a line without escape sequences
//! - [`outcome`]: what known tools reported: counts and first errors
//! - [`Masks`], [`Redactor`]: hide secrets in stored output and in a stream

mod size;
mod scan;
mod modes;
mod charset;
mod page;
mod transcript;
mod pattern;
mod matching;
mod replies;
mod stable_screen;
mod screen;
mod checkpoint;
mod fold_output;
pub mod outcome;
mod pipeline;
mod keys;
mod visible;
mod passthrough;
mod line_stream;
mod mask;
mod line_batch;
mod plain;

pub use checkpoint::Checkpoint;
pub use fold_output::FoldOutput;
pub use keys::{Base, Key, UnknownKey, encode, paste, typed, typed_line};
pub use line_batch::{LeftOut, LineBatch, LineBatches};
pub use line_stream::{CUT_MARK, LineStream, MAX_LINE_CHARS};
pub use mask::{BadMask, CONTEXT as MASK_CONTEXT, MIN_SECRET_BYTES, Masks, Redactor};
pub use matching::Hit;
pub use modes::Modes;
pub use passthrough::Passthrough;
pub use pattern::{MAX_PATTERN_BYTES, MAX_PATTERNS, PatternError, PatternSet};
pub use pipeline::{Config, Keyframe, Pipeline};
pub use plain::plain;
pub use screen::{CursorPosition, Snapshot};
pub use size::Size;
pub use stable_screen::{StableScreen, compile_pattern};
pub use visible::visible;
