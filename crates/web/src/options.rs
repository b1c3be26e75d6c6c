//! How the web view is served.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use outlast_job::wire::ScreenShot;
use outlast_job::{Failure, Outlast};

/// Draws a screen as a picture. The command line has what draws; the web view only passes it on.
pub trait Pictures: Send + Sync {
    /// The screen as SVG.
    fn svg(&self, shot: &ScreenShot) -> String;
}

/// How the web view is served.
pub struct Options {
    /// The jobs.
    pub outlast: Outlast,
    /// Draws screens.
    pub pictures: Arc<dyn Pictures>,
    /// The address to listen on.
    pub bind: IpAddr,
    /// The port; none for the one that this home had last, or any.
    pub port: Option<u16>,
    /// Nobody can change anything through it.
    pub read_only: bool,
    /// A certificate and its key, in PEM.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Somebody in front of it speaks TLS with browsers.
    pub behind_proxy: bool,
    /// Further host names by which browsers reach it.
    pub hosts: Vec<String>,
    /// The file with the token for `/metrics`; without one there are none.
    pub metrics_token: Option<PathBuf>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("bind", &self.bind).field("port", &self.port).finish_non_exhaustive()
    }
}

impl Options {
    /// # Errors
    /// An address that others can reach, without TLS.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.bind.is_loopback() || self.tls.is_some() || self.behind_proxy {
            return Ok(());
        }
        Err(Failure::usage(format!("{} is not on this machine alone, and there is no TLS", self.bind)).hint(
            "give it a certificate (--tls-cert FILE --tls-key FILE), say that a proxy in front of it has one \
             (--behind-proxy), or stay on 127.0.0.1 and reach it with: ssh -L",
        ))
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls.is_some() || self.behind_proxy { "https" } else { "http" }
    }
}

/// What the caller is told once browsers can connect.
#[derive(Clone, Debug)]
pub struct Ready {
    /// Where it is, without the token.
    pub address: String,
    /// Where a browser gets in, once.
    pub url: String,
    /// What draws the terminal: `xterm.js`, or `rows`.
    pub terminal: &'static str,
    /// Whether nobody can change anything through it.
    pub read_only: bool,
    /// Whether it was there already.
    pub already: bool,
}
