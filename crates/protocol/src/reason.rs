//! What ends a wait: one of its conditions, its deadline, or nothing but the start of the job.

use crate::words::words;

words! {
    /// What ends a wait. The words of conditions are those of [`crate::Condition`].
    pub enum Reason ("reason") {
        /// The job has ended.
        Exit = "exit" | "ended",
        /// A pattern was found.
        Pattern = "pattern",
        /// It waits for input.
        AwaitingInput = "awaiting_input" | "input",
        /// Nothing was printed for a while.
        Quiet = "quiet",
        /// Its screen has not changed for a while.
        Stable = "stable",
        /// It listens on a port.
        Port = "port" | "port_open",
        /// A path on its port answers.
        Http = "http",
        /// Something was printed.
        Output = "output",
        /// A pattern is no longer on the screen.
        Gone = "gone",
        /// A batch of lines was printed.
        Lines = "lines",
        /// The time is up.
        Deadline = "deadline",
        /// The job was started, and nothing else was waited for.
        Started = "started",
    }
}
