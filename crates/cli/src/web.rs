//! Arguments of `web`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::values::duration;

/// See and drive jobs in a browser.
///
/// Which job needs you, its terminal, what is asked, and what happened. Only on this machine, unless told otherwise; the link that
/// is printed gets one browser in. It can be ended and started again at any time: pages go on where they were.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  outlast web                             serve it, and open the browser
  outlast web --no-open --port 8391       for: ssh -L 8391:localhost:8391 HOST
  outlast web --bind 0.0.0.0 --tls-cert cert.pem --tls-key key.pem \\
      --host box.example.net
  outlast web share 3 --for 1h            a link that shows job 3, nothing else
  outlast web shares
  outlast web revoke 1"
)]
pub struct WebArgs {
    /// What to do instead of serving.
    #[command(subcommand)]
    pub verb: Option<WebVerb>,
    /// Listen on this address [default: 127.0.0.1]. One that others can reach needs TLS.
    #[arg(long, value_name = "ADDRESS")]
    pub bind: Option<IpAddr>,
    /// Listen on this port [default: the one that this home had last, or any].
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Nobody can change anything through it.
    #[arg(long)]
    pub read_only: bool,
    /// With the first jobs of the fleet, by what they need.
    #[arg(long)]
    pub fleet: bool,
    /// Serve /metrics for Prometheus to who brings the token in this file.
    #[arg(long, value_name = "FILE")]
    pub metrics_token: Option<PathBuf>,
    /// Do not open a browser.
    #[arg(long)]
    pub no_open: bool,
    /// A certificate in PEM, for TLS.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// A proxy in front of it speaks TLS with browsers.
    #[arg(long, conflicts_with = "tls_cert")]
    pub behind_proxy: bool,
    /// A name by which browsers reach it; may be given more than once.
    #[arg(long = "host", value_name = "NAME")]
    pub hosts: Vec<String>,
}

/// The verbs of `web`.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a doc comment here would replace the help of the verb")]
pub enum WebVerb {
    Share(WebShareArgs),
    Shares(WebSharesArgs),
    Revoke(WebRevokeArgs),
}

/// Make a link by which others see the screen of one job.
///
/// They see it without its secrets, and can do nothing. The link ends by itself, or when it is revoked.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast web share web --for 30m")]
pub struct WebShareArgs {
    /// The job: its number or name.
    pub job: String,
    /// Only to look; every share is.
    #[arg(long)]
    pub read_only: bool,
    /// How long the link counts.
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = duration)]
    pub time: Duration,
}

/// List the links by which others see jobs.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast web shares")]
pub struct WebSharesArgs {}

/// Take such a link back: who came by it sees nothing more.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast web revoke 1")]
pub struct WebRevokeArgs {
    /// Its number in the list.
    pub number: u64,
}
