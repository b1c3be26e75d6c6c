//! Value parsers that several verbs share.

use std::time::Duration;

use outlast_protocol::Size;
use outlast_protocol::units::{parse_bytes, parse_duration};

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|failure| failure.to_string())
}

pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|failure| failure.to_string())
}

pub(crate) fn size(text: &str) -> Result<Size, String> {
    let sides =
        text.split_once(['x', 'X']).and_then(|(cols, rows)| Some((cols.parse().ok()?, rows.parse().ok()?)));
    let (cols, rows) = sides.ok_or_else(|| format!("{text:?} is not a size; write for example 120x40"))?;
    Size { cols, rows }.checked().map_err(|failure| failure.to_string())
}
