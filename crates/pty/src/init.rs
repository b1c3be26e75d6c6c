//! The first process of a container: reaps orphans, passes signals on, and ends with the program's own code.
//!
//! The kernel gives every orphan of a PID namespace to its first process, and one that does not wait for them collects
//! zombies. A program that waits for children of its own must not also wait for anybody's: so as PID 1 it forks, the
//! child is the program, and the parent does nothing but this.

use rustix::process::Pid;

use crate::detach::{Forked, fork};

/// Goes on in a child if this is PID 1. Call it first in `main`, while there is only one thread.
pub fn fork_if_first() {
    if rustix::process::getpid().as_raw_nonzero().get() != 1 {
        return;
    }
    // Before the fork: an end of the child must not be missed.
    let before = block_all();
    match fork() {
        Ok(Forked::Parent { child }) => leave_with(tend(child)),
        Ok(Forked::Child) => set_mask(&before),
        // Zombies are better than no program at all.
        Err(_) => set_mask(&before),
    }
}

/// Reaps whatever ends and passes signals on, until the program has ended. Returns the exit code that stands for it.
fn tend(program: Pid) -> i32 {
    loop {
        let (signal, from_kernel) = next_signal();
        if signal == libc::SIGCHLD {
            if let Some(code) = reap_all(program) {
                return code;
            }
        } else if signal > 0 && !from_kernel {
            // A key of the terminal is sent to the whole foreground group by the kernel: the program has it already.
            // SAFETY: sends a signal to our own child, which is reaped by nobody but us.
            #[expect(unsafe_code, reason = "signal numbers that have no name are passed on too")]
            unsafe {
                libc::kill(program.as_raw_nonzero().get(), signal);
            }
        }
    }
}

/// Lets go of everything that has ended; the code of the program, if it is among them.
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

/// Sleeps until a signal comes; its number, and whether the kernel sent it.
fn next_signal() -> (i32, bool) {
    // SAFETY: waits for members of a valid set, and fills a zeroed siginfo.
    #[expect(unsafe_code, reason = "sigwaitinfo has no safe wrapper")]
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let signal = libc::sigwaitinfo(&raw const *all(), &raw mut info);
        (signal, info.si_code > 0)
    }
}

fn all() -> Box<libc::sigset_t> {
    // SAFETY: an all-zero set is valid storage for sigfillset to fill.
    #[expect(unsafe_code, reason = "signal sets have no safe wrapper")]
    unsafe {
        let mut set: Box<libc::sigset_t> = Box::new(std::mem::zeroed());
        libc::sigfillset(&raw mut *set);
        // These tell of a mistake of our own, and come to the thread that made it.
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGTRAP]
        {
            libc::sigdelset(&raw mut *set, signal);
        }
        set
    }
}

/// Holds all signals back; returns what was held back before.
fn block_all() -> Box<libc::sigset_t> {
    // SAFETY: only touches this thread's signal mask, and fills a zeroed set with the old one.
    #[expect(unsafe_code, reason = "sigprocmask has no safe wrapper")]
    unsafe {
        let mut before: Box<libc::sigset_t> = Box::new(std::mem::zeroed());
        libc::sigprocmask(libc::SIG_SETMASK, &raw const *all(), &raw mut *before);
        before
    }
}

fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: only touches this thread's signal mask.
    #[expect(unsafe_code, reason = "sigprocmask has no safe wrapper")]
    unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, &raw const *mask, std::ptr::null_mut());
    }
}

fn leave_with(code: i32) -> ! {
    // SAFETY: ends the process; nothing of it is used after, and nothing of it is buffered.
    #[expect(unsafe_code, reason = "_exit has no safe wrapper")]
    unsafe {
        libc::_exit(code)
    }
}
