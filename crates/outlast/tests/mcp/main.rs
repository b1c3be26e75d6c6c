//! The MCP server as a client sees it: a real server process on a sealed home, spoken to in JSON-RPC.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod app;
mod client;
mod eras;
mod tools;
mod short_ways;
mod answers;
mod cursors;
mod news;
mod never_hang;
mod policy;
mod gate;
mod ownership;
mod conversations;
mod resources;
mod shells;
mod tasks;
mod profiles;
mod http;
mod crowded;
mod node;
mod masking;
mod out;
mod outcomes;
mod walls;
mod closed_files;
mod exec_guard;
mod unreadable;
