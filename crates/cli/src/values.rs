//! Value parsers that several verbs share.

use std::time::Duration;

use outlast_protocol::shell::ShellKind;
use outlast_protocol::units::{parse_bytes, parse_duration};
use outlast_protocol::{DetachKey, Size};

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|failure| failure.to_string())
}

pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|failure| failure.to_string())
}

pub(crate) fn size(text: &str) -> Result<Size, String> {
    let sides =
        text.split_once(['x', 'X']).and_then(|(cols, rows)| Some((cols.parse().ok()?, rows.parse().ok()?)));
    let (cols, rows) = sides.ok_or_else(|| format!("{text:?} is not a size\n  write for example 120x40"))?;
    Size { cols, rows }.checked().map_err(|failure| failure.to_string())
}

pub(crate) fn shell_kind(text: &str) -> Result<ShellKind, String> {
    text.parse().map_err(|unknown: outlast_protocol::UnknownWord| unknown.to_string())
}

pub(crate) fn detach_key(text: &str) -> Result<DetachKey, String> {
    text.parse().map_err(|failure: outlast_protocol::Failure| failure.to_string())
}
