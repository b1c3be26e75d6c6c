//! What is typed into a job: a command, if a shell reads it.
//!
//! A line may come in parts, over several calls, and may be edited or recalled with keys. So what was typed
//! before and has not been run counts. Every end of a line is judged, with the line it continues and alone.
//! If keys have turned the line into something that cannot be seen from here, a person is asked.

use outlast_stream::{Base, Key};

use crate::decision::{Decision, Tool};
use crate::judge::Verdict;
use crate::lines::{behind_keywords, is_unfinished};
use crate::order::TypedInput;
use crate::policy::Policy;
use crate::reading::{Reading, without_quotes};
use crate::word::base;

/// What reads the job's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A shell, or a program that may have a shell behind it, or it is unknown.
    Shell,
    /// A shell that is not bash: only plain lines mean the same to it.
    OtherShell {
        /// The shell.
        program: String,
    },
    /// Another program; a shell behind it reads what it leaves.
    Before {
        /// The program.
        program: String,
    },
    /// Another program, without a shell.
    Program {
        /// The program.
        program: String,
    },
}

/// One key press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stroke {
    Char(char),
    /// Runs the line.
    Run,
    /// Discards the line, unless the program takes no notice of it.
    Interrupt,
    /// Deletes the last character, in a line editor.
    Erase,
    /// Ends the input, or half a line.
    End,
    /// Changes the line in a way that cannot be seen from here.
    Unseen,
    /// The same, and may run it.
    UnseenRun,
}

fn of_char(c: char) -> Stroke {
    match c {
        '\r' | '\n' => Stroke::Run,
        '\u{3}' => Stroke::Interrupt,
        '\u{4}' => Stroke::End,
        '\u{8}' | '\u{7f}' => Stroke::Erase,
        '\u{f}' | '\u{18}' => Stroke::UnseenRun,
        // Line editors take signs that join others in their own ways.
        c if c.is_ascii_graphic() || c == ' ' || !c.is_ascii() && c.is_alphanumeric() => Stroke::Char(c),
        _ => Stroke::Unseen,
    }
}

fn of_text(text: &str, strokes: &mut Vec<Stroke>) {
    // Bracketed paste marks are not keys.
    let text = text.replace("\u{1b}[200~", "").replace("\u{1b}[201~", "");
    strokes.extend(text.chars().map(of_char));
}

fn of_key(key: Key) -> Stroke {
    match key {
        Key { base: Base::Enter | Base::Keypad('\r'), ctrl: false, alt: false, shift: false } => Stroke::Run,
        Key { base: Base::Enter | Base::Keypad('\r'), .. } => Stroke::UnseenRun,
        Key { base: Base::Backspace, ctrl: false, alt: false, .. } => Stroke::Erase,
        Key { base: Base::Keypad(c) | Base::Char(c), ctrl: false, alt: false, .. } => of_char(c),
        Key { base: Base::Char(c), ctrl: true, alt: false, .. } if c.is_ascii_alphabetic() => {
            of_char(char::from(c.to_ascii_lowercase() as u8 & 0x1f))
        }
        _ => Stroke::Unseen,
    }
}

fn of_input(input: &TypedInput) -> Vec<Stroke> {
    let mut strokes = Vec::new();
    of_text(input.text(), &mut strokes);
    let send = input.as_given();
    if send.newline {
        strokes.push(Stroke::Run);
    }
    strokes.extend(input.keys().iter().copied().map(of_key));
    if send.eof {
        strokes.push(Stroke::End);
    }
    strokes
}

/// The line that a text and keys after it make on an empty line, and whether keys make it into something
/// else.
pub(crate) fn line_of(text: &str, keys: &[String]) -> (String, bool) {
    let mut strokes = Vec::new();
    of_text(text, &mut strokes);
    strokes.extend(keys.iter().map(|key| Key::parse(key).map_or(Stroke::Unseen, of_key)));
    let (mut line, mut unseen) = (String::new(), false);
    for stroke in strokes {
        match stroke {
            Stroke::Char(c) => line.push(c),
            // What was typed may have been read by then.
            Stroke::Run | Stroke::Interrupt | Stroke::End => line.push('\n'),
            Stroke::Erase | Stroke::Unseen | Stroke::UnseenRun => unseen = true,
        }
    }
    (line, unseen)
}

/// The line so far.
#[derive(Debug, Default)]
struct Line {
    /// Earlier lines that it continues.
    continues: String,
    /// The line as a line editor has it.
    edited: String,
    /// What was typed between editing keys.
    parts: Vec<String>,
    unseen: bool,
}

impl Line {
    fn press(&mut self, stroke: Stroke) {
        match stroke {
            Stroke::Char(c) => {
                self.edited.push(c);
                if self.parts.is_empty() {
                    self.parts.push(String::new());
                }
                if let Some(part) = self.parts.last_mut() {
                    part.push(c);
                }
            }
            // Nothing is there to discard.
            Stroke::Interrupt if self.is_empty() => {}
            Stroke::Interrupt => {
                (self.continues, self.edited) = Default::default();
                self.unseen = true;
                self.parts.push(String::new());
            }
            Stroke::Erase => {
                // How much of a letter outside of ASCII goes depends on the editor and its locale.
                self.unseen |= self.edited.pop().is_some_and(|c| !c.is_ascii());
                self.parts.push(String::new());
            }
            // A line editor takes it for a key that deletes.
            Stroke::End => {
                self.unseen |= !self.edited.is_empty();
                self.parts.push(String::new());
            }
            Stroke::Unseen | Stroke::UnseenRun => {
                self.unseen = true;
                self.parts.push(String::new());
            }
            Stroke::Run => {}
        }
    }

    fn is_empty(&self) -> bool {
        self.continues.is_empty() && self.edited.is_empty() && !self.unseen
    }

    /// The line was run. If the shell would ask for more, the next line continues it.
    fn ran(&mut self) {
        let whole = self.whole();
        let continues = if is_unfinished(&whole) { format!("{whole}\n") } else { String::new() };
        *self = Self { continues, ..Self::default() };
    }

    fn whole(&self) -> String {
        format!("{}{}", self.continues, self.edited)
    }

    /// All possible readings of the line.
    fn readings(&self) -> Vec<String> {
        let mut readings = vec![self.whole(), self.edited.clone()];
        if self.parts.len() > 1 {
            readings.extend(self.parts.iter().cloned());
            readings.push(format!("{}{}", self.continues, self.parts.concat()));
        }
        readings.sort();
        readings.dedup();
        readings.retain(|reading| !reading.trim().is_empty());
        readings
    }
}

impl Policy {
    /// Judges what is typed, after what was typed before and may not have been run yet.
    #[must_use]
    pub fn judge_typed(&self, reader: &Reader, before: &[u8], input: &TypedInput) -> Verdict {
        let tool = self.judge_tool(Tool::Send);
        if !self.can_restrict(Tool::Send) {
            return tool;
        }
        let strokes = of_input(input);
        if let Reader::Program { program } = reader {
            let before = String::from_utf8_lossy(before);
            return tool.and(self.judge_words(program, &before, &strokes));
        }
        let mut line = Line::default();
        let mut earlier = Vec::new();
        of_text(&String::from_utf8_lossy(before), &mut earlier);
        for stroke in earlier {
            line.press(stroke);
            if stroke == Stroke::Run {
                line.ran();
            }
        }
        let mut verdict = tool;
        for stroke in strokes {
            line.press(stroke);
            if is_end(stroke) {
                verdict = verdict.and(self.judge_typed_line(reader, &line));
            }
            // After another key, what was typed may still be there.
            if stroke == Stroke::Run {
                line.ran();
            }
        }
        verdict.and(self.judge_half_a_line(&line))
    }

    fn judge_typed_line(&self, reader: &Reader, line: &Line) -> Verdict {
        let mut verdict = Verdict::default();
        let goes_on = is_unfinished(&line.whole());
        for text in line.readings() {
            for text in [text.as_str(), behind_keywords(&text)] {
                let mut reading = Reading::of_line(text);
                if matches!(reader, Reader::OtherShell { .. }) && crate::grammar::outside(text).is_some() {
                    reading.opaque("another shell than bash reads it, and it is not plain", text);
                }
                if recalls(text) {
                    reading.opaque("it recalls a line from the shell's history", text);
                }
                // Another program's language is not an error, and neither is half of a command.
                if goes_on || matches!(reader, Reader::Before { .. }) || is_part_of_a_block(text) {
                    reading.forget_parse_errors(0);
                }
                verdict = verdict.and(self.judge(Tool::Send, &reading));
            }
        }
        if line.unseen {
            let mut reading = Reading::default();
            reading
                .opaque("keys have made the line into something that can't be seen from here", &line.edited);
            verdict = verdict.and(self.judge(Tool::Send, &reading));
        }
        verdict
    }

    /// A line that is not run yet is only denied, and only if it is clear.
    fn judge_half_a_line(&self, line: &Line) -> Verdict {
        let mut findings = Vec::new();
        for text in line.readings() {
            let verdict = self.judge(Tool::Send, &Reading::of_line(&text));
            let plain = verdict.findings.into_iter();
            findings
                .extend(plain.filter(|finding| finding.decision == Decision::Deny && finding.rule.is_some()));
        }
        Verdict::of(findings)
    }

    /// What another program does with it is unknown. What it clearly mentions is judged; and where only what is allowed may
    /// run, it may be no more than an answer: pagers, editors and interpreters run lines too.
    fn judge_words(&self, program: &str, before: &str, strokes: &[Stroke]) -> Verdict {
        let begun = before.rsplit(char::is_control).next().unwrap_or_default();
        let typed: String = strokes
            .iter()
            .map(|stroke| match stroke {
                Stroke::Char(c) => *c,
                Stroke::Run
                | Stroke::Interrupt
                | Stroke::Erase
                | Stroke::End
                | Stroke::Unseen
                | Stroke::UnseenRun => '\n',
            })
            .collect();
        let text = format!("{begun}{typed}");
        let shown = format!("{}, typed into {program}", text.trim());
        let mut verdict = Verdict::default();
        if !text.lines().all(|line| is_mere_answer(program, line)) {
            let why = "what is typed is more than an answer, so the program could run it";
            verdict = verdict.and(self.judge(Tool::Send, &Reading::of_outside(why, &shown)));
        }
        for text in [without_quotes(&text), text] {
            verdict = verdict.and(self.judge(Tool::Send, &Reading::of_mention(text, &shown)));
        }
        verdict
    }
}

/// Programs in which every letter is an order.
const TAKE_KEYS: &[&str] = &[
    "less", "more", "most", "man", "pager", "vi", "vim", "nvim", "view", "ex", "ed", "nano", "pico", "emacs",
    "mc", "ranger", "nnn", "tig", "lazygit", "w3m", "lynx",
];
/// Those of their keys that only move about, or leave.
const MOVES: &str = "qQ gGjkhlfbdunN";
/// No answer is longer.
const MAX_ANSWER: usize = 64;

/// Whether a line can be nothing but an answer to a question: a word, a number, a name or a path.
fn is_mere_answer(program: &str, line: &str) -> bool {
    if TAKE_KEYS.contains(&base(program)) {
        return line.chars().all(|c| MOVES.contains(c));
    }
    let is_plain = |c: char| c.is_alphanumeric() || "_.@+/,-".contains(c);
    let are_numbers = || line.chars().all(|c| c.is_ascii_digit() || c == ' ' || c == ',');
    line.len() <= MAX_ANSWER && (line.chars().all(is_plain) || are_numbers())
}

/// Whether a key may run the line.
fn is_end(stroke: Stroke) -> bool {
    match stroke {
        Stroke::Run | Stroke::UnseenRun | Stroke::End => true,
        Stroke::Char(_) | Stroke::Interrupt | Stroke::Erase | Stroke::Unseen => false,
    }
}

/// Whether a line is the start, the middle or the end of a block.
fn is_part_of_a_block(text: &str) -> bool {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c == ';').filter(|word| !word.is_empty()).collect();
    let first = words.first().copied().unwrap_or_default();
    let last = words.last().copied().unwrap_or_default();
    ["then", "do", "else", "elif", "fi", "done", "esac", "}"].contains(&first)
        || ["then", "do", "else", "in", "{"].contains(&last)
        || ["if", "while", "until", "for", "case", "select"].contains(&first)
}

/// Whether an interactive shell would replace it with an older line (history expansion).
fn recalls(text: &str) -> bool {
    let begins = |next: char| !next.is_whitespace() && !['=', '(', '"', ')'].contains(&next);
    let mut single = false;
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    if text.trim_start().starts_with('^') {
        return true;
    }
    while let Some(c) = chars.next() {
        match c {
            '\'' if before != '\\' => single = !single,
            '!' if !single
                && !['\\', '$', '{'].contains(&before)
                && chars.peek().is_some_and(|next| begins(*next)) =>
            {
                return true;
            }
            _ => {}
        }
        before = c;
    }
    false
}

#[cfg(test)]
#[path = "typed_tests.rs"]
mod tests;
