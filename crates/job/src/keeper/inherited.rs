//! What a keeper inherits and its heir holds too: opened once, before the fork, so that it survives either of
//! them.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use outlast_pty::spawn::{Gate, Stdio, above_stdio};
use outlast_pty::{Command, Pty, SessionLeader, SpawnError, system};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::Pid;

use super::guard::Guard;
use super::guarding::GuardEnds;
use super::proxy::Proxy;
use super::queue::QueueEnds;
use super::shared::Shared;
use super::shell_ends::ShellEnds;
use crate::lifecycle::StartError;
use crate::registry::claim::Lock;
use crate::registry::format::Info;
use crate::registry::{Home, JobDir, layout};
use crate::secrets::SharedMasks;
use crate::settings::Settings;
use crate::spec::{KeeperSpec, Size, Streams, terminal_env, with_own_variables};
use outlast_protocol::{Call, Hint};

/// As much as a pipe may hold for us: fewer, larger moves when a job floods.
const PIPE_SIZE: usize = 256 << 10;

/// Our ends of the command's streams.
#[derive(Debug)]
pub(super) enum Ends {
    /// The slave stays open in keeper and heir: a terminal that nobody has open for a moment hangs up for
    /// ever.
    Terminal {
        master: OwnedFd,
        slave: OwnedFd,
        /// Bytes that have left the terminal and are not in the log yet.
        staging: (OwnedFd, OwnedFd),
    },
    Pipes {
        stdin: Option<OwnedFd>,
        stdout: OwnedFd,
        stderr: OwnedFd,
        /// Where output waits until it is decided what of it is hidden, if the log is redacted.
        staging: Option<[(OwnedFd, OwnedFd); 2]>,
        /// The command's ends, until it has them.
        given: Option<(OwnedFd, OwnedFd, OwnedFd)>,
    },
}

/// The files of a channel.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) log: OwnedFd,
    pub(super) transcript: OwnedFd,
}

/// Everything that outlives the keeper in its heir.
#[derive(Debug)]
pub(super) struct Inherited {
    pub(super) home: Home,
    pub(super) job: JobDir,
    pub(super) settings: Settings,
    pub(super) spec: KeeperSpec,
    pub(super) started: Instant,
    pub(super) ends: Ends,
    /// What the command reads instead of its terminal, until it has it.
    pub(super) input: Option<OwnedFd>,
    pub(super) output: Files,
    pub(super) stderr: Option<Files>,
    pub(super) timing: OwnedFd,
    pub(super) events: OwnedFd,
    pub(super) listener: OwnedFd,
    pub(super) shared: Shared,
    /// What must be hidden.
    pub(super) masks: SharedMasks,
    /// For a job whose programs are judged: what keeper and heir both need for that.
    pub(super) guard_ends: Option<GuardEnds>,
    /// The thread that judges, until the keeper takes it.
    pub(super) guard: Option<Guard>,
    /// The proxy of a job that reaches some hosts only, until the keeper takes it.
    pub(super) proxy: Option<Proxy>,
    /// The private line to a shell that remembers.
    pub(super) shell: Option<ShellEnds>,
    /// For a job that is queued before it runs, and while it has a place.
    pub(super) queue: Option<QueueEnds>,
    pub(super) _lock: Lock,
}

impl Ends {
    pub(super) fn open(streams: Streams, redact_log: bool) -> Result<Self, StartError> {
        match streams {
            Streams::Terminal(size) => Self::open_terminal(size),
            Streams::Pipes => {
                open_pipes(redact_log).map_err(|error| system_error("cannot open a pipe", error))
            }
        }
    }

    pub(super) fn open_terminal(size: Size) -> Result<Self, StartError> {
        let pty = Pty::open(size).map_err(|error| StartError {
            kind: "no_terminal_left".into(),
            message: format!("cannot open a terminal: {error}"),
            hint: Hint::call("end jobs that are no longer needed (", Call::AllJobs)
                .and("), or run it on pipes: ")
                .then(Call::RunOnPipes),
        })?;
        let staging =
            system::pipe_that_never_blocks().map_err(|error| system_error("cannot open a pipe", error))?;
        system::ask_for_room(&staging.1, PIPE_SIZE);
        let slave = above_stdio(pty.slave).map_err(|error| system_error("cannot open a terminal", error))?;
        Ok(Self::Terminal { master: pty.master, slave, staging })
    }

    /// Where input goes, while there is such a place.
    pub(super) fn input(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Ends::Terminal { master, .. } => Some(master.as_fd()),
            Ends::Pipes { stdin, .. } => stdin.as_ref().map(AsFd::as_fd),
        }
    }

    /// On pipes, the command reads this and not what we would write.
    pub(super) fn read_instead(&mut self, input: &mut Option<OwnedFd>) {
        if let Self::Pipes { stdin, given: Some((theirs, ..)), .. } = self
            && let Some(input) = input.take()
        {
            *stdin = None;
            *theirs = input;
        }
    }

    /// Whether this is a terminal, of that size now.
    pub(super) fn is_terminal_of(&self, size: Size) -> bool {
        matches!(self, Self::Terminal { slave, .. } if outlast_pty::open::resize(slave, size).is_ok())
    }
}

fn open_pipes(redact_log: bool) -> Result<Ends, Errno> {
    let pipe = system::pipe;
    let (theirs_in, stdin) = pipe()?;
    let (stdout, theirs_out) = pipe()?;
    let (stderr, theirs_err) = pipe()?;
    for ours in [&stdin, &stdout, &stderr] {
        rustix::io::ioctl_fionbio(ours, true)?;
        system::ask_for_room(ours, PIPE_SIZE);
    }
    let given = (
        above_stdio(theirs_in).map_err(|_| Errno::MFILE)?,
        above_stdio(theirs_out).map_err(|_| Errno::MFILE)?,
        above_stdio(theirs_err).map_err(|_| Errno::MFILE)?,
    );
    let staging = || system::pipe_that_never_blocks();
    let staging = if redact_log { Some([staging()?, staging()?]) } else { None };
    Ok(Ends::Pipes { stdin: Some(stdin), stdout, stderr, staging, given: Some(given) })
}

impl Files {
    pub(super) fn open(job: &JobDir, log: &str, transcript: &str) -> Result<Self, Errno> {
        let open = |name: &str| {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(job.as_fd(), name, flags, Mode::RUSR | Mode::WUSR)
        };
        Ok(Self { log: open(log)?, transcript: open(transcript)? })
    }
}

pub(super) fn open_to_append(job: &JobDir, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(job.as_fd(), name, flags, Mode::RUSR | Mode::WUSR)
}

impl Inherited {
    /// Starts the command, up to its gate if it has to wait there. Only the keeper does, and only once.
    pub(super) fn spawn(&mut self, info: &mut Info, waits: bool) -> Result<Pid, StartError> {
        let env = match &self.ends {
            Ends::Terminal { .. } => terminal_env(&self.spec.env),
            Ends::Pipes { .. } => self.spec.env.clone(),
        };
        let mut env = env;
        if let Some(shell) = &mut self.shell {
            env.extend(crate::shells::start(&shell.shell, shell.numbers()).1);
            self.input = shell.stdin.take().or(self.input.take());
        }
        let mark = self.home.mark_of(info.handle, info.created_at);
        let is_confined = self.spec.sandbox.is_some();
        let env = with_own_variables(env, info.handle, self.home.path(), &mark, is_confined);
        info.mark = Some(mark);
        let mut confined = self.confine(env)?;
        info.guard_by = self.install_guard(&mut confined.confinement)?;
        confined.confinement.inherited.extend(self.shell.iter_mut().flat_map(|shell| shell.given.drain(..)));
        let opens = self.queue.as_mut().and_then(|queue| queue.opens.take()).filter(|_| waits);
        let finds_program_later = !self.spec.after.is_empty();
        confined.confinement.gate = opens.map(|opens| Gate { opens, finds_program_later });
        self.send_listener(&mut confined.confinement)?;
        info.sandbox_by = confined.sandbox_by;
        info.limited_by = confined.limited_by;
        let stdio = match &mut self.ends {
            Ends::Terminal { slave, .. } => {
                let slave =
                    slave.try_clone().map_err(|error| system_error("cannot open a terminal", error))?;
                match self.input.take() {
                    Some(stdin) => {
                        let stdout = self.shell.as_mut().and_then(|shell| shell.stdout.take());
                        Stdio::TerminalBeside { stdin, stdout, terminal: slave }
                    }
                    None => Stdio::Terminal(slave),
                }
            }
            Ends::Pipes { given, .. } => {
                let Some((stdin, stdout, stderr)) = given.take() else {
                    return Err(system_error("the command", "was already started"));
                };
                Stdio::Pipes { stdin, stdout, stderr }
            }
        };
        let command = Command {
            argv: confined.argv.into_iter().map(Into::into).collect(),
            cwd: (&self.spec.cwd).into(),
            env: confined.env.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
            stdio,
            session_leader: SessionLeader::Caller,
            confinement: confined.confinement,
        };
        let pid = command.spawn().map_err(|error| explain(&error, is_confined))?;
        self.shared.set_command(pid);
        self.take_up_proxy(&info.allowed_hosts);
        Ok(pid)
    }

    /// What the kernel calls the command's ends, as its processes' descriptors show them.
    pub(super) fn endpoints(&self) -> Vec<String> {
        let name = |fd: &OwnedFd| outlast_pty::procfs::descriptor_name(fd.as_raw_fd());
        match &self.ends {
            Ends::Terminal { slave, .. } => name(slave).into_iter().collect(),
            Ends::Pipes { stdout, stderr, .. } => {
                [name(stdout), name(stderr)].into_iter().flatten().collect()
            }
        }
    }

    /// What only the keeper needs: the heir lets go of the command's ends, or its pipes would never end.
    pub(super) fn let_go_of_given(&mut self) {
        self.input = None;
        if let Some(queue) = &mut self.queue {
            queue.opens = None;
        }
        if let Some(shell) = &mut self.shell {
            shell.let_go_of_given();
        }
        if let Ends::Pipes { given, .. } = &mut self.ends {
            *given = None;
        }
    }

    /// Input has ended: a pipe ends only when its last holder lets go of it.
    pub(super) fn close_stdin(&mut self) {
        if let Ends::Pipes { stdin, .. } = &mut self.ends {
            *stdin = None;
        }
    }

    /// The job never runs: what was made for it goes.
    pub(super) fn let_go(&self) {
        self.remove_temporary_folder();
        if let Some(queue) = &self.queue {
            queue.leave();
        }
    }

    pub(super) fn remove_socket(&self) {
        let _ = rustix::fs::unlinkat(self.job.as_fd(), layout::SOCKET, rustix::fs::AtFlags::empty());
    }
}

fn explain(error: &SpawnError, confined: bool) -> StartError {
    let message = error.to_string();
    let (kind, hint): (_, Hint) = match error {
        SpawnError::NotExecutable { .. } if confined => (
            "not_executable",
            "in a sandbox only what is below its readable folders can be run; add its folder: --readable DIR"
                .into(),
        ),
        SpawnError::Confinement { .. } => (
            "no_sandbox",
            Hint::call(
                "nothing was started. If this user can't have namespaces, [agents.sandbox] protect = \"off\" in config.toml \
                does without protected names; see what this machine can do: ",
                Call::Doctor,
            ),
        ),
        SpawnError::NoSuchProgram { .. } => {
            ("no_such_program", "check the spelling, or give its full path; PATH is the caller's".into())
        }
        SpawnError::NotExecutable { .. } => {
            ("not_executable", "make it executable (chmod +x), or run it with its interpreter".into())
        }
        SpawnError::BadFolder { .. } => {
            ("no_such_folder", Hint::call("make the folder first, or give another: ", Call::RunInFolder))
        }
        SpawnError::TooLong => {
            ("too_long", "write the data to a file, and give the command that file's name".into())
        }
        SpawnError::ContainsNul => {
            ("contains_nul", "write the data to a file, and give the command its name".into())
        }
        SpawnError::System(_) => {
            ("system", Hint::call("the system is short of processes or memory; see ", Call::Doctor))
        }
    };
    StartError { kind: kind.into(), message, hint }
}

pub(super) fn system_error(what: &str, error: impl std::fmt::Display) -> StartError {
    StartError {
        kind: "system".into(),
        message: format!("{what}: {error}"),
        hint: Hint::call("see ", Call::Doctor),
    }
}
