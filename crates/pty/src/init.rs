//! The first process of a container: reaps orphans, forwards signals, and exits with the program's exit code.
//!
//! The kernel gives every orphan of a PID namespace to its first process; if that does not wait for them,
//! zombies pile up. A program that waits for its own children must not also wait for everyone else's. So as
//! PID 1 it forks: the child is the program, and the parent does nothing but this.

#[cfg(target_os = "linux")]
use rustix::process::Pid;

#[cfg(target_os = "linux")]
use crate::detach::{Forked, fork};

/// Only Linux has containers whose first process is a program of ours.
#[cfg(not(target_os = "linux"))]
pub fn fork_if_first() {}

#[cfg(target_os = "linux")]
/// If this is PID 1, forks and continues in the child. Call it first in `main`, while there is only one
/// thread.
pub fn fork_if_first() {
    if rustix::process::getpid().as_raw_nonzero().get() != 1 {
        return;
    }
    // Before the fork, so that the end of the child cannot be missed.
    let before = block_all();
    match fork() {
        Ok(Forked::Parent { child }) => leave_with(reap_and_forward(child)),
        Ok(Forked::Child) => set_mask(&before),
        // Zombies are better than no program at all.
        Err(_) => set_mask(&before),
    }
}

#[cfg(target_os = "linux")]
/// Reaps what ends and forwards signals until the program has ended. Returns its exit code.
fn reap_and_forward(program: Pid) -> i32 {
    loop {
        let (signal, from_kernel) = next_signal();
        if signal == libc::SIGCHLD {
            if let Some(code) = reap_all(program) {
                return code;
            }
        } else if signal > 0 && !from_kernel {
            // The kernel sends a terminal's signals to the whole foreground group: the program has this one
            // already. SAFETY: sends a signal to our own child, which only we reap.
            #[expect(unsafe_code, reason = "signals without a name are forwarded too")]
            unsafe {
                libc::kill(program.as_raw_nonzero().get(), signal);
            }
        }
    }
}

#[cfg(target_os = "linux")]
/// Reaps everything that has ended. Returns the exit code of the program, if it is among them.
fn reap_all(program: Pid) -> Option<i32> {
    let mut code = None;
    loop {
        let mut status = 0;
        // SAFETY: fills a number.
        #[expect(unsafe_code, reason = "waitpid for any child, with a plain status")]
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        if pid <= 0 {
            return code;
        }
        if pid == program.as_raw_nonzero().get() {
            code = Some(if libc::WIFSIGNALED(status) {
                128 + libc::WTERMSIG(status)
            } else {
                libc::WEXITSTATUS(status)
            });
        }
    }
}

#[cfg(target_os = "linux")]
/// Sleeps until a signal comes. Returns its number, and whether the kernel sent it.
fn next_signal() -> (i32, bool) {
    // SAFETY: waits for members of a valid set, and fills a zeroed siginfo.
    #[expect(unsafe_code, reason = "sigwaitinfo has no safe wrapper")]
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let signal = libc::sigwaitinfo(&raw const *all(), &raw mut info);
        (signal, info.si_code > 0)
    }
}

#[cfg(target_os = "linux")]
fn all() -> Box<libc::sigset_t> {
    // SAFETY: an all-zero set is valid storage for sigfillset to fill.
    #[expect(unsafe_code, reason = "signal sets have no safe wrapper")]
    unsafe {
        let mut set: Box<libc::sigset_t> = Box::new(std::mem::zeroed());
        libc::sigfillset(&raw mut *set);
        // These report a fault in our own code, and go to the thread that caused it.
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGTRAP]
        {
            libc::sigdelset(&raw mut *set, signal);
        }
        set
    }
}

#[cfg(target_os = "linux")]
/// Blocks all signals, and returns the previous mask.
fn block_all() -> Box<libc::sigset_t> {
    // SAFETY: only touches this thread's signal mask, and fills a zeroed set with the old one.
    #[expect(unsafe_code, reason = "sigprocmask has no safe wrapper")]
    unsafe {
        let mut before: Box<libc::sigset_t> = Box::new(std::mem::zeroed());
        libc::sigprocmask(libc::SIG_SETMASK, &raw const *all(), &raw mut *before);
        before
    }
}

#[cfg(target_os = "linux")]
fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: only touches this thread's signal mask.
    #[expect(unsafe_code, reason = "sigprocmask has no safe wrapper")]
    unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, &raw const *mask, std::ptr::null_mut());
    }
}

#[cfg(target_os = "linux")]
fn leave_with(code: i32) -> ! {
    // SAFETY: ends the process; nothing is used afterwards, and nothing is buffered.
    #[expect(unsafe_code, reason = "_exit has no safe wrapper")]
    unsafe {
        libc::_exit(code)
    }
}
