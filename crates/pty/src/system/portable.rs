//! The twins: POSIX, and what every Unix has besides.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::process::Signal;

/// Bytes pass through our memory: a keeper that is killed in that moment loses them.
pub const MOVES_IN_THE_KERNEL: bool = false;
/// `SIGPIPE` is ignored by the program as a whole.
pub const NO_SIGNAL: SendFlags = SendFlags::empty();
/// Set afterwards by [`keep_from_programs`], with a moment in which a program that another thread starts could inherit it.
pub const RECEIVE_CLOEXEC: RecvFlags = RecvFlags::empty();

/// Programs that are started do not inherit this descriptor, which was received.
///
/// # Errors
/// None, for one that is open.
pub fn keep_from_programs(fd: impl AsFd) -> Result<(), Errno> {
    rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC)
}

fn both_kept((one, other): (OwnedFd, OwnedFd)) -> Result<(OwnedFd, OwnedFd), Errno> {
    keep_from_programs(&one)?;
    keep_from_programs(&other)?;
    Ok((one, other))
}

/// A pipe that programs do not inherit.
///
/// # Errors
/// `EMFILE`.
pub fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    both_kept(rustix::pipe::pipe()?)
}

/// The same, and neither end blocks.
///
/// # Errors
/// `EMFILE`.
pub fn pipe_that_never_blocks() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, write) = pipe()?;
    rustix::io::ioctl_fionbio(&read, true)?;
    rustix::io::ioctl_fionbio(&write, true)?;
    Ok((read, write))
}

/// What is written together is read together: a socket, as pipes can't.
///
/// # Errors
/// `EMFILE`.
pub fn pipe_of_packets() -> Result<(OwnedFd, OwnedFd), Errno> {
    packet_sockets()
}

/// Two ends of a socket that programs do not inherit: packets that are kept apart.
///
/// # Errors
/// `EMFILE`.
pub fn packet_sockets() -> Result<(OwnedFd, OwnedFd), Errno> {
    // macOS has no SEQPACKET: there the end of the other side is not seen, but for an error when something is sent.
    let kind = if cfg!(target_vendor = "apple") { SocketType::DGRAM } else { SocketType::SEQPACKET };
    both_kept(rustix::net::socketpair(AddressFamily::UNIX, kind, SocketFlags::empty(), None)?)
}

/// Two ends of a socket that programs do not inherit.
///
/// # Errors
/// `EMFILE`.
pub fn stream_sockets() -> Result<(OwnedFd, OwnedFd), Errno> {
    let ends = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None);
    both_kept(ends?)
}

/// Pipes have the room that they have.
pub fn ask_for_room(_pipe: impl AsFd, _bytes: usize) {}

/// Nothing moves without us: the caller copies.
///
/// # Errors
/// Always `EINVAL`.
pub fn move_into_pipe(_from: impl AsFd, _pipe: impl AsFd, _len: usize) -> Result<usize, Errno> {
    Err(Errno::INVAL)
}

/// Nothing moves without us: the caller copies.
///
/// # Errors
/// Always `EINVAL`.
pub fn move_into_file(_pipe: impl AsFd, _file: impl AsFd, _at: u64, _len: usize) -> Result<usize, Errno> {
    Err(Errno::INVAL)
}

/// What is in a pipe can't be looked at without taking it.
///
/// # Errors
/// Always `EINVAL`.
pub fn copy_between_pipes(_from: impl AsFd, _to: impl AsFd, _len: usize) -> Result<usize, Errno> {
    Err(Errno::INVAL)
}

/// Gives the room of a part of a file back, which then reads as zeros.
///
/// # Errors
/// `EOPNOTSUPP` where the system can't.
#[cfg(target_vendor = "apple")]
pub fn punch_hole(file: impl AsFd, from: u64, len: u64) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    let hole = libc::fpunchhole_t {
        fp_flags: 0,
        reserved: 0,
        fp_offset: i64::try_from(from).map_err(|_| Errno::INVAL)?,
        fp_length: i64::try_from(len).map_err(|_| Errno::INVAL)?,
    };
    // SAFETY: the kernel only reads `hole`, which outlives the call.
    #[expect(unsafe_code, reason = "this fcntl has no safe wrapper")]
    let done = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), libc::F_PUNCHHOLE, &raw const hole) };
    if done == 0 { Ok(()) } else { Err(Errno::OPNOTSUPP) }
}

/// There is no portable call: logs outgrow their cap.
///
/// # Errors
/// Always `EOPNOTSUPP`.
#[cfg(not(target_vendor = "apple"))]
pub fn punch_hole(_file: impl AsFd, _from: u64, _len: u64) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// There is no portable call that leaves the length as it is: a disk that is full shows it only when something is written.
///
/// # Errors
/// Always `EOPNOTSUPP`.
pub fn reserve(_file: impl AsFd, _from: u64, _len: u64) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Brings a file's bytes to the disk, through the disk's own cache where that must be asked for.
///
/// # Errors
/// What the disk says.
pub fn sync_data(file: impl AsFd) -> Result<(), Errno> {
    #[cfg(target_vendor = "apple")]
    if rustix::fs::fcntl_fullfsync(file.as_fd()).is_ok() {
        return Ok(());
    }
    rustix::fs::fsync(file)
}

/// Fills a buffer with random bytes.
///
/// # Errors
/// There is no `/dev/urandom`.
pub fn random(bytes: &mut [u8]) -> Result<(), Errno> {
    let source = rustix::fs::open("/dev/urandom", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::read(&source, &mut bytes[done..]) {
            Ok(0) => return Err(Errno::IO),
            Ok(n) => done += n,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A file without a name: made in the folder for temporary files, and removed at once. It may reach a disk.
///
/// # Errors
/// No such folder, or no room in it.
pub fn memory_file(name: &str) -> Result<OwnedFd, Errno> {
    let mut salt = [0_u8; 8];
    random(&mut salt)?;
    let path = std::env::temp_dir().join(format!("{name}-{:016x}", u64::from_ne_bytes(salt)));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::unlink(&path)?;
    Ok(file)
}

/// The same with a text in it. It has no name, so only who holds it can change it.
///
/// # Errors
/// As [`memory_file`].
pub fn sealed_file(name: &str, text: &[u8]) -> Result<OwnedFd, Errno> {
    let file = memory_file(name)?;
    let mut rest = text;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(file)
}

/// Nobody is told: who must know looks at its parent from time to time.
pub fn signal_when_parent_ends(_signal: Signal) {}

/// Other systems have rules of their own.
pub fn set_timer_slack(_nanoseconds: u64) {}

/// Names of threads are for debuggers there.
pub fn set_thread_name(_name: &CStr) {}

/// Where the C library keeps this thread's `errno`: a signal handler puts it back.
#[cfg(target_os = "linux")]
pub(crate) fn errno_place() -> *mut libc::c_int {
    // SAFETY: only returns an address.
    #[expect(unsafe_code, reason = "errno has no safe wrapper")]
    unsafe {
        libc::__errno_location()
    }
}

/// Where the C library keeps this thread's `errno`: a signal handler puts it back.
#[cfg(target_vendor = "apple")]
pub(crate) fn errno_place() -> *mut libc::c_int {
    // SAFETY: only returns an address.
    #[expect(unsafe_code, reason = "errno has no safe wrapper")]
    unsafe {
        libc::__error()
    }
}

/// Makes a named pipe in a folder, for its owner alone.
///
/// # Errors
/// `EEXIST`.
#[cfg(not(target_vendor = "apple"))]
pub fn make_fifo(folder: impl AsFd, name: &str) -> Result<(), Errno> {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(folder, name, rustix::fs::FileType::Fifo, mode, 0)
}

/// The same by the folder's path: it may have been moved meanwhile.
///
/// # Errors
/// `EEXIST`.
#[cfg(target_vendor = "apple")]
pub fn make_fifo(folder: impl AsFd, name: &str) -> Result<(), Errno> {
    let mut path = rustix::fs::getpath(folder)?.into_bytes();
    path.push(b'/');
    path.extend_from_slice(name.as_bytes());
    let path = std::ffi::CString::new(path).map_err(|_| Errno::INVAL)?;
    // SAFETY: the path ends with a zero and outlives the call.
    #[expect(unsafe_code, reason = "mkfifo has no safe wrapper here")]
    let made = unsafe { libc::mkfifo(path.as_ptr(), 0o600) };
    if made == 0 {
        Ok(())
    } else {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
    }
}
