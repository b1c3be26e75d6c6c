//! A real sshd on this machine, with keys, a port and a configuration of its own.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually, has};

use super::sandbox;

const SSHD: &str = "/usr/sbin/sshd";

/// A server, and a machine that can log in to it.
struct Server {
    near: Sandbox,
    far: Sandbox,
    sshd: Child,
    folder: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        // What `ControlPersist` keeps is ended with the folder of its socket.
        for socket in std::fs::read_dir(self.near.root().join("run/outlast")).into_iter().flatten().flatten()
        {
            let path = format!("ControlPath={}", socket.path().display());
            let _ =
                Command::new("ssh").args(["-o", &path, "-O", "exit", "far"]).stderr(Stdio::null()).status();
        }
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

impl Server {
    /// None where there is no sshd.
    fn start(login_shell_prints: &str) -> Option<Self> {
        if !std::path::Path::new(SSHD).exists() || !has("ssh-keygen") {
            outlast_testkit::left_out("sshd is not installed", "apt-get install openssh-server");
            return None;
        }
        let (near, far) = (sandbox(), sandbox());
        let folder = far.root().join("sshd");
        std::fs::create_dir_all(&folder).unwrap();
        let key = |name: &str| {
            let path = folder.join(name);
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", path.to_str().unwrap()])
                .status()
                .unwrap();
            assert!(made.success());
            path
        };
        let (host, user) = (key("host"), key("user"));
        let authorized = folder.join("authorized");
        std::fs::copy(user.with_extension("pub"), &authorized).unwrap();
        // The far machine: a home of its own, and a PATH in which this program is found.
        let bin = far.root().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(far.program(), bin.join("outlast")).unwrap();
        let shell = folder.join("shell");
        let environment: String = far
            .command("x")
            .get_envs()
            .filter_map(|(name, value)| Some(format!("export {}='{}'\n", name.to_str()?, value?.to_str()?)))
            .collect();
        std::fs::write(&shell, format!("#!/bin/sh\n{login_shell_prints}\n{environment}export PATH={}:$PATH\ncd {}\nunset SHELL\nexec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"\n", bin.display(), far.work().display())).unwrap();
        std::fs::set_permissions(&shell, std::fs::Permissions::from_mode(0o755)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = folder.join("config");
        let text = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nForceCommand {}\nPermitRootLogin yes\nMaxSessions 3\n",
            host.display(),
            authorized.display(),
            shell.display()
        );
        std::fs::write(&config, text).unwrap();
        let _ = std::fs::create_dir_all("/run/sshd");
        let sshd = Command::new(SSHD)
            .args(["-D", "-e", "-f", config.to_str().unwrap()])
            .stderr(std::fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        eventually("sshd listens", TEST_TIMEOUT, || TcpStream::connect(("127.0.0.1", port)).map(|_| ()));
        // The near machine knows it by its ssh configuration alone. ssh itself goes by the user's real home, so it is told.
        let ssh = near.root().join("user/.ssh");
        std::fs::create_dir_all(&ssh).unwrap();
        let known =
            format!("[127.0.0.1]:{port} {}", std::fs::read_to_string(host.with_extension("pub")).unwrap());
        std::fs::write(ssh.join("known"), known).unwrap();
        let config = format!(
            "Host far\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  StrictHostKeyChecking yes\n",
            user.display(),
            ssh.join("known").display()
        );
        std::fs::write(ssh.join("config"), config).unwrap();
        let bin = near.root().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let mut wrapper = std::fs::File::create(bin.join("ssh")).unwrap();
        write!(wrapper, "#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", ssh.join("config").display()).unwrap();
        std::fs::set_permissions(bin.join("ssh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::create_dir_all(near.root().join("run")).unwrap();
        Some(Self { near, far, sshd, folder })
    }

    fn call(&self, args: &[&str]) -> outlast_testkit::Call {
        let path = format!("{}:{}", self.near.root().join("bin").display(), std::env::var("PATH").unwrap());
        self.near.call(args).env("PATH", path).env("XDG_RUNTIME_DIR", self.near.root().join("run"))
    }
}

#[test]
fn a_host_of_the_ssh_configuration_works_by_its_name() {
    let Some(server) = Server::start("echo 'Welcome to this machine'") else { return };
    let tested = server.call(&["host", "test", "far"]).run();
    assert!(
        tested.code == Some(0),
        "{tested}\n{}",
        std::fs::read_to_string(server.folder.join("log")).unwrap()
    );
    let ran = server.call(&["run", "--on", "far", "echo over ssh; exit 3"]).run();
    assert_eq!(ran.code, Some(3), "{ran}");
    assert!(ran.text().contains("over ssh"), "{ran}");
    assert!(server.far.job(1).is_dir());
    // More calls at once than the server takes sessions on one connection.
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| server.call(&["read", "far/1"]).run().ok());
        }
    });
}

#[test]
fn a_connection_that_is_killed_is_made_again_and_the_wait_goes_on() {
    let Some(server) = Server::start("") else { return };
    server.call(&["run", "--on", "far", "-d", "--name", "slow", "read x; exit 5"]).run().ok();
    eventually("the relay of that call has gone", TEST_TIMEOUT, || {
        if relays(&server).is_empty() { Ok(()) } else { Err("it is there") }
    });
    let before = keeper_sockets(&server);
    let waiting = server.call(&["wait", "far/slow", "--exit", "--deadline", "60s"]).spawn();
    // Greetings take a moment: a relay that dies before them is a machine that cannot be reached.
    eventually("a relay has asked the keeper", TEST_TIMEOUT, || {
        let now = keeper_sockets(&server);
        if now.difference(&before).next().is_some() { Ok(()) } else { Err(now) }
    });
    for relay in relays(&server) {
        outlast_testkit::processes::kill_dash_nine(&relay);
    }
    server.far.run(["send", "slow", "--no-wait", "go"]).ok();
    let waited = waiting.wait();
    assert_eq!(waited.code, Some(5), "{waited}");
}

/// The connections that the keeper of the far job has.
fn keeper_sockets(server: &Server) -> BTreeSet<PathBuf> {
    let keeper = server.far.pid(1, "keeper");
    let files = std::fs::read_dir(format!("/proc/{keeper}/fd")).unwrap().flatten();
    let targets = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:[")).collect()
}

/// The relays of the far machine.
fn relays(server: &Server) -> Vec<outlast_pty::procfs::Proc> {
    let is_relay = |one: &outlast_pty::procfs::Proc| {
        outlast_pty::procfs::arguments(one.pid).is_some_and(|words| words.iter().any(|word| word == b"relay"))
    };
    server.far.processes().into_iter().filter(is_relay).collect()
}
