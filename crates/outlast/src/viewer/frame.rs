//! A job's screen on a terminal of another size: drawn as a whole on the alternate screen, so that nothing of
//! the person's own is drawn over. What the job printed meanwhile comes as lines when the frame goes away.

use outlast_job::client::Piece;

use super::{Viewer, log, put};
use crate::output::Output;

/// The frame, while it is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Up to where the log was shown before; none if the person has seen nothing of it.
    since: Option<u64>,
    /// The alternate screen is ours, not the program's.
    took_screen: bool,
}

impl Viewer<'_> {
    pub(super) fn enter_frame(&mut self, since: Option<u64>, out: &mut Output) {
        let took_screen = since.is_none() || !self.fold.modes().alternate_screen;
        self.frame = Some(Frame { since, took_screen });
        self.note_screen();
        if took_screen {
            out.draw(b"\x1b[?1049h");
        }
        self.draw_frame(out);
    }

    /// As much of the screen as fits.
    pub(super) fn draw_frame(&mut self, out: &mut Output) {
        if let Some(own) = self.attach.size {
            out.draw(&self.fold.repaint_within(outlast_stream::Size { cols: own.cols, rows: own.rows }));
        }
    }

    /// Takes the frame away; then comes what the person has not seen yet.
    pub(super) fn leave_frame(&mut self, out: &mut Output) {
        let Some(frame) = self.frame.take() else { return };
        out.draw(if self.fold.modes().autowrap { b"\x1b[?7h\x1b[0m" } else { b"\x1b[?7l\x1b[0m" });
        if frame.took_screen {
            out.draw(b"\x1b[?1049l");
        }
        let Some(since) = frame.since else {
            return self.paint(out);
        };
        // What cannot be read is not shown: the frame goes away all the same.
        let _ = self.job.read_pieces(log(since, Some(self.offset)), |piece| match piece {
            Piece::Bytes(bytes) => put(&mut self.filter, bytes, out),
            Piece::Lost { .. } => true,
        });
        if self.fold.modes().alternate_screen {
            self.paint(out);
        }
    }
}
