//! A real nats-server, which can be ended, frozen and started again at the same address.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually, left_out};
use rustix::process::{Pid, Signal, kill_process};

/// A broker with a store of its own.
pub(crate) struct Broker {
    folder: tempfile::TempDir,
    program: PathBuf,
    port: u16,
    server: Option<Child>,
    /// Its configuration, if it has one.
    more: Option<PathBuf>,
}

impl Broker {
    /// A broker that runs; none where there is no nats-server.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(None)
    }

    pub(crate) fn start_with(configuration: Option<PathBuf>) -> Option<Self> {
        let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/nats/bin/nats-server");
        let program =
            std::env::var_os("OUTLAST_NATS_SERVER").map_or_else(|| PathBuf::from(tools), PathBuf::from);
        if !program.is_file() {
            left_out("nats-server is not there", "cargo xtask test machines");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("outlast-nats-").tempdir().unwrap();
        let mut broker = Self { folder, program, port: 0, server: None, more: configuration };
        broker.run();
        Some(broker)
    }

    /// Starts the server, at the address that it had before.
    pub(crate) fn run(&mut self) {
        let ports = self.folder.path().join("ports");
        let _ = std::fs::remove_dir_all(&ports);
        std::fs::create_dir(&ports).unwrap();
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let port = if self.port == 0 { "-1".to_owned() } else { self.port.to_string() };
        let mut command = Command::new(&self.program);
        command.args(["-a", "127.0.0.1", "-p", &port]);
        match &self.more {
            // It says itself where its store is.
            Some(configuration) => command.arg("-c").arg(configuration),
            None => command.args(["-js", "-sd"]).arg(self.folder.path().join("store")),
        };
        command.arg("--ports_file_dir").arg(&ports);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.server = Some(command.spawn().unwrap());
        self.port = eventually("the broker listens", TEST_TIMEOUT, || {
            let file = std::fs::read_dir(&ports).unwrap().flatten().next().ok_or("no file yet")?;
            let text = std::fs::read_to_string(file.path()).map_err(|_| "it cannot be read")?;
            let said: serde_json::Value = serde_json::from_str(&text).map_err(|_| "it is not whole")?;
            let url = said["nats"][0].as_str().ok_or("it has no address")?;
            url.rsplit(':').next().and_then(|port| port.parse().ok()).ok_or("it has no port")
        });
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.server.as_ref().unwrap()), signal).unwrap();
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    /// Writes the `fleet.toml` of a home.
    pub(crate) fn tell(&self, who: &Sandbox, name: &str) {
        let folder = who.root().join("config/outlast");
        std::fs::create_dir_all(&folder).unwrap();
        let text =
            format!("nats = [\"{}\"]\n[host]\nname = \"{name}\"\n[user]\nname = \"{name}\"\n", self.url());
        std::fs::write(folder.join("fleet.toml"), text).unwrap();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}
