//! Making the MCP server known to the clients on this machine, and unknown again.

pub(crate) mod clients;
mod jsonc;
pub(crate) mod settings;
