//! Where the question is if the cursor is not behind it: libraries hide the cursor and draw one of their own, or leave it at the
//! beginning of the row.

use super::text;

/// Marks that libraries put before the question that is being asked.
const MARKS: [char; 5] = ['?', '◆', '✔', '✗', '›'];
/// What stands for the cursor where it is hidden.
const DRAWN_CURSORS: [char; 3] = ['█', '▏', '▌'];
/// What begins a row of a list.
const ITEMS: [char; 10] = ['●', '○', '◯', '◉', '◻', '◼', '■', '□', '❯', '▸'];

/// The question of a field that takes text, if the cursor does not stand behind one. Lists are not fields.
#[must_use]
pub fn question_of_field(rows: &[&str], cursor_row: usize) -> Option<String> {
    let at_cursor = rows.get(cursor_row).copied().unwrap_or_default();
    if let Some(question) = library_question(at_cursor) {
        return Some(question.to_owned());
    }
    framed(rows).or_else(|| with_a_drawn_cursor(rows)).or_else(|| above_a_sign(rows)).map(str::to_owned)
}

/// `? Passphrase:`, with nothing behind it: it hides what is typed, and the cursor is before it.
fn library_question(row: &str) -> Option<&str> {
    let row = row.trim_end();
    row.strip_prefix("? ").filter(|question| text::ends_as_question(question))
}

/// A question after `◆`, a bar before the field, and the corner that ends it.
fn framed<'r>(rows: &[&'r str]) -> Option<&'r str> {
    let at = rows.iter().rposition(|row| row.starts_with('◆'))?;
    let question = rows[at].trim_start_matches('◆').trim();
    let end = at + rows[at..].iter().position(|row| row.starts_with('└'))?;
    let inside = rows[at + 1..end].iter().map(|row| row.trim_start_matches(['│', ' ']));
    let is_list = inside.clone().any(|row| row.starts_with(ITEMS));
    (inside.count() == 1 && !is_list && !question.is_empty()).then_some(question)
}

/// `✔ Number: █`.
fn with_a_drawn_cursor<'r>(rows: &[&'r str]) -> Option<&'r str> {
    let last = rows.iter().rev().map(|row| row.trim()).find(|row| !row.is_empty())?;
    let question = last.strip_suffix(DRAWN_CURSORS)?.trim_start_matches(MARKS).trim();
    text::ends_as_question(question).then_some(question)
}

/// A question, and below it a row with nothing but `>`.
fn above_a_sign<'r>(rows: &[&'r str]) -> Option<&'r str> {
    let at = rows.iter().rposition(|row| row.trim() == ">")?;
    let question = rows.get(at.checked_sub(1)?)?.trim();
    text::ends_as_question(question).then_some(question)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found() {
        let of = |screen: &str, cursor| question_of_field(&screen.lines().collect::<Vec<_>>(), cursor);
        for (screen, cursor, question) in [
            ("? Encryption key:", 0, "Encryption key:"),
            ("◆  Where?\n│\n└", 3, "Where?"),
            ("│\n◆  Your password\n│  _\n└", 4, "Your password"),
            ("✔ Number: █", 1, "Number:"),
            ("Name?\n>\n(enter to confirm)", 2, "Name?"),
        ] {
            assert_eq!(of(screen, cursor).as_deref(), Some(question), "{screen}");
        }
        for screen in [
            "",
            "◆  Pick\n│  ● a\n│  ○ b\n└",
            "◆  Sure?\n│  ● Yes / ○ No\n└",
            "? Pick …\n✔ a\n✔ b",
            "100% █",
            "> vite build",
            "done\n>",
        ] {
            assert_eq!(of(screen, 0), None, "{screen}");
        }
    }
}
