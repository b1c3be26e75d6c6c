//! The person's own terminal: its size, and its modes, which are always put back.

use std::sync::Mutex;

use outlast_job::Size;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// What the terminal was like before we changed it.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The size of the terminal that our output goes to.
pub(crate) fn size() -> Option<Size> {
    let size = tcgetwinsize(stdout()).or_else(|_| tcgetwinsize(stdin())).ok()?;
    Size { cols: size.ws_col, rows: size.ws_row }.checked().ok()
}

/// Keys come to us one by one and unseen, until this is dropped; also a panic puts the terminal back.
#[derive(Debug)]
pub(crate) struct Raw(());

impl Raw {
    pub(crate) fn enter() -> Option<Self> {
        let before = tcgetattr(stdin()).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        let old_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            old_hook(panic);
        }));
        if let Ok(mut slot) = BEFORE.lock() {
            *slot = Some(before);
        }
        tcsetattr(stdin(), OptionalActions::Now, &raw).ok()?;
        Some(Self(()))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    let before = BEFORE.lock().ok().and_then(|mut slot| slot.take());
    if let Some(before) = before {
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &before);
    }
}
