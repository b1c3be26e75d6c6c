//! Arguments of `outlast host` and `outlast cp`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Name other machines, containers and pods, and see whether they can be reached.
///
/// A job on another machine is called by its host and its number or name: gpu1/17, gpu1/train. Every verb takes that. What a
/// Host line of your ssh configuration names works without being added.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast host add gpu1 ssh:me@gpu1.example.org
  outlast host test gpu1
  outlast host list
  outlast run --on gpu1 -d --name train ./train.sh
  outlast logs -f gpu1/train")]
pub struct HostArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: HostVerb,
}

/// What can be done with hosts.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a doc comment here would replace the help of the verb")]
pub enum HostVerb {
    Add(HostAddArgs),
    #[command(visible_alias = "ls")]
    List(HostListArgs),
    Test(HostTestArgs),
    #[command(visible_alias = "rm")]
    Remove(HostRemoveArgs),
}

/// Add a host, or change one.
///
/// It is reached by a program of yours: ssh, docker, podman, kubectl, or any command that gives a pipe to `outlast relay`. No password or key is stored.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast host add gpu1 ssh:me@gpu1
  outlast host add gpu1 ssh:me@gpu1 --bootstrap    also put this program there,
                                                   through the same connection
  outlast host add web docker:web-1
  outlast host add pod kubectl:default/web-0
  outlast host add box command:'ssh -J gate box outlast relay'
  outlast host add gpu2 ssh:gpu2 --label gpu --slots 2")]
pub struct HostAddArgs {
    /// What it is called from now on.
    pub name: String,
    /// How it is reached: ssh:DESTINATION, docker:NAME, podman:NAME, kubectl:NAMESPACE/POD or command:LINE.
    pub reach: String,
    /// What it is good for: `run --on LABEL` takes one of the hosts with that label.
    #[arg(long = "label", value_name = "LABEL")]
    pub labels: Vec<String>,
    /// How many jobs of a label it takes at once; more are queued there. Its own settings come first.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub slots: Option<u32>,
    /// Where outlast is there [default: ~/.local/share/outlast/bin/current/outlast, else in the PATH].
    #[arg(long, value_name = "PATH")]
    pub program: Option<String>,
    /// Put this program there, into the user's own folder, through the same connection.
    #[arg(long)]
    pub bootstrap: bool,
    /// The program to put there, if not this one: one that runs on that machine.
    #[arg(long, value_name = "FILE", requires = "bootstrap")]
    pub binary: Option<PathBuf>,
}

/// List the hosts. Nobody is contacted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outlast host list\n  outlast host list --json")]
pub struct HostListArgs {}

/// See whether a host can be reached, and which version is there.
///
/// At a terminal, ssh may ask for a passphrase, a second factor or whether to trust a key, once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outlast host test gpu1\n  outlast host test gpu1 --json")]
pub struct HostTestArgs {
    /// The host.
    pub name: String,
}

/// Forget a host. Its jobs go on.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast host remove gpu1")]
pub struct HostRemoveArgs {
    /// The host.
    pub name: String,
}

/// Copy what a job printed, or a small file, from or to another machine.
///
/// A source is a job (its output, byte for byte), a file of this machine, or HOST:PATH; a target is a file of this machine, a folder, HOST:PATH,
/// or - for standard output. Files are read and written over there by jobs of their own, `cat` and `cp`, which the policy of that host judges,
/// and which are removed afterwards. A path that does not begin with / is below the folder that the host starts in.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast cp gpu1/train train.log            all that the job printed
  outlast cp gpu1/train --stderr err.log
  outlast cp gpu1:/tmp/model.bin .
  outlast cp config.json gpu1:/srv/app/config.json
  outlast cp gpu1:/etc/hostname -")]
pub struct CpArgs {
    /// What to copy: a job, a file, HOST:PATH, or - for standard input.
    pub source: String,
    /// Where to: a file or folder, HOST:PATH, or - for standard output.
    pub target: String,
    /// Of a job on pipes: what it printed on stderr.
    #[arg(long)]
    pub stderr: bool,
}
