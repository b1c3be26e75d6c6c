//! How a job comes to be judged: the filter and the listener of its exec guard, the proxy that reaches some hosts, and what the
//! heir needs to go on with both.

use std::os::fd::{AsFd, OwnedFd};

use outlast_pty::exec_guard::Listener;
use outlast_pty::spawn::Confinement;

use super::guard::{self, CallNotes, Guard, Marker};
use super::inherited::{Inherited, system_error};
use super::proxy::Proxy;
use crate::lifecycle::StartError;
use crate::sandbox::hosts::AllowedHost;

/// What closes files to a job, in words.
const CLOSED_BY: &str = "files closed by mounts";

/// What an heir needs to go on judging.
#[derive(Debug)]
pub(super) struct GuardEnds {
    /// Where the listener waits for the heir, should it be needed.
    pub(super) arrives: OwnedFd,
    /// Where the command sends it.
    pub(super) sent: OwnedFd,
    pub(super) notes: CallNotes,
    /// Where the socket waits that the proxy listens on, and where the command sends it.
    pub(super) proxy: (OwnedFd, OwnedFd),
}

impl GuardEnds {
    pub(super) fn open() -> std::io::Result<Self> {
        let (arrives, sent) = outlast_pty::fd_line::line()?;
        Ok(Self { arrives, sent, notes: CallNotes::new()?, proxy: outlast_pty::fd_line::line()? })
    }
}

impl Inherited {
    /// Starts the proxy, on the socket that waits for whoever is the keeper now.
    pub(super) fn take_up_proxy(&mut self, allowed_since: &[String]) {
        let (true, Some(ends), Some(sandbox)) =
            (self.spec.reaches_hosts(), &self.guard_ends, &self.spec.sandbox)
        else {
            return;
        };
        // It stays on the line: our heir needs it too.
        if let Ok(Some(listener)) = outlast_pty::fd_line::peek(ends.proxy.0.as_fd()) {
            let hosts = sandbox.hosts.iter().chain(allowed_since);
            let hosts = hosts.filter_map(|host| AllowedHost::parse(host).ok()).collect();
            self.proxy = Proxy::start(listener, hosts).ok();
        }
    }

    /// Has the command send the socket that its proxy listens on.
    pub(super) fn send_listener(&self, confinement: &mut Confinement) -> Result<(), StartError> {
        let (true, Some(ends), Some(sandbox)) =
            (self.spec.reaches_hosts(), &self.guard_ends, &mut confinement.sandbox)
        else {
            return Ok(());
        };
        let line = ends.proxy.1.try_clone().map_err(|error| system_error("cannot open a socket", error))?;
        sandbox.send_listener(vec![line]);
        Ok(())
    }

    /// Starts the thread that judges what the job executes, and has the command install the filter. Returns what does it,
    /// in words.
    pub(super) fn install_guard(
        &mut self,
        confinement: &mut Confinement,
    ) -> Result<Option<String>, StartError> {
        let (Some(rules), Some(ends)) = (&self.spec.guard, &self.guard_ends) else { return Ok(None) };
        let by_mounts = (!rules.files.is_empty()).then(|| CLOSED_BY.to_owned());
        if rules.rules.is_empty() {
            return Ok(by_mounts);
        }
        let and_mounts = by_mounts.map(|by| format!("; {by}")).unwrap_or_default();
        let cannot = |error: std::io::Error| StartError {
            kind: "no_guard".into(),
            message: format!("the rules for programs of this job can't be enforced: {error}"),
            hint:
                "this kernel or container does not allow it; guard = \"off\" in your policy.toml does without"
                    .into(),
        };
        if let Some(outer) = guard::guarding(self.home.path(), rustix::process::getpid()) {
            // One tree of processes can have one guard.
            return Ok(Some(format!("the guard of job {outer}{and_mounts}")));
        }
        let (arrives, sent) = outlast_pty::fd_line::line().map_err(cannot)?;
        let heirs = ends.sent.try_clone().map_err(cannot)?;
        let marker = Marker::leave(&self.home, self.job.handle()).map_err(cannot)?;
        let path = self.spec.env.get("PATH").map(String::as_str);
        let order = guard::Rules { rules, notes: ends.notes, path };
        let guard = Guard::start(guard::From::Line(arrives), order, marker).map_err(cannot)?;
        confinement.guard = Some(outlast_pty::exec_guard::Installer::new(vec![sent, heirs]).map_err(cannot)?);
        self.guard = Some(guard);
        Ok(Some(format!("seccomp user notification{and_mounts}")))
    }

    /// The heir of a keeper that judged goes on with it: who waits for an answer gets one.
    pub(super) fn take_up_guard(&mut self) {
        let (Some(rules), Some(ends)) = (&self.spec.guard, &self.guard_ends) else { return };
        // It stays on the line: our own heir needs it too.
        let listener = Listener::peek(ends.arrives.as_fd());
        let marker = Marker::leave(&self.home, self.job.handle());
        if let (Ok(Some(listener)), Ok(marker)) = (listener, marker) {
            let path = self.spec.env.get("PATH").map(String::as_str);
            let order = guard::Rules { rules, notes: ends.notes, path };
            self.guard = Guard::start(guard::From::Inherited(listener), order, marker).ok();
        }
    }
}
