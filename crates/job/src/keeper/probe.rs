//! Probes the job from outside: does it wait for input, and which ports does it listen on?
//!
//! Probes are taken by a thread of its own, because reading `/proc` can block. It is there only while probes
//! are wanted; when they are, and what is made of them, is decided in `core/awaiting_input.rs`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};

use outlast_pty::evidence::Prober;
use outlast_pty::{ports, procfs};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::getpid;

use super::core::{Probe, ProbeResult};

/// The thread needs little.
const STACK_SIZE: usize = 128 << 10;

/// A thread that takes probes.
pub(super) struct ProbeThread {
    ask: Sender<Box<Probe>>,
    results: Receiver<ProbeResult>,
    wake: OwnedFd,
}

impl ProbeThread {
    /// Starts the thread. `terminal` is where the job's programs read, or its output.
    pub(super) fn start(terminal: OwnedFd) -> std::io::Result<Self> {
        let (wake, waker) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (ask, asked) = channel::<Box<Probe>>();
        let (give, results) = channel();
        std::thread::Builder::new().name("probe".into()).stack_size(STACK_SIZE).spawn(move || {
            let root = getpid();
            let mut prober = Prober::new(root);
            let mut watch = ports::PortWatch::new(root);
            let mut sockets = Vec::new();
            while let Ok(probe) = asked.recv() {
                let verdict = prober.sample(terminal.as_fd(), &probe.hints());
                let listening = probe.ports.then(|| {
                    if watch.refresh() {
                        sockets = ports::unix_listening(root).into_iter().map(|socket| socket.path).collect();
                    }
                    let mut ports: Vec<u16> = watch.ports().iter().map(|port| port.port).collect();
                    ports.sort_unstable();
                    ports.dedup();
                    (ports, sockets.clone())
                });
                let unconfirmed = prober.is_unconfirmed();
                let reader = verdict.waiting().and_then(|claim| {
                    let pid = claim.evidence.pid?;
                    Some((pid, procfs::times_run(pid)?))
                });
                let activity = probe.activity;
                if give.send(ProbeResult { verdict, unconfirmed, listening, reader, activity }).is_err() {
                    return;
                }
                let _ = rustix::io::write(&waker, b"!");
            }
        })?;
        Ok(Self { ask, results, wake })
    }

    /// What says that a probe is done.
    pub(super) fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Asks for a probe; false when the thread is gone.
    pub(super) fn ask(&self, probe: Box<Probe>) -> bool {
        self.ask.send(probe).is_ok()
    }

    /// What a probe found, if one is done.
    pub(super) fn take(&self) -> Option<ProbeResult> {
        let mut drained = [0; 16];
        let _ = rustix::io::read(&self.wake, &mut drained);
        self.results.try_recv().ok()
    }
}
