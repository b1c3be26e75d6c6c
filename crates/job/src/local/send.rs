//! Typing into a job.

use std::time::Duration;

use super::{LocalJob, REPLY_TIMEOUT, unexpected};
use crate::failure::Failure;
use crate::keys;
use crate::wire::{Answer, INPUT_PIECE, Secret, Send, Sent, Typed, Verb, base64};
use outlast_protocol::secret_text::SecretText;

impl LocalJob {
    /// Types something. Text of any size goes in pieces; `patience` limits how long a program that does not
    /// read may hold them up.
    ///
    /// # Errors
    /// [`Kind::NotRunning`](crate::Kind::NotRunning) when the job has ended; [`Kind::Usage`](crate::Kind::Usage) for
    /// an unknown key or a line that a terminal can't take: then nothing is typed.
    /// [`Kind::OutcomeUnknown`](crate::Kind::OutcomeUnknown) when the keeper died meanwhile.
    pub(crate) fn send(&self, send: &Send, patience: Option<Duration>) -> Result<Sent, Failure> {
        keys::parse(&send.keys)?;
        let patience = patience.unwrap_or(REPLY_TIMEOUT);
        if send.text.len() <= INPUT_PIECE {
            let several = send.bytes.is_empty() && send.text.contains(['\n', '\r']);
            return if several { self.send_lines(send, patience) } else { self.send_piece(send, patience) };
        }
        let mut total: Option<Sent> = None;
        let mut rest = send.text.as_bytes();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(INPUT_PIECE));
            rest = after;
            let last = rest.is_empty();
            let piece = Send {
                bytes: base64::encode(&with_enter_for_newlines(piece, self.info()?.has_terminal())),
                keys: if last { send.keys.clone() } else { Vec::new() },
                eof: last && send.eof,
                after: send.after.filter(|_| total.is_none()),
                ..Send::default()
            };
            let sent = self.send_piece(&piece, patience)?;
            let before = total.map_or(Sent { taken: 0, ..sent }, |total| total);
            total = Some(Sent { taken: before.taken + sent.taken, queued: sent.queued, ..before });
        }
        if send.newline {
            self.send_piece(&Send { newline: true, ..Send::default() }, patience)?;
        }
        total.ok_or_else(|| Failure::usage("there is nothing to type"))
    }

    /// What was typed into it last.
    ///
    /// # Errors
    /// [`Kind::NotRunning`](crate::Kind::NotRunning) when the job has ended.
    pub(crate) fn typed(&self) -> Result<Typed, Failure> {
        match self.ask(&Verb::Typed, REPLY_TIMEOUT)? {
            Some(Answer::Typed(typed)) => Ok(typed),
            Some(other) => Err(unexpected(&other)),
            None => Err(self.not_running()),
        }
    }

    /// Types what nobody may see, then Enter. It is in no log, event or answer, and is hidden wherever the program prints
    /// it all the same. Without `force`, only at a prompt that does not show what is typed.
    ///
    /// # Errors
    /// [`Kind::Denied`](crate::Kind::Denied) when the job is at no such prompt, [`Kind::NotRunning`](crate::Kind::NotRunning) when it has ended.
    pub(crate) fn send_secret(&self, value: SecretText, force: bool) -> Result<Sent, Failure> {
        let secret = Secret { value, newline: true, force };
        match self.ask(&Verb::Secret(secret), REPLY_TIMEOUT)? {
            Some(Answer::Sent(sent)) => Ok(sent),
            Some(other) => Err(unexpected(&other)),
            None => Err(self.not_running()),
        }
    }

    pub(super) fn send_piece(&self, send: &Send, patience: Duration) -> Result<Sent, Failure> {
        let session = send.session.clone().or_else(|| Some(crate::session::current()));
        match self.ask(&Verb::Send(Send { session, ..send.clone() }), patience)? {
            Some(Answer::Sent(sent)) => Ok(sent),
            Some(other) => Err(unexpected(&other)),
            None => Err(self.not_running()),
        }
    }
}

fn with_enter_for_newlines(bytes: &[u8], terminal: bool) -> Vec<u8> {
    bytes.iter().map(|byte| if terminal && *byte == b'\n' { b'\r' } else { *byte }).collect()
}
