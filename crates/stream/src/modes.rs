//! The modes a program has put its terminal into.
//!
//! They are tracked from the byte stream instead of read from the engine: keys, checkpoints and queries need
//! them often, and the engine is fed late.

use crate::scan::Params;
use crate::screen::Switch;

/// What a program has asked of its terminal, where it affects how input is sent or output is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each one is an independent switch of a terminal")]
pub struct Modes {
    /// Whether there is a terminal at all. On a pipe, Enter sends a line feed.
    pub terminal: bool,
    /// Arrow keys are sent as `ESC O x` (DECCKM).
    pub application_cursor: bool,
    /// The keypad sends its own codes (DECKPAM).
    pub application_keypad: bool,
    /// Pasted text is to be bracketed.
    pub bracketed_paste: bool,
    /// A full-screen program owns the screen.
    pub alternate_screen: bool,
    /// The cursor is shown.
    pub cursor_visible: bool,
    /// How modified keys are distinguished (xterm's modifyOtherKeys): 0, 1 or 2.
    pub modify_other_keys: u8,
    /// Mouse clicks are reported.
    pub mouse_click: bool,
    /// Mouse movement with a button held is reported.
    pub mouse_drag: bool,
    /// All mouse movement is reported.
    pub mouse_motion: bool,
    /// Mouse reports use the SGR form.
    pub mouse_sgr: bool,
    /// Mouse reports use the UTF-8 form.
    pub mouse_utf8: bool,
    /// Focus changes are reported.
    pub focus_events: bool,
    /// The wheel sends arrow keys on the alternate screen.
    pub alternate_scroll: bool,
    /// The cursor blinks.
    pub blinking_cursor: bool,
    /// Text wraps to the next row at the right edge (DECAWM).
    pub autowrap: bool,
    /// Rows count from the top of the scroll region (DECOM).
    pub origin: bool,
    /// Printed text pushes the text to its right further right (IRM).
    pub insert: bool,
    /// A line feed also returns the carriage (LNM).
    pub newline: bool,
    /// A synchronized update is being drawn (mode 2026).
    pub synchronized: bool,
}

impl Modes {
    /// The modes of a fresh terminal, or of a pipe.
    #[must_use]
    pub fn fresh(terminal: bool) -> Self {
        Self {
            terminal,
            application_cursor: false,
            application_keypad: false,
            bracketed_paste: false,
            alternate_screen: false,
            cursor_visible: true,
            modify_other_keys: 0,
            mouse_click: false,
            mouse_drag: false,
            mouse_motion: false,
            mouse_sgr: false,
            mouse_utf8: false,
            focus_events: false,
            alternate_scroll: true,
            blinking_cursor: false,
            autowrap: true,
            origin: false,
            insert: false,
            newline: !terminal,
            synchronized: false,
        }
    }

    /// Whether `number` is one of the modes that switch to the alternate screen.
    fn is_alternate_screen(number: u16) -> bool {
        Switch::of(number).is_some()
    }

    fn private(&mut self, number: u16) -> Option<&mut bool> {
        Some(match number {
            1 => &mut self.application_cursor,
            6 => &mut self.origin,
            7 => &mut self.autowrap,
            12 => &mut self.blinking_cursor,
            25 => &mut self.cursor_visible,
            66 => &mut self.application_keypad,
            1000 => &mut self.mouse_click,
            1002 => &mut self.mouse_drag,
            1003 => &mut self.mouse_motion,
            1004 => &mut self.focus_events,
            1005 => &mut self.mouse_utf8,
            1006 => &mut self.mouse_sgr,
            1007 => &mut self.alternate_scroll,
            2004 => &mut self.bracketed_paste,
            2026 => &mut self.synchronized,
            number if Self::is_alternate_screen(number) => &mut self.alternate_screen,
            _ => return None,
        })
    }

    /// Sets or resets a DEC private mode.
    pub(crate) fn set_private(&mut self, number: u16, on: bool) {
        if on && matches!(number, 1000 | 1002 | 1003) {
            (self.mouse_click, self.mouse_drag, self.mouse_motion) = (false, false, false);
        }
        if on && matches!(number, 1005 | 1006) {
            (self.mouse_sgr, self.mouse_utf8) = (false, false);
        }
        if let Some(mode) = self.private(number) {
            *mode = on;
        }
    }

    /// Sets or resets a standard mode.
    pub(crate) fn set_standard(&mut self, number: u16, on: bool) {
        match number {
            4 => self.insert = on,
            20 => self.newline = on || !self.terminal,
            _ => {}
        }
    }

    /// `CSI > 4 ; n m`: xterm's modifyOtherKeys.
    pub(crate) fn set_modify_other_keys(&mut self, params: &Params) {
        if params.get(0, 4) == 4 {
            self.modify_other_keys = u8::try_from(params.get(1, 0).min(2)).unwrap_or(0);
        }
    }

    /// What DECRQM answers for a private mode: 1 set, 2 reset, 0 unknown.
    pub(crate) fn private_state(mut self, number: u16) -> u8 {
        self.private(number).map_or(0, |on| if *on { 1 } else { 2 })
    }

    /// What DECRQM answers for a standard mode.
    pub(crate) fn standard_state(self, number: u16) -> u8 {
        match number {
            4 => 2 - u8::from(self.insert),
            20 => 2 - u8::from(self.newline),
            _ => 0,
        }
    }

    /// Sequences that bring a fresh terminal into these modes.
    pub(crate) fn prelude(&self, into: &mut Vec<u8>) {
        const PRIVATE: [u16; 16] =
            [1049, 1, 7, 12, 25, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 2004, 2026, 66, 6];
        let mut fresh = Self::fresh(self.terminal);
        let mut own = *self;
        for number in PRIVATE {
            let on = own.private(number).copied();
            if on != fresh.private(number).copied() {
                let letter = if on == Some(true) { 'h' } else { 'l' };
                into.extend_from_slice(format!("\x1b[?{number}{letter}").as_bytes());
            }
        }
        if self.insert {
            into.extend_from_slice(b"\x1b[4h");
        }
        if self.newline && self.terminal {
            into.extend_from_slice(b"\x1b[20h");
        }
        if self.modify_other_keys > 0 {
            into.extend_from_slice(format!("\x1b[>4;{}m", self.modify_other_keys).as_bytes());
        }
    }
}
