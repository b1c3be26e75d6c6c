//! Probes the job from outside: does it wait for input, which ports does it listen on, and how do they answer over
//! HTTP?
//!
//! Probes are taken by a thread of its own, because reading `/proc` can block. It is there only while probes
//! are wanted; when they are, and what is made of them, is decided in `core/probe_schedule.rs`.
//!
//! An HTTP request has a short-lived thread of its own, so that a server that never answers holds nothing up. It is a
//! GET; only the status line is read, and redirects are not followed.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use outlast_pty::evidence::{Prober, Verdict};
use outlast_pty::ports::Port;
use outlast_pty::{ports, procfs};
use rustix::process::getpid;

use super::conditions::check::{HttpAnswer, HttpTarget};
use super::core::{Probe, ProbeResult};

/// The thread needs little.
const STACK_SIZE: usize = 128 << 10;
/// How long an answer may take, the connection included.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// No status line is longer.
const MAX_STATUS_LINE: usize = 1 << 10;
/// More requests than this at once are put off.
const MAX_REQUESTS: usize = 8;

/// A thread that takes probes.
pub(super) struct ProbeThread {
    ask: Sender<Box<Probe>>,
    results: Receiver<ProbeResult>,
    wake: OwnedFd,
}

/// Where the job's programs read.
pub(super) enum InputEnd {
    /// A terminal, by its master.
    Terminal(OwnedFd),
    /// A pipe, by the end that only we write to.
    Pipe(OwnedFd),
    /// Nobody can type.
    Closed,
}

impl InputEnd {
    fn sample(&self, prober: &mut Prober, probe: &Probe) -> Verdict {
        match self {
            Self::Terminal(master) => prober.sample(master.as_fd(), &probe.hints()),
            Self::Pipe(pipe) => {
                // Whoever has not read all of it yet will go on.
                let is_empty = rustix::io::ioctl_fionread(pipe).is_ok_and(|left| left == 0);
                if is_empty { prober.sample_stdin(pipe.as_fd(), &probe.hints()) } else { Verdict::Busy }
            }
            Self::Closed => Verdict::Busy,
        }
    }
}

impl ProbeThread {
    /// Starts the thread.
    pub(super) fn start(input: InputEnd) -> std::io::Result<Self> {
        let (wake, waker) = outlast_pty::system::pipe_that_never_blocks()?;
        let (ask, asked) = channel::<Box<Probe>>();
        let (give, results) = channel();
        std::thread::Builder::new().name("probe".into()).stack_size(STACK_SIZE).spawn(move || {
            let root = getpid();
            let mut prober = Prober::new(root);
            let mut watch = ports::PortWatch::new(root);
            let mut sockets = Vec::new();
            let mut http = HttpRequests::new();
            while let Ok(mut probe) = asked.recv() {
                let began = Instant::now();
                let mut verdict = input.sample(&mut prober, &probe);
                if let Some(at) = probe.again_at(began).filter(|_| prober.is_unconfirmed()) {
                    // A tenth of a millisecond at most: to sleep and be woken takes as long again.
                    while Instant::now() < at {
                        std::hint::spin_loop();
                    }
                    probe.put_off(began.elapsed());
                    verdict = input.sample(&mut prober, &probe);
                }
                let listening = probe.ports.then(|| {
                    if watch.refresh() {
                        sockets = ports::unix_listening(root).into_iter().map(|socket| socket.path).collect();
                    }
                    let mut ports: Vec<u16> = watch.ports().iter().map(|port| port.port).collect();
                    ports.sort_unstable();
                    ports.dedup();
                    (ports, sockets.clone())
                });
                if !probe.http.is_empty() {
                    http.start(&probe.http, watch.ports());
                }
                let unconfirmed = prober.is_unconfirmed();
                let reader = verdict.waiting().and_then(|claim| {
                    let pid = claim.evidence.pid?;
                    Some((pid, procfs::times_run(pid)?))
                });
                let activity = probe.activity;
                let http = http.take_answers();
                if give.send(ProbeResult { verdict, unconfirmed, listening, http, reader, activity }).is_err()
                {
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

/// The requests that are under way.
struct HttpRequests {
    under_way: Vec<HttpTarget>,
    give: Sender<HttpAnswer>,
    answers: Receiver<HttpAnswer>,
}

impl HttpRequests {
    fn new() -> Self {
        let (give, answers) = channel();
        Self { under_way: Vec::new(), give, answers }
    }

    /// Asks on ports that the job listens on right now, where we can reach them: a port of the same number that is not
    /// the job's is never asked.
    fn start(&mut self, targets: &[HttpTarget], listening: &[Port]) {
        for target in targets {
            let own = listening.iter().find(|port| port.port == target.port && is_reachable(port));
            let Some(own) = own.filter(|_| !self.under_way.contains(target)) else { continue };
            if self.under_way.len() >= MAX_REQUESTS {
                return;
            }
            let (give, asked, address) = (self.give.clone(), target.clone(), own.address);
            let thread = std::thread::Builder::new().name("http".into()).stack_size(STACK_SIZE);
            let begun = thread.spawn(move || {
                let status = status_of(&asked, address);
                let _ = give.send(HttpAnswer { target: asked, status });
            });
            if begun.is_ok() {
                self.under_way.push(target.clone());
            }
        }
    }

    /// The answers that have come.
    fn take_answers(&mut self) -> Vec<HttpAnswer> {
        let answers: Vec<HttpAnswer> = self.answers.try_iter().collect();
        self.under_way.retain(|target| !answers.iter().any(|answer| answer.target == *target));
        answers
    }
}

/// Whether the port is in our own network namespace: in another, its number means another port here.
fn is_reachable(port: &Port) -> bool {
    let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let ours = of("self");
    ours.is_some() && ours == of(&port.pid.as_raw_nonzero().to_string())
}

/// The status that a GET is answered with; none if it was not answered in time, or not in HTTP.
fn status_of(target: &HttpTarget, bound_to: IpAddr) -> Option<u16> {
    let until = Instant::now() + ANSWER_TIMEOUT;
    let left = || Some(until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero());
    let address = match bound_to {
        any if any.is_unspecified() && any.is_ipv4() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        any if any.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        // A server that only listens on an address of the network is asked there: it is this machine's.
        address => address,
    };
    let mut stream = TcpStream::connect_timeout(&SocketAddr::new(address, target.port), left()?).ok()?;
    stream.set_write_timeout(left()).ok()?;
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: localhost:{}\r\nUser-Agent: outlast\r\nAccept: */*\r\nConnection: close\r\n\r\n",
        target.path, target.port
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut line = Vec::new();
    let mut piece = [0; 256];
    while !line.contains(&b'\n') && line.len() < MAX_STATUS_LINE {
        stream.set_read_timeout(Some(left()?)).ok()?;
        match stream.read(&mut piece).ok()? {
            0 => break,
            n => line.extend_from_slice(&piece[..n]),
        }
    }
    parse_status(&line)
}

/// The status of a status line such as `HTTP/1.1 200 OK`.
fn parse_status(line: &[u8]) -> Option<u16> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    if !words.next()?.starts_with("HTTP/") {
        return None;
    }
    words.next()?.parse().ok().filter(|status| (100..600).contains(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_status_line_of_http_has_a_status() {
        assert_eq!(parse_status(b"HTTP/1.1 204 No Content\r\nX: y\r\n"), Some(204));
        assert_eq!(parse_status(b"HTTP/1.0 200"), Some(200));
        assert_eq!(parse_status("HTTP/1.1 200 gefällt mir\r\n".as_bytes()), Some(200));
        for wrong in ["SSH-2.0-OpenSSH_9.9\r\n", "", "HTTP/1.1\r\n", "HTTP/1.1 99999 x", "HTTP/1.1 abc"] {
            assert_eq!(parse_status(wrong.as_bytes()), None, "{wrong:?}");
        }
    }
}
