//! What a sandbox adds to the start of a command: `/bin/true` with and without one, in turns.
//!
//! `cargo run --release -p outlast-pty --example sandbox_cost -- 300`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for people")]

#[cfg(target_os = "linux")]
fn main() {
    use std::time::Instant;

    use outlast_pty::confine::{Namespaces, Network, Plan};
    use outlast_pty::spawn::{Command, Confinement, SessionLeader, Stdio, above_stdio};

    let rounds: usize = std::env::args().nth(1).map_or(100, |count| count.parse().unwrap());
    let folder = std::env::current_dir().unwrap();
    let start = |confined: Option<(Network, bool)>| {
        let began = Instant::now();
        let mut confinement = Confinement::default();
        if let Some((network, enclosed)) = confined {
            let system = [
                "/usr",
                "/bin",
                "/lib",
                "/lib64",
                "/etc",
                "/opt",
                "/proc",
                "/sys",
                "/dev/null",
                "/dev/urandom",
            ];
            let plan = Plan {
                readable: system.iter().cycle().take(40).map(Into::into).collect(),
                writable: vec![folder.clone(), "/dev/null".into(), "/dev/tty".into()],
                network,
                unix_sockets: false,
                namespaces: enclosed.then(Namespaces::default),
            };
            confinement.sandbox = Some(plan.prepare().unwrap());
        }
        let null = || above_stdio(outlast_pty::open::dev_null().unwrap()).unwrap();
        let command = Command {
            argv: vec!["/bin/true".into()],
            cwd: folder.clone(),
            env: Vec::new(),
            stdio: Stdio::Pipes { stdin: null(), stdout: null(), stderr: null() },
            session_leader: SessionLeader::Command,
            confinement,
        };
        let pid = command.spawn().unwrap();
        let spent = began.elapsed().as_secs_f64() * 1000.0;
        rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()).unwrap();
        spent
    };
    let names = [
        ("without", None),
        ("landlock and seccomp", Some((Network::Off, false))),
        ("with a loopback", Some((Network::Loopback, false))),
        ("namespaces, network on", Some((Network::On, true))),
        ("namespaces", Some((Network::Off, true))),
    ];
    let kinds = names.map(|(_, kind)| kind);
    let mut times = [const { Vec::new() }; 5];
    for round in 0..rounds {
        for turn in 0..kinds.len() {
            let kind = (round + turn) % kinds.len();
            times[kind].push(start(kinds[kind]));
        }
    }
    for ((name, _), times) in names.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let at = |share: usize| times[times.len() * share / 100];
        println!("{name:>22}: least {:.2} ms, median {:.2} ms, 90 % below {:.2} ms", at(0), at(50), at(90));
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("there is no sandbox for this system");
}
