//! The MCP server: Outlast's verbs as tools for any agent.
//!
//! This crate lets us forbid MCP types everywhere else, and keeps rmcp's generic service loop out of the binary's
//! rebuilds. A call goes `server` → `calls` (arguments become an order) → `engine` (blocks, knows no MCP) →
//! `answer` (facts and words) and back. `profiles` are other names for the same tools.
//!
//! Architecture invariants: the engine keeps nothing between calls but what is on disk; every blocking call ends in
//! time and by cancellation; a cancelled or broken call never ends a job, and never moves a cursor.

mod options;
mod arguments;
mod headless;
mod words;
mod cursors;
mod printed;
mod screen_view;
mod answer;
mod engine;
mod tools;
mod app;
mod profiles;
mod call_handle;
mod call_log;
mod calls;
mod session;
mod binding;
mod confirm;
mod approve;
mod resources;
mod subscriptions;
mod tasks;
pub mod extras;
#[cfg(feature = "conformance")]
mod conformance;
mod sent;
mod answering;
mod server;
mod stdio;
mod sockets;
mod unreadable;
mod http;
mod connections;
mod http_sessions;

pub use engine::news::unseen;
pub use http::serve_http;
pub use options::{LONGEST_CALL, Options, PROGRESS_EVERY, Profile};
pub use outlast_policy::Decision;
pub use stdio::serve_stdio;
pub use words::Words;
