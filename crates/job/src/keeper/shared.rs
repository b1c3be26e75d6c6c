//! What the heir must know when the keeper dies, in memory that both share.
//!
//! Everything else it finds on the disk.

use std::io;

use outlast_pty::reap::End;
use outlast_pty::shared::SharedPage;
use outlast_stream::Checkpoint;
use rustix::process::Pid;

use super::request_notes::RequestPage;

const COMMAND: usize = 0;
const LAST_OUTPUT_MS: usize = 1;
const QUEUED_INPUT: usize = 2;
const LOG_END: usize = 3;
const STDIN_CLOSED: usize = 5;
const TOLD: usize = 7;
const ANSWERED: usize = 6;
const END_TOLD: usize = 8;
const END: usize = 9;
const FILED: usize = 12;
const HELPER: usize = 13;
const GRACE_ENDS_MS: usize = 15;
const CHECKPOINTS: usize = 16;
/// Behind the checkpoints.
const DONE: usize = 500;
const INTERPRETED: usize = 501;
const TOKEN: usize = 510;
const PROMPT: usize = 511;
/// Two slots for each channel: one is whole while the other is written.
const SLOT: usize = 120;
const PRELUDE: usize = (SLOT - 4) * 8;

/// Behind the checkpoints of two channels.
const FEEDING: usize = CHECKPOINTS + 2 * (1 + 2 * SLOT);

/// A typed view of the shared page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    page: SharedPage,
    /// What was asked of the keeper.
    pub(super) requests: RequestPage,
}

impl Shared {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { page: SharedPage::new()?, requests: RequestPage::new()? })
    }

    pub(super) fn set_command(&self, pid: Pid) {
        self.page.set(COMMAND, u64::from(pid.as_raw_nonzero().get().unsigned_abs()));
    }

    pub(super) fn command(&self) -> Option<Pid> {
        i32::try_from(self.page.get(COMMAND)).ok().and_then(Pid::from_raw)
    }

    pub(super) fn set_last_output_ms(&self, ms: u64) {
        self.page.set(LAST_OUTPUT_MS, ms);
    }

    pub(super) fn last_output_ms(&self) -> u64 {
        self.page.get(LAST_OUTPUT_MS)
    }

    pub(super) fn set_queued_input(&self, bytes: u64) {
        self.page.set(QUEUED_INPUT, bytes);
    }

    pub(super) fn queued_input(&self) -> u64 {
        self.page.get(QUEUED_INPUT)
    }

    /// The last event that the outbox has been told of.
    pub(super) fn set_told(&self, seq: u64) {
        self.page.set(TOLD, seq);
    }

    pub(super) fn told(&self) -> u64 {
        self.page.get(TOLD)
    }

    /// The outbox has been told of the end.
    pub(super) fn set_end_told(&self) {
        self.page.set(END_TOLD, 1);
    }

    pub(super) fn end_told(&self) -> bool {
        self.page.get(END_TOLD) != 0
    }

    /// The last event for which orders to wake somebody were written.
    pub(super) fn set_filed(&self, seq: u64) {
        self.page.set(FILED, seq);
    }

    pub(super) fn filed(&self) -> u64 {
        self.page.get(FILED)
    }

    /// What the end of a shell's running step must come with.
    pub(super) fn set_token(&self, token: u64) {
        self.page.set(TOKEN, token);
    }

    pub(super) fn token(&self) -> u64 {
        self.page.get(TOKEN)
    }

    /// The step that the person at a shell's prompt may type; 0 if there is no prompt.
    pub(super) fn set_prompt(&self, step: u64) {
        self.page.set(PROMPT, step);
    }

    pub(super) fn prompt(&self) -> u64 {
        self.page.get(PROMPT)
    }

    /// A shell has only half of what it is told.
    pub(super) fn set_feeding(&self, feeding: bool) {
        self.page.set(FEEDING, u64::from(feeding));
    }

    pub(super) fn is_feeding(&self) -> bool {
        self.page.get(FEEDING) != 0
    }

    /// The helper that delivers wakes, and when it was started.
    pub(super) fn set_helper(&self, pid: Pid, started: u64) {
        self.page.set(HELPER + 1, started);
        // Last: only now it counts.
        self.page.set(HELPER, u64::from(pid.as_raw_nonzero().get().unsigned_abs()));
    }

    pub(super) fn helper(&self) -> Option<(Pid, u64)> {
        let pid = i32::try_from(self.page.get(HELPER)).ok().and_then(Pid::from_raw)?;
        Some((pid, self.page.get(HELPER + 1)))
    }

    /// How the command ended and when, for as long as no record says so.
    pub(super) fn set_end(&self, end: End, at: u64) {
        let (kind, number) = match end {
            End::Code(code) => (1, code),
            End::Signal { signal, core: false } => (2, signal),
            End::Signal { signal, core: true } => (3, signal),
        };
        self.page.set(END + 1, u64::from(number.cast_unsigned()));
        self.page.set(END + 2, at);
        // Last: only now it counts.
        self.page.set(END, kind);
    }

    pub(super) fn end(&self) -> Option<(End, u64)> {
        let number = u32::try_from(self.page.get(END + 1)).ok()?.cast_signed();
        let end = match self.page.get(END) {
            1 => End::Code(number),
            kind @ (2 | 3) => End::Signal { signal: number, core: kind == 3 },
            _ => return None,
        };
        Some((end, self.page.get(END + 2)))
    }

    /// Until when, since the job was started, a job that is being ended may take to end by itself; none when nobody ends it.
    pub(super) fn set_grace_end(&self, since_start: Option<std::time::Duration>) {
        self.page.set(GRACE_ENDS_MS, since_start.map_or(0, |at| crate::clock::millis(at).saturating_add(1)));
    }

    pub(super) fn grace_end(&self) -> Option<std::time::Duration> {
        self.page.get(GRACE_ENDS_MS).checked_sub(1).map(std::time::Duration::from_millis)
    }

    /// The client that started the job has been told.
    pub(super) fn set_answered(&self) {
        self.page.set(ANSWERED, 1);
    }

    pub(super) fn answered(&self) -> bool {
        self.page.get(ANSWERED) != 0
    }

    /// The job is over, and all is told and written: nobody has to take over.
    pub(super) fn set_done(&self) {
        self.page.set(DONE, 1);
    }

    pub(super) fn is_done(&self) -> bool {
        self.page.get(DONE) != 0
    }

    /// These bytes of a log are being interpreted: should that kill us, our heir passes over them.
    pub(super) fn set_interpreted(&self, channel: usize, from: u64, to: u64) {
        self.page.set(INTERPRETED + 1, from);
        self.page.set(INTERPRETED + 2, to);
        // Last: only now it counts.
        self.page.set(INTERPRETED, channel as u64 + 1);
    }

    pub(super) fn clear_interpreted(&self) {
        self.page.set(INTERPRETED, 0);
    }

    /// What a keeper was interpreting when it died: of which log, from and to where.
    pub(super) fn interpreted(&self) -> Option<(usize, u64, u64)> {
        let channel = usize::try_from(self.page.get(INTERPRETED)).ok()?.checked_sub(1)?;
        Some((channel, self.page.get(INTERPRETED + 1), self.page.get(INTERPRETED + 2)))
    }

    pub(super) fn set_stdin_closed(&self) {
        self.page.set(STDIN_CLOSED, 1);
    }

    pub(super) fn stdin_closed(&self) -> bool {
        self.page.get(STDIN_CLOSED) != 0
    }

    pub(super) fn set_log_end(&self, channel: usize, end: u64) {
        self.page.set(LOG_END + channel, end);
    }

    pub(super) fn log_end(&self, channel: usize) -> u64 {
        self.page.get(LOG_END + channel)
    }

    /// Leaves the place from which a fold can be resumed.
    pub(super) fn set_checkpoint(&self, channel: usize, checkpoint: &Checkpoint) {
        if checkpoint.prelude.len() > PRELUDE {
            return;
        }
        let turn = CHECKPOINTS + channel * (1 + 2 * SLOT);
        let count = self.page.get(turn) + 1;
        let slot = turn + 1 + (count as usize % 2) * SLOT;
        self.page.set(slot, checkpoint.offset);
        self.page.set(slot + 1, checkpoint.transcript_len);
        self.page.set(slot + 2, checkpoint.prelude.len() as u64);
        self.page.set_bytes(slot + 3, &checkpoint.prelude);
        // Last: only now the slot counts.
        self.page.set(turn, count);
    }

    pub(super) fn checkpoint(&self, channel: usize) -> Checkpoint {
        let turn = CHECKPOINTS + channel * (1 + 2 * SLOT);
        let slot = turn + 1 + (self.page.get(turn) as usize % 2) * SLOT;
        let len = usize::try_from(self.page.get(slot + 2)).unwrap_or(0).min(PRELUDE);
        Checkpoint {
            offset: self.page.get(slot),
            transcript_len: self.page.get(slot + 1),
            prelude: self.page.get_bytes(slot + 3, len),
        }
    }
}
