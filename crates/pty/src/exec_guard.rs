//! Has every `execve` and `execveat` of a command, and of all that it starts, judged before it happens.
//!
//! The command is started under a system call filter that hands these calls to a listener
//! (`SECCOMP_RET_USER_NOTIF`). The process stands still until the listener answers. What it wants to execute is read from
//! its memory ([`memory`]) and found in its own view of the file system ([`program`], [`search`]).
//!
//! It guards against spellings and scripts. It does not hold a program that attacks it: memory can be rewritten between our
//! look and the kernel's own. Against that there is the [sandbox](crate::confine).

pub mod memory;
pub mod program;
pub mod search;

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::PollFlags;
use rustix::process::Pid;

use crate::confine::seccomp::{
    ALLOW, ARCHITECTURE, IF_EQUAL, LOAD, NUMBER, PROCESSOR, RETURN, instruction, number, refuse,
};

const ASK_LISTENER: u32 = 0x7fc0_0000;
const NEW_LISTENER: libc::c_ulong = 1 << 3;
/// Since Linux 5.19: once a call is received, only a deadly signal interrupts it.
const WAIT_KILLABLE: libc::c_ulong = 1 << 5;

const RECEIVE: libc::c_ulong = 0xc050_2100;
const SEND: libc::c_ulong = 0xc018_2101;
const IS_VALID: libc::c_ulong = 0x4008_2102;
/// Since Linux 6.6: who waits runs on at once on our processor.
const SET_FLAGS: libc::c_ulong = 0x4008_2104;
const SYNC_WAKE_UP: u64 = 1;
/// The answer that lets the kernel go on with the call.
const CONTINUE: u32 = 1;

/// `execve` and `execveat` of the 32-bit programs that this processor also runs, and the name of their set of calls.
#[cfg(target_arch = "x86_64")]
const COMPAT: Option<(u32, [u32; 2])> = Some((0x4000_0003, [11, 358]));
#[cfg(target_arch = "aarch64")]
const COMPAT: Option<(u32, [u32; 2])> = Some((0x4000_0028, [11, 387]));
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const COMPAT: Option<(u32, [u32; 2])> = None;

/// Installs the filter between fork and exec, and sends the listener to the judge.
#[derive(Debug)]
pub struct Installer {
    program: Vec<libc::sock_filter>,
    to: Vec<OwnedFd>,
}

impl Installer {
    /// Prepares the filter; its listener is sent to each of these.
    ///
    /// # Errors
    /// On a processor that we do not know the calls of.
    pub fn new(to: Vec<OwnedFd>) -> io::Result<Self> {
        Ok(Self { program: filter().ok_or(io::ErrorKind::Unsupported)?, to })
    }

    /// Runs in the child between fork and exec, so it only makes system calls.
    pub(crate) fn apply(&self) -> io::Result<()> {
        let listener = match self.install() {
            // Without rights of its own, a process must give up gaining any.
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                crate::confine::no_new_privileges()?;
                self.install()?
            }
            installed => installed?,
        };
        for to in &self.to {
            crate::fd_line::send(to.as_raw_fd(), listener)?;
        }
        // SAFETY: a descriptor of ours that nobody else in this process knows of.
        #[expect(unsafe_code, reason = "close between fork and exec")]
        unsafe {
            libc::close(listener);
        }
        Ok(())
    }

    fn install(&self) -> io::Result<RawFd> {
        let program = libc::sock_fprog {
            len: u16::try_from(self.program.len()).unwrap_or(0),
            filter: self.program.as_ptr().cast_mut(),
        };
        let install = |flags: libc::c_ulong| {
            // SAFETY: the program outlives the call, and the kernel copies and checks it.
            #[expect(unsafe_code, reason = "seccomp has no safe wrapper here")]
            let fd = unsafe {
                libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
            };
            match RawFd::try_from(fd) {
                Ok(fd) if fd >= 0 => Ok(fd),
                _ => Err(io::Error::last_os_error()),
            }
        };
        match install(NEW_LISTENER | WAIT_KILLABLE) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => install(NEW_LISTENER),
            installed => installed,
        }
    }
}

/// Hands `execve` and `execveat` to the listener. The same calls of other instruction sets are refused: their arguments
/// have another shape.
fn filter() -> Option<Vec<libc::sock_filter>> {
    let own = PROCESSOR?;
    let mut program = vec![instruction(LOAD, 0, 0, ARCHITECTURE)];
    if let Some((other, [execve, execveat])) = COMPAT {
        program.extend([
            instruction(IF_EQUAL, 0, 5, other),
            instruction(LOAD, 0, 0, NUMBER),
            instruction(IF_EQUAL, 1, 0, execve),
            instruction(IF_EQUAL, 0, 1, execveat),
            instruction(RETURN, 0, 0, refuse(libc::EACCES)),
            instruction(RETURN, 0, 0, ALLOW),
        ]);
    }
    program.extend([
        instruction(IF_EQUAL, 1, 0, own),
        instruction(RETURN, 0, 0, refuse(libc::ENOSYS)),
        instruction(LOAD, 0, 0, NUMBER),
    ]);
    #[cfg(target_arch = "x86_64")]
    program.extend([
        instruction(crate::confine::seccomp::IF_AT_LEAST, 0, 1, crate::confine::seccomp::X32),
        instruction(RETURN, 0, 0, refuse(libc::ENOSYS)),
    ]);
    program.extend([
        instruction(IF_EQUAL, 1, 0, number(libc::SYS_execve)),
        instruction(IF_EQUAL, 0, 1, number(libc::SYS_execveat)),
        instruction(RETURN, 0, 0, ASK_LISTENER),
        instruction(RETURN, 0, 0, ALLOW),
    ]);
    Some(program)
}

/// A call that stands still until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecCall {
    /// What it is answered by.
    pub id: u64,
    /// The thread that called.
    pub pid: Pid,
    /// Whether it is `execveat`.
    pub at: bool,
    /// Its arguments.
    pub arguments: [u64; 5],
}

/// What an [`ExecCall`] is as plain numbers, for memory that processes share.
pub const CALL_WORDS: usize = 8;

impl ExecCall {
    /// The call as numbers; none of them is 0 at the first place.
    #[must_use]
    pub fn to_words(self) -> [u64; CALL_WORDS] {
        let [a, b, c, d, e] = self.arguments;
        // An id may be 0, an empty place is 0.
        [
            self.id.wrapping_add(1),
            u64::from(self.pid.as_raw_nonzero().get().unsigned_abs()),
            u64::from(self.at),
            a,
            b,
            c,
            d,
            e,
        ]
    }

    /// The call of such numbers; none for an empty place.
    #[must_use]
    pub fn from_words(words: [u64; CALL_WORDS]) -> Option<Self> {
        let [id, pid, at, a, b, c, d, e] = words;
        if id == 0 {
            return None;
        }
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        Some(Self { id: id.wrapping_sub(1), pid, at: at != 0, arguments: [a, b, c, d, e] })
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Notification {
    id: u64,
    pid: u32,
    flags: u32,
    call: i32,
    architecture: u32,
    instruction: u64,
    arguments: [u64; 6],
}

#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// The end of the filter that is asked about each call.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
}

/// What a listener has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A process wants to execute something.
    Call(ExecCall),
    /// The caller is gone already.
    Nothing,
    /// No process is under the filter any more.
    End,
}

impl Listener {
    /// Waits for the listener on its line, and takes it; none if it never was sent and never will be.
    ///
    /// # Errors
    /// What the system says.
    pub fn receive(line: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        Ok(crate::fd_line::receive(line)?.map(Self::of))
    }

    /// The listener that waits on a line, where it stays for the next heir.
    ///
    /// # Errors
    /// What the system says; `EAGAIN` if it is not there.
    pub fn peek(line: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        Ok(crate::fd_line::peek(line)?.map(Self::of))
    }

    fn of(fd: OwnedFd) -> Self {
        let listener = Self { fd };
        listener.wake_at_once();
        listener
    }

    /// Where older kernels lack it, answers take a little longer.
    fn wake_at_once(&self) {
        // SAFETY: the argument is a number.
        #[expect(unsafe_code, reason = "ioctl")]
        unsafe {
            libc::ioctl(self.fd.as_raw_fd(), SET_FLAGS as _, SYNC_WAKE_UP);
        }
    }

    /// Takes what a poll for input has found.
    ///
    /// # Errors
    /// What the system says.
    pub fn hear(&self, ready: PollFlags) -> io::Result<Heard> {
        // A receive would sleep forever once the last process is gone.
        if !ready.contains(PollFlags::IN) {
            return Ok(if ready.contains(PollFlags::HUP) { Heard::End } else { Heard::Nothing });
        }
        let mut heard = MaybeUninit::<Notification>::zeroed();
        // SAFETY: the kernel fills exactly this many bytes, and wants them zeroed before.
        #[expect(unsafe_code, reason = "ioctl")]
        let heard = unsafe {
            if libc::ioctl(self.fd.as_raw_fd(), RECEIVE as _, heard.as_mut_ptr()) < 0 {
                let error = io::Error::last_os_error();
                return match error.raw_os_error() {
                    Some(libc::ENOENT | libc::EINTR) => Ok(Heard::Nothing),
                    _ => Err(error),
                };
            }
            heard.assume_init()
        };
        let [a, b, c, d, e, _] = heard.arguments;
        let Some(pid) = i32::try_from(heard.pid).ok().and_then(Pid::from_raw) else {
            // Outside our process namespace: nobody whom we could look at.
            self.refuse(heard.id, libc::EACCES);
            return Ok(Heard::Nothing);
        };
        let at = libc::c_long::from(heard.call) == libc::SYS_execveat;
        Ok(Heard::Call(ExecCall { id: heard.id, pid, at, arguments: [a, b, c, d, e] }))
    }

    /// Whether the call still waits: the process may have been killed, and its number be another's by now.
    #[must_use]
    pub fn is_waiting(&self, id: u64) -> bool {
        // SAFETY: the kernel reads one number.
        #[expect(unsafe_code, reason = "ioctl")]
        let done = unsafe { libc::ioctl(self.fd.as_raw_fd(), IS_VALID as _, &raw const id) };
        done == 0
    }

    /// Lets the kernel go on with a call.
    pub fn allow(&self, id: u64) {
        self.respond(&Response { id, value: 0, error: 0, flags: CONTINUE });
    }

    /// Lets a call fail.
    pub fn refuse(&self, id: u64, errno: i32) {
        self.respond(&Response { id, value: 0, error: -errno, flags: 0 });
    }

    /// A process that is gone needs no answer.
    fn respond(&self, response: &Response) {
        // SAFETY: the kernel reads one structure of this size.
        #[expect(unsafe_code, reason = "ioctl")]
        unsafe {
            libc::ioctl(self.fd.as_raw_fd(), SEND as _, std::ptr::from_ref(response));
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether this kernel can hand calls to a listener.
#[must_use]
pub fn is_supported() -> bool {
    let action = ASK_LISTENER;
    // SAFETY: the kernel reads one number.
    #[expect(unsafe_code, reason = "seccomp has no safe wrapper here")]
    let known =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0_u32, &raw const action) };
    known == 0 && PROCESSOR.is_some()
}
