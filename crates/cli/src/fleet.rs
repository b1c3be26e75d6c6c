//! Arguments of `outlast node` and `outlast fleet`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Join this machine to a fleet, over a NATS broker.
///
/// It says that the machine is there, tells what its jobs do in short, answers who may ask, and works on what `outlast submit` orders. It
/// may be ended and started again at any time: jobs do not need it. Without --nats and the others, fleet.toml says who this machine is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast node --nats nats://broker:4222 --label build --slots 4
  outlast node                           as fleet.toml says, which `outlast
                                         fleet join` wrote
  outlast node --drain                   the node that runs takes no more
                                         orders, and leaves when it has none")]
pub struct NodeArgs {
    /// The address of the broker; may be given more than once.
    #[arg(long, value_name = "URL")]
    pub nats: Vec<String>,
    /// What this machine is called in the fleet [default: its own name].
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// What it is good for; may be given more than once.
    #[arg(long = "label", value_name = "LABEL")]
    pub labels: Vec<String>,
    /// How many orders it works on at a time [default: the places of the slots that its labels name in the settings, else one for each
    /// processor].
    #[arg(long, value_name = "COUNT")]
    pub slots: Option<usize>,
    /// Serve /metrics for Prometheus on this address.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "metrics_token")]
    pub metrics: Option<SocketAddr>,
    /// The file with the token that must come with a question for metrics.
    #[arg(long, value_name = "FILE")]
    pub metrics_token: Option<PathBuf>,
    /// Let the node that runs here finish its orders and leave.
    #[arg(long, conflicts_with_all = ["nats", "name", "labels", "slots", "metrics"])]
    pub drain: bool,
}

/// Set up a fleet, let machines and users in, and see how it is.
///
/// A fleet is many machines that meet at a NATS broker (nats-server 2.12 or later, with JetStream). Each host and user has a key of its
/// own, and the broker lets them speak only in their own name.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast fleet init ./fleet --server nats://broker.example.net:4222
  nats-server -c ./fleet/nats-server.conf
  outlast fleet add ./fleet gpu1 --host --label gpu     then bring gpu1.toml to
                                                        that machine
  outlast fleet add ./fleet alice                       then bring alice.toml to
                                                        alice
  outlast fleet join gpu1.toml                          on that machine
  outlast fleet status")]
pub struct FleetArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: FleetVerb,
}

/// What can be done with a fleet.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a doc comment here would replace the help of the verb")]
pub enum FleetVerb {
    Init(FleetInitArgs),
    Add(FleetAddArgs),
    Revoke(FleetRevokeArgs),
    Join(FleetJoinArgs),
    Status(FleetStatusArgs),
    Log(FleetLogArgs),
}

/// Write the configuration of a broker for a new fleet.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast fleet init ./fleet
  outlast fleet init ./fleet --listen 0.0.0.0:4222 \\
      --server tls://broker.example.net:4222 --tls-cert c.pem \\
      --tls-key k.pem --tls-ca ca.pem")]
pub struct FleetInitArgs {
    /// A folder for the configuration and the list of members.
    pub folder: PathBuf,
    /// Where the broker listens.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4222")]
    pub listen: String,
    /// How members reach it; may be given more than once [default: nats:// and where it listens].
    #[arg(long = "server", value_name = "URL")]
    pub servers: Vec<String>,
    /// How many servers keep each message: 3 for a cluster of three.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub replicas: usize,
    /// The broker's certificate in PEM, for TLS.
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_ca"])]
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// The certificate of who signed it: members trust nobody else.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_ca: Option<PathBuf>,
}

/// Let a host or a user in, or give one a new key.
///
/// Writes NAME.toml with the secret key, to be handed over once: `outlast fleet join NAME.toml`. The old key of that name counts no more
/// as soon as the broker has read its configuration again (nats-server --signal reload).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast fleet add ./fleet gpu1 --host --label gpu
  outlast fleet add ./fleet alice
  outlast fleet add ./fleet guest --reach gpu1          a user who reaches only
                                                        gpu1")]
pub struct FleetAddArgs {
    /// The folder that `fleet init` has made.
    pub folder: PathBuf,
    /// The name of the host or user.
    pub name: String,
    /// It is a host.
    #[arg(long)]
    pub host: bool,
    /// A host: what it is good for. A user: which labels may be ordered from [default: all].
    #[arg(long = "label", value_name = "LABEL")]
    pub labels: Vec<String>,
    /// A user: which hosts may be reached [default: all].
    #[arg(long = "reach", value_name = "HOST", conflicts_with = "host")]
    pub reach: Vec<String>,
    /// Where to write what is to be handed over [default: NAME.toml].
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
}

/// Take the place of a host or user away.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast fleet revoke ./fleet gpu1 && nats-server --signal reload")]
pub struct FleetRevokeArgs {
    /// The folder that `fleet init` has made.
    pub folder: PathBuf,
    /// The name.
    pub name: String,
}

/// Take what the owner of a fleet has handed over.
///
/// Writes fleet.toml and the key beside config.toml.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast fleet join gpu1.toml && outlast node")]
pub struct FleetJoinArgs {
    /// What `outlast fleet add` has written.
    pub file: PathBuf,
}

/// See who is in the fleet, and how it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outlast fleet status\n  outlast fleet status --json")]
pub struct FleetStatusArgs {}

/// Fetch the whole log of a job of the fleet, through the broker.
///
/// Its host puts it into the broker's object store, without secrets, and it is gone from there after an hour. For a part of a log, or what
/// comes: outlast read, outlast logs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast fleet log gpu1/train > train.log
  outlast fleet log gpu1/train --to train.log")]
pub struct FleetLogArgs {
    /// The job, as HOST/JOB.
    pub job: String,
    /// Where to write it [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
}

/// Send a span for each job and tool call to an OpenTelemetry collector.
///
/// By OTLP over HTTP with JSON; the usual variables say where: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME,
/// OTEL_RESOURCE_ATTRIBUTES. A job with TRACEPARENT is a part of that trace. Names, codes and times are sent; command lines only with
/// --commands, output never, and of a tool call neither arguments nor answer. What was sent is noted in the home; from then on, MCP servers
/// that start note their calls there.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 outlast telemetry
  outlast telemetry --once               what has ended so far")]
pub struct TelemetryArgs {
    /// Send what has ended so far, and end.
    #[arg(long)]
    pub once: bool,
    /// With the command lines, without secrets.
    #[arg(long)]
    pub commands: bool,
}
