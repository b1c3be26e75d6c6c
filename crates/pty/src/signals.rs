//! Signals as a readable end: each caught signal becomes one byte in a pipe, so that one `poll` sees them too.
//!
//! signal-hook does not replace this. It installs a handler once for each process and signal, and keeps it: after a fork
//! the child would write into its parent's pipe as well, and a signal whose default was restored meanwhile would not be
//! caught again. Keepers are forked, restore signals and catch them anew.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::Signal;

static PIPE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn caught(signal: libc::c_int) {
    let fd = PIPE.load(Ordering::Relaxed);
    if fd >= 0 {
        let byte = [signal as u8];
        // SAFETY: write(2) is async-signal-safe; errno is put back because the interrupted code may look at it.
        // A full pipe drops the byte, which is right: a wake-up is already pending.
        #[expect(unsafe_code, reason = "a signal handler may only make raw system calls")]
        unsafe {
            let errno = *crate::system::errno_place();
            libc::write(fd, byte.as_ptr().cast(), 1);
            *crate::system::errno_place() = errno;
        }
    }
}

/// The readable end of the caught signals. One for each process.
#[derive(Debug)]
pub struct Signals {
    pipe: OwnedFd,
}

impl Signals {
    /// Catches the given signals from now on. A second call, as after a fork, takes over from the first.
    ///
    /// # Errors
    /// `EMFILE` when no pipe can be opened.
    pub fn catch(signals: &[Signal]) -> io::Result<Self> {
        let (pipe, write) = crate::system::pipe_that_never_blocks()?;
        // The write end stays open for as long as the process lives: the handler may run at any time.
        PIPE.store(write.into_raw_fd(), Ordering::Relaxed);
        for signal in signals {
            set_handler(*signal, caught as *const () as libc::sighandler_t);
        }
        Ok(Self { pipe })
    }

    /// The signals that came since the last call, without waiting for any.
    pub fn take(&self) -> Vec<Signal> {
        let mut bytes = [0_u8; 64];
        let mut signals = Vec::new();
        while let Ok(n @ 1..) = rustix::io::read(&self.pipe, &mut bytes) {
            signals.extend(bytes[..n].iter().filter_map(|b| Signal::from_named_raw(i32::from(*b))));
        }
        signals
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> i32 {
        self.pipe.as_raw_fd()
    }
}

/// Ignores signals from now on.
pub fn ignore(signals: &[Signal]) {
    for signal in signals {
        set_handler(*signal, libc::SIG_IGN);
    }
}

/// Lets signals do what they do by default.
pub fn restore(signals: &[Signal]) {
    for signal in signals {
        set_handler(*signal, libc::SIG_DFL);
    }
}

/// Undoes what this program's parent left behind: every signal does what it does by default, and none is held
/// back. Both are inherited over `exec`, and with `SIGCHLD` ignored the kernel reaps children before anybody sees how
/// they ended. Only to be called first thing in a program.
pub fn reset_inherited() {
    // Those two have a handler of our own runtime, which tells of a stack overflow.
    let ours = [libc::SIGSEGV, libc::SIGBUS];
    for number in (1..=64).filter(|number| !ours.contains(number)) {
        // SAFETY: sets the default action; for numbers that can't have another it fails and changes nothing.
        #[expect(unsafe_code, reason = "signal has no safe wrapper")]
        unsafe {
            libc::signal(number, libc::SIG_DFL);
        }
    }
    // SAFETY: only touches this thread's signal mask.
    #[expect(unsafe_code, reason = "sigprocmask has no safe wrapper")]
    unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, &raw const *set_of(&[]), std::ptr::null_mut());
    }
}

fn set_handler(signal: Signal, handler: libc::sighandler_t) {
    // SAFETY: `handler` is SIG_IGN, SIG_DFL or the function above, which only writes to a pipe.
    #[expect(unsafe_code, reason = "sigaction has no safe wrapper")]
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(signal.as_raw(), &raw const action, std::ptr::null_mut());
    }
}

/// Holds signals back, or lets them through again.
pub fn block(signals: &[Signal], blocked: bool) {
    let how = if blocked { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
    // SAFETY: only touches this thread's signal mask.
    #[expect(unsafe_code, reason = "sigprocmask has no safe wrapper")]
    unsafe {
        libc::sigprocmask(how, &raw const *set_of(signals), std::ptr::null_mut());
    }
}

/// Sleeps until one of the given signals, which must be [blocked](block), comes.
#[must_use]
pub fn sleep_until(signals: &[Signal]) -> Option<Signal> {
    let mut number = 0;
    // SAFETY: waits for members of a valid set and fills a number.
    #[expect(unsafe_code, reason = "sigwait has no safe wrapper")]
    unsafe {
        libc::sigwait(&raw const *set_of(signals), &raw mut number);
    }
    Signal::from_named_raw(number)
}

fn set_of(signals: &[Signal]) -> Box<libc::sigset_t> {
    // SAFETY: an all-zero set is valid storage for sigemptyset and sigaddset to fill.
    #[expect(unsafe_code, reason = "signal sets have no safe wrapper")]
    unsafe {
        let mut set: Box<libc::sigset_t> = Box::new(std::mem::zeroed());
        libc::sigemptyset(&raw mut *set);
        for signal in signals {
            libc::sigaddset(&raw mut *set, signal.as_raw());
        }
        set
    }
}
