//! The input modes of a terminal: what is typed reaches the program in lines or key by key, and is shown or not.

#[cfg(all(target_os = "linux", not(outlast_portable)))]
use std::os::fd::AsFd;

use rustix::termios::{InputModes, LocalModes, OutputModes, SpecialCodeIndex, Termios};

/// The input modes of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Modes {
    /// It passes on whole lines.
    pub(super) canonical: bool,
    /// It echoes what is typed.
    pub(super) echo: bool,
    /// A read may return nothing after a timeout, so it is really a poll.
    pub(super) reads_time_out: bool,
    /// It passes on lines, and leaves the ends of lines that are printed as they are. No terminal that a person sits at is like that: an editor made it
    /// for a child, and shows what the child prints in a window of its own.
    pub(super) for_a_child: bool,
    /// Not even the ends of lines are printed as such: modes for a full screen, or for one key.
    pub(super) raw_output: bool,
    /// Keys come one by one, without echo and without signals, but with Return as the end of a line: nothing is changed but what it takes to
    /// read a line unseen.
    pub(super) reads_unseen: bool,
}

impl Modes {
    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    pub(super) fn of(terminal: impl AsFd) -> Option<Self> {
        rustix::termios::tcgetattr(terminal).ok().map(|termios| Self::from(&termios))
    }

    /// Those of a terminal of which nothing is known.
    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    pub(super) const PLAIN: Self = Self {
        canonical: true,
        echo: true,
        reads_time_out: false,
        for_a_child: false,
        raw_output: false,
        reads_unseen: false,
    };

    /// It reads lines without echo.
    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    pub(super) fn hides_a_line(self) -> bool {
        self.canonical && !self.echo
    }
}

impl From<&Termios> for Modes {
    fn from(termios: &Termios) -> Self {
        let canonical = termios.local_modes.contains(LocalModes::ICANON);
        Self {
            canonical,
            echo: termios.local_modes.contains(LocalModes::ECHO),
            for_a_child: canonical
                && !termios.output_modes.contains(OutputModes::OPOST.union(OutputModes::ONLCR)),
            raw_output: !canonical && !termios.output_modes.contains(OutputModes::OPOST),
            reads_unseen: !canonical
                && !termios.local_modes.intersects(LocalModes::ECHO.union(LocalModes::ISIG))
                && termios.local_modes.contains(LocalModes::IEXTEN)
                && termios.input_modes.contains(InputModes::ICRNL),
            reads_time_out: !canonical && termios.special_codes[SpecialCodeIndex::VMIN] == 0,
        }
    }
}
