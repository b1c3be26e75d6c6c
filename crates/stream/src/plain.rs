//! A line without escape sequences: colours, cursor moves and titles are removed, the text stays.

use crate::scan::{Csi, Scanner, Sink};

/// The text of a line. Tabs stay, and so do carriage returns: they show that a line was redrawn.
#[must_use]
pub fn plain(line: &str) -> String {
    let mut plain = Plain { text: String::with_capacity(line.len()) };
    let mut scanner = Scanner::new();
    scanner.scan(line.as_bytes(), 0, &mut plain);
    scanner.finish(line.len() as u64, &mut plain);
    plain.text
}

struct Plain {
    text: String,
}

impl Sink for Plain {
    fn text(&mut self, text: &str, _end: u64) {
        self.text.push_str(text);
    }

    fn control(&mut self, byte: u8, _end: u64) {
        if matches!(byte, b'\t' | b'\r') {
            self.text.push(char::from(byte));
        }
    }

    fn csi(&mut self, _csi: &Csi<'_>, _end: u64) {}

    fn escape(&mut self, _intermediates: &[u8], _last: u8, _end: u64) {}

    fn osc(&mut self, _body: &[u8], _ended_by_bell: bool, _end: u64) {}

    fn dcs(&mut self, _body: &[u8], _end: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_and_sequences_are_removed() {
        assert_eq!(plain("\x1b[1;32mok\x1b[0m\t10%\r20%\x07\x1b]0;title\x07!"), "ok\t10%\r20%!");
        assert_eq!(plain("plain 漢字"), "plain 漢字");
        assert_eq!(plain("cut \x1b[3"), "cut ");
    }
}
