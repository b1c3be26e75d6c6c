//! What kind of input a waiting program expects, by the modes of its terminal, the screen and its name.

use super::modes::Modes;
use super::{Hints, InputKind, Row, text};

/// Programs that show text page by page.
const PAGERS: [&str; 6] = ["less", "more", "most", "pg", "man", "pager"];

/// Editors whose command line is a lone colon, as a pager's is.
const EDITORS: [&str; 5] = ["vi", "vim", "ex", "nvim", "vim.basic"];

/// The kind of input, by the modes of the terminal that it is typed at.
pub(super) fn kind(hints: &Hints<'_>, modes: Modes, program: &str) -> InputKind {
    let Modes { canonical, echo, .. } = modes;
    // Nothing but the prompt is left of the cursor, so what is above may be the question.
    let prompt =
        if hints.text_before_cursor.trim().is_empty() { hints.prompt() } else { hints.text_before_cursor };
    let hides_line = canonical && !modes.for_a_child;
    if !echo && (hides_line || (text::asks_for_secret(prompt) && !hints.alternate_screen)) {
        return InputKind::Password;
    }
    let is_editor = EDITORS.contains(&program);
    if PAGERS.contains(&program) || (!canonical && !is_editor && text::is_pager_line(prompt)) {
        return InputKind::Pager;
    }
    if hints.alternate_screen {
        return InputKind::Menu;
    }
    // It was typed at before, and stands there again: whatever its sign, it reads one command after the other.
    let again = matches!(hints.row, Row::SamePrompt | Row::LikePrompt) && hints.answered;
    if canonical {
        return if text::is_command_prompt(prompt) || again { InputKind::Repl } else { InputKind::Line };
    }
    if hints.lists_choices && !text::is_command_prompt(prompt) {
        return InputKind::Menu;
    }
    if text::is_library_question(prompt) {
        return InputKind::Line;
    }
    if hints.bracketed_paste {
        // Line editors use bracketed paste even for a plain question.
        let asks = (prompt.trim_end().ends_with(['?', ':']) || text::asks_yes_or_no(prompt))
            && !text::is_command_prompt(prompt);
        return if asks { InputKind::Line } else { InputKind::Repl };
    }
    if text::asks_yes_or_no(prompt) && !text::is_command_prompt(prompt) {
        return InputKind::Key;
    }
    // Full-screen programs draw frames, even those that do not use the alternate screen.
    if hints.cursor_hidden || prompt.contains(['│', '┃', '║']) {
        return InputKind::Menu;
    }
    // The kernel echoes each key, so this is not a line editor: those echo themselves.
    if echo || text::asks_for_key(prompt) || text::offers_keys(prompt) || prompt.trim().is_empty() {
        return InputKind::Key;
    }
    if text::is_command_prompt(prompt) || again {
        return InputKind::Repl;
    }
    // A read that returns without a key serves no line editor.
    if modes.reads_time_out { InputKind::Key } else { InputKind::Line }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn hints(text: &str) -> Hints<'_> {
        Hints {
            text_before_cursor: text,
            line_above: "",
            alternate_screen: false,
            bracketed_paste: false,
            cursor_hidden: false,
            since_output: Duration::from_secs(1),
            since_input: Duration::from_secs(1),
            row: Row::New,
            offers_choice: false,
            lists_choices: false,
            answered: false,
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
            ("Token: ", false, false, "x", InputKind::Password),
            ("? Sure? (y/N) ", false, false, "node", InputKind::Line),
            ("? Name: ", false, false, "node", InputKind::Line),
            ("Hit any key ", false, false, "x", InputKind::Key),
            ("Overwrite (a/b/c)? ", false, false, "x", InputKind::Key),
            ("?- ", false, false, "swipl", InputKind::Repl),
            ("* ", true, true, "sbcl", InputKind::Repl),
            ("Make breakpoint pending? (y or [n]) ", false, false, "gdb", InputKind::Key),
            (":", false, false, "vim", InputKind::Line),
            ("", false, false, "top", InputKind::Key),
            ("│        <", false, false, "dialog", InputKind::Menu),
            (":", false, false, "git", InputKind::Pager),
            ("--More--(50%)", false, false, "x", InputKind::Pager),
            ("", false, false, "less", InputKind::Pager),
        ];
        for (text, canonical, echo, program, expected) in rows {
            let modes = Modes { canonical, echo, ..Modes::PLAIN };
            assert_eq!(kind(&hints(text), modes, program), expected, "{text:?} {program}");
        }
        let raw = Modes { canonical: false, echo: false, ..Modes::PLAIN };
        let full_screen = Hints { alternate_screen: true, ..hints("") };
        assert_eq!(kind(&full_screen, raw, "vim"), InputKind::Menu);
        let paste = Hints { bracketed_paste: true, ..hints("$ ") };
        assert_eq!(kind(&paste, raw, "bash"), InputKind::Repl);
        let question = Hints { bracketed_paste: true, ..hints("Your selection? ") };
        assert_eq!(kind(&question, raw, "gpg"), InputKind::Line);
        let list = Hints { lists_choices: true, bracketed_paste: true, ..hints("? Pick ") };
        assert_eq!(kind(&list, raw, "python3"), InputKind::Menu);
        let gdb = Hints { bracketed_paste: true, ..hints("Quit anyway? (y or n) ") };
        assert_eq!(kind(&gdb, raw, "gdb"), InputKind::Line);
        let hidden = Hints { cursor_hidden: true, ..hints("Continue? [y/n] ") };
        assert_eq!(kind(&hidden, raw, "x"), InputKind::Key);
        let known = Hints { row: Row::SamePrompt, answered: true, ..hints("next: ") };
        assert_eq!(kind(&known, Modes::PLAIN, "x"), InputKind::Repl);
        let above = Hints { line_above: "Your password?", ..hints("") };
        assert_eq!(kind(&above, raw, "x"), InputKind::Password);
        let in_emacs = Modes { canonical: true, echo: false, for_a_child: true, ..Modes::PLAIN };
        assert_eq!(kind(&full_screen, in_emacs, "emacs"), InputKind::Menu);
    }
}
