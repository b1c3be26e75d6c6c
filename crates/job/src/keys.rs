//! The names of keys, checked before anything is typed: by the client, so that no wrong name reaches a keeper, and by
//! the keeper, whose clients may be of another version.

use std::collections::BTreeSet;

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
    let (mut wrong, mut near) = (BTreeSet::new(), BTreeSet::new());
    for name in names {
        match Key::parse(name) {
            Ok(key) => keys.push(key),
            Err(unknown) => {
                if wrong.insert(format!("{:?}", unknown.name)) {
                    near.extend(unknown.near.into_iter().next());
                }
            }
        }
    }
    if wrong.is_empty() {
        return Ok(keys);
    }
    let more = wrong.len().saturating_sub(MAX_NAMED);
    let named = |names: BTreeSet<String>| names.into_iter().take(MAX_NAMED).collect::<Vec<_>>().join(", ");
    let count = wrong.len();
    let list = named(wrong);
    let message = match (count, more) {
        (1, _) => format!("there is no key {list}"),
        (_, 0) => format!("there are no keys {list}"),
        (_, more) => format!("there are no keys {list}, nor {more} others of this call"),
    };
    let near = if near.is_empty() { String::new() } else { format!(" Did you mean {}?", named(near)) };
    Err(Failure::usage(message).hint(format!("nothing was typed.{near} The keys are {}", Key::names())))
}
