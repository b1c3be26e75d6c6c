//! What the text before the cursor suggests. It can support other evidence; it is never enough alone.
//!
//! There are two tests of different strictness. [`is_prompt_like`] supports what the kernel says.
//! [`looks_like_question`] decides alone, as the last resort after a long silence, and so matches little.

/// Characters that end a prompt, with or without a blank after them. Other scripts have a question mark and a colon of their own.
const PROMPT_ENDS: [char; 18] =
    ['?', ':', '>', '$', '#', '»', '›', '❯', '❱', '⟩', '〉', '➜', '➤', 'λ', '：', '？', '؟', '＞'];

/// Question marks and colons, of other scripts too.
const QUESTION_MARKS: [char; 3] = ['?', '？', '؟'];
const COLONS: [char; 2] = [':', '：'];

/// Parts of lines that offer a key without needing one, or that only look unfinished. Lower case.
const FALSE_FRIENDS: [&str; 14] = [
    // Development servers and watchers: vite, vitest, jest, tsc, nodemon, flutter, expo, storybook.
    "press h for help",
    "press h to show help",
    "press h + enter",
    "press q to quit",
    "press q + enter",
    "press ? for help",
    "press ? to show",
    "press ctrl+c to",
    "press ctrl-c to",
    "(press ctrl+c to quit)",
    "to restart at any time, enter `rs`",
    "watch usage",
    "waiting for file changes",
    // A test runner working on its first line.
    "collecting ...",
];

/// Whether a text ends in a question mark.
pub(super) fn ends_in_question_mark(text: &str) -> bool {
    text.trim_end().ends_with(QUESTION_MARKS)
}

/// Whether a text ends as questions and the labels of fields do.
pub(super) fn ends_as_question(text: &str) -> bool {
    ends_in_question_mark(text) || text.trim_end().ends_with(COLONS)
}

/// Whether a line offers input without waiting for it, or belongs to a working program.
#[must_use]
pub fn is_false_friend(line: &str) -> bool {
    let line = line.to_lowercase();
    FALSE_FRIENDS.iter().any(|friend| line.contains(friend))
}

/// Whether the text left of the cursor ends like a prompt.
#[must_use]
pub fn is_prompt_like(text: &str) -> bool {
    let trimmed = text.trim_end();
    if trimmed.trim_start().is_empty() || is_false_friend(text) {
        return false;
    }
    if asks_yes_or_no(text) || asks_for_secret(text) || asks_for_key(text) || is_library_question(text) {
        return true;
    }
    if trimmed.ends_with(PROMPT_ENDS) {
        return true;
    }
    if trimmed.len() < text.len() && trimmed.ends_with([')', ']']) {
        return true;
    }
    // Prolog's.
    if is_word_with_sign(text) || trimmed.ends_with("?-") {
        return true;
    }
    // A shell's `%`, but not the end of "Building 45%".
    trimmed.strip_suffix('%').is_some_and(|before| !before.trim_end().ends_with(|c: char| c.is_ascii_digit()))
}

/// `irb(main):002:1* `: one word, and a sign that ends no sentence.
fn is_word_with_sign(text: &str) -> bool {
    let word = text.trim();
    text.ends_with(' ')
        && word.ends_with(['*', ';', '=', '~'])
        && word.chars().count() > 2
        && !word.contains(char::is_whitespace)
        && word.contains(char::is_alphanumeric)
}

/// Whether a line is a question, for which the program reads an answer on the next one.
#[must_use]
pub fn is_question(line: &str) -> bool {
    let trimmed = line.trim();
    if trimmed.is_empty() || is_false_friend(trimmed) {
        return false;
    }
    let lower = trimmed.to_lowercase();
    // "Type .help for usage hints", "Type `bye' to exit".
    let offers = [" for ", " to exit", " to quit", " to leave"].iter().any(|words| lower.contains(words));
    if lower.starts_with("type ") && offers && !ends_as_question(trimmed) {
        return false;
    }
    let asks_in_words = ["enter ", "type ", "please ", "input ", "choose ", "select ", "provide "]
        .iter()
        .any(|word| lower.starts_with(word));
    ends_in_question_mark(trimmed)
        || asks_yes_or_no(trimmed)
        || asks_for_key(trimmed)
        || (trimmed.ends_with(COLONS) && (asks_in_words || asks_for_secret(trimmed)))
        || (asks_in_words && !trimmed.ends_with(['.', '…']))
}

/// Whether a text says what the program is doing, like `Uploading (1/3):` or `working: `. Others' words for it are not known.
#[must_use]
pub fn is_progress(text: &str) -> bool {
    const OTHERS: [&str; 8] =
        ["string", "setting", "thing", "something", "anything", "rating", "heading", "nothing"];
    let words =
        || text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).map(str::to_lowercase);
    let asks =
        ends_in_question_mark(text) || asks_yes_or_no(text) || asks_for_secret(text) || asks_for_key(text);
    let at_work = |word: &String| word.len() > 5 && word.ends_with("ing") && !OTHERS.contains(&word.as_str());
    // `45%`, but not the prompt `host%`.
    let before_percent =
        text.trim_end().trim_end_matches([')', ']', ':']).strip_suffix('%').map(str::trim_end);
    let ends_in_percent = before_percent.is_some_and(|before| before.ends_with(|c: char| c.is_ascii_digit()));
    !asks && (ends_in_percent || words().take(2).any(|word| at_work(&word)))
}

/// Whether two texts are the same except for their numbers, like two prompts with a counter.
#[must_use]
pub fn differ_in_numbers_only(one: &str, other: &str) -> bool {
    let shape = |text: &str| {
        let mut shape: Vec<char> = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        shape.dedup_by(|one, other| *one == '0' && *other == '0');
        shape
    };
    shape(one) == shape(other)
}

/// Whether the rows of a screen ask something or offer a choice, like menus that hide the cursor.
#[must_use]
pub fn offers_choice<'r>(rows: impl Iterator<Item = &'r str>) -> bool {
    const FRAMES: [char; 4] = ['│', '┃', '║', '|'];
    const POINTERS: [char; 11] = ['❯', '›', '▸', '▶', '➤', '→', '◉', '◯', '◻', '◼', '☐'];
    const BOXES: [&str; 6] = ["[ ]", "[x]", "[X]", "( )", "(*)", "? "];
    rows.into_iter().any(|row| {
        let row = row.trim();
        let inner = row.trim_matches(FRAMES).trim();
        let takes_text = inner == ">" || (row.len() != inner.len() && inner.starts_with("> "));
        takes_text
            || inner.starts_with(POINTERS)
            || BOXES.iter().any(|mark| inner.starts_with(mark))
            || (ends_as_question(inner) && !is_false_friend(inner))
    })
}

/// Whether the rows of a screen list several things, one of which is marked, or say which keys choose one.
#[must_use]
pub fn lists_choices<'r>(rows: impl Iterator<Item = &'r str>) -> bool {
    const MARKS: [&str; 18] =
        ["❯", "›", "▸", "▶", "➤", "»", "→", "◉", "◯", "●", "○", "◻", "◼", "☐", "[ ]", "[x]", "[X]", ">"];
    const KEYS: [&str; 7] =
        ["arrow keys", "↑/↓", "↑↓", "←/→", "<up>/<down>", "<up/down>", "<space> to select"];
    let marked = |row: &str| MARKS.iter().any(|mark| row.trim_start().starts_with(mark));
    let indent = |row: &str| row.chars().take_while(|c| *c == ' ').count();
    let mut before: Option<&str> = None;
    for row in rows {
        let lower = row.to_lowercase();
        if KEYS.iter().any(|keys| lower.contains(keys)) {
            return true;
        }
        if let Some(above) = before.filter(|above| !above.trim().is_empty() && !row.trim().is_empty()) {
            // Two items below each other: both with marks, or one with a mark and one that is indented for want of it.
            let one_marked = |with: &str, without: &str| marked(with) && indent(without) >= indent(with) + 2;
            let both = marked(row) && marked(above) && indent(row) == indent(above);
            if both && (row.trim().len() > 1) || one_marked(row, above) || one_marked(above, row) {
                return true;
            }
        }
        before = Some(row);
    }
    false
}

/// Whether a line is a question by the strict patterns of the stall watchdog: a choice of yes and no in
/// brackets, a request for a key press, or for a password.
#[must_use]
pub fn looks_like_question(line: &str) -> bool {
    if is_false_friend(line) {
        return false;
    }
    let line = line.to_lowercase();
    ["(y/n)", "[y/n]", "press any key", "press enter", "password:"].iter().any(|mark| line.contains(mark))
}

/// Whether it offers yes and no in brackets.
pub(super) fn asks_yes_or_no(text: &str) -> bool {
    let text = text.to_lowercase();
    [
        "(y/n",
        "[y/n",
        "(yes/no",
        "[yes/no",
        "(y or n",
        "(y or [n",
        "([y] or n",
        "(yes or no",
        "y/n?",
        "(y|n",
        "[y|n",
    ]
    .iter()
    .any(|mark| text.contains(mark))
}

/// What makes of a secret something that is none, if it stands behind it: `Token name: `.
const ABOUT_SECRETS: [&str; 10] =
    ["name", "file", "path", "length", "hint", "type", "id", "manager", "policy", "store"];

/// Whether it asks for a secret.
pub(super) fn asks_for_secret(text: &str) -> bool {
    let text = text.to_lowercase();
    let last = text.split(|c: char| !c.is_alphanumeric()).rfind(|word| !word.is_empty());
    if text.trim_end().ends_with(':') && last.is_some_and(|last| ABOUT_SECRETS.contains(&last)) {
        return false;
    }
    if ["password", "passphrase", "passcode", "passwort", "api key", "access key", "secret key"]
        .iter()
        .any(|word| text.contains(word))
    {
        return true;
    }
    let word =
        |word: &str| ["token", "secret", "pin", "passwd", "otp", "credential", "credentials"].contains(&word);
    text.split(|c: char| !c.is_alphanumeric()).any(word)
}

/// Whether it asks for a key press.
pub(super) fn asks_for_key(text: &str) -> bool {
    let text = text.to_lowercase();
    if ["hit any", "hit a key", "hit enter", "hit return", "any key"].iter().any(|words| text.contains(words))
    {
        return true;
    }
    let Some(at) = text.find("press ") else { return false };
    let what = text[at + "press ".len()..].trim_start_matches(['[', '<', '\'', '"']);
    ["any", "enter", "return", "a key", "key"].iter().any(|key| what.starts_with(key))
        || text.trim_end().ends_with("continue")
        || text.trim_end().ends_with("to continue...")
}

/// Whether it asks for one of a few keys: a key, or letters to choose from.
pub(super) fn offers_keys(text: &str) -> bool {
    let lower = text.trim_end().trim_end_matches(QUESTION_MARKS).trim_end_matches(COLONS).to_lowercase();
    if lower.split(|c: char| !c.is_alphanumeric()).any(|word| word == "key") {
        return true;
    }
    // `(a/b/c)`, `[y,n,q]`, `(1-9)`: single characters in brackets.
    let Some(open) = lower.rfind(['(', '[']) else { return false };
    let inner = lower[open + 1..].trim_end_matches([')', ']']);
    let range = inner.split_once('-').is_some_and(|(a, b)| a.len() == 1 && b.len() == 1);
    if range {
        return true;
    }
    let parts: Vec<&str> = inner.split(['/', ',', '|']).map(str::trim).collect();
    parts.len() > 1 && parts.iter().all(|part| part.chars().count() == 1)
}

/// Whether it begins as questions of prompt libraries do: `? Name: `, `[?] Name: `.
pub(super) fn is_library_question(text: &str) -> bool {
    let text = text.trim_start();
    ["? ", "[?] "].iter().any(|mark| text.starts_with(mark)) && text.chars().any(char::is_alphabetic)
}

/// Whether it begins with a picture of some kind, and words follow.
pub(super) fn begins_with_mark(text: &str) -> bool {
    let (mark, words) = text.trim_start().split_once(' ').unwrap_or_default();
    let is_mark =
        |c: char| !c.is_ascii() && !c.is_alphanumeric() && !c.is_whitespace() && !PROMPT_ENDS.contains(&c);
    // Frames and the marks of lists are no question's.
    let is_drawn = |c: char| matches!(c, '\u{2500}'..='\u{25ff}' | '\u{2800}'..='\u{28ff}');
    let mut marks = mark.chars().peekable();
    marks.peek().is_some()
        && marks.all(|c| is_mark(c) && !is_drawn(c))
        && words.trim_start().starts_with(char::is_alphabetic)
}

/// Whether it is nothing but the sign behind which a list is filtered.
pub(super) fn is_choice_sign(text: &str) -> bool {
    ["❯", "›", "»", ">"].contains(&text.trim())
}

/// Whether it is nothing but the name of the program that shows it, and a sign: `debugfs: `.
pub(super) fn is_name_of(text: &str, program: &str) -> bool {
    !program.is_empty() && text.trim().trim_end_matches(PROMPT_ENDS).trim_end().eq_ignore_ascii_case(program)
}

/// Whether it ends like the prompt of a program that reads commands.
pub(super) fn is_command_prompt(text: &str) -> bool {
    let trimmed = text.trim_end();
    if asks_yes_or_no(text) {
        return false;
    }
    // `?- `, `| ?- `, `* `, `? `: nothing but a few signs. A lone colon is a pager's, `#?` asks for a number.
    let bare = trimmed.trim_start();
    if !bare.is_empty()
        && bare.chars().count() <= 4
        && bare.chars().all(|c| c.is_ascii_punctuation() || c == ' ')
        && ![":", "#?"].contains(&bare)
    {
        return true;
    }
    if trimmed.ends_with(['>', '$', '#', '»', '›', '❯', '%', '❱', '⟩', '〉', '➜', 'λ'])
        || trimmed == "..."
        || is_word_with_sign(text)
    {
        return true;
    }
    // `(gdb) `, `(Pdb) `: one word in brackets and nothing before it. `In [3]: ` as in IPython.
    let word_in_brackets = trimmed.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    word_in_brackets.is_some_and(|word| !word.contains([' ', '/', '(']))
        || (trimmed.starts_with("In [") && trimmed.ends_with("]:"))
}

/// Whether it is like the last line of a pager.
pub(super) fn is_pager_line(text: &str) -> bool {
    let trimmed = text.trim();
    let lower = trimmed.to_lowercase();
    trimmed == ":"
        || lower.contains("--more--")
        || lower.ends_with("(end)")
        || lower.starts_with("manual page ")
        || (lower.starts_with("lines ") && lower.contains('-'))
        || lower.contains("press return)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_recognised() {
        let prompts = [
            "Continue? (y/n) ",
            "Do you want to continue? [Y/n] ",
            "Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
            "Password: ",
            "Enter passphrase (empty for no passphrase): ",
            "[sudo] password for ann: ",
            "Press any key to go on",
            "Press ENTER or type command",
            "Press [Enter] to finish",
            ">>> ",
            "$ ",
            "ann@host:~# ",
            "(gdb) ",
            "Stage this hunk [y,n,q,a,d,e,?]? ",
            "package name: (work) ",
            "host% ",
            "? Name ",
            "❯ ",
            "irb(main):002:1* ",
            "~/src〉",
            "名前：",
            "続けますか？",
        ];
        for text in prompts {
            assert!(is_prompt_like(text), "{text:?}");
        }
        let others = [
            "",
            "   ",
            "Building",
            "Downloading 45%",
            "Downloading 45 % ",
            "collecting ... ",
            "done.",
            "  press h + enter to show help",
            "➜  press h to show help",
            "(1/3)",
            "[ok]",
            "12:30:01 ready",
        ];
        for text in others {
            assert!(!is_prompt_like(text), "{text:?}");
        }
    }

    #[test]
    fn prompts_with_a_counter_are_alike() {
        assert!(differ_in_numbers_only("In [9]: ", "In [10]: "));
        assert!(differ_in_numbers_only("octave:1> ", "octave:1> "));
        assert!(!differ_in_numbers_only("In [9]: ", "Out[9]: "));
        assert!(!differ_in_numbers_only("> ", "1> "));
    }

    #[test]
    fn menus_are_recognised() {
        let menus = [
            "Pick:\n> a\n  b",
            "? Pick one\n  a",
            "❯ a\n  b",
            "╭────╮\n│ >  │\n╰────╯",
            "[ ] a\n[x] b",
            "Which one?\n  a\n  b",
        ];
        for screen in menus {
            assert!(offers_choice(screen.lines()), "{screen}");
        }
        let others =
            ["", "- Installing packages", "> vite build", "Downloading 0%", "⠋ fetching", "| working"];
        for screen in others {
            assert!(!offers_choice(screen.lines()), "{screen}");
        }
    }

    #[test]
    fn the_last_resort_matches_its_five_patterns_only() {
        for line in ["go on? (Y/N)", "[y/n]", "Press any key", "PRESS ENTER", "Password:"] {
            assert!(looks_like_question(line), "{line:?}");
        }
        for line in ["$ ", "Name: ", "collecting ...", "yes/no", "password", "press q to quit: (y/n)"] {
            assert!(!looks_like_question(line), "{line:?}");
        }
    }

    #[test]
    fn what_a_program_does_is_no_question() {
        for text in ["Compiling: ", "Uploading (1/3):", "- Installing packages:", "working: ", "Build 45%:"] {
            assert!(is_progress(text), "{text:?}");
        }
        for text in [
            "Name: ",
            "String: ",
            "Setting: ",
            "Continue installing? ",
            "Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
            "(gdb) ",
            "iex(1)> ",
            "bsh % ",
        ] {
            assert!(!is_progress(text), "{text:?}");
        }
    }

    #[test]
    fn a_question_may_end_with_a_newline() {
        for line in ["What is your name?", "Enter a number:", "Please enter your age", "Go on [y/N]"] {
            assert!(is_question(line), "{line:?}");
        }
        for line in [
            "",
            "done",
            "Listening on:",
            "Press q to quit",
            "Please wait…",
            "Error: no such file:",
            "Type `bye' to exit",
            "Type \".help\" for more information.",
        ] {
            assert!(!is_question(line), "{line:?}");
        }
    }

    #[test]
    fn a_mark_before_words_is_recognised() {
        for text in ["🎤 Project name", "🚀 Where to?", "✨ Name "] {
            assert!(begins_with_mark(text), "{text:?}");
        }
        for text in ["", "🎤", "⠋ Installing", "│ Name", "Name", "❯ ", "? Name", "» go", "● one"] {
            assert!(!begins_with_mark(text), "{text:?}");
        }
    }

    #[test]
    fn lists_are_recognised() {
        let lists = [
            "? Pick (Use arrow keys)\n » a\n   b",
            "Pick:\n❯ a\n  b",
            "[?] Pick: a\n > a\n   b",
            " ◯ a\n ◉ b",
            "> one\n  two\n[↑↓ to move, enter to select]",
            "Volume ──●── 5\n(Use ←/→ arrow keys, press Enter to select)",
        ];
        for screen in lists {
            assert!(lists_choices(screen.lines()), "{screen}");
        }
        for screen in ["", ">>> 1+1\n2\n>>> ", "> vite build\nready", "$ ls\na  b\n$ ", "> a\nb"] {
            assert!(!lists_choices(screen.lines()), "{screen}");
        }
    }

    #[test]
    fn command_prompts_differ_from_questions() {
        for text in [
            ">>> ",
            "... ",
            "> ",
            "(gdb) ",
            "(Pdb) ",
            "In [12]: ",
            "sqlite> ",
            "postgres=# ",
            "me % ",
            "?- ",
            "| ?- ",
            "* ",
            "? ",
        ] {
            assert!(is_command_prompt(text), "{text:?}");
        }
        for text in
            ["Name: ", "Sure? ", "(y/n) ", "pick one (1-3) ", "(yes or no) ", "Quit anyway? (y or n) ", ":"]
        {
            assert!(!is_command_prompt(text), "{text:?}");
        }
    }
}
