//! Which sort of input a waiting program wants, by the modes of its terminal, the screen and its name.

use super::{Hints, Kind, text};

/// Programs that show text by the page.
const PAGERS: [&str; 6] = ["less", "more", "most", "pg", "man", "pager"];

/// The sort of input. `canonical` and `echo` are the modes of the terminal that it is typed at.
pub(super) fn kind(hints: &Hints<'_>, canonical: bool, echo: bool, program: &str) -> Kind {
    let prompt = hints.text_before_cursor;
    if !echo && (canonical || text::asks_for_secret(prompt)) {
        return Kind::Password;
    }
    if PAGERS.contains(&program) || (!canonical && text::is_pager_line(prompt)) {
        return Kind::Pager;
    }
    if hints.alternate_screen {
        return Kind::Menu;
    }
    if hints.bracketed_paste {
        // Whoever edits lines marks pastes, also to ask a plain question.
        let asks = prompt.trim_end().ends_with(['?', ':']) && !text::is_command_prompt(prompt);
        return if asks { Kind::Line } else { Kind::Repl };
    }
    if canonical {
        return if text::is_command_prompt(prompt) { Kind::Repl } else { Kind::Line };
    }
    // A frame is drawn by full-screen programs, also by those that leave the alternate screen alone.
    if hints.cursor_hidden || prompt.contains(['│', '┃', '║']) {
        return Kind::Menu;
    }
    // The kernel shows each key: nobody edits a line here. Who edits lines on his own shows them himself.
    if echo || text::asks_for_key(prompt) || text::asks_yes_or_no(prompt) || prompt.trim().is_empty() {
        return Kind::Key;
    }
    if text::is_command_prompt(prompt) { Kind::Repl } else { Kind::Line }
}

#[cfg(test)]
mod tests {
    use super::super::Row;
    use super::*;
    use std::time::Duration;

    fn hints(text: &str) -> Hints<'_> {
        Hints {
            text_before_cursor: text,
            alternate_screen: false,
            bracketed_paste: false,
            cursor_hidden: false,
            since_output: Duration::from_secs(1),
            since_input: Duration::from_secs(1),
            row: Row::New,
            offers_choice: false,
            query_unanswered: false,
        }
    }

    #[test]
    fn modes_and_text_tell_kinds_apart() {
        let rows = [
            ("Name: ", true, true, "sh", Kind::Line),
            ("Name: ", true, false, "sh", Kind::Password),
            ("Passphrase: ", false, false, "node", Kind::Password),
            ("Name? ", false, false, "node", Kind::Line),
            ("> ", false, false, "node", Kind::Repl),
            (">>> ", true, true, "python3", Kind::Repl),
            ("Continue? [y/N] ", false, false, "node", Kind::Key),
            ("Continue? [y/N] ", true, true, "sh", Kind::Line),
            ("pick: ", false, true, "bash", Kind::Key),
            ("", false, false, "top", Kind::Key),
            ("│        <", false, false, "dialog", Kind::Menu),
            (":", false, false, "git", Kind::Pager),
            ("--More--(50%)", false, false, "x", Kind::Pager),
            ("", false, false, "less", Kind::Pager),
        ];
        for (text, canonical, echo, program, expected) in rows {
            assert_eq!(kind(&hints(text), canonical, echo, program), expected, "{text:?} {program}");
        }
        let full_screen = Hints { alternate_screen: true, ..hints("") };
        assert_eq!(kind(&full_screen, false, false, "vim"), Kind::Menu);
        let paste = Hints { bracketed_paste: true, ..hints("$ ") };
        assert_eq!(kind(&paste, false, false, "bash"), Kind::Repl);
        let question = Hints { bracketed_paste: true, ..hints("Your selection? ") };
        assert_eq!(kind(&question, false, false, "gpg"), Kind::Line);
    }
}
