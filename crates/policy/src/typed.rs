//! What is typed into a job: a command, where a shell reads it.
//!
//! A line may come in parts, over several calls, and may be put together by keys that recall or change it. So what
//! was typed before and has not been run counts; every end of a line is judged, with what it continues and alone;
//! and a line that keys have made into something that we can't see is asked for.

use outlast_job::wire::{Send, base64};
use outlast_stream::{Base, Key};

use crate::decision::{Decision, Tool};
use crate::judge::Verdict;
use crate::lines::{behind_keywords, is_unfinished};
use crate::policy::Policy;
use crate::reading::{Reading, without_quotes};

/// Who reads what is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A shell, or something that a shell may be behind, or nobody knows.
    Shell,
    /// Another program; a shell is behind it and reads what it leaves.
    Before {
        /// The program.
        program: String,
    },
    /// Another program, and no shell.
    Program {
        /// The program.
        program: String,
    },
}

/// One thing that is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stroke {
    Char(char),
    /// Runs the line.
    Run,
    /// Throws the line away, whoever reads it.
    Drop,
    /// Takes the last character back, for who edits lines.
    Erase,
    /// Throws the line away, for who edits lines.
    Clear,
    /// Does something to the line that can't be seen from here.
    Unseen,
    /// The same, and may run it.
    UnseenRun,
}

fn of_char(c: char) -> Stroke {
    match c {
        '\r' | '\n' | '\u{4}' | '\u{f}' => Stroke::Run,
        '\u{3}' => Stroke::Drop,
        '\u{8}' | '\u{7f}' => Stroke::Erase,
        '\u{15}' => Stroke::Clear,
        '\u{18}' => Stroke::UnseenRun,
        // It draws the screen anew.
        '\u{c}' => Stroke::Char(' '),
        c if c.is_control() => Stroke::Unseen,
        c => Stroke::Char(c),
    }
}

fn of_text(text: &str, strokes: &mut Vec<Stroke>) {
    // The marks of a paste are no keys.
    let text = text.replace("\u{1b}[200~", "").replace("\u{1b}[201~", "");
    strokes.extend(text.chars().map(of_char));
}

fn of_key(name: &str) -> Stroke {
    match Key::parse(name) {
        Ok(Key { base: Base::Enter | Base::Keypad('\r'), .. }) => Stroke::Run,
        Ok(Key { base: Base::Backspace, ctrl: false, alt: false, .. }) => Stroke::Erase,
        Ok(Key { base: Base::Keypad(c) | Base::Char(c), ctrl: false, alt: false, .. }) => of_char(c),
        Ok(Key { base: Base::Char(c), ctrl: true, alt: false, .. }) if c.is_ascii_alphabetic() => {
            of_char(char::from(c.to_ascii_lowercase() as u8 & 0x1f))
        }
        _ => Stroke::Unseen,
    }
}

fn of_send(send: &Send) -> Vec<Stroke> {
    let mut strokes = Vec::new();
    if send.bytes.is_empty() {
        of_text(&send.text, &mut strokes);
    } else {
        let bytes = base64::decode(&send.bytes).unwrap_or_default();
        of_text(&String::from_utf8_lossy(&bytes), &mut strokes);
    }
    if send.newline {
        strokes.push(Stroke::Run);
    }
    strokes.extend(send.keys.iter().map(|key| of_key(key)));
    if send.eof {
        strokes.push(Stroke::Run);
    }
    strokes
}

/// A line as it comes about.
#[derive(Debug, Default)]
struct Line {
    /// Lines before it that it continues.
    continues: String,
    /// As somebody who edits lines has it.
    edited: String,
    /// What was typed between keys that edit.
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
            Stroke::Drop => *self = Self::default(),
            Stroke::Erase => {
                self.edited.pop();
                self.parts.push(String::new());
            }
            Stroke::Clear => {
                self.edited.clear();
                self.parts.push(String::new());
            }
            Stroke::Unseen | Stroke::UnseenRun => {
                self.unseen = true;
                self.parts.push(String::new());
            }
            Stroke::Run => {}
        }
    }

    /// The line was run: what goes on is a line that the shell would ask to be continued.
    fn ran(&mut self) {
        let whole = self.whole();
        let continues = if is_unfinished(&whole) { format!("{whole}\n") } else { String::new() };
        *self = Self { continues, ..Self::default() };
    }

    fn whole(&self) -> String {
        format!("{}{}", self.continues, self.edited)
    }

    /// Every way to read it.
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
    /// What is said of something that is typed, after what was typed before and may not have been run yet.
    #[must_use]
    pub fn judge_typed(&self, reader: &Reader, before: &[u8], send: &Send) -> Verdict {
        let tool = self.judge_tool(Tool::Send);
        if !self.has_teeth(Tool::Send) {
            return tool;
        }
        let strokes = of_send(send);
        if let Reader::Program { program } = reader {
            return tool.and(self.judge_words(program, &strokes));
        }
        let mut line = Line::default();
        let mut earlier = Vec::new();
        of_text(&String::from_utf8_lossy(before), &mut earlier);
        for stroke in earlier {
            line.press(stroke);
            if matches!(stroke, Stroke::Run | Stroke::UnseenRun) {
                line.ran();
            }
        }
        let mut verdict = tool;
        for stroke in strokes {
            line.press(stroke);
            if matches!(stroke, Stroke::Run | Stroke::UnseenRun) {
                verdict = verdict.and(self.judge_typed_line(reader, &line));
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
                if recalls(text) {
                    reading.opaque("it recalls a line from the shell's history", text);
                }
                // Another program's language is no mistake, and half of a command is none either.
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

    /// What is not run yet is only refused, and only when it is plain.
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

    /// What another program makes of it can't be known: only what it plainly mentions.
    fn judge_words(&self, program: &str, strokes: &[Stroke]) -> Verdict {
        let text: String = strokes
            .iter()
            .map(|stroke| match stroke {
                Stroke::Char(c) => *c,
                _ => '\n',
            })
            .collect();
        let shown = format!("{}, typed into {program}", text.trim());
        let mut verdict = Verdict::default();
        for text in [without_quotes(&text), text] {
            verdict = verdict.and(self.judge(Tool::Send, &Reading::of_mention(text, &shown)));
        }
        verdict
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

/// Whether an interactive shell would put an older line in its place.
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
