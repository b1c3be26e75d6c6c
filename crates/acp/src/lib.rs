//! Outlast over ACP, the protocol between editors and agents.
//!
//! - [`agent`](mod@agent): an agent whose turns are shell work. Its jobs are tool calls that stay open until
//!   they end.
//! - [`sidecar`](mod@sidecar): sits between an editor and any agent; gives the agent our tools, shows the
//!   editor its jobs, and prompts the agent when it is idle and something happened.
//! - [`tap`](mod@tap): records both sides of a conversation.
//!
//! The protocol's types appear in this crate only. The agent uses the official SDK; sidecar and tap work on
//! raw lines, so that what they do not understand passes unchanged.
//!
//! Architecture invariants: no update of a job comes after its final one; a session of the sidecar never has
//! two prompts in flight; an event appears in a conversation exactly once, even if a process dies in between.

mod folder;
mod showing;
mod shown;
mod lines;
pub mod agent;
pub mod tap;
pub mod sidecar;

/// The start of every text that the sidecar puts into a conversation.
const EVENTS_MARK: &str = "[outlast events ";

/// A random number, to be unique.
fn random() -> u64 {
    let mut bytes = [0; 8];
    if outlast_job::system::random(&mut bytes).is_err() {
        let own = u64::from(std::process::id());
        return outlast_job::clock::now_ms() ^ (own << 40);
    }
    u64::from_ne_bytes(bytes)
}
