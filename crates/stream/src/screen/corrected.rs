//! The engine with corrections: where it differs from xterm, the difference is made up for here.
//!
//! The parser calls [`Corrected`] in place of the engine. Only what draws is passed on, so that nothing else can reach the
//! engine. Corrected are:
//!
//! - the pending wrap after the last column, which xterm forgets with everything that moves or erases
//! - ED 1 in the second row, which also erases the first
//! - IL and DL, which go to the first column
//! - DECALN, which goes home and removes the scroll region
//! - a tab after the last column, which stays there

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::Term;
use alacritty_terminal::vte::ansi::{
    Attr, CharsetIndex, ClearMode, Handler, LineClearMode, Mode, PrivateMode, StandardCharset,
    TabulationClearMode,
};

use super::edits::PROTECTED;

/// The engine, as the parser sees it.
pub(super) struct Corrected<'a>(pub(super) &'a mut Term<VoidListener>);

impl Corrected<'_> {
    /// The next character is printed where the cursor is, also in the last column.
    fn forget_wrap(&mut self) {
        self.0.grid_mut().cursor.input_needs_wrap = false;
    }

    fn at_first_column(&mut self) {
        self.0.grid_mut().cursor.point.column = Column(0);
        self.forget_wrap();
    }
}

/// Passes calls on to the engine as they are.
macro_rules! pass_on {
    ($($name:ident($($argument:ident: $kind:ty),*);)+) => {
        $(fn $name(&mut self, $($argument: $kind),*) {
            self.0.$name($($argument),*);
        })+
    };
}

/// Passes calls on to the engine after the pending wrap is forgotten.
macro_rules! without_wrap {
    ($($name:ident($($argument:ident: $kind:ty),*);)+) => {
        $(fn $name(&mut self, $($argument: $kind),*) {
            self.forget_wrap();
            self.0.$name($($argument),*);
        })+
    };
}

impl Handler for Corrected<'_> {
    pass_on! {
        input(character: char);
        goto(line: i32, column: usize);
        goto_line(line: i32);
        goto_col(column: usize);
        move_up(rows: usize);
        move_down(rows: usize);
        move_forward(columns: usize);
        move_backward(columns: usize);
        move_down_and_cr(rows: usize);
        move_up_and_cr(rows: usize);
        backspace();
        carriage_return();
        set_horizontal_tabstop();
        scroll_up(rows: usize);
        scroll_down(rows: usize);
        save_cursor_position();
        clear_line(mode: LineClearMode);
        clear_tabs(mode: TabulationClearMode);
        set_tabs(interval: u16);
        move_forward_tabs(tabs: u16);
        reset_state();
        set_mode(mode: Mode);
        unset_mode(mode: Mode);
        set_private_mode(mode: PrivateMode);
        unset_private_mode(mode: PrivateMode);
        set_scrolling_region(top: usize, bottom: Option<usize>);
        set_active_charset(index: CharsetIndex);
        configure_charset(index: CharsetIndex, charset: StandardCharset);
    }

    without_wrap! {
        insert_blank(columns: usize);
        erase_chars(columns: usize);
        delete_chars(columns: usize);
        newline();
        reverse_index();
    }

    /// Colours and styles leave alone whether text is protected.
    fn terminal_attribute(&mut self, attribute: Attr) {
        let protected = self.0.grid().cursor.template.flags.contains(PROTECTED);
        self.0.terminal_attribute(attribute);
        self.0.grid_mut().cursor.template.flags.set(PROTECTED, protected);
    }

    /// LF, VT, FF and IND.
    fn linefeed(&mut self) {
        self.forget_wrap();
        self.0.linefeed();
    }

    /// A tab after the last column stays there, and the wrap stays pending.
    fn put_tab(&mut self, count: u16) {
        if !self.0.grid().cursor.input_needs_wrap {
            self.0.put_tab(count);
        }
    }

    /// As in xterm, the wrap stays pending even where the cursor is no longer in the last column.
    fn move_backward_tabs(&mut self, tabs: u16) {
        let pending = self.0.grid().cursor.input_needs_wrap;
        self.0.move_backward_tabs(tabs);
        self.0.grid_mut().cursor.input_needs_wrap = pending;
    }

    fn restore_cursor_position(&mut self) {
        self.0.restore_cursor_position();
        self.forget_wrap();
    }

    fn insert_blank_lines(&mut self, rows: usize) {
        self.0.insert_blank_lines(rows);
        self.at_first_column();
    }

    fn delete_lines(&mut self, rows: usize) {
        self.0.delete_lines(rows);
        self.at_first_column();
    }

    fn clear_screen(&mut self, mode: ClearMode) {
        self.forget_wrap();
        let point = self.0.grid().cursor.point;
        if matches!(mode, ClearMode::Above) && point.line == Line(1) {
            self.0.grid_mut().cursor.point.line = Line(0);
            self.0.clear_line(LineClearMode::All);
            self.0.grid_mut().cursor.point = point;
        }
        self.0.clear_screen(mode);
    }

    fn decaln(&mut self) {
        self.0.decaln();
        self.0.set_scrolling_region(1, None);
        self.0.goto(0, 0);
    }
}
