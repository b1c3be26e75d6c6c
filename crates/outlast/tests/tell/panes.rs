//! A tmux server of the test's own, gone with the test.

use std::path::{Path, PathBuf};
use std::process::Command;

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};

/// A tmux server with one pane.
pub(crate) struct Server {
    socket: PathBuf,
}

impl Server {
    /// Starts it with a command in its pane; none where there is no tmux.
    pub(crate) fn start(sandbox: &Sandbox, command: &[&str]) -> Option<Self> {
        if !outlast_testkit::has("tmux") {
            return None;
        }
        let server = Self { socket: sandbox.root().join("tmux") };
        let mut tmux = server.command();
        tmux.args(["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30"]).args(command);
        // As one of the sandbox, so that it is ended with it whatever happens.
        tmux.env("OUTLAST_HOME", sandbox.home()).env("OUTLAST_SESSION", "test").env("PS1", "$ ");
        tmux.env("OUTLAST", sandbox.program()).current_dir(sandbox.work());
        let started = tmux.output().unwrap();
        assert!(started.status.success(), "{started:?}");
        Some(server)
    }

    fn command(&self) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-u").arg("-S").arg(&self.socket).env_remove("TMUX").env_remove("TMUX_PANE");
        tmux
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Runs a tmux command.
    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        let ran = self.command().args(args).output().unwrap();
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }

    /// Ends it, and waits until it is gone: one that is on its way out turns a new one's client away.
    #[track_caller]
    pub(crate) fn end(&self) {
        let pid = self.tmux(&["display-message", "-p", "#{pid}"]);
        self.tmux(&["kill-server"]);
        let process = format!("/proc/{}/exe", pid.trim());
        eventually("the tmux server is gone", TEST_TIMEOUT, || match std::fs::read_link(&process) {
            Ok(program) => Err(program),
            Err(_) => Ok(()),
        });
    }

    /// What the pane shows.
    pub(crate) fn shows(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J", "-t", "%0"])
    }

    /// Waits until the pane shows something.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        eventually(text, TEST_TIMEOUT, || {
            let shown = self.shows();
            if shown.contains(text) { Ok(()) } else { Err(shown) }
        });
    }

    /// Submits with quick checks; returns the job.
    #[track_caller]
    pub(crate) fn submit(&self, sandbox: &Sandbox, more: &[&str], command: &str) -> u64 {
        let call = sandbox.call(["--json", "tmux", "submit", "--target", "%0", "--settle", "50ms"]);
        let call = call.args(["--interval", "100ms", "--socket"]).arg(&self.socket).args(more);
        call.args(["--", command]).run().ok().json()["handle"].as_u64().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.command().arg("kill-server").output();
    }
}

/// A shell in a pane, at its prompt.
pub(crate) fn shell(sandbox: &Sandbox) -> Option<Server> {
    let server = Server::start(sandbox, &["bash", "--norc", "--noprofile", "-i"])?;
    server.wait_for("$ ");
    Some(server)
}
