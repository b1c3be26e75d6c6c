//! Arguments of `config`.

use clap::{Args, Subcommand};

/// See and change your settings.
///
/// Without more words, lists every setting with its value and where it comes from.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast config
  outlast config get retention.age
  outlast config set kill.grace_at_terminal 30s
  outlast config unset kill.grace_at_terminal")]
pub struct ConfigArgs {
    /// What to do [default: list].
    #[command(subcommand)]
    pub verb: Option<ConfigVerb>,
}

/// The verbs of `config`.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a doc comment here would replace the help of the verb")]
pub enum ConfigVerb {
    List(ConfigListArgs),
    Get(ConfigGetArgs),
    Set(ConfigSetArgs),
    Unset(ConfigUnsetArgs),
    Path(ConfigPathArgs),
}

/// List every setting, its value, and whether that is the default or comes from your file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outlast config list\n  outlast config list --json")]
pub struct ConfigListArgs {}

/// Print the value of one setting.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast config get retention.jobs")]
pub struct ConfigGetArgs {
    /// Which, as in `retention.age`.
    pub key: String,
}

/// Change one setting in your file. Everything else in it stays as it is, comments too.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast config set retention.age 14d
  outlast config set retention.jobs 200
  outlast config set secrets.env '[\"ACME_*\"]'")]
pub struct ConfigSetArgs {
    /// Which, as in `retention.age`.
    pub key: String,
    /// Its new value; lists and quoted texts as in TOML.
    #[arg(allow_hyphen_values = true)]
    pub value: String,
}

/// Go back to the default of one setting.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast config unset retention.age")]
pub struct ConfigUnsetArgs {
    /// Which, as in `retention.age`.
    pub key: String,
}

/// Print where your settings are.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  $EDITOR \"$(outlast config path)\"")]
pub struct ConfigPathArgs {}
