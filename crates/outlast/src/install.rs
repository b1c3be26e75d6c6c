//! Making the MCP server known to the clients on this machine, and unknown again.

pub(crate) mod clients;
pub(crate) mod hooks;
mod jsonc;
pub(crate) mod plugin;
pub(crate) mod settings;
