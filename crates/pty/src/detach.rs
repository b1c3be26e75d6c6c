//! Lets a process outlive the one that started it.

use std::io;

use rustix::process::Pid;

/// What [`fork`] returned, and in which process.
#[derive(Debug)]
pub enum Forked {
    /// This is the parent process.
    Parent {
        /// The child.
        child: Pid,
    },
    /// This is the child process.
    Child,
}

/// Forks this process. It must have a single thread.
///
/// # Errors
/// `EAGAIN` or `ENOMEM` if the process limit or the memory is exhausted.
pub fn fork() -> io::Result<Forked> {
    // SAFETY: the callers (the start of a keeper) are single-threaded, so no lock can be held by a thread
    // that does not exist in the copy; allocation and I/O are therefore as safe after it as before.
    #[expect(unsafe_code, reason = "fork has no safe wrapper")]
    let pid = unsafe { libc::fork() };
    match Pid::from_raw(pid) {
        Some(child) if pid > 0 => Ok(Forked::Parent { child }),
        None => Ok(Forked::Child),
        Some(_) => Err(io::Error::last_os_error()),
    }
}

/// Ends a forked copy of this process without running exit handlers a second time.
pub fn leave() -> ! {
    // SAFETY: ends the process; nothing is used afterwards.
    #[expect(unsafe_code, reason = "_exit has no safe wrapper")]
    unsafe {
        libc::_exit(0)
    }
}

/// Closes every descriptor above the standard three, in case the caller leaked some. Call it first in a
/// program, before anything of its own is open.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub fn close_inherited() {
    // SAFETY: numbers only. Nothing in this process owns a descriptor above 2 yet, as the caller guarantees.
    #[expect(unsafe_code, reason = "close_range has no safe wrapper")]
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
    if closed == 0 {
        return;
    }
    // Before Linux 5.9: one by one.
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let open: Vec<libc::c_int> = numbers.filter(|fd| *fd > 2).collect();
    for fd in open {
        // SAFETY: as above; the descriptor of the listing itself is already closed and fails harmlessly.
        #[expect(unsafe_code, reason = "these descriptors have no owner")]
        unsafe {
            libc::close(fd);
        }
    }
}

/// On other systems, inherited descriptors stay open.
#[cfg(any(not(target_os = "linux"), outlast_portable))]
pub fn close_inherited() {}

/// Whether orphans among our descendants can become our children.
pub const ADOPTS_ORPHANS: bool = cfg!(all(target_os = "linux", not(outlast_portable)));

/// Makes orphans among our descendants our children instead of init's.
///
/// # Errors
/// `EINVAL` if the kernel does not support it.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub fn become_subreaper() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Other systems give orphans to init. What double-forks there escapes `kill`, and is reported as such.
///
/// # Errors
/// Never.
#[cfg(any(not(target_os = "linux"), outlast_portable))]
pub fn become_subreaper() -> io::Result<()> {
    Ok(())
}

/// Keeps other programs of the same user from reading this process's memory, and disables its core dumps.
/// Programs that it executes are not affected.
///
/// # Errors
/// `EINVAL` if the kernel does not support it.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub fn keep_memory_private() -> io::Result<()> {
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Other systems have rules of their own.
///
/// # Errors
/// Never.
#[cfg(any(not(target_os = "linux"), outlast_portable))]
pub fn keep_memory_private() -> io::Result<()> {
    Ok(())
}
