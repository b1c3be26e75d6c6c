//! What kind of input a waiting program expects, by the modes of its terminal, the screen and its name.

use super::modes::Modes;
use super::{Hints, InputKind, Row, text};

/// Programs that show text page by page.
const PAGERS: [&str; 6] = ["less", "more", "most", "pg", "man", "pager"];

/// Editors whose command line is a lone colon, as a pager's is.
const EDITORS: [&str; 5] = ["vi", "vim", "ex", "nvim", "vim.basic"];

/// What frames are drawn with.
pub(super) const FRAMES: [char; 3] = ['│', '┃', '║'];

/// The kind of input, by the modes of the terminal that it is typed at.
pub(super) fn kind(hints: &Hints<'_>, modes: Modes, program: &str) -> InputKind {
    let Modes { canonical, echo, .. } = modes;
    // Nothing but the prompt is left of the cursor, so what is above may be the question.
    let elsewhere = hints.text_before_cursor.trim().is_empty() || !hints.field.is_empty();
    let prompt = if elsewhere { hints.prompt() } else { hints.text_before_cursor };
    let hides_line = canonical && !modes.for_a_child;
    let plain = !text::is_library_question(prompt)
        && !text::asks_yes_or_no(prompt)
        && !text::asks_for_key(prompt)
        && !text::offers_keys(prompt);
    let secret =
        text::asks_for_secret(prompt) || (modes.reads_unseen && plain && prompt.trim_end().ends_with(':'));
    // A library that leaves the cursor before its question moves it there to show nothing.
    let unseen = !hints.cursor_hidden && !hints.field.is_empty() && hints.text_before_cursor.is_empty();
    if !echo && (hides_line || ((secret || unseen) && !hints.alternate_screen)) {
        return InputKind::Password;
    }
    // It was typed at before, and stands there again: whatever its sign, it reads one command after the other.
    let again = matches!(hints.row, Row::SamePrompt | Row::LikePrompt) && hints.answered;
    let is_editor = EDITORS.contains(&program);
    // A page stands above the line of a pager.
    let lone_sign = prompt.trim() == ":" && (again || hints.line_above.is_empty());
    if PAGERS.contains(&program) || (!canonical && !is_editor && !lone_sign && text::is_pager_line(prompt)) {
        return InputKind::Pager;
    }
    if hints.alternate_screen {
        return InputKind::Menu;
    }
    let commands = text::is_command_prompt(prompt)
        || text::is_name_of(prompt, program)
        || (lone_sign && !canonical && !is_editor);
    if canonical {
        return if commands || again { InputKind::Repl } else { InputKind::Line };
    }
    if !hints.field.is_empty() {
        return InputKind::Line;
    }
    // A list that is filtered: it stands below, or above a prompt at which nothing was typed yet.
    let filter = text::is_choice_sign(prompt) && (hints.text_below || !hints.answered);
    let filters = filter && hints.text_below && !hints.answered;
    if filters || (hints.lists_choices && (filter || !commands)) {
        return InputKind::Menu;
    }
    if text::is_library_question(prompt) {
        return library_kind(hints, prompt);
    }
    if text::asks_for_key(prompt) {
        return InputKind::Key;
    }
    // An editor: nothing is asked, and something stands below the cursor.
    if hints.text_below && prompt.trim().is_empty() {
        return InputKind::Menu;
    }
    // Full-screen programs draw frames, even those that do not use the alternate screen.
    if prompt.contains(FRAMES) {
        return InputKind::Menu;
    }
    // A line editor shows where it is.
    if hints.bracketed_paste && !(hints.cursor_hidden && prompt.trim().is_empty()) {
        // Line editors use bracketed paste even for a plain question.
        let asks =
            (text::ends_as_question(prompt) || text::asks_yes_or_no(prompt) || hints.is_marked_question())
                && !commands;
        return if asks { InputKind::Line } else { InputKind::Repl };
    }
    if text::asks_yes_or_no(prompt) && !commands {
        return InputKind::Key;
    }
    if hints.cursor_hidden {
        return InputKind::Menu;
    }
    // The kernel echoes each key, so this is not a line editor: those echo themselves.
    if echo || text::offers_keys(prompt) || prompt.trim().is_empty() {
        return InputKind::Key;
    }
    if commands || again {
        return InputKind::Repl;
    }
    // A read that returns without a key serves no line editor. Nor do modes in which not even the ends of lines are
    // printed as such: they are set for one key, and taken back.
    let for_one_key = modes.raw_output && text::ends_in_question_mark(prompt);
    // Line editors have a prompt. What stands before the cursor here is an answer, and more of it comes with a key.
    let no_prompt = hints.row == Row::New && !text::is_prompt_like(prompt);
    if modes.reads_time_out || for_one_key || no_prompt { InputKind::Key } else { InputKind::Line }
}

/// What a question of a library takes, by how it is drawn.
fn library_kind(hints: &Hints<'_>, prompt: &str) -> InputKind {
    let after_sign = prompt.rsplit_once(['›', '‣']).map(|(_, choice)| choice.trim());
    match after_sign {
        Some(choice) if text::asks_yes_or_no(choice) => InputKind::Key,
        // `no / yes`, of which one is marked; the cursor may stand before the second.
        Some(choice) if choice.split_once(" / ").is_some() => InputKind::Menu,
        Some(choice) if ["yes", "no", "on", "off"].contains(&choice.to_lowercase().as_str()) => {
            InputKind::Menu
        }
        Some(_) | None if hints.cursor_hidden && prompt.trim_end().ends_with("(y/") => InputKind::Key,
        Some(_) | None if prompt.trim_start().starts_with("[?]") && text::asks_yes_or_no(prompt) => {
            InputKind::Key
        }
        // What can be chosen stands below.
        Some(_) | None if hints.text_below && prompt.trim_end().ends_with('…') => InputKind::Menu,
        Some(_) | None => InputKind::Line,
    }
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
            field: "",
            text_below: false,
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
            (": ", false, false, "pil", InputKind::Repl),
            ("debugfs:  ", false, false, "debugfs", InputKind::Repl),
            ("名前：", true, true, "sh", InputKind::Line),
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
        let one_key = Modes { raw_output: true, ..raw };
        assert_eq!(kind(&hints("Which one? "), one_key, "x"), InputKind::Key);
        assert_eq!(kind(&hints("Name: "), one_key, "x"), InputKind::Line);
        let unseen = Modes { reads_unseen: true, ..raw };
        assert_eq!(kind(&hints("Vault: "), unseen, "x"), InputKind::Password);
        let field = Hints { cursor_hidden: true, field: "Where?", ..hints("") };
        assert_eq!(kind(&field, raw, "node"), InputKind::Line);
        let hidden_field = Hints { cursor_hidden: true, field: "Your password", ..hints("") };
        assert_eq!(kind(&hidden_field, raw, "node"), InputKind::Password);
        let cursor_before = Hints { field: "Code:", ..hints("") };
        assert_eq!(kind(&cursor_before, raw, "x"), InputKind::Password);
        let toggle = hints("? Sure? › no / yes");
        assert_eq!(kind(&toggle, raw, "node"), InputKind::Menu);
        assert_eq!(kind(&hints("? Go on? › (y/N)"), raw, "node"), InputKind::Key);
        let editor = Hints { text_below: true, bracketed_paste: true, ..hints("") };
        assert_eq!(kind(&editor, raw, "joe"), InputKind::Menu);
        let fuzzy = Hints { text_below: true, lists_choices: true, bracketed_paste: true, ..hints("❯ ") };
        assert_eq!(kind(&fuzzy, raw, "python3"), InputKind::Menu);
        assert_eq!(kind(&hints("? On? ‣ No"), raw, "node"), InputKind::Menu);
        assert_eq!(kind(&hints("Press a key: "), unseen, "x"), InputKind::Key);
        let marked = Hints { bracketed_paste: true, ..hints("🎤 Project name ") };
        assert_eq!(kind(&marked, raw, "python3"), InputKind::Line);
        let page = Hints { line_above: "commit 1234", ..hints(":") };
        assert_eq!(kind(&page, raw, "git"), InputKind::Pager);
        let list_above = Hints { lists_choices: true, bracketed_paste: true, ..hints("> ") };
        assert_eq!(kind(&list_above, raw, "fzf"), InputKind::Menu);
        let list_below = Hints { text_below: true, ..hints("> ") };
        assert_eq!(kind(&list_below, raw, "fzy"), InputKind::Menu);
        let typed_before = Hints { answered: true, ..list_above };
        assert_eq!(kind(&typed_before, raw, "node"), InputKind::Repl);
        let above = Hints { line_above: "Your password?", ..hints("") };
        assert_eq!(kind(&above, raw, "x"), InputKind::Password);
        let in_emacs = Modes { canonical: true, echo: false, for_a_child: true, ..Modes::PLAIN };
        assert_eq!(kind(&full_screen, in_emacs, "emacs"), InputKind::Menu);
    }
}
