//! Which ports jobs listen on, with real servers.
#![cfg(all(target_os = "linux", not(outlast_portable)))]
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "tests fail by panicking and say what they left out"
)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use outlast_pty::ports::{Port, PortWatch, listening, unix_listening};
use outlast_pty::procfs;
use rustix::process::Pid;

/// A program and all it starts, ended also when the test fails.
struct Job(Child);

impl Job {
    /// Its shell is the parent of all the rest, as a keeper would be.
    fn start(script: &str) -> Self {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("{script}\nwait")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(shell.spawn().expect("a shell"))
    }

    fn root(&self) -> Pid {
        Pid::from_child(&self.0)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        for process in procfs::descendants(self.root()) {
            let _ = rustix::process::kill_process(process.pid, rustix::process::Signal::KILL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "never came: {what}");
        std::thread::yield_now();
    }
}

fn first_port(root: Pid) -> Port {
    eventually("a port", || listening(root).into_iter().next())
}

fn is_absent(program: &str) -> bool {
    let absent =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err();
    if absent {
        println!("not on this machine, left out: {program}");
    }
    absent
}

#[test]
fn a_server_of_a_grandchild_is_found_by_its_socket() {
    if is_absent("python3") {
        return;
    }
    let job = Job::start("sh -c 'python3 -m http.server --bind 127.0.0.1 0; :' &");
    let port = first_port(job.root());
    assert_eq!(port.address, IpAddr::V4(Ipv4Addr::LOCALHOST));
    assert!(!port.ipv6 && port.port != 0);
    assert!(port.program.starts_with("python"), "{port:?}");
    std::net::TcpStream::connect((port.address, port.port)).expect("it listens there");
}

#[test]
fn ipv6_is_found_too() {
    if is_absent("python3") || std::net::TcpListener::bind("[::1]:0").is_err() {
        return;
    }
    let job = Job::start("python3 -m http.server --bind ::1 0 &");
    let port = first_port(job.root());
    assert_eq!((port.ipv6, port.address), (true, IpAddr::V6(Ipv6Addr::LOCALHOST)));
}

#[test]
fn a_node_server_is_found() {
    if is_absent("node") {
        return;
    }
    let job = Job::start("node -e \"require('http').createServer().listen(0)\" &");
    assert_eq!(first_port(job.root()).program, "node");
}

#[test]
fn a_port_of_somebody_else_is_not_the_jobs() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let job = Job::start("sleep 30 &");
    eventually("its child", || (!procfs::children(job.root()).is_empty()).then_some(()));
    assert_eq!(listening(job.root()), Vec::new());
    drop(other);
}

#[test]
fn a_watch_tells_when_a_port_comes_and_goes() {
    if is_absent("python3") {
        return;
    }
    let mut job = Job::start("python3 -m http.server --bind 127.0.0.1 0 &");
    let mut watch = PortWatch::new(job.root());
    eventually("the port", || watch.refresh().then_some(()));
    assert_eq!(watch.ports().len(), 1);
    assert!(!watch.refresh(), "nothing has changed");
    let server = watch.ports()[0].pid;
    rustix::process::kill_process(server, rustix::process::Signal::KILL).expect("it lives");
    eventually("the end of the port", || watch.refresh().then_some(()));
    assert_eq!(watch.ports(), []);
    let _ = job.0.kill();
}

#[test]
fn forked_workers_do_not_multiply_a_port() {
    if is_absent("python3") {
        return;
    }
    let job = Job::start(
        "python3 -c 'import socket,os,time
s=socket.socket(); s.bind((\"127.0.0.1\",0)); s.listen()
[os.fork() for _ in range(2)]
time.sleep(30)' &",
    );
    first_port(job.root());
    eventually("four workers", || (procfs::descendants(job.root()).len() >= 4).then_some(()));
    assert_eq!(listening(job.root()).len(), 1);
}

#[test]
fn a_network_of_its_own_is_looked_into() {
    let possible = Command::new("unshare").args(["-rn", "true"]).stderr(Stdio::null()).status();
    if is_absent("python3") || !possible.is_ok_and(|status| status.success()) {
        println!("no network namespaces here, left out");
        return;
    }
    let job = Job::start("unshare -rn python3 -m http.server --bind 0.0.0.0 8765 &");
    assert_eq!(first_port(job.root()).port, 8765);
}

#[test]
fn unix_sockets_are_known_by_path_and_by_name() {
    if is_absent("python3") {
        return;
    }
    let name = format!("outlast-test-{}", std::process::id());
    let job = Job::start(&format!(
        "python3 -c 'import socket,time
a=socket.socket(socket.AF_UNIX); a.bind(\"/tmp/{name}\"); a.listen()
b=socket.socket(socket.AF_UNIX); b.bind(chr(0)+\"{name}\"); b.listen()
time.sleep(30)' &"
    ));
    let found =
        eventually("both sockets", || Some(unix_listening(job.root())).filter(|found| found.len() == 2));
    let paths: Vec<&str> = found.iter().map(|port| port.path.as_str()).collect();
    assert_eq!(paths, [format!("/tmp/{name}"), format!("@{name}")]);
    let _ = std::fs::remove_file(format!("/tmp/{name}"));
}
