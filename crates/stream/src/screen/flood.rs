//! Drawing on the canvas, while there is one: each of these says whether it has drawn, or leaves it to the queue.

use super::canvas::Canvas;
use super::corrected::Corrected;
use super::{Engine, Screen};
use crate::scan::Csi;

impl Screen {
    /// Whether there is a canvas, or one is wanted and can be had. `slot` is that of the character set in use.
    pub(crate) fn has_canvas(&mut self, slot: usize) -> bool {
        if self.canvas.is_none() && self.flooded {
            self.flooded = false;
            self.draw_queue();
            self.canvas =
                self.engine.as_ref().and_then(|engine| Canvas::over(&engine.term, slot)).map(Box::new);
        }
        self.canvas.is_some()
    }

    /// Whether a canvas would be used if the terminal is in its usual state.
    pub(crate) fn is_flooded(&self) -> bool {
        self.flooded || self.canvas.is_some()
    }

    /// As if there had been a flood.
    #[cfg(test)]
    pub(crate) fn pretend_flood(&mut self) {
        self.flooded = true;
    }

    /// What comes next is not for the canvas: the engine gets what it shows.
    pub(super) fn close_canvas(&mut self) {
        if let (Some(mut canvas), Some(engine)) = (self.canvas.take(), &mut self.engine) {
            canvas.put_into(&mut engine.term);
        }
    }

    pub(crate) fn text_on_canvas(&mut self, text: &str) -> bool {
        self.canvas.as_mut().is_some_and(|canvas| canvas.text(text))
    }

    /// A carriage return, a backspace or a line feed.
    pub(crate) fn control_on_canvas(&mut self, bytes: &[u8]) -> bool {
        let Some(canvas) = &mut self.canvas else { return false };
        match bytes {
            b"\r" => canvas.carriage_return(),
            b"\x08" => canvas.backspace(),
            b"\n" | b"\x0b" | b"\x0c" => return canvas.line_feed(),
            b"\r\n" if canvas.line_feed() => canvas.carriage_return(),
            _ => return false,
        }
        true
    }

    pub(crate) fn csi_on_canvas(&mut self, csi: &Csi<'_>, sequence: &[u8]) -> bool {
        let (Some(canvas), Some(engine)) = (&mut self.canvas, &mut self.engine) else { return false };
        if !csi.is_sgr() {
            return canvas.csi(csi);
        }
        let Engine { term, parser } = &mut **engine;
        canvas.known_style(csi)
            || canvas.new_style(csi, term, |term| parser.advance(&mut Corrected(term), sequence))
    }

    /// A mode that has nothing to do with what is drawn.
    pub(crate) fn mode_beside_canvas(&mut self, sequence: &[u8]) -> bool {
        let (Some(_), Some(engine)) = (&self.canvas, &mut self.engine) else { return false };
        engine.parser.advance(&mut Corrected(&mut engine.term), sequence);
        true
    }
}
