//! The MCP server as a client sees it: a real server process on a sealed home, spoken to in JSON-RPC.

mod client;
mod eras;
mod tools;
mod answers;
mod cursors;
mod never_hang;
mod ownership;
mod resources;
mod profiles;
mod http;
