//! What goes over a keeper's socket, and what a client hands to a keeper that it starts.

use serde::{Deserialize, Serialize};

pub use outlast_protocol::wire::*;

use crate::registry::format::Info;
use crate::spec::{Handle, KeeperSpec};

/// What a client hands to a keeper it has just started, over the keeper's standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StartOrder {
    pub(crate) protocol: u32,
    pub(crate) home: std::path::PathBuf,
    pub(crate) spec: KeeperSpec,
    pub(crate) settings: crate::settings::Settings,
}

/// The keeper's one answer to it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartReply {
    /// The command is about to be started. Who does not hear this and hangs up can be sure that it is not.
    Claimed {
        handle: Handle,
    },
    Started(Box<Info>),
    Failed {
        handle: Option<Handle>,
        failure: WireFailure,
    },
}
