//! Pages of `docs/` that hold what a command found out, between two marks.

use std::path::Path;

/// Puts a text between the marks of a page.
///
/// # Errors
/// When the page can't be read or written, or has no such marks.
pub(crate) fn fill(page: &Path, (begin, end): (&str, &str), text: &str) -> Result<(), String> {
    let say = |error: std::io::Error| error.to_string();
    let old = std::fs::read_to_string(page).map_err(say)?;
    let (Some(from), Some(to)) = (old.find(begin), old.find(end)) else {
        return Err(format!("{} has no place for this: {begin} … {end}", page.display()));
    };
    std::fs::write(page, format!("{}{begin}\n\n{text}\n{}", &old[..from], &old[to..])).map_err(say)
}
