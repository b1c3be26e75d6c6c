//! What a process inherits from its parent and does not want for itself: its umask, soft limits, nice value and OOM
//! score. A supervisor sets them aside, so that they do not act on it, and gives them back to what it starts.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::sync::OnceLock;

/// Not quite out of the kernel's reach, but behind everything that is not a supervisor.
const SUPERVISOR_OOM_SCORE: &str = "-900";
/// By how much the score of what we start is raised where ours can't be lowered: two thousandths of the memory are more
/// than a supervisor ever uses, so the kernel takes any of its commands before it.
const RAISED_BY: i32 = 2;
const OOM_SCORE: &str = "/proc/self/oom_score_adj";
const OOM_SCORE_C: &std::ffi::CStr = c"/proc/self/oom_score_adj";

/// Soft limits that would end a supervisor or take its files away.
const LIMITS: [libc::c_int; 6] = [
    libc::RLIMIT_NOFILE as libc::c_int,
    libc::RLIMIT_FSIZE as libc::c_int,
    libc::RLIMIT_CPU as libc::c_int,
    libc::RLIMIT_AS as libc::c_int,
    libc::RLIMIT_DATA as libc::c_int,
    libc::RLIMIT_NPROC as libc::c_int,
];

static SET_ASIDE: OnceLock<Heritage> = OnceLock::new();

/// What was set aside.
#[derive(Debug)]
struct Heritage {
    umask: libc::mode_t,
    /// Those that were changed, as they were.
    limits: [Option<libc::rlimit>; LIMITS.len()],
    nice: Option<libc::c_int>,
    /// As text for the kernel; with how many bytes of it count.
    oom_score: Option<([u8; 8], usize)>,
}

/// Sets it aside, once, at the start of a supervisor. Files that it makes are its user's alone.
pub fn set_aside() {
    SET_ASIDE.get_or_init(|| {
        let umask = rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
        Heritage {
            umask: umask.bits() as libc::mode_t,
            limits: LIMITS.map(raise_limit),
            nice: lower_nice(),
            oom_score: lower_oom_score(),
        }
    });
}

/// Gives it back, in the child between fork and exec: only system calls.
pub(crate) fn give_back() {
    let Some(heritage) = SET_ASIDE.get() else { return };
    // SAFETY: plain system calls on memory that was prepared before the fork.
    #[expect(unsafe_code, reason = "runs between fork and exec")]
    unsafe {
        libc::umask(heritage.umask);
        for (what, limit) in LIMITS.into_iter().zip(&heritage.limits) {
            if let Some(limit) = limit {
                libc::setrlimit(what as _, limit);
            }
        }
        if let Some(nice) = heritage.nice {
            libc::setpriority(libc::PRIO_PROCESS, 0, nice);
        }
        if let Some((text, len)) = &heritage.oom_score {
            let file = libc::open(OOM_SCORE_C.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            if file >= 0 {
                libc::write(file, text.as_ptr().cast(), *len);
                libc::close(file);
            }
        }
    }
}

/// Has a command that is not a job's get it back too.
pub fn give_back_to(command: &mut std::process::Command) {
    // SAFETY: `give_back` only makes system calls.
    #[expect(unsafe_code, reason = "pre_exec runs between fork and exec")]
    unsafe {
        command.pre_exec(|| {
            give_back();
            Ok(())
        });
    }
}

/// Raises a limit as far as it goes, also past the hard one where that is permitted; returns it as it was.
fn raise_limit(what: libc::c_int) -> Option<libc::rlimit> {
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills `before`, and reads what it is given.
    #[expect(unsafe_code, reason = "limits beyond those of rustix")]
    unsafe {
        if libc::getrlimit(what as _, &raw mut before) != 0 || before.rlim_cur == libc::RLIM_INFINITY {
            return None;
        }
        let none = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        let most = libc::rlimit { rlim_cur: before.rlim_max, ..before };
        // Files have a limit that nobody may exceed: as many as the caller may have are enough.
        let is_files = what == libc::RLIMIT_NOFILE as libc::c_int;
        let lifted = !is_files && libc::setrlimit(what as _, &raw const none) == 0;
        (lifted || libc::setrlimit(what as _, &raw const most) == 0).then_some(before)
    }
}

fn lower_nice() -> Option<libc::c_int> {
    // SAFETY: numbers only.
    #[expect(unsafe_code, reason = "priorities have no safe wrapper")]
    unsafe {
        *crate::system::errno_place() = 0;
        let nice = libc::getpriority(libc::PRIO_PROCESS, 0);
        let is_known = *crate::system::errno_place() == 0;
        (is_known && nice > 0 && libc::setpriority(libc::PRIO_PROCESS, 0, 0) == 0).then_some(nice)
    }
}

/// Lowers our score; returns what commands get.
fn lower_oom_score() -> Option<([u8; 8], usize)> {
    let before: i32 = fs::read_to_string(OOM_SCORE).ok()?.trim().parse().ok()?;
    let lowered = before <= SUPERVISOR_OOM_SCORE.parse().unwrap_or(-900)
        || fs::write(OOM_SCORE, SUPERVISOR_OOM_SCORE).is_ok();
    let theirs = if lowered { before } else { (before + RAISED_BY).min(1000) };
    text_of(theirs)
}

fn text_of(score: i32) -> Option<([u8; 8], usize)> {
    use io::Write;
    let mut text = [0_u8; 8];
    let mut rest = &mut text[..];
    write!(rest, "{score}").ok()?;
    let left = rest.len();
    Some((text, 8 - left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_text_that_the_kernel_takes() {
        for (score, text) in [(0, "0"), (-900, "-900"), (1000, "1000"), (-1000, "-1000")] {
            let (bytes, len) = text_of(score).unwrap();
            assert_eq!(&bytes[..len], text.as_bytes());
        }
    }
}
