//! What a sandbox adds to a command: `/bin/true` with and without one, in turns, from its start to its end.
//!
//! `cargo run --release -p outlast-pty --example sandbox_cost -- 300`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for people")]

/// What a command is started in.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
#[derive(Clone, Copy)]
enum Kind {
    Free,
    Kernel(outlast_pty::confine::Network, bool),
    Bubblewrap(outlast_pty::confine::Network),
}

#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn main() {
    use std::time::Instant;

    use outlast_pty::confine::{Namespaces, Network, Plan, View};
    use outlast_pty::spawn::{Command, Confinement, SessionLeader, Stdio, above_stdio};

    let rounds: usize = std::env::args().nth(1).map_or(100, |count| count.parse().unwrap());
    let folder = std::env::current_dir().unwrap();
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
    let start = |kind: Kind| {
        let (confined, bubblewrap) = match kind {
            Kind::Free => (None, None),
            Kind::Kernel(network, enclosed) => (Some((network, enclosed)), None),
            Kind::Bubblewrap(network) => (None, Some(network)),
        };
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
                namespaces: enclosed.then(|| Namespaces {
                    view: Some(View {
                        writable: vec![folder.clone()],
                        hidden: home.iter().cloned().collect(),
                        readable: Vec::new(),
                    }),
                    ..Namespaces::default()
                }),
            };
            confinement.sandbox = Some(plan.prepare().unwrap());
        }
        let null = || above_stdio(outlast_pty::open::dev_null().unwrap()).unwrap();
        let mut argv: Vec<String> = Vec::new();
        if let Some(network) = bubblewrap {
            let options = "bwrap --unshare-user --unshare-pid --unshare-ipc --unshare-uts --die-with-parent --cap-drop ALL \
                           --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp";
            argv.extend(options.split_whitespace().map(str::to_owned));
            argv[0] = "/usr/bin/bwrap".into();
            if network == Network::Off {
                argv.push("--unshare-net".into());
            }
        }
        argv.push("/bin/true".into());
        let command = Command {
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: folder.clone(),
            env: Vec::new(),
            stdio: Stdio::Pipes { stdin: null(), stdout: null(), stderr: null() },
            session_leader: SessionLeader::Command,
            confinement,
        };
        let pid = command.spawn().unwrap();
        rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()).unwrap();
        began.elapsed().as_secs_f64() * 1000.0
    };
    let names = [
        ("without", Kind::Free),
        ("landlock and seccomp", Kind::Kernel(Network::Off, false)),
        ("with a loopback", Kind::Kernel(Network::Loopback, false)),
        ("namespaces, network on", Kind::Kernel(Network::On, true)),
        ("namespaces", Kind::Kernel(Network::Off, true)),
        ("bubblewrap, network on", Kind::Bubblewrap(Network::On)),
        ("bubblewrap", Kind::Bubblewrap(Network::Off)),
    ];
    let kinds = names.map(|(_, kind)| kind);
    let mut times = [const { Vec::new() }; 7];
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

#[cfg(any(not(target_os = "linux"), outlast_portable))]
fn main() {
    println!("there is no sandbox for this system");
}
