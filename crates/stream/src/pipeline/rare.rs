//! Sequences of old terminals that hardly any program uses. They act on the screen alone; the transcript has no part in them.

use super::Fold;
use super::dispatch::Step;
use crate::scan::Params;
use crate::screen::{Area, ReverseWrap};

/// The most modes whose values a program can have kept for it.
const MAX_KEPT_MODES: usize = 64;

/// Their state.
#[derive(Debug, Default)]
pub(super) struct Rare {
    /// Mode 45, or 1045.
    reverse_wrap: Option<ReverseWrap>,
    protection: Protection,
    /// Mode 41: a tab after the last column goes on in the next row.
    tab_wraps: bool,
    /// Values of private modes that were saved (XTSAVE).
    kept: Vec<(u16, bool)>,
}

/// Whose protection is in force: the two standards honour it in different erasures.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Protection {
    #[default]
    None,
    /// DECSCA: honoured by selective erasure.
    Dec,
    /// SPA and EPA: honoured by every other one.
    Iso,
}

impl Rare {
    pub(super) fn set_mode(&mut self, number: u16, on: bool) {
        match number {
            45 => self.reverse_wrap = on.then_some(ReverseWrap::Wrapped),
            41 => self.tab_wraps = on,
            1045 => self.reverse_wrap = on.then_some(ReverseWrap::Always),
            _ => {}
        }
    }

    /// DECSTR.
    pub(super) fn reset(&mut self) {
        (self.reverse_wrap, self.protection, self.tab_wraps) = (None, Protection::None, false);
    }
}

impl Fold {
    /// A restored cursor is one that was saved without origin mode, as a rule. The engine would keep it.
    pub(super) fn leave_origin_mode(&mut self) {
        if std::mem::take(&mut self.modes.origin) {
            self.screen.feed_cursor_move(b"\x1b[?6l");
        }
    }

    fn region_or_screen(&self) -> (usize, usize) {
        self.region.unwrap_or((0, self.screen.size().lines() - 1))
    }
}

impl Step<'_> {
    /// Steps back over the left edge if the modes say so; false if this is an ordinary step.
    pub(super) fn back_over_edge(&mut self, count: usize) -> bool {
        let fold = &mut *self.fold;
        let Some(wrap) = fold.rare.reverse_wrap.filter(|_| fold.modes.autowrap) else { return false };
        let region = fold.region_or_screen();
        fold.screen.back(count, wrap, region);
        true
    }

    /// A tab after the last column goes on in the next row if the modes say so.
    pub(super) fn wrap_before_tab(&mut self) {
        if self.fold.rare.tab_wraps && self.fold.screen.is_wrap_pending() {
            self.fold.screen.feed_cursor_move(b"\r\n");
        }
    }

    /// DECIC and DECDC.
    pub(super) fn columns(&mut self, params: &Params, insert: bool) {
        let count = params.get(0, 1) as isize;
        let region = self.fold.region_or_screen();
        self.fold.screen.shift_columns(if insert { count } else { -count }, region);
    }

    /// SL and SR: the rows of the scroll region move.
    pub(super) fn scroll_columns(&mut self, params: &Params, left: bool) {
        let count = params.get(0, 1) as isize;
        let region = self.fold.region_or_screen();
        self.fold.screen.scroll_columns(if left { -count } else { count }, region);
    }

    /// DECBI and DECFI.
    pub(super) fn index_column(&mut self, forward: bool) {
        let region = self.fold.region_or_screen();
        self.fold.screen.index_column(forward, region);
    }

    /// DECSCA.
    pub(super) fn select_protection(&mut self, params: &Params) {
        let on = params.values()[0] == 1;
        if on {
            self.fold.rare.protection = Protection::Dec;
        }
        self.fold.screen.protect(on);
    }

    /// SPA and EPA.
    pub(super) fn guard_area(&mut self, on: bool) {
        if on {
            self.fold.rare.protection = Protection::Iso;
        }
        self.fold.screen.protect(on);
    }

    /// DECSED and DECSEL: honour the one protection; without any they erase everything.
    pub(super) fn erase_selectively(&mut self, params: &Params, last: u8) {
        let Some(area) = area(params, last) else { return };
        if self.fold.rare.protection == Protection::Iso {
            self.fold
                .screen
                .feed_cursor_move(format!("\x1b[{}{}", params.values()[0], char::from(last)).as_bytes());
        } else {
            self.fold.screen.erase_unprotected(area);
        }
    }

    /// ED, EL and ECH beside text that is guarded; false if there is none.
    pub(super) fn erase_beside_guarded(&mut self, params: &Params, last: u8) -> bool {
        if self.fold.rare.protection != Protection::Iso {
            return false;
        }
        let Some(area) = area(params, last) else { return false };
        self.fold.screen.erase_unprotected(area);
        true
    }

    /// XTSAVE and XTRESTORE.
    pub(super) fn keep_modes(&mut self, params: &Params, restore: bool) {
        for &number in params.values() {
            let kept = &mut self.fold.rare.kept;
            let at = kept.iter().position(|(kept, _)| *kept == number);
            if restore {
                let Some((_, on)) = at.map(|at| kept[at]) else { continue };
                self.private_mode(number, on);
                continue;
            }
            let on = self.fold.modes.private_state(number) == 1;
            match at {
                Some(at) => kept[at].1 = on,
                None if kept.len() < MAX_KEPT_MODES => kept.push((number, on)),
                None => {}
            }
        }
    }
}

fn area(params: &Params, last: u8) -> Option<Area> {
    Some(match (last, params.values()[0]) {
        (b'J', 0) => Area::ScreenBelow,
        (b'J', 1) => Area::ScreenAbove,
        (b'J', 2) => Area::Screen,
        (b'K', 0) => Area::LineRight,
        (b'K', 1) => Area::LineLeft,
        (b'K', 2) => Area::Line,
        (b'X', _) => Area::Characters(params.get(0, 1)),
        _ => return None,
    })
}
