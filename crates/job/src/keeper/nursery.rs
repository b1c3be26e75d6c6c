//! A nursery of keepers, for a client that starts many jobs: a zygote, a process that has already done what
//! every keeper does first, and is forked for each.
//!
//! To run a program takes longer than many a command does: it is loaded and linked, looks at the processor,
//! and works out its tables. A fork has all of that.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use outlast_pty::detach::{Forked, fork};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, recvmsg};
use rustix::process::{WaitOptions, waitpid};

use super::ready;
use super::start::{detach, keep_one};

/// What a client says first.
#[derive(Debug)]
pub(super) enum FirstWord {
    /// Nothing any more.
    Nothing,
    /// An order, or its beginning: for one job. Perhaps with what that job is to read.
    Order(Vec<u8>, Option<OwnedFd>),
    /// The connection of a first keeper: there will be many.
    Connection(UnixStream),
}

/// Waits for what the client says first.
pub(super) fn first_word(client: &UnixStream) -> FirstWord {
    let mut text = vec![0; 64 << 10];
    match receive(client, &mut text) {
        // An order is never empty.
        Ok((1, Some(line))) if text[0] == b'\n' => FirstWord::Connection(line.into()),
        Ok((0, _)) | Err(_) => FirstWord::Nothing,
        Ok((n, input)) => {
            text.truncate(n);
            FirstWord::Order(text, input)
        }
    }
}

/// Forks a keeper for this line, and one for each that comes, until the client is gone. Returns the exit code
/// of whichever process this then is.
pub(super) fn serve_forks(home: &Path, client: UnixStream, first: UnixStream) -> i32 {
    ready::warm_up();
    let mut next = Some(first);
    while let Some(line) = next {
        if is_keeper() {
            drop(client);
            detach();
            return keep_one(home, line, Vec::new(), None);
        }
        // Where none could be had, the client hears so by the end of the line.
        drop(line);
        next = match receive(&client, &mut [0]) {
            Ok((_, line)) => line.map(UnixStream::from),
            Err(_) => None,
        };
    }
    0
}

/// Forks twice, so that init becomes the keeper's parent: walking down from the client does not find it.
/// Says whether this is it.
fn is_keeper() -> bool {
    match fork() {
        Ok(Forked::Child) => match fork() {
            Ok(Forked::Child) => true,
            Ok(Forked::Parent { .. }) | Err(_) => outlast_pty::detach::leave(),
        },
        Ok(Forked::Parent { child }) => {
            let _ = rustix::io::retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()));
            false
        }
        Err(_) => false,
    }
}

/// What came, and the line that came along.
fn receive(client: &UnixStream, text: &mut [u8]) -> Result<(usize, Option<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut along = RecvAncillaryBuffer::new(&mut space);
    let heard = rustix::io::retry_on_intr(|| {
        recvmsg(client, &mut [IoSliceMut::new(text)], &mut along, outlast_pty::system::RECEIVE_CLOEXEC)
    })?;
    let line = along.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut ends) => ends.next(),
        _ => None,
    });
    if let Some(line) = &line {
        outlast_pty::system::keep_from_programs(line)?;
    }
    Ok((heard.bytes, line))
}
