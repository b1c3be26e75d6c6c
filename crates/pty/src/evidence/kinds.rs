//! What kind of input a waiting program expects, by the modes of its terminal, the screen and its name.

use super::{Hints, InputKind, text};

/// Programs that show text page by page.
const PAGERS: [&str; 6] = ["less", "more", "most", "pg", "man", "pager"];

/// The kind of input. `canonical` and `echo` are modes of the terminal that it is typed at.
pub(super) fn kind(hints: &Hints<'_>, canonical: bool, echo: bool, program: &str) -> InputKind {
    let prompt = hints.text_before_cursor;
    if !echo && (canonical || text::asks_for_secret(prompt)) {
        return InputKind::Password;
    }
    if PAGERS.contains(&program) || (!canonical && text::is_pager_line(prompt)) {
        return InputKind::Pager;
    }
    if hints.alternate_screen {
        return InputKind::Menu;
    }
    if hints.bracketed_paste {
        // Line editors use bracketed paste even for a plain question.
        let asks = prompt.trim_end().ends_with(['?', ':']) && !text::is_command_prompt(prompt);
        return if asks { InputKind::Line } else { InputKind::Repl };
    }
    if canonical {
        return if text::is_command_prompt(prompt) { InputKind::Repl } else { InputKind::Line };
    }
    // Full-screen programs draw frames, even those that do not use the alternate screen.
    if hints.cursor_hidden || prompt.contains(['│', '┃', '║']) {
        return InputKind::Menu;
    }
    // The kernel echoes each key, so this is not a line editor: those echo themselves.
    if echo || text::asks_for_key(prompt) || text::asks_yes_or_no(prompt) || prompt.trim().is_empty() {
        return InputKind::Key;
    }
    if text::is_command_prompt(prompt) { InputKind::Repl } else { InputKind::Line }
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
        }
    }

    #[test]
    fn modes_and_text_determine_the_kind() {
        let rows = [
            ("Name: ", true, true, "sh", InputKind::Line),
            ("Name: ", true, false, "sh", InputKind::Password),
            ("Passphrase: ", false, false, "node", InputKind::Password),
            ("Name? ", false, false, "node", InputKind::Line),
            ("> ", false, false, "node", InputKind::Repl),
            (">>> ", true, true, "python3", InputKind::Repl),
            ("Continue? [y/N] ", false, false, "node", InputKind::Key),
            ("Continue? [y/N] ", true, true, "sh", InputKind::Line),
            ("pick: ", false, true, "bash", InputKind::Key),
            ("", false, false, "top", InputKind::Key),
            ("│        <", false, false, "dialog", InputKind::Menu),
            (":", false, false, "git", InputKind::Pager),
            ("--More--(50%)", false, false, "x", InputKind::Pager),
            ("", false, false, "less", InputKind::Pager),
        ];
        for (text, canonical, echo, program, expected) in rows {
            assert_eq!(kind(&hints(text), canonical, echo, program), expected, "{text:?} {program}");
        }
        let full_screen = Hints { alternate_screen: true, ..hints("") };
        assert_eq!(kind(&full_screen, false, false, "vim"), InputKind::Menu);
        let paste = Hints { bracketed_paste: true, ..hints("$ ") };
        assert_eq!(kind(&paste, false, false, "bash"), InputKind::Repl);
        let question = Hints { bracketed_paste: true, ..hints("Your selection? ") };
        assert_eq!(kind(&question, false, false, "gpg"), InputKind::Line);
    }
}
