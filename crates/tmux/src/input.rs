//! Where an agent takes input on its screen, and what stands there: a pure reading of rows and the cursor.
//!
//! Claude Code draws a rule above and below its input, Gemini CLI shades it, older ones draw a box, Codex has its own
//! sign `›` and nothing around it, and opencode a bar at its left with the name of its mode in the last row. The cursor is in it in all of them, hidden or not, wherever in the draft it is; in
//! their dialogs and menus it is elsewhere. Anything else is not an input line: a question of a program, a password,
//! an editor.

use super::screen::{Cell, Row};

/// What an input begins with. `!` is an agent's shell mode, `#` writes into its memory, and so on.
const SIGNS: &[char] = &['>', '*', '❯', '›', '!', '#', '/', '$', '%', '&', '?'];
/// Signs at which what is typed is a message to the agent.
const FOR_MESSAGES: &[char] = &['>', '*', '❯', '›'];
/// Sides of a box.
const SIDES: &[char] = &['│', '┃', '║', '▌', '▐'];
/// The bar at the left of an input, and its foot.
const BAR: char = '┃';
const BAR_FOOT: char = '╹';
/// What opencode says below it while it works.
const INTERRUPT: &str = "interrupt";
/// An input is no higher.
const TALLEST: usize = 20;

/// An agent's input, as it stands on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Input {
    sign: char,
    /// What was typed into it, without blanks: programs wrap lines as they like.
    typed: String,
    /// All that it shows, without blanks.
    shown: String,
    /// The agent says that it works on a prompt.
    works: bool,
}

impl Input {
    /// Whether a message to the agent can be typed here.
    pub(super) fn is_for_messages(&self) -> bool {
        FOR_MESSAGES.contains(&self.sign)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.typed.is_empty()
    }

    /// Whether the agent works on a prompt, and could ask something at any moment: a dialog has the keys some time before it is to be
    /// seen. Known of opencode.
    pub(super) fn works(&self) -> bool {
        self.works
    }

    /// Whether exactly this text stands in it.
    pub(super) fn holds(&self, text: &str) -> bool {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        self.typed == text || self.shown == text
    }

    /// What was typed, for a person to read.
    pub(super) fn draft(&self) -> &str {
        &self.typed
    }
}

/// The input that the cursor is in, if it is in one.
pub(super) fn at(rows: &[Row], cursor_row: usize) -> Option<Input> {
    if cursor_row >= rows.len() {
        return None;
    }
    behind_bar(rows, cursor_row).or_else(|| behind_sign(rows, cursor_row))
}

/// An input that begins with a sign.
fn behind_sign(rows: &[Row], cursor_row: usize) -> Option<Input> {
    let first = (cursor_row.saturating_sub(TALLEST)..=cursor_row)
        .rev()
        .take_while(|row| !is_rule(&rows[*row]))
        .find(|row| sign_of(&rows[*row]).is_some())?;
    let (sign, begin) = sign_of(&rows[first])?;
    let below = first + 1..rows.len().min(first + TALLEST);
    let shade = rows[first].background();
    let end = if first > 0 && is_rule(&rows[first - 1]) {
        below.clone().find(|row| is_rule(&rows[*row]))?
    } else if shade.is_some() {
        below.clone().find(|row| rows[*row].background() != shade).unwrap_or(below.end)
    } else if sign == '›' {
        below.clone().find(|row| rows[*row].is_blank()).unwrap_or(below.end)
    } else {
        return None;
    };
    if cursor_row >= end {
        return None;
    }
    let mut cells: Vec<Cell> = rows[first].cells[begin..].to_vec();
    rows[first + 1..end].iter().for_each(|row| cells.extend(&row.cells));
    Some(of_cells(sign, cells))
}

/// What the cells of an input show, and which of it was typed.
fn of_cells(sign: char, mut cells: Vec<Cell>) -> Input {
    cells.retain(|cell| !cell.is_blank() && !SIDES.contains(&cell.c));
    let text = |cells: &mut dyn Iterator<Item = &Cell>| cells.map(|cell| cell.c).collect::<String>();
    let shown = text(&mut cells.iter());
    let mut typed: Vec<&Cell> = cells.iter().filter(|cell| !cell.faint).collect();
    if typed.len() == 1 && typed[0].inverse && cells.len() > 1 {
        // The cursor on a suggestion's first letter.
        typed.clear();
    }
    Input { sign, typed: text(&mut typed.into_iter()), shown, works: false }
}

/// An input with a bar at its left, as opencode draws it: shaded, with a foot below the bar. Its last row names the mode
/// and the model (`Build · model`), or says that what is typed is run (`Shell`).
fn behind_bar(rows: &[Row], cursor_row: usize) -> Option<Input> {
    let bar = rows[cursor_row].cells.iter().position(|cell| !cell.is_blank())?;
    let is_part = |row: &usize| {
        let cells = &rows[*row].cells;
        cells.iter().position(|cell| !cell.is_blank()) == Some(bar) && cells[bar].c == BAR
    };
    let first = (cursor_row.saturating_sub(TALLEST)..=cursor_row).rev().take_while(is_part).last()?;
    let end = (cursor_row..rows.len().min(first + TALLEST)).find(|row| !is_part(row))?;
    let foot = rows[end].cells.iter().find(|cell| !cell.is_blank())?;
    let mode_row = end - 1;
    // A row that is empty but for the bar has lost its shade.
    let shade = |row: &Row| row.cells.get(bar + 1).map(|cell| cell.background());
    let ground = shade(&rows[mode_row])??;
    let is_shaded = rows[first..end].iter().filter_map(shade).all(|other| other == Some(ground));
    if foot.c != BAR_FOOT || cursor_row >= mode_row || !is_shaded {
        return None;
    }
    let mode: String = rows[mode_row].text().chars().skip(bar + 1).collect();
    let sign = if mode.contains(" · ") { FOR_MESSAGES[0] } else { '!' };
    let cells = rows[first..mode_row].iter().flat_map(|row| row.cells[bar + 1..].to_vec()).collect();
    // What is below the foot: a moving bar and `esc interrupt`.
    let works = rows.get(end + 1).is_some_and(|row| row.text().contains(INTERRUPT));
    Some(Input { works, ..of_cells(sign, cells) })
}

/// The sign that a row of input begins with, and where what was typed after it begins.
fn sign_of(row: &Row) -> Option<(char, usize)> {
    let mut at = row.cells.iter().position(|cell| !cell.is_blank())?;
    let mut farthest = 2;
    if SIDES.contains(&row.cells[at].c) {
        farthest = at + 3;
        at += 1 + row.cells[at + 1..].iter().position(|cell| !cell.is_blank())?;
    }
    let sign = row.cells[at].c;
    let alone = row.cells.get(at + 1).is_none_or(|next| next.is_blank());
    (at <= farthest && alone && SIGNS.contains(&sign)).then_some((sign, at + 1))
}

/// A line across the screen, perhaps with a word in it.
fn is_rule(row: &Row) -> bool {
    let line = |c: char| ('\u{2500}'..='\u{2580}').contains(&c) && !SIDES.contains(&c) || "▁▂▃▄▔".contains(c);
    let mut cells = row.cells.iter().filter(|cell| !cell.is_blank());
    let lines = row.cells.iter().filter(|cell| line(cell.c)).count();
    cells.next().is_some_and(|cell| line(cell.c)) && lines >= 10 && lines * 2 > row.cells.len()
}

/// Whether a list to choose from is on the screen, with one of its choices marked: Enter would take it.
pub(super) fn has_menu(rows: &[Row]) -> bool {
    let choices: Vec<Option<bool>> = rows.iter().map(|row| choice(&row.text())).collect();
    choices.iter().enumerate().any(|(at, choice)| {
        let near = at.saturating_sub(3)..choices.len().min(at + 4);
        *choice == Some(true) && choices[near].contains(&Some(false))
    })
}

/// Whether a row is a numbered choice, and if so, whether it is the marked one.
fn choice(row: &str) -> Option<bool> {
    let rest = row.trim_start_matches(|c: char| c.is_whitespace() || SIDES.contains(&c));
    let unmarked = rest.trim_start_matches(['●', '❯', '›', '>', '▶', '→', '◉', '»', '*', '➜']);
    let marked = unmarked.len() < rest.len();
    let number = unmarked.trim_start();
    let after = number.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = after.len() < number.len() && (after.starts_with(". ") || after.starts_with(") "));
    numbered.then_some(marked)
}

#[cfg(test)]
mod tests {
    use super::super::screen::read;
    use super::*;

    /// Gemini CLI 0.61.
    fn gemini(sign: char, inside: &str) -> Vec<Row> {
        read(&format!(
            "\x1b[2m\x1b[38;5;244m{}\n\x1b[0m \x1b[38;5;248mShift+Tab to accept edits\n\x1b[39m\x1b[48;5;240m\n \
             \x1b[38;5;183m{sign} {inside}\x1b[39m\x1b[48;5;240m\n\n\x1b[49m \x1b[38;5;248mworkspace (/directory)",
            "─".repeat(80)
        ))
    }
    const GEMINI_HINT: &str =
        "\x1b[7m\x1b[39m \x1b[0m\x1b[38;5;248m\x1b[48;5;240m Type your message or @path/to/file";

    /// Claude Code 2.1.
    fn claude(inside: &str) -> Vec<Row> {
        let rule = "─".repeat(80);
        read(&format!(
            "\x1b[38;5;244m{rule}\n\x1b[39m❯\u{a0}{inside}\n\x1b[0m\x1b[38;5;244m{rule}\n  ? for shortcuts"
        ))
    }

    /// Codex 0.166.
    fn codex(inside: &str) -> Vec<Row> {
        read(&format!("\n\x1b[1m›\x1b[0m {inside}\n\x1b[0m\n  \x1b[38;5;223mgpt-5 default\x1b[39m · ~/proj"))
    }

    /// opencode 1.18.
    fn opencode(mode: &str, inside: &[&str]) -> Vec<Row> {
        let row =
            |text: &str| format!("  \x1b[38;5;75m┃\x1b[38;5;15m\x1b[48;5;234m  {text}   \x1b[48;5;232m\n");
        let inside: String = inside.iter().map(|text| row(text)).collect();
        let mode = row(&format!("\x1b[38;5;75m{mode}\x1b[38;5;15m"));
        let above = "\x1b[38;5;15m\x1b[48;5;232m     DONE\n";
        let foot = format!("  \x1b[38;5;75m╹\x1b[38;5;234m{}\x1b[38;5;15m\n   ~/project", "▀".repeat(60));
        read(&format!("{above}{}{inside}{}{mode}{foot}", row(""), row("")))
    }

    #[test]
    fn the_input_of_opencode_is_behind_a_bar() {
        let hint = "\x1b[38;5;8mAsk anything… \"Fix broken tests\"\x1b[38;5;15m";
        for inside in [hint, ""] {
            let input = at(&opencode("Build · m scripted", &[inside]), 2).unwrap();
            assert!(input.is_empty() && input.is_for_messages(), "{input:?}");
        }
        let draft =
            at(&opencode("Plan · m scripted", &["\x1b[38;5;255muser", "draft\x1b[38;5;15m"]), 3).unwrap();
        assert!(draft.draft() == "userdraft" && draft.holds("user draft"), "{draft:?}");
        let shell = at(&opencode("Shell", &[""]), 2).unwrap();
        assert!(shell.is_empty() && !shell.is_for_messages());
        assert!(!draft.works());
        let mut busy = opencode("Build · m scripted", &[""]);
        busy.pop();
        busy.extend(read("   ⬝⬝■■⬝⬝⬝⬝  esc interrupt            2  ctrl+p commands"));
        assert!(at(&busy, 2).unwrap().works(), "a permission may be asked for at any moment");
        // The cursor is not in it, or it is a question: opencode draws those behind the same bar, without a foot.
        assert_eq!(at(&opencode("Build · m", &[""]), 0), None);
        assert_eq!(at(&opencode("Build · m", &[""]), 4), None, "the row of the mode");
        let question = opencode("Allow once   Allow always   Reject", &["$ touch x"]);
        assert!(at(&question[..question.len() - 2], 2).is_none_or(|input| !input.is_empty()));
    }

    #[test]
    fn empty_inputs_are_known_and_their_hints_are_no_drafts() {
        for (rows, cursor) in [
            (gemini('>', GEMINI_HINT), 3),
            (gemini('*', GEMINI_HINT), 3),
            (claude("\x1b[7m"), 1),
            (claude("\x1b[7mT\x1b[0m\x1b[2mry \"fix lint errors\""), 1),
            (codex("\x1b[2mAsk Codex to do anything"), 1),
            (read(&format!("╭{0}╮\n│ >   │\n╰{0}╯", "─".repeat(20))), 1),
        ] {
            let input = at(&rows, cursor).unwrap();
            assert!(input.is_empty() && input.is_for_messages(), "{input:?}");
            assert!(at(&rows, 0).is_none(), "the cursor is elsewhere");
        }
        let shell = at(&gemini('!', GEMINI_HINT), 3).unwrap();
        assert!(shell.is_empty() && !shell.is_for_messages());
    }

    #[test]
    fn drafts_are_seen_as_a_whole_wherever_the_cursor_is() {
        let white = "\x1b[38;5;231m";
        for (rows, cursor) in [
            (gemini('>', &format!("{white}user draft\x1b[7m ")), 3),
            (gemini('*', &format!("{white}user\n   draft")), 4),
            (gemini('*', &format!("{white}user\n   draft")), 3),
            (claude("\x1b[7mu\x1b[0mser draft"), 1),
            (claude("user\n  draft"), 2),
            (codex("user draft"), 1),
            (codex("user\n  draft"), 2),
        ] {
            let input = at(&rows, cursor).unwrap();
            assert_eq!(input.draft(), "userdraft");
            assert!(input.holds("user draft") && !input.holds("draft"));
        }
        assert_eq!(at(&claude("\x1b[7mu"), 1).unwrap().draft(), "u", "one letter under the cursor");
    }

    #[test]
    fn what_is_no_input_of_an_agent() {
        for (text, cursor) in [
            ("Continue? (y/n) ", 0),
            ("Password: ", 0),
            ("> ", 0),
            ("❯ ", 0),
            (">>> ", 0),
            ("$ ", 0),
            ("╭─ user ~/x ─────────────────\n╰─❯ ", 1),
            ("", 0),
        ] {
            assert_eq!(at(&read(text), cursor), None, "{text:?}");
        }
        // An agent that has ended left its last screen above a prompt.
        let mut left = claude("\x1b[7m");
        left.extend(read("Password: "));
        assert_eq!(at(&left, 4), None);
    }

    #[test]
    fn menus_are_known_by_a_marked_choice_among_others() {
        let menu = "│ Allow execution of [Shell]?  │\n│                │\n│ ● 1. Allow once  │\n│   2. Allow for this session │";
        assert!(has_menu(&read(menu)));
        assert!(has_menu(&read("Do you trust the files?\n❯ 1. Yes\n  2. No")));
        assert!(has_menu(&read("  1. Yes\n› 2. No, and tell Codex (esc)")));
        assert!(!has_menu(&read("Tips:\n1. Ask questions\n2. Edit files")));
        assert!(!has_menu(&read("> 1. first do this\n\nOK")));
    }
}
