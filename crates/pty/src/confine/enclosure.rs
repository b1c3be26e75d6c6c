//! Namespaces of its own for one command: processes, IPC, mounts and network.
//!
//! The process that would become the command makes the namespaces, and forks two siblings with `CLONE_PARENT`
//! before it leaves: an init, which is pid 1 inside, and the command. So the command is a child of the process that
//! started it, who sees its pid, sends it signals and reaps it as without namespaces. The init adopts orphans,
//! stays until the last process inside has ended, and removes the placeholders for protected names.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::network::{Maps, bring_loopback_up, tried_in_child};
use super::placeholder::PlaceholderFd;
use super::{ConfineError, Namespaces};

/// The name of an init, by which it is told from the job's own processes.
pub(super) const INIT: &CStr = c"outlast-walls";
/// The pid of the command inside: the first process after the init.
const COMMAND: libc::pid_t = 2;

const OPEN_TREE_CLONE: libc::c_uint = 1;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;
const MOUNT_ATTR_RDONLY: u64 = 1;
const MOUNT_ATTR_NODEV: u64 = 4;
const MOUNT_ATTR_NOEXEC: u64 = 8;

/// Namespaces, ready to be made by a child.
#[derive(Debug)]
pub(crate) struct Enclosure {
    /// The maps of its user namespace. Root does not need one.
    as_user: Option<Maps>,
    isolated: Isolated,
    view: Option<super::view::PreparedView>,
    mounts: Vec<PreparedMount>,
    closed: Vec<PreparedClosed>,
    /// Where a listening socket inside of its network is sent, for a proxy outside of it.
    proxy: Vec<OwnedFd>,
    placeholders: Vec<PlaceholderFd>,
    /// Between the process that makes the namespaces and the init.
    line: (OwnedFd, OwnedFd),
}

#[derive(Debug)]
struct PreparedMount {
    source: CString,
    target: CString,
    read_only: bool,
}

/// A path that nobody inside can look into.
#[derive(Debug)]
struct PreparedClosed {
    path: CString,
    is_folder: bool,
}

/// What a command has of its own, besides processes and mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Isolated {
    pub(super) ipc: bool,
    pub(super) network: bool,
}

/// Which process this is now.
pub(crate) enum Entered {
    /// The one that made the namespaces, and must leave.
    Maker {
        /// The command, as seen from outside.
        command: libc::pid_t,
        /// The init, as seen from outside.
        init: libc::pid_t,
    },
    /// The command, inside.
    Command,
}

/// `struct mount_attr` of the kernel.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

impl Enclosure {
    pub(super) fn prepare(namespaces: &Namespaces, isolated: Isolated) -> Result<Self, ConfineError> {
        let c = |path: &Path| {
            CString::new(path.as_os_str().as_bytes())
                .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
        };
        let Namespaces { mounts, placeholders, closed, view } = namespaces;
        let view = view.as_ref().map(super::view::PreparedView::new).transpose()?;
        let placeholders = super::placeholder::make(placeholders)?;
        // What is hidden is closed already.
        let is_there = |path: &Path| view.as_ref().is_none_or(|view| view.shows(path));
        let mounts = mounts
            .iter()
            .filter(|mount| is_there(&mount.target))
            .map(|mount| {
                Ok(PreparedMount {
                    source: c(&mount.source)?,
                    target: c(&mount.target)?,
                    read_only: mount.read_only,
                })
            })
            .collect::<io::Result<_>>()?;
        let closed = closed
            .iter()
            .filter(|closed| is_there(&closed.path))
            .map(|closed| Ok(PreparedClosed { path: c(&closed.path)?, is_folder: closed.is_folder }))
            .collect::<io::Result<_>>()?;
        let line = rustix::net::socketpair(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::STREAM,
            rustix::net::SocketFlags::CLOEXEC,
            None,
        )
        .map_err(io::Error::from)?;
        let as_user = Maps::of_caller();
        Ok(Self { as_user, isolated, view, mounts, closed, placeholders, line, proxy: Vec::new() })
    }

    /// Sends a listening socket of its network over these lines.
    pub(super) fn send_listener(&mut self, proxy: Vec<OwnedFd>) {
        self.proxy = proxy;
    }

    /// Makes the namespaces and what lives in them. It runs between fork and exec, so it only makes system
    /// calls.
    pub(crate) fn enter(&self) -> io::Result<Entered> {
        let user = if self.as_user.is_some() { libc::CLONE_NEWUSER } else { 0 };
        let network = if self.isolated.network { libc::CLONE_NEWNET } else { 0 };
        let ipc = if self.isolated.ipc { libc::CLONE_NEWIPC } else { 0 };
        // SAFETY: numbers only; a freshly forked process has a single thread.
        #[expect(unsafe_code, reason = "unshare")]
        let done = unsafe { libc::unshare(libc::CLONE_NEWPID | libc::CLONE_NEWNS | ipc | user | network) };
        checked(done)?;
        if let Some(maps) = &self.as_user {
            maps.write()?;
        }
        // Nothing that is mounted here is seen outside.
        mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)?;
        if let Some(view) = &self.view {
            view.enter()?;
        }
        for mount in &self.mounts {
            bind(&mount.source, &mount.target, if mount.read_only { MOUNT_ATTR_RDONLY } else { 0 })?;
        }
        for closed in &self.closed {
            close(closed)?;
        }
        if self.isolated.network {
            bring_loopback_up()?;
        }
        if !self.proxy.is_empty() {
            let listener = super::network::listen()?;
            for line in &self.proxy {
                crate::fd_line::send(line.as_raw_fd(), listener)?;
            }
            // SAFETY: a descriptor of ours that nobody else in this process knows of.
            #[expect(unsafe_code, reason = "close between fork and exec")]
            unsafe {
                libc::close(listener);
            }
        }
        let init = sibling()?;
        if init == 0 {
            self.be_init();
        }
        let mut answer = [0_u8; 4];
        if receive(self.line.0.as_raw_fd(), &mut answer) != answer.len() {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        match i32::from_ne_bytes(answer) {
            0 => {}
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
        let command = sibling()?;
        if command == 0 {
            return Ok(Entered::Command);
        }
        send(self.line.0.as_raw_fd(), &[1]);
        Ok(Entered::Maker { command, init })
    }

    /// Pid 1 inside. It never returns.
    fn be_init(&self) -> ! {
        // SAFETY: plain system calls on this process, which has a single thread and never returns.
        #[expect(unsafe_code, reason = "runs in a forked process that executes nothing")]
        unsafe {
            libc::prctl(libc::PR_SET_NAME, INIT.as_ptr());
            // It has a copy of our memory.
            libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
            libc::setsid();
            for signal in 1..=31 {
                libc::signal(signal, libc::SIG_DFL);
            }
            // Orphans are reaped by the kernel.
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            self.close_all_but_own();
            let line = self.line.1.as_raw_fd();
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            let errno = mount(Some(c"proc"), c"/proc", Some(c"proc"), flags, None).err();
            let errno = errno.map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
            send(line, &errno.to_ne_bytes());
            let mut go = [0_u8; 1];
            if errno == 0 && receive(line, &mut go) == 1 {
                libc::close(line);
                let command = libc::syscall(libc::SYS_pidfd_open, COMMAND, 0) as RawFd;
                if command >= 0 {
                    let mut ended = libc::pollfd { fd: command, events: libc::POLLIN, revents: 0 };
                    while libc::poll(&raw mut ended, 1, -1) < 0 {}
                }
                // With SIGCHLD ignored this returns when there is no child left. The command's own have
                // become ours before its end can be seen.
                while libc::waitpid(-1, std::ptr::null_mut(), 0) >= 0
                    || io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
                {}
            }
            // What is a mount point here can't be removed by us.
            let targets = self.mounts.iter().map(|mount| &mount.target);
            for target in targets.chain(self.closed.iter().map(|closed| &closed.path)).rev() {
                libc::umount2(target.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW);
            }
            super::placeholder::remove_held(&self.placeholders);
            libc::_exit(0)
        }
    }

    /// Closes every descriptor that an init does not need: a reader that waits for the end of a pipe would wait for
    /// it.
    fn close_all_but_own(&self) {
        let mut from = 0;
        loop {
            let own = || self.placeholders.iter().map(PlaceholderFd::raw).chain([self.line.1.as_raw_fd()]);
            let next = own().filter(|fd| *fd >= from).min();
            let last = next.map_or(libc::c_uint::MAX, |fd| (fd as libc::c_uint).wrapping_sub(1));
            if next != Some(from) {
                // SAFETY: numbers only; nothing of this process uses these descriptors any more.
                #[expect(unsafe_code, reason = "close_range")]
                unsafe {
                    libc::syscall(libc::SYS_close_range, from as libc::c_uint, last, 0_u32);
                }
            }
            match next {
                Some(fd) => from = fd + 1,
                None => return,
            }
        }
    }
}

/// Forks a sibling: its parent is ours. Returns 0 in it.
fn sibling() -> io::Result<libc::pid_t> {
    let flags = libc::CLONE_PARENT | libc::SIGCHLD;
    // SAFETY: as `fork`; the child only makes system calls.
    #[expect(unsafe_code, reason = "fork can't make siblings")]
    let pid =
        unsafe { libc::syscall(libc::SYS_clone, flags as libc::c_ulong, 0_usize, 0_usize, 0_usize, 0_usize) };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid as libc::pid_t) }
}

pub(super) fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    options: Option<&CStr>,
) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the strings outlive the call.
    #[expect(unsafe_code, reason = "runs between fork and exec")]
    let done = unsafe {
        libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, pointer(options).cast())
    };
    checked(done)
}

/// Closes a path: a folder becomes an empty one, a file a device that may not be opened, also by root.
fn close(closed: &PreparedClosed) -> io::Result<()> {
    if closed.is_folder {
        let flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        return mount(Some(c"none"), &closed.path, Some(c"tmpfs"), flags, Some(c"mode=000,size=4k"));
    }
    let attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    bind(c"/dev/null", &closed.path, attributes)
}

/// Mounts `source` over `target`, neither of which is followed if it is a symlink.
fn bind(source: &CStr, target: &CStr, attributes: u64) -> io::Result<()> {
    let tree = Tree::of(source)?;
    let done = if attributes == 0 { Ok(()) } else { tree.set(attributes) };
    let done = done.and_then(|()| tree.attach(target));
    tree.close();
    done
}

/// A copy of a mount and of what is mounted below it, not attached anywhere yet. Its place in memory is there before the fork.
#[derive(Debug)]
pub(super) struct Tree(std::cell::Cell<RawFd>);

impl Tree {
    pub(super) fn none() -> Self {
        Self(std::cell::Cell::new(-1))
    }

    fn of(source: &CStr) -> io::Result<Self> {
        let tree = Self::none();
        tree.take(source)?;
        Ok(tree)
    }

    /// Takes the copy.
    pub(super) fn take(&self, source: &CStr) -> io::Result<()> {
        let clone = OPEN_TREE_CLONE
            | libc::O_CLOEXEC as libc::c_uint
            | libc::AT_RECURSIVE as libc::c_uint
            | libc::AT_SYMLINK_NOFOLLOW as libc::c_uint;
        // SAFETY: the string outlives the call.
        #[expect(unsafe_code, reason = "runs between fork and exec")]
        let tree = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, source.as_ptr(), clone) };
        if tree < 0 {
            return Err(io::Error::last_os_error());
        }
        self.0.set(tree as RawFd);
        Ok(())
    }

    fn set(&self, attributes: u64) -> io::Result<()> {
        set_attributes(self.0.get(), c"", libc::AT_EMPTY_PATH | libc::AT_RECURSIVE, attributes)
    }

    pub(super) fn attach(&self, target: &CStr) -> io::Result<()> {
        let (here, flags) = (libc::AT_FDCWD, MOVE_MOUNT_F_EMPTY_PATH);
        // SAFETY: the strings outlive the call.
        #[expect(unsafe_code, reason = "runs between fork and exec")]
        let done = unsafe {
            libc::syscall(libc::SYS_move_mount, self.0.get(), c"".as_ptr(), here, target.as_ptr(), flags)
        };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Closes its descriptor.
    pub(super) fn close(&self) {
        // SAFETY: a descriptor of ours.
        #[expect(unsafe_code, reason = "runs between fork and exec")]
        unsafe {
            libc::close(self.0.get());
        }
    }
}

/// Makes a mount, and with `AT_RECURSIVE` what is mounted below it, read-only.
pub(super) fn make_read_only(path: &CStr, flags: libc::c_int) -> io::Result<()> {
    set_attributes(libc::AT_FDCWD, path, flags, MOUNT_ATTR_RDONLY)
}

fn set_attributes(at: RawFd, path: &CStr, flags: libc::c_int, attributes: u64) -> io::Result<()> {
    let attributes = MountAttr { set: attributes, clear: 0, propagation: 0, userns: 0 };
    let size = size_of::<MountAttr>();
    // SAFETY: the string and the attributes outlive the call.
    #[expect(unsafe_code, reason = "runs between fork and exec")]
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at,
            path.as_ptr(),
            flags as libc::c_uint,
            &raw const attributes,
            size,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn checked(done: libc::c_int) -> io::Result<()> {
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn send(fd: RawFd, bytes: &[u8]) {
    // SAFETY: the bytes outlive the call.
    #[expect(unsafe_code, reason = "runs between fork and exec")]
    unsafe {
        libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL);
    }
}

/// Returns how many bytes came.
fn receive(fd: RawFd, bytes: &mut [u8]) -> usize {
    loop {
        // SAFETY: the bytes outlive the call.
        #[expect(unsafe_code, reason = "runs between fork and exec")]
        let n = unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) };
        match usize::try_from(n) {
            Ok(n) => return n,
            Err(_) if io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => return 0,
        }
    }
}

/// Whether this user can have all of these namespaces here.
///
/// # Errors
/// The kernel's error.
pub fn can_enclose() -> io::Result<()> {
    let enclosure = Enclosure::prepare(&Namespaces::default(), Isolated { ipc: true, network: true })
        .map_err(|error| io::Error::other(error.to_string()))?;
    // Its children are siblings of whoever makes the namespaces, and are reaped below it: one more process in between.
    tried_in_child(|| tried_in_child(|| enclosure.enter().map(|_| ())))
}
