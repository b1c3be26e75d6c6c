//! Starts a command on a terminal or on pipes: session, controlling terminal, signals, folder, environment.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::process::Pid;

/// The port of a proxy inside of a network namespace: there, nobody else has it.
pub const PROXY_PORT: u16 = 3128;

/// What a command reads from and writes to.
#[derive(Debug)]
pub enum Stdio {
    /// One terminal for all three.
    Terminal(OwnedFd),
    /// A terminal as controlling terminal, and another stdin; perhaps another stdout.
    TerminalBeside {
        /// Its stdin.
        stdin: OwnedFd,
        /// Its stdout, if that is not the terminal.
        stdout: Option<OwnedFd>,
        /// Its stderr, and its stdout otherwise.
        terminal: OwnedFd,
    },
    /// Three separate descriptors.
    Pipes {
        /// Its stdin.
        stdin: OwnedFd,
        /// Its stdout.
        stdout: OwnedFd,
        /// Its stderr.
        stderr: OwnedFd,
    },
}

/// Which process leads the command's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionLeader {
    /// The caller, with this terminal as its controlling terminal; the command becomes the foreground group.
    /// Background children of the command then survive its end.
    Caller,
    /// The command, as under a terminal emulator.
    Command,
}

/// A command, ready to start.
#[derive(Debug)]
pub struct Command {
    /// Program and arguments; the program is searched in the `PATH` of [`env`](Self::env).
    pub argv: Vec<OsString>,
    /// The folder to start in.
    pub cwd: PathBuf,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its three standard streams.
    pub stdio: Stdio,
    /// Which process leads its session.
    pub session_leader: SessionLeader,
    /// What it may do and use.
    pub confinement: Confinement,
}

/// What a command may do and use.
#[derive(Debug, Default)]
pub struct Confinement {
    /// The sandbox it runs in.
    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    pub sandbox: Option<crate::confine::PreparedSandbox>,
    /// Has every program that it executes judged first.
    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    pub guard: Option<crate::exec_guard::Installer>,
    /// Its resource limits.
    pub limits: crate::limits::Limits,
    /// Descriptors that it inherits besides the standard three.
    pub inherited: Vec<OwnedFd>,
    /// What it waits for before it is executed.
    pub gate: Option<Gate>,
}

/// Where a command waits, set up and with its own process, until it may be executed.
#[derive(Debug)]
pub struct Gate {
    /// A byte that comes here opens it. The end of it, with nobody left who could write, ends the process.
    pub opens: OwnedFd,
    /// Its program may be made only while it waits.
    pub finds_program_later: bool,
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no such file in any folder of `PATH`, or at that path.
    #[error("there is no program {program:?}")]
    NoSuchProgram {
        /// The program's name or path.
        program: OsString,
    },
    /// The file exists, but cannot be executed.
    #[error("{path:?} can't be run: {source}")]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The folder to start in does not exist, is not a folder, or may not be entered.
    #[error("can't start in {path:?}: {source}")]
    BadFolder {
        /// The folder.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// Arguments and environment together are larger than the kernel allows.
    #[error("the command line and environment are longer than this system takes")]
    TooLong,
    /// An argument or variable contains a NUL byte.
    #[error("a command line or environment can't contain a NUL byte")]
    ContainsNul,
    /// It cannot be confined or limited as requested.
    #[error("{what}: {source}")]
    Confinement {
        /// Which of the two.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// Anything else: no more processes, no more memory.
    #[error("can't start a process: {0}")]
    System(#[from] io::Error),
}

/// The step of the child's setup that failed, as reported to its parent.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Step {
    Session = 1,
    Folder = 2,
    Exec = 3,
    Limits = 4,
    Sandbox = 5,
    Guard = 6,
    /// All of it succeeded; the child waits at its gate.
    AtGate = 7,
}

/// An interpreter or library that can't be used.
#[cfg(target_os = "linux")]
const BAD_LIBRARY: i32 = libc::ELIBBAD;
#[cfg(target_vendor = "apple")]
const BAD_LIBRARY: i32 = libc::EBADMACHO;

/// How a process ends whose gate can't open any more.
const GATE_GONE: i32 = 125;

impl Command {
    /// Starts the command and returns its pid once `exec` has succeeded, or once it waits at its gate.
    ///
    /// # Errors
    /// [`SpawnError`], if nothing was started.
    pub fn spawn(self) -> Result<Pid, SpawnError> {
        let program = self.argv.first().cloned().unwrap_or_default();
        let path = self.env.iter().rev().find(|(key, _)| key == "PATH").map(|(_, value)| value.as_os_str());
        let candidates = match find_program(&program, path, &self.cwd) {
            Err(_) if self.confinement.gate.as_ref().is_some_and(|gate| gate.finds_program_later) => {
                possible_programs(&program, path, &self.cwd)
            }
            found => found?,
        };
        let (said, say) = crate::system::pipe().map_err(io::Error::from)?;
        let image = Image::new(&self, &candidates, &say)?;
        let fds = match &self.stdio {
            Stdio::Terminal(slave) => [slave.as_raw_fd(); 3],
            Stdio::TerminalBeside { stdin, stdout, terminal } => {
                let stdout = stdout.as_ref().unwrap_or(terminal);
                [stdin.as_raw_fd(), stdout.as_raw_fd(), terminal.as_raw_fd()]
            }
            Stdio::Pipes { stdin, stdout, stderr } => {
                [stdin.as_raw_fd(), stdout.as_raw_fd(), stderr.as_raw_fd()]
            }
        };
        let terminal = match &self.stdio {
            Stdio::Terminal(_) | Stdio::TerminalBeside { .. } => true,
            Stdio::Pipes { .. } => false,
        };
        let enclosed = self.enclosed_line()?;
        // SAFETY: between fork and exec the child only makes system calls on memory prepared above.
        #[expect(unsafe_code, reason = "fork and exec have no safe wrapper")]
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            drop(said);
            let (step, error) = match self.enclose(enclosed.as_ref().map(|(_, tell)| tell)) {
                Ok(()) => become_command(&image, fds, terminal, &self),
                Err(error) => (Step::Sandbox, error),
            };
            let errno = error.raw_os_error().unwrap_or(libc::EIO).to_le_bytes();
            let report = [step as u8, errno[0], errno[1], errno[2], errno[3]];
            let _ = rustix::io::write(&say, &report);
            leave(127)
        }
        let Some(child) = Pid::from_raw(pid).filter(|_| pid > 0) else {
            return Err(SpawnError::System(io::Error::last_os_error()));
        };
        drop(say);
        let mut children = vec![child];
        if let Some((told, tell)) = enclosed {
            drop(tell);
            // The child was the one that makes the namespaces, and leaves.
            if let Some(inside) = read_pids(&told) {
                wait_for(child);
                children = inside;
            }
        }
        match read_report(&said) {
            None => Ok(children[0]),
            Some((step, _)) if step == Step::AtGate as u8 => Ok(children[0]),
            Some((step, error)) => {
                children.into_iter().for_each(wait_for);
                Err(self.explain(step, error, &candidates))
            }
        }
    }

    /// The pipe by which a child that makes namespaces tells the pids of those in them.
    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    fn enclosed_line(&self) -> io::Result<Option<(OwnedFd, OwnedFd)>> {
        let enclosure = self.confinement.sandbox.as_ref().and_then(|sandbox| sandbox.enclosure());
        match enclosure {
            Some(_) => Ok(Some(crate::system::pipe()?)),
            None => Ok(None),
        }
    }

    #[cfg(any(not(target_os = "linux"), outlast_portable))]
    fn enclosed_line(&self) -> io::Result<Option<(OwnedFd, OwnedFd)>> {
        Ok(None)
    }

    /// Runs in the child: makes the namespaces. It returns in the one that becomes the command.
    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    fn enclose(&self, tell: Option<&OwnedFd>) -> io::Result<()> {
        let enclosure = self.confinement.sandbox.as_ref().and_then(|sandbox| sandbox.enclosure());
        let (Some(enclosure), Some(tell)) = (enclosure, tell) else { return Ok(()) };
        // The number of processes is limited in the user namespace above.
        self.confinement.limits.apply_processes()?;
        match enclosure.enter()? {
            crate::confine::Entered::Command => Ok(()),
            crate::confine::Entered::Maker { command, init } => {
                let ([a, b, c, d], [e, f, g, h]) = (command.to_le_bytes(), init.to_le_bytes());
                let _ = rustix::io::write(tell, &[a, b, c, d, e, f, g, h]);
                leave(0)
            }
        }
    }

    #[cfg(any(not(target_os = "linux"), outlast_portable))]
    fn enclose(&self, _: Option<&OwnedFd>) -> io::Result<()> {
        Ok(())
    }

    fn explain(&self, step: u8, error: io::Error, candidates: &[PathBuf]) -> SpawnError {
        if step == Step::Folder as u8 {
            return SpawnError::BadFolder { path: self.cwd.clone(), source: error };
        }
        let what = match step {
            step if step == Step::Limits as u8 => Some("its limits can't be set"),
            step if step == Step::Sandbox as u8 => Some("the sandbox can't be entered"),
            step if step == Step::Guard as u8 => Some("the exec guard can't be installed"),
            _ => None,
        };
        if let Some(what) = what {
            return SpawnError::Confinement { what, source: error };
        }
        if step == Step::Session as u8 {
            return SpawnError::System(error);
        }
        match error.raw_os_error() {
            Some(libc::E2BIG) => SpawnError::TooLong,
            Some(libc::EACCES | libc::ENOEXEC | libc::ENOENT | libc::ETXTBSY | BAD_LIBRARY) => {
                let path = candidates.first().cloned().unwrap_or_default();
                SpawnError::NotExecutable { path, source: error }
            }
            _ => SpawnError::System(error),
        }
    }
}

/// Everything that `exec` needs, built before the fork: the child may not allocate.
struct Image {
    paths: Vec<CString>,
    cwd: CString,
    _strings: Vec<CString>,
    argv: Vec<*const libc::c_char>,
    envp: Vec<*const libc::c_char>,
    gate: Option<GateImage>,
}

/// What a process at its gate needs.
struct GateImage {
    opens: i32,
    /// The pipe to its parent.
    say: i32,
    /// What it keeps open besides the standard three, in order.
    keeps: Vec<i32>,
    /// How it says that the program can't be run.
    cannot_run: Vec<u8>,
}

impl GateImage {
    fn new(command: &Command, say: &OwnedFd) -> Option<Self> {
        let gate = command.confinement.gate.as_ref()?;
        let opens = gate.opens.as_raw_fd();
        let mut keeps: Vec<i32> = command.confinement.inherited.iter().map(AsRawFd::as_raw_fd).collect();
        keeps.push(opens);
        keeps.sort_unstable();
        let program = command.argv.first().cloned().unwrap_or_default();
        let cannot_run = format!("outlast: cannot run {}: ", program.to_string_lossy()).into_bytes();
        Some(Self { opens, say: say.as_raw_fd(), keeps, cannot_run })
    }

    /// Runs in the child: says that all is ready, lets go of what is not its own, and sleeps until the gate opens.
    fn wait(&self) {
        let report = [Step::AtGate as u8, 0, 0, 0, 0];
        // SAFETY: plain system calls on memory prepared before the fork. What is closed here belongs to the parent's
        // memory, which this process uses no more.
        #[expect(unsafe_code, reason = "runs between fork and exec")]
        unsafe {
            libc::write(self.say, report.as_ptr().cast(), report.len());
            // Locks and connections of the keeper end with the keeper, not with us.
            let mut from = 3;
            for keep in &self.keeps {
                if *keep > from {
                    close_all(from, *keep - 1);
                }
                from = *keep + 1;
            }
            close_all(from, i32::MAX);
            loop {
                let mut byte = 0_u8;
                match libc::read(self.opens, (&raw mut byte).cast(), 1) {
                    1 => break,
                    -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                    _ => leave(GATE_GONE),
                }
            }
            libc::close(self.opens);
        }
    }

    /// Runs in the child: there is no parent left that could be told.
    fn fail(&self, error: &io::Error) -> ! {
        let (why, code): (&[u8], i32) = match error.raw_os_error() {
            Some(libc::ENOENT) => (b"no such file\n", 127),
            Some(libc::EACCES) => (b"permission denied\n", 126),
            Some(libc::ENOEXEC) => (b"not a program\n", 126),
            Some(libc::E2BIG) => (b"arguments and environment are too long\n", 126),
            _ => (b"the system refused it\n", 126),
        };
        // SAFETY: plain system calls on memory prepared before the fork.
        #[expect(unsafe_code, reason = "runs between fork and exec")]
        unsafe {
            libc::write(2, self.cannot_run.as_ptr().cast(), self.cannot_run.len());
            libc::write(2, why.as_ptr().cast(), why.len());
        }
        leave(code)
    }
}

/// Closes a range of descriptors.
#[expect(unsafe_code, reason = "runs between fork and exec")]
unsafe fn close_all(first: i32, last: i32) {
    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    // SAFETY: the caller uses none of them any more.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0;
    #[cfg(any(not(target_os = "linux"), outlast_portable))]
    let closed = false;
    if !closed {
        for fd in first..=last.min(first.saturating_add(4096)) {
            // SAFETY: as above.
            unsafe { libc::close(fd) };
        }
    }
}

impl Image {
    fn new(command: &Command, candidates: &[PathBuf], say: &OwnedFd) -> Result<Self, SpawnError> {
        let c = |bytes: &[u8]| CString::new(bytes).map_err(|_| SpawnError::ContainsNul);
        let mut strings = Vec::with_capacity(command.argv.len() + command.env.len());
        for arg in &command.argv {
            strings.push(c(arg.as_bytes())?);
        }
        for (key, value) in &command.env {
            let mut pair = key.as_bytes().to_vec();
            pair.push(b'=');
            pair.extend_from_slice(value.as_bytes());
            strings.push(c(&pair)?);
        }
        let (args, env) = strings.split_at(command.argv.len());
        let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
            strings.iter().map(|s| s.as_ptr()).chain(std::iter::once(std::ptr::null())).collect()
        };
        let (argv, envp) = (pointers(args), pointers(env));
        let paths = candidates.iter().map(|p| c(p.as_os_str().as_bytes())).collect::<Result<_, _>>()?;
        let cwd = c(command.cwd.as_os_str().as_bytes())?;
        Ok(Self { paths, cwd, _strings: strings, argv, envp, gate: GateImage::new(command, say) })
    }
}

/// Runs in the child: executes the command, or returns which step failed.
fn become_command(image: &Image, fds: [i32; 3], terminal: bool, command: &Command) -> (Step, io::Error) {
    let confinement = &command.confinement;
    // SAFETY: plain system calls; all pointers come from `image`, which outlives the call. SIGTTOU is ignored
    // while this background process takes the terminal, and restored before exec.
    #[expect(unsafe_code, reason = "runs between fork and exec")]
    unsafe {
        match command.session_leader {
            SessionLeader::Command => {
                if libc::setsid() < 0 || (terminal && libc::ioctl(fds[2], libc::TIOCSCTTY as _, 0) < 0) {
                    return (Step::Session, io::Error::last_os_error());
                }
            }
            SessionLeader::Caller => {
                libc::setpgid(0, 0);
                if terminal {
                    libc::signal(libc::SIGTTOU, libc::SIG_IGN);
                    if libc::tcsetpgrp(fds[2], libc::getpid()) < 0 {
                        return (Step::Session, io::Error::last_os_error());
                    }
                }
            }
        }
        // Our descriptors are above 2, so no dup2 can overwrite one that is still needed.
        for (target, fd) in fds.iter().enumerate() {
            if libc::dup2(*fd, target as i32) < 0 {
                return (Step::Session, io::Error::last_os_error());
            }
        }
        for signal in 1..=31 {
            libc::signal(signal, libc::SIG_DFL);
        }
        crate::heritage::give_back();
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        if libc::chdir(image.cwd.as_ptr()) < 0 {
            return (Step::Folder, io::Error::last_os_error());
        }
        for fd in &confinement.inherited {
            libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, 0);
        }
        if let Err(error) = confinement.limits.apply() {
            return (Step::Limits, error);
        }
        #[cfg(all(target_os = "linux", not(outlast_portable)))]
        if let Some(sandbox) = &confinement.sandbox
            && let Err(error) = sandbox.apply()
        {
            return (Step::Sandbox, error);
        }
        // Last, so that the first program is judged too.
        #[cfg(all(target_os = "linux", not(outlast_portable)))]
        if let Some(guard) = &confinement.guard
            && let Err(error) = guard.apply()
        {
            return (Step::Guard, error);
        }
        if let Some(gate) = &image.gate {
            gate.wait();
        }
        let mut refused = None;
        for path in &image.paths {
            libc::execve(path.as_ptr(), image.argv.as_ptr(), image.envp.as_ptr());
            refused.get_or_insert_with(io::Error::last_os_error);
        }
        let refused = refused.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOENT));
        if let Some(gate) = &image.gate {
            gate.fail(&refused);
        }
        (Step::Exec, refused)
    }
}

/// Ends a forked child without running the parent's exit handlers.
fn leave(code: i32) -> ! {
    // SAFETY: ends this process; nothing is used afterwards.
    #[expect(unsafe_code, reason = "_exit has no safe wrapper")]
    unsafe {
        libc::_exit(code)
    }
}

fn wait_for(child: Pid) {
    let wait = || rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty());
    let _ = rustix::io::retry_on_intr(wait);
}

/// The command and the init of its namespaces.
fn read_pids(told: &OwnedFd) -> Option<Vec<Pid>> {
    let mut pids = [0_u8; 8];
    let n = rustix::io::retry_on_intr(|| rustix::io::read(told, &mut pids)).unwrap_or(0);
    let [a, b, c, d, e, f, g, h] = pids;
    let pids = [i32::from_le_bytes([a, b, c, d]), i32::from_le_bytes([e, f, g, h])];
    (n == 8)
        .then(|| pids.into_iter().filter_map(Pid::from_raw).collect())
        .filter(|pids: &Vec<Pid>| !pids.is_empty())
}

fn read_report(said: &OwnedFd) -> Option<(u8, io::Error)> {
    let mut report = [0_u8; 5];
    let n = rustix::io::retry_on_intr(|| rustix::io::read(said, &mut report)).unwrap_or(0);
    (n == report.len()).then(|| {
        let errno = i32::from_le_bytes([report[1], report[2], report[3], report[4]]);
        (report[0], io::Error::from_raw_os_error(errno))
    })
}

/// The files that a program's name could mean, in the order of `PATH`.
///
/// # Errors
/// There is none.
pub fn find_program(
    program: &OsStr,
    path: Option<&OsStr>,
    cwd: &std::path::Path,
) -> Result<Vec<PathBuf>, SpawnError> {
    let missing = || SpawnError::NoSuchProgram { program: program.to_owned() };
    if program.is_empty() {
        return Err(missing());
    }
    if program.as_bytes().contains(&b'/') {
        let path = cwd.join(program);
        return if path.exists() { Ok(vec![path]) } else { Err(missing()) };
    }
    let path = path.unwrap_or_else(|| OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    let mut found = Vec::new();
    for file in std::env::split_paths(path).map(|folder| cwd.join(folder).join(program)) {
        if file.is_file() {
            let runs = rustix::fs::access(&file, rustix::fs::Access::EXEC_OK).is_ok();
            found.push(file);
            if runs {
                break;
            }
        }
    }
    if found.is_empty() { Err(missing()) } else { Ok(found) }
}

/// The files that a program's name could mean once they are there.
fn possible_programs(program: &OsStr, path: Option<&OsStr>, cwd: &std::path::Path) -> Vec<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return vec![cwd.join(program)];
    }
    let path = path.unwrap_or_else(|| OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    std::env::split_paths(path).map(|folder| cwd.join(folder).join(program)).collect()
}

/// Moves a file descriptor above the standard three.
///
/// # Errors
/// `EMFILE` if there are too many open files.
pub fn above_stdio(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 {
        return Ok(fd);
    }
    let borrowed: BorrowedFd<'_> = std::os::fd::AsFd::as_fd(&fd);
    Ok(rustix::io::fcntl_dupfd_cloexec(borrowed, 3)?)
}
