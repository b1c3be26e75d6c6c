//! A person answers a prompt that does not show what is typed.
//!
//! What comes this way is typed and forgotten: it is in no event, and where the program prints it all the same, neither
//! the log nor anything made from it shows it. Only its fingerprint stays, to know it by.

use rustix::termios::LocalModes;

use super::peers::PeerId;
use super::{Keeper, Life};
use crate::failure::{Failure, Kind};
use crate::secrets;
use crate::wire::{Answer, Secret, Sent};

impl Keeper {
    pub(super) fn on_secret(&mut self, peer: PeerId, secret: &Secret) -> Answer {
        match self.may_type(peer).and_then(|()| self.type_secret(secret)) {
            Ok(sent) => Answer::Sent(sent),
            Err(failure) => Answer::Error(failure.into()),
        }
    }

    fn type_secret(&mut self, secret: &Secret) -> Result<Sent, Failure> {
        let handle = self.info.handle;
        if self.life == Life::Ended {
            return Err(Failure::new(Kind::NotRunning, format!("job {handle} has ended"))
                .hint(format!("see how: outlast read {handle}")));
        }
        if !secret.force {
            self.check_prompt()?;
        }
        let value =
            secret.value.bytes().ok_or_else(|| Failure::usage("the secret is not base64 on the wire"))?;
        // Before it is typed: a program that prints it at once must not be faster than we are.
        self.learn_secret(&value)?;
        let offset = self.grown().offset;
        self.refuse_long_line(&value)?;
        self.typing.push(&value);
        if secret.newline {
            self.typing.push(if self.info.has_terminal() { b"\r" } else { b"\n" });
        }
        self.note_input();
        self.type_more();
        Ok(Sent { offset, taken: value.len() as u64, queued: self.typing.queued(), ..Sent::default() })
    }

    /// Refuses a secret where it would be shown.
    fn check_prompt(&self) -> Result<(), Failure> {
        let handle = self.info.handle;
        let no = |why: &str| {
            Err(Failure::new(
                Kind::Denied,
                format!("job {handle} is not at a prompt that hides what is typed: {why}"),
            )
            .hint(format!("look first: outlast screen {handle}; if you are sure, add --force")))
        };
        let Some(modes) = self.terminal_modes() else {
            return no("it runs on pipes and has no prompt");
        };
        let modes = modes.local_modes;
        match (modes.contains(LocalModes::ECHO), modes.contains(LocalModes::ICANON)) {
            (false, true) => Ok(()),
            (true, _) => no("its terminal would show it"),
            (false, false) => {
                no("the program reads keys by itself, as shells and editors do, and may show them")
            }
        }
    }

    /// From now on it is hidden everywhere, in the log too.
    fn learn_secret(&mut self, value: &[u8]) -> Result<(), Failure> {
        // What is no text can't be known again in text; the terminal does not show it either.
        let Ok(text) = std::str::from_utf8(value) else { return Ok(()) };
        let known = match self.ground.masks.write() {
            Ok(mut masks) => masks.add(text, true),
            Err(_) => false,
        };
        if !known {
            return Ok(());
        }
        secrets::with(&self.ground.masks, |masks| secrets::write(&self.ground.job, masks)).map_err(
            |error| Failure::system("what must be hidden can't be written down, so nothing was typed", error),
        )?;
        self.redact_logs()
    }

    /// Begins to hide secrets in the log, or hides more of them.
    pub(super) fn redact_logs(&mut self) -> Result<(), Failure> {
        let Some(masks) = log_masks(&self.ground) else { return Ok(()) };
        for channel in &mut self.channels {
            channel.redact(&masks).map_err(|error| Failure::system("the log can't be redacted", error))?;
        }
        Ok(())
    }
}

/// What is hidden in the logs themselves: all that is known if the user wants that, else what was typed as a secret.
pub(super) fn log_masks(ground: &super::Ground) -> Option<outlast_stream::Masks> {
    secrets::with(&ground.masks, |masks| {
        if ground.settings.secrets.redact_log { Some(masks.clone()) } else { masks.typed_only() }
    })
}
