//! The names of keys, checked before anything is typed: by the client, so that no wrong name reaches a keeper, and by
//! the keeper, whose clients may be of another version.

use outlast_stream::Key;

use crate::failure::Failure;

/// More wrong names than this are counted and not named.
const MAX_NAMED: usize = 50;

/// The keys of these names.
///
/// # Errors
/// [`Kind::Usage`](crate::Kind::Usage) with every name that is wrong and every name that there is.
pub fn parse(names: &[String]) -> Result<Vec<Key>, Failure> {
    let mut keys = Vec::with_capacity(names.len());
    let (mut wrong, mut near): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for name in names {
        match Key::parse(name) {
            Ok(key) => keys.push(key),
            Err(unknown) => {
                let name = format!("{:?}", unknown.name);
                if !wrong.contains(&name) {
                    wrong.push(name);
                }
                near.extend(unknown.near.into_iter().next());
            }
        }
    }
    if wrong.is_empty() {
        return Ok(keys);
    }
    let more = wrong.len().saturating_sub(MAX_NAMED);
    wrong.truncate(MAX_NAMED);
    let list = wrong.join(", ");
    let message = match (wrong.len(), more) {
        (1, _) => format!("there is no key {list}"),
        (_, 0) => format!("there are no keys {list}"),
        (_, more) => format!("there are no keys {list}, nor {more} others of this call"),
    };
    near.dedup();
    near.truncate(MAX_NAMED);
    let near = if near.is_empty() { String::new() } else { format!("did you mean {}? ", near.join(", ")) };
    Err(Failure::usage(message).hint(format!("nothing was typed; {near}The keys are {}", Key::names())))
}
