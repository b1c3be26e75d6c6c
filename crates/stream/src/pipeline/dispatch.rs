//! Passes what the scanner finds to transcript, screen, patterns and replies.

use super::Fold;
use crate::charset::Charsets;
use crate::fold_output::FoldOutput;
use crate::modes::Modes;
use crate::replies::{self, Query};
use crate::scan::{Csi, Params, Sink};
use crate::screen::Switch;

/// The longest title that is kept, in characters.
const MAX_TITLE: usize = 1024;

/// One step of the fold: its state, and where the results go.
pub(super) struct Step<'a> {
    pub(super) fold: &'a mut Fold,
    pub(super) out: &'a mut FoldOutput,
}

impl Sink for Step<'_> {
    fn lines(&mut self, bytes: &[u8], start: u64) -> usize {
        self.plain_lines(bytes, start)
    }

    fn text(&mut self, text: &str, end: u64) {
        let only_patterns = self.fold.only_patterns;
        let Fold { transcript, screen, matchers, modes, charsets, last_printed, .. } = &mut *self.fold;
        *last_printed = text.chars().next_back();
        let shown = charsets.map(text);
        if !matchers.is_empty() {
            matchers.text(shown.as_bytes(), end, &mut self.out.hits);
        }
        if only_patterns {
            return;
        }
        let alternate = modes.alternate_screen;
        if !alternate {
            transcript.text(&shown, modes, self.out);
        }
        if screen.is_flooded() && self.fold.has_canvas() && self.fold.screen.text_on_canvas(text) {
            return;
        }
        self.fold.feed_in_line(text.as_bytes());
    }

    fn control(&mut self, byte: u8, end: u64) {
        self.fold.last_printed = None;
        match byte {
            b'\n' | 0x0b | 0x0c => self.line_feed(byte, end),
            b'\r' => {
                if !self.fold.matchers.is_empty() {
                    self.fold.matchers.carriage_return();
                }
                self.draw_in_line(b"\r");
                if !self.fold.modes.alternate_screen {
                    self.fold.transcript.carriage_return();
                }
            }
            0x08 => {
                if !self.fold.matchers.is_empty() {
                    self.fold.matchers.back(1);
                }
                if !self.back_over_edge(1) {
                    self.draw_in_line(b"\x08");
                }
                if !self.fold.modes.alternate_screen {
                    self.fold.transcript.backspace(self.out);
                }
            }
            b'\t' => {
                if !self.fold.matchers.is_empty() {
                    self.fold.matchers.text(b"\t", end, &mut self.out.hits);
                }
                self.wrap_before_tab();
                self.draw_in_line(b"\t");
                if !self.fold.modes.alternate_screen {
                    let Fold { transcript, modes, .. } = &mut *self.fold;
                    transcript.tab(modes, self.out);
                }
            }
            0x07 => {
                self.fold.bells += 1;
                self.out.bells = self.out.bells.saturating_add(1);
            }
            0x0e | 0x0f => {
                self.fold.charsets.shift(usize::from(byte == 0x0e));
                self.fold.screen.feed_cursor_move(&[byte]);
            }
            _ => {}
        }
    }

    fn csi(&mut self, csi: &Csi<'_>, end: u64) {
        if csi.is_sgr() {
            // Colours do not matter to the transcript and to patterns.
            return self.draw_csi(csi, true);
        }
        let Some(params) = csi.params() else { return };
        if csi.last != b'b' {
            self.fold.last_printed = None;
        }
        match (params.prefix, params.intermediate, csi.last) {
            (b'?', 0, b'h' | b'l') => self.private_modes(&params, csi.last, end),
            (0, 0, b'h' | b'l') => {
                for &number in params.values() {
                    self.fold.modes.set_standard(number, csi.last == b'h');
                }
                self.draw_csi(csi, false);
            }
            (b'?', 0, b's' | b'r') => self.keep_modes(&params, csi.last == b'r'),
            (b'?', 0, b'J' | b'K') => self.erase_selectively(&params, csi.last),
            (0, b'"', b'q') => self.select_protection(&params),
            (0, b'\'', b'}' | b'~') => self.columns(&params, csi.last == b'}'),
            (0, b' ', b'@' | b'A') => self.scroll_columns(&params, csi.last == b'@'),
            (b'>', 0, b'm') => self.fold.modes.set_modify_other_keys(&params),
            (0, b'!', b'p') => self.soft_reset(),
            (0, 0, b't' | b'c' | b'n') | (_, b'$', b'p') | (b'>' | b'?', 0, _) => {
                self.answer(&params, csi.last, end)
            }
            _ if params.is_plain() => self.draw(csi, &params, end),
            _ => {}
        }
        self.keep_checkpoint_near(end);
    }

    fn escape(&mut self, intermediates: &[u8], last: u8, end: u64) {
        let fold = &mut *self.fold;
        fold.last_printed = None;
        match (intermediates, last) {
            ([], b'=' | b'>') => return fold.modes.application_keypad = last == b'=',
            ([b'(' | b')' | b'*' | b'+'], _) => {
                let slot = usize::from(intermediates[0] - b'(');
                fold.charsets.designate(slot, last);
                if !matches!(last, b'0' | b'B') {
                    return fold.screen.feed_cursor_move(&[0x1b, intermediates[0], b'B']);
                }
            }
            ([], b'D' | b'E') => return self.index(last, end),
            ([], b'6' | b'9') => return self.index_column(last == b'9'),
            ([], b'V' | b'W') => return self.guard_area(last == b'V'),
            ([], b'7') if !fold.modes.alternate_screen => {
                fold.saved_charsets = fold.charsets;
                fold.transcript.save_cursor(self.out);
            }
            ([], b'8') => {
                fold.leave_origin_mode();
                if !fold.modes.alternate_screen {
                    fold.charsets.restore(fold.saved_charsets);
                    fold.transcript.restore_cursor(self.out);
                }
                self.leave_line();
            }
            ([], b'M') | (b"#", b'8') => {
                if last == b'8' {
                    fold.region = None;
                }
                if !fold.modes.alternate_screen {
                    fold.transcript.escape(intermediates, last, self.out);
                }
                self.leave_line();
            }
            ([], b'c') => self.full_reset(),
            ([], b'7' | b'H') => {}
            _ => return,
        }
        let mut bytes = vec![0x1b];
        bytes.extend_from_slice(intermediates);
        bytes.push(last);
        self.fold.screen.feed_cursor_move(&bytes);
    }

    fn osc(&mut self, body: &[u8], ended_by_bell: bool, end: u64) {
        if let Some(title) = body.strip_prefix(b"0;").or_else(|| body.strip_prefix(b"2;")) {
            let title: String =
                String::from_utf8_lossy(title).chars().filter(|c| !c.is_control()).take(MAX_TITLE).collect();
            if title != self.fold.title {
                self.fold.title.clone_from(&title);
                self.out.title = Some(title);
            }
        } else if self.fold.modes.terminal
            && let Some(answer) = replies::colour(body, ended_by_bell)
        {
            self.fold.responder.answer(&answer, end, &mut self.out.replies);
        }
    }

    fn dcs(&mut self, body: &[u8], end: u64) {
        // XTGETTCAP: we have none of these capabilities. Without an answer, programs would wait for one.
        if body.starts_with(b"+q") && self.fold.modes.terminal {
            self.fold.responder.answer("\x1bP0+r\x1b\\", end, &mut self.out.replies);
        }
    }
}

impl Step<'_> {
    fn line_feed(&mut self, byte: u8, end: u64) {
        let returns = self.fold.modes.newline;
        if !self.fold.matchers.is_empty() {
            self.fold.matchers.line_feed(end, &mut self.out.hits);
        }
        if self.fold.only_patterns {
            return;
        }
        let Fold { transcript, screen, modes, .. } = &mut *self.fold;
        let drawn: &[u8] = if modes.terminal && !returns { &[byte] } else { b"\r\n" };
        let alternate = modes.alternate_screen;
        if !alternate {
            transcript.line_feed(returns, self.out);
        }
        let is_drawn =
            screen.is_flooded() && self.fold.has_canvas() && self.fold.screen.control_on_canvas(drawn);
        let Fold { transcript, screen, region, .. } = &mut *self.fold;
        if is_drawn {
            // On the canvas.
        } else if alternate || region.is_some() {
            screen.feed_cursor_move(drawn);
        } else {
            screen.line_end(drawn, transcript.is_at_line_start());
        }
        if alternate {
            return self.keep_checkpoint_near(end);
        }
        self.fold.mark_lines(1, end);
    }

    /// IND and NEL.
    fn index(&mut self, last: u8, end: u64) {
        if !self.fold.matchers.is_empty() {
            self.fold.matchers.line_feed(end, &mut self.out.hits);
        }
        self.fold.screen.feed_cursor_move(&[0x1b, last]);
        if !self.fold.modes.alternate_screen {
            self.fold.transcript.escape(&[], last, self.out);
        }
    }

    /// Draws something within the cursor's line.
    fn draw_in_line(&mut self, bytes: &[u8]) {
        if self.fold.only_patterns {
            return;
        }
        let fold = &mut *self.fold;
        if !(fold.screen.is_flooded() && fold.has_canvas() && fold.screen.control_on_canvas(bytes)) {
            fold.feed_in_line(bytes);
        }
    }

    fn draw_csi(&mut self, csi: &Csi<'_>, local: bool) {
        // Built on the stack: colours are by far the most common sequences.
        let mut bytes = [0; 260];
        let length = csi.body.len() + 3;
        if length > bytes.len() || self.fold.only_patterns {
            return;
        }
        bytes[..2].copy_from_slice(b"\x1b[");
        bytes[2..length - 1].copy_from_slice(csi.body);
        bytes[length - 1] = csi.last;
        let (fold, bytes) = (&mut *self.fold, &bytes[..length]);
        if fold.screen.is_flooded() && fold.has_canvas() && fold.screen.csi_on_canvas(csi, bytes) {
            return;
        }
        if local {
            fold.feed_in_line(bytes);
        } else {
            fold.screen.feed_cursor_move(bytes);
        }
    }

    /// A standard sequence that moves, erases or edits.
    fn draw(&mut self, csi: &Csi<'_>, params: &Params, end: u64) {
        let count = params.get(0, 1);
        let hits = &mut self.out.hits;
        let watched = !self.fold.matchers.is_empty();
        let local = match csi.last {
            b'@' | b'P' | b'X' | b'K' => true,
            b'b' => return self.repeat(count, end),
            b'C' | b'a' => {
                if watched {
                    self.fold.matchers.forward(count, end, hits);
                }
                true
            }
            b'D' => {
                if watched {
                    self.fold.matchers.back(count);
                }
                true
            }
            b'G' | b'`' | b'I' | b'Z' => {
                if watched && count == 1 && csi.last == b'G' {
                    self.fold.matchers.carriage_return();
                } else if watched {
                    self.fold.matchers.restart_line(hits);
                }
                true
            }
            b'u' => {
                self.fold.leave_origin_mode();
                self.leave_line();
                false
            }
            b'J' | b'g' => false,
            b'A' | b'B' | b'e' | b'E' | b'F' | b'H' | b'f' | b'd' | b'L' | b'M' | b'S' | b'T' | b'r' => {
                if watched {
                    self.fold.matchers.leave_line(hits);
                }
                false
            }
            b's' => false,
            _ => return,
        };
        if csi.last == b'r' {
            let lines = self.fold.screen.size().lines();
            let bottom = params.get(1, self.fold.screen.size().rows).min(lines);
            if count - 1 < bottom {
                let whole = count == 1 && bottom == lines;
                self.fold.region = if whole { None } else { Some((count - 1, bottom - 1)) };
            }
        }
        if (csi.last == b'D' && self.back_over_edge(count))
            || (matches!(csi.last, b'J' | b'K' | b'X') && self.erase_beside_guarded(params, csi.last))
        {
            // Drawn.
        } else if matches!(csi.last, b'A' | b'B' | b'E' | b'F')
            && !self.fold.only_patterns
            && let Some(region) = self.fold.region
        {
            self.draw_step(csi.last, count, region);
        } else {
            self.draw_csi(csi, local);
        }
        self.transcribe(params, csi.last);
    }

    /// Steps up and down stop at the edges of the scroll region. The engine does not do that.
    fn draw_step(&mut self, last: u8, count: usize, (top, bottom): (usize, usize)) {
        let (row, _) = self.fold.screen.cursor();
        let limit = match last {
            b'A' | b'F' if row >= top => row - top,
            b'B' | b'E' if row <= bottom => bottom - row,
            _ => count,
        };
        if matches!(last, b'E' | b'F') {
            self.fold.screen.feed_cursor_move(b"\r");
        }
        if limit > 0 {
            let step = if matches!(last, b'A' | b'F') { 'A' } else { 'B' };
            self.fold.screen.feed_cursor_move(format!("\x1b[{}{step}", count.min(limit)).as_bytes());
        }
    }

    /// REP prints the last character again. Limited to a row: otherwise a few bytes could print for seconds.
    fn repeat(&mut self, count: usize, end: u64) {
        if let Some(character) = self.fold.last_printed {
            let count = count.min(self.fold.screen.size().columns());
            let text: String = std::iter::repeat_n(character, count).collect();
            self.text(&text, end);
        }
    }

    fn transcribe(&mut self, params: &Params, last: u8) {
        let Fold { transcript, modes, charsets, saved_charsets, only_patterns, .. } = &mut *self.fold;
        if !modes.alternate_screen {
            match last {
                b's' => *saved_charsets = *charsets,
                b'u' => charsets.restore(*saved_charsets),
                _ => {}
            }
            if !*only_patterns {
                transcript.csi(params, last, modes, self.out);
            }
        }
    }

    fn leave_line(&mut self) {
        if !self.fold.matchers.is_empty() {
            self.fold.matchers.leave_line(&mut self.out.hits);
        }
    }

    fn private_modes(&mut self, params: &Params, last: u8, end: u64) {
        for &number in params.values() {
            // Saves and restores the cursor.
            if number == 1048 {
                self.escape(&[], if last == b'h' { b'7' } else { b'8' }, end);
            } else {
                self.private_mode(number, last == b'h');
            }
        }
    }

    pub(super) fn private_mode(&mut self, number: u16, on: bool) {
        let (was, last) = (self.fold.modes, if on { 'h' } else { 'l' });
        self.fold.modes.set_private(number, on);
        self.fold.rare.set_mode(number, on);
        if number == 2026 {
            // The engine would hold back what is drawn in an open update; we want to see it.
            return;
        }
        if let Some(switch) = Switch::of(number) {
            if was.alternate_screen != on {
                self.leave_line();
            }
            return self.fold.screen.switch(switch, on);
        }
        match number {
            3 if !was.alternate_screen => {
                self.fold.transcript.reset(self.out);
                self.fold.region = None;
            }
            6 if !was.alternate_screen && on => self.fold.transcript.home(&self.fold.modes, self.out),
            _ => {}
        }
        if matches!(number, 3 | 6 | 7 | 25) {
            let sequence = format!("\x1b[?{number}{last}");
            if number != 25 || !self.fold.screen.mode_beside_canvas(sequence.as_bytes()) {
                self.fold.screen.feed_cursor_move(sequence.as_bytes());
            }
        }
    }

    fn answer(&mut self, params: &Params, last: u8, end: u64) {
        if !self.fold.modes.terminal || self.fold.only_patterns {
            return;
        }
        let size = self.fold.screen.size();
        let answer = match replies::query(params, last, &self.fold.modes, size) {
            Query::None => return,
            Query::Answer(answer) => answer,
            Query::Cursor => {
                let (row, col) = self.fold.screen.cursor();
                // In origin mode, rows count from the top of the scroll region.
                let top = self.fold.region.filter(|_| self.fold.modes.origin).map_or(0, |(top, _)| top);
                format!("\x1b[{};{}R", row.saturating_sub(top) + 1, col + 1)
            }
        };
        self.fold.responder.answer(&answer, end, &mut self.out.replies);
    }

    /// DECSTR, which the engine does not know: its effects, one by one.
    fn soft_reset(&mut self) {
        let fresh = Modes::fresh(self.fold.modes.terminal);
        let modes = &mut self.fold.modes;
        (modes.application_cursor, modes.application_keypad) = (false, false);
        (modes.cursor_visible, modes.origin, modes.insert) = (true, false, false);
        (modes.autowrap, modes.newline) = (fresh.autowrap, fresh.newline);
        self.fold.charsets = Charsets::default();
        self.fold.saved_charsets = Charsets::default();
        self.fold.region = None;
        self.fold.rare.reset();
        self.fold.screen.protect(false);
        let (row, column) = self.fold.screen.cursor();
        self.fold.screen.feed_cursor_move(b"\x1b[?25h\x1b[?6l\x1b[?7h\x1b[4l\x1b[20l\x1b[0m\x1b(B\x1b)B\x0f");
        // Without a scroll region, and with the cursor saved at home; it stays where it is.
        let back = format!("\x1b[r\x1b[H\x1b7\x1b[{};{}H", row + 1, column + 1);
        self.fold.screen.feed_cursor_move(back.as_bytes());
    }

    /// RIS.
    fn full_reset(&mut self) {
        self.leave_line();
        let fold = &mut *self.fold;
        fold.modes = Modes::fresh(fold.modes.terminal);
        fold.charsets = Charsets::default();
        fold.saved_charsets = Charsets::default();
        fold.region = None;
        fold.rare = super::rare::Rare::default();
        fold.transcript.reset(self.out);
    }

    /// Full-screen programs end no lines. Without this, their checkpoint would never move.
    fn keep_checkpoint_near(&mut self, end: u64) {
        if !self.fold.only_patterns && self.fold.checkpoints.is_too_far(end) {
            let point = self.fold.point(end);
            self.fold.checkpoints.force(point);
        }
    }
}
