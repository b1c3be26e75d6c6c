//! 32-bit programs on a 64-bit kernel: the same system calls under other numbers, and some with shorter times.
//!
//! The kernel lists the calls of such a program by the numbers of the old architecture. They are translated to what the
//! scanner knows, before it looks at them.

use super::alarms::Width;

/// A call as the scanner knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NativeCall {
    /// Its number on this architecture.
    pub(super) number: i64,
    /// How wide the times are that it points to.
    pub(super) width: Width,
}

/// Addresses above this are not those of a 32-bit program.
const HIGHEST_ADDRESS: u64 = u32::MAX as u64;

/// Whether a thread could be of a 32-bit program, by where its stack and its code are.
pub(super) fn may_be_narrow(stack: u64, code: u64) -> bool {
    stack != 0 && stack <= HIGHEST_ADDRESS && code <= HIGHEST_ADDRESS
}

/// Whether the auxiliary vector of a process has entries of 32 bits. The first entry is a pair of a small number and an
/// address. In 64 bits, the upper half of that number is zero.
pub(super) fn is_narrow(auxiliary: &[u8]) -> bool {
    match auxiliary.get(4..8) {
        Some(upper) => upper.iter().any(|byte| *byte != 0),
        None => false,
    }
}

/// The call behind a number of a 32-bit program; `None` for one that nobody waits in.
#[cfg(target_arch = "x86_64")]
pub(super) fn native(number: i64) -> Option<NativeCall> {
    let (number, width) = match number {
        0 => (libc::SYS_restart_syscall, Width::Narrow),
        3 => (libc::SYS_read, Width::Narrow),
        4 => (libc::SYS_write, Width::Narrow),
        7 | 114 => (libc::SYS_wait4, Width::Narrow),
        29 => (libc::SYS_pause, Width::Narrow),
        54 => (libc::SYS_ioctl, Width::Narrow),
        142 => (libc::SYS_select, Width::Narrow),
        145 => (libc::SYS_readv, Width::Narrow),
        146 => (libc::SYS_writev, Width::Narrow),
        162 => (libc::SYS_nanosleep, Width::Narrow),
        168 => (libc::SYS_poll, Width::Narrow),
        177 => (libc::SYS_rt_sigtimedwait, Width::Narrow),
        179 => (libc::SYS_rt_sigsuspend, Width::Narrow),
        240 => (libc::SYS_futex, Width::Narrow),
        256 => (libc::SYS_epoll_wait, Width::Narrow),
        267 => (libc::SYS_clock_nanosleep, Width::Narrow),
        284 => (libc::SYS_waitid, Width::Narrow),
        308 => (libc::SYS_pselect6, Width::Narrow),
        309 => (libc::SYS_ppoll, Width::Narrow),
        319 => (libc::SYS_epoll_pwait, Width::Narrow),
        337 => (libc::SYS_recvmmsg, Width::Narrow),
        362 => (libc::SYS_connect, Width::Narrow),
        364 => (libc::SYS_accept4, Width::Narrow),
        369 => (libc::SYS_sendto, Width::Narrow),
        370 => (libc::SYS_sendmsg, Width::Narrow),
        371 => (libc::SYS_recvfrom, Width::Narrow),
        372 => (libc::SYS_recvmsg, Width::Narrow),
        407 => (libc::SYS_clock_nanosleep, Width::Native),
        413 => (libc::SYS_pselect6, Width::Native),
        414 => (libc::SYS_ppoll, Width::Native),
        421 => (libc::SYS_rt_sigtimedwait, Width::Native),
        422 => (libc::SYS_futex, Width::Native),
        // Newer calls have one number and one layout everywhere.
        441 => (libc::SYS_epoll_pwait2, Width::Native),
        449 => (libc::SYS_futex_waitv, Width::Native),
        _ => return None,
    };
    Some(NativeCall { number, width })
}

/// On other architectures the numbers of 32-bit programs were never looked up.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn native(_: i64) -> Option<NativeCall> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_auxiliary_vector_says_how_wide_it_is() {
        // AT_SYSINFO_EHDR and its address, in both widths.
        let wide = [33_u64.to_ne_bytes(), 0x7fff_1234_5000_u64.to_ne_bytes()].concat();
        let narrow = [32_u32.to_ne_bytes(), 0xf7fc_9000_u32.to_ne_bytes()].concat();
        assert!(!is_narrow(&wide) && is_narrow(&narrow) && !is_narrow(b""));
        let ours = std::fs::read("/proc/self/auxv").unwrap();
        assert_eq!(is_narrow(&ours), cfg!(target_pointer_width = "32"));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn old_numbers_are_translated() {
        assert_eq!(native(3), Some(NativeCall { number: libc::SYS_read, width: Width::Narrow }));
        assert_eq!(native(414), Some(NativeCall { number: libc::SYS_ppoll, width: Width::Native }));
        assert_eq!(native(425), None, "io_uring_setup");
    }
}
