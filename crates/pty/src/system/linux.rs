//! What Linux has.

use std::ffi::CStr;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::pipe::{PipeFlags, SpliceFlags};
use rustix::process::Signal;

/// Whether bytes can be moved without being in our memory on the way.
pub const MOVES_IN_THE_KERNEL: bool = true;
/// A reader that is gone is an error, and no signal.
pub const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
/// Descriptors that are received are not inherited.
pub const RECEIVE_CLOEXEC: RecvFlags = RecvFlags::CMSG_CLOEXEC;

/// Nothing is left to do: what is received is not inherited.
///
/// # Errors
/// None.
pub fn keep_from_programs(_fd: impl AsFd) -> Result<(), Errno> {
    Ok(())
}

/// A pipe that programs do not inherit.
///
/// # Errors
/// `EMFILE`.
pub fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
}

/// The same, and neither end blocks.
///
/// # Errors
/// `EMFILE`.
pub fn pipe_that_never_blocks() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
}

/// A pipe from which is read together what was written together, and nothing else with it.
///
/// # Errors
/// `EMFILE`.
pub fn pipe_of_packets() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT)
}

/// Two ends of a socket that programs do not inherit: packets that are kept apart, and an end that is seen.
///
/// # Errors
/// `EMFILE`.
pub fn packet_sockets() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// Two ends of a socket that programs do not inherit.
///
/// # Errors
/// `EMFILE`.
pub fn stream_sockets() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// Asks for room in a pipe; less is no error.
pub fn ask_for_room(pipe: impl AsFd, bytes: usize) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, bytes);
}

/// Moves what is there into a pipe, at most `len` bytes, in one step and without waiting.
///
/// # Errors
/// `EINVAL` where these two can't; `EAGAIN` if nothing is there, or no room.
pub fn move_into_pipe(from: impl AsFd, pipe: impl AsFd, len: usize) -> Result<usize, Errno> {
    rustix::pipe::splice(from, None, pipe, None, len, SpliceFlags::NONBLOCK)
}

/// Moves what is in a pipe into a file, at most `len` bytes, in one step and without waiting.
///
/// # Errors
/// As [`move_into_pipe`].
pub fn move_into_file(pipe: impl AsFd, file: impl AsFd, at: u64, len: usize) -> Result<usize, Errno> {
    let mut at = at;
    rustix::pipe::splice(pipe, None, file, Some(&mut at), len, SpliceFlags::NONBLOCK)
}

/// Copies what is in a pipe into another one and leaves it there.
///
/// # Errors
/// As [`move_into_pipe`].
pub fn copy_between_pipes(from: impl AsFd, to: impl AsFd, len: usize) -> Result<usize, Errno> {
    rustix::pipe::tee(from, to, len, SpliceFlags::NONBLOCK)
}

/// Gives the room of a part of a file back, which then reads as zeros.
///
/// # Errors
/// `EOPNOTSUPP` where the file system can't.
pub fn punch_hole(file: impl AsFd, from: u64, len: u64) -> Result<(), Errno> {
    rustix::fs::fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, from, len)
}

/// Takes room on the disk without making the file longer.
///
/// # Errors
/// `ENOSPC`; `EOPNOTSUPP` where the file system can't.
pub fn reserve(file: impl AsFd, from: u64, len: u64) -> Result<(), Errno> {
    rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, from, len)
}

/// Brings a file's bytes to the disk.
///
/// # Errors
/// What the disk says.
pub fn sync_data(file: impl AsFd) -> Result<(), Errno> {
    rustix::fs::fdatasync(file)
}

/// Fills a buffer with random bytes.
///
/// # Errors
/// `ENOSYS`.
pub fn random(bytes: &mut [u8]) -> Result<(), Errno> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[done..], rustix::rand::GetRandomFlags::empty()) {
            Ok(n) => done += n,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A file without a name that is never on a disk.
///
/// # Errors
/// `EMFILE`.
pub fn memory_file(name: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)
}

/// A text in memory that nobody can change, not even who can open it again.
///
/// # Errors
/// `EMFILE`, `ENOMEM`.
pub fn sealed_file(name: &str, text: &[u8]) -> Result<OwnedFd, Errno> {
    let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut rest = text;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file)
}

/// Has this process told by a signal when its parent ends.
pub fn signal_when_parent_ends(signal: Signal) {
    let _ = rustix::process::set_parent_process_death_signal(Some(signal));
}

/// How far the kernel may put off this thread's wake-ups, in nanoseconds.
pub fn set_timer_slack(nanoseconds: u64) {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(nanoseconds));
}

/// What this thread is called in lists of processes.
pub fn set_thread_name(name: &CStr) {
    let _ = rustix::thread::set_name(name);
}

/// Where the C library keeps this thread's `errno`: a signal handler puts it back.
pub(crate) fn errno_place() -> *mut libc::c_int {
    // SAFETY: only returns an address.
    #[expect(unsafe_code, reason = "errno has no safe wrapper")]
    unsafe {
        libc::__errno_location()
    }
}

/// Makes a named pipe in a folder, for its owner alone.
///
/// # Errors
/// `EEXIST`.
pub fn make_fifo(folder: impl AsFd, name: &str) -> Result<(), Errno> {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(folder, name, rustix::fs::FileType::Fifo, mode, 0)
}
