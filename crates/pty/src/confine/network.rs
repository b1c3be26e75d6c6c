//! A network namespace for one command, with nothing in it but loopback.

use std::ffi::CStr;
use std::io;
use std::os::fd::RawFd;

use super::ConfineError;
pub use crate::spawn::PROXY_PORT;

/// How the child enters its network namespace.
#[derive(Debug)]
pub(super) struct Namespace {
    /// Through a user namespace in which it keeps its identity. Root does not need one.
    as_user: Option<Maps>,
}

/// The identity maps of the user namespace, in the kernel's format.
#[derive(Debug)]
pub(super) struct Maps {
    user: Vec<u8>,
    group: Vec<u8>,
}

/// Whether this user can create a network namespace.
///
/// # Errors
/// The kernel's error.
pub fn has_namespaces() -> io::Result<()> {
    let namespace = Namespace::prepare().map_err(|error| io::Error::other(error.to_string()))?;
    tried_in_child(|| namespace.enter())
}

/// Tries something that changes a whole process in a child. `attempt` only makes system calls.
pub(super) fn tried_in_child(attempt: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: the child only makes system calls and leaves.
    #[expect(unsafe_code, reason = "unshare changes the whole process, so it is tried in a child")]
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let code = attempt().err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
            libc::_exit(code);
        }
        if child < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut status = 0;
        while libc::waitpid(child, &raw mut status, 0) < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        match libc::WEXITSTATUS(status) {
            0 if libc::WIFEXITED(status) => Ok(()),
            0 => Err(io::Error::from_raw_os_error(libc::EIO)),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

impl Namespace {
    pub(super) fn prepare() -> Result<Self, ConfineError> {
        Ok(Self { as_user: Maps::of_caller() })
    }

    /// Runs in the child, so it only makes system calls.
    pub(super) fn enter(&self) -> io::Result<()> {
        let flags = libc::CLONE_NEWNET | if self.as_user.is_some() { libc::CLONE_NEWUSER } else { 0 };
        // SAFETY: numbers only; a freshly forked process has a single thread.
        #[expect(unsafe_code, reason = "unshare")]
        if unsafe { libc::unshare(flags) } < 0 {
            return Err(io::Error::last_os_error());
        }
        if let Some(maps) = &self.as_user {
            maps.write()?;
        }
        bring_loopback_up()
    }
}

impl Maps {
    /// Those with which the caller keeps its identity; `None` for root, who does not need a user namespace unless it has
    /// lost the right to make others without one, as in a container or in a job with closed files.
    pub(super) fn of_caller() -> Option<Self> {
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let same = |id: u32| format!("{id} {id} 1\n").into_bytes();
        let is_able = user == 0 && super::has_capability(super::SYS_ADMIN);
        (!is_able).then(|| Self { user: same(user), group: same(group) })
    }

    /// Runs in the child that has made a user namespace, so it only makes system calls.
    pub(super) fn write(&self) -> io::Result<()> {
        // After a fork of a non-dumpable process, only root may write its files in /proc.
        // SAFETY: numbers only.
        #[expect(unsafe_code, reason = "prctl")]
        unsafe {
            libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
        }
        write_to(c"/proc/self/setgroups", b"deny")?;
        write_to(c"/proc/self/uid_map", &self.user)?;
        write_to(c"/proc/self/gid_map", &self.group)
    }
}

fn write_to(path: &CStr, text: &[u8]) -> io::Result<()> {
    // SAFETY: the path ends in NUL and the text outlives the call; the descriptor is closed again.
    #[expect(unsafe_code, reason = "runs between fork and exec")]
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let written = libc::write(fd, text.as_ptr().cast(), text.len());
        let error = io::Error::last_os_error();
        libc::close(fd);
        if written < 0 { Err(error) } else { Ok(()) }
    }
}

pub(super) fn bring_loopback_up() -> io::Result<()> {
    // SAFETY: `request` is as large as the kernel wants, and outlives the calls.
    #[expect(unsafe_code, reason = "runs between fork and exec")]
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        let done = libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &raw const request);
        let error = io::Error::last_os_error();
        libc::close(socket);
        if done < 0 { Err(error) } else { Ok(()) }
    }
}

/// A socket that listens on the loopback of this network namespace. It runs between fork and exec.
pub(super) fn listen() -> io::Result<RawFd> {
    // SAFETY: the address is as large as it says and outlives the calls.
    #[expect(unsafe_code, reason = "runs between fork and exec")]
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        address.sin_family = libc::AF_INET as libc::sa_family_t;
        address.sin_port = PROXY_PORT.to_be();
        address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
        let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        if libc::bind(socket, (&raw const address).cast(), size) < 0 || libc::listen(socket, 128) < 0 {
            let error = io::Error::last_os_error();
            libc::close(socket);
            return Err(error);
        }
        Ok(socket)
    }
}
