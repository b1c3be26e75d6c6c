//! Prompts, and what somebody has typed after one: a pure reading of a row and the cursor.

use outlast_protocol::failure::Failure;
use regex_automata::meta::Regex;

/// What a prompt ends with.
const PROMPT_MARKS: &[char] = &['$', '#', '%', '>', '❯', '›', '»', '➜', 'λ', '⟩', '│', '┃'];

/// What stands between a prompt that the user has described and the cursor; none where no such prompt is.
pub(super) fn before_cursor(row: &str, cursor: usize, prompt: &Regex) -> Option<String> {
    let before: String = row.chars().take(cursor).collect();
    // A row of tmux has no blanks at its end: the prompt's own may be missing.
    let padded = format!("{before: <cursor$}");
    let found = prompt.find_iter(&padded).last()?;
    Some(padded[found.end()..].trim().to_owned())
}

/// What a prompt looks like, in the user's words.
///
/// # Errors
/// When that is not a regular expression.
pub fn prompt_of(pattern: &str) -> Result<Regex, Failure> {
    Regex::new(pattern).map_err(|error| {
        let why = error.to_string();
        let why = why.lines().last().unwrap_or_default().trim();
        Failure::usage(format!("{pattern:?} is not a valid pattern for a prompt: {why}"))
            .hint("give a regular expression, for example --prompt '^ready: '")
    })
}

/// What somebody has typed in the row of the cursor and not entered. A prompt is known by what the user says of it,
/// or by how it ends; a row without one is nobody's line.
pub(super) fn half_typed(row: &str, cursor: usize, prompt: Option<&Regex>) -> Option<String> {
    if let Some(draft) = prompt.and_then(|prompt| before_cursor(row, cursor, prompt)) {
        return (!draft.is_empty()).then_some(draft);
    }
    let before: String = row.chars().take(cursor).collect();
    let marked = before.trim_end();
    if marked.is_empty() || marked.ends_with(PROMPT_MARKS) {
        return None;
    }
    // The last mark that a blank follows ends the prompt; what comes after it is the draft.
    let at =
        before.match_indices(PROMPT_MARKS).filter(|(at, mark)| before[at + mark.len()..].starts_with(' '));
    let (at, mark) = at.max_by_key(|(at, _)| *at)?;
    Some(before[at + mark.len()..].trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_told_from_a_prompt() {
        for (row, draft) in [
            ("", None),
            ("$ ", None),
            ("user@host:~/x$ ", None),
            ("user@host:~/x$ make te", Some("make te")),
            ("│ > ", None),
            ("│ > fix the", Some("fix the")),
            ("❯ git st", Some("git st")),
            ("compiling 50%", None),
            (">>> print(", Some("print(")),
            ("done", None),
        ] {
            assert_eq!(half_typed(row, row.chars().count(), None).as_deref(), draft, "{row:?}");
        }
        // What stands behind the cursor is a suggestion, not a draft.
        assert_eq!(half_typed("> Try \"fix lint\"", 2, None), None);
    }

    #[test]
    fn an_unusual_prompt_is_known_by_what_is_said_of_it() {
        let prompt = prompt_of("^(ready|busy): ").unwrap();
        for (row, cursor, draft) in [
            ("ready:", 7, None),
            ("ready: make te", 14, Some("make te")),
            ("ready: a: b", 11, Some("a: b")),
            ("$ make", 6, Some("make")),
            ("done", 4, None),
        ] {
            assert_eq!(half_typed(row, cursor, Some(&prompt)).as_deref(), draft, "{row:?}");
        }
        assert_eq!(half_typed("ready: make", 11, None), None, "nobody could know");
        assert!(prompt_of("(").is_err());
    }
}
