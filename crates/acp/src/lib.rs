//! Outlast over ACP, the protocol between editors and agents.
//!
//! - [`agent`](mod@agent): an agent whose turns are shell work. Its jobs are tool calls that stay open until they end.
//! - [`sidecar`](mod@sidecar): stands between an editor and any agent; gives the agent our tools, shows the editor its jobs, and
//!   prompts the agent when it is idle and something happened.
//! - [`tap`](mod@tap): records what two sides of a conversation say.
//!
//! This crate lets us forbid the protocol's types everywhere else. The agent uses the official SDK; sidecar and tap
//! work on lines as they are, so that what they do not understand passes unchanged.
//!
//! Architecture invariants: nothing of a job comes after its last word; never two prompts are in flight in a session
//! of the sidecar; an event is in a conversation once, whoever dies in between.

mod showing;
mod lines;
pub mod agent;
pub mod tap;
pub mod sidecar;

/// How every text begins that the sidecar puts into a conversation.
const TOLD: &str = "[outlast events ";

/// A number that nobody else has.
fn random() -> u64 {
    let mut bytes = [0; 8];
    let got = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    if got.is_err() {
        let own = u64::from(std::process::id());
        return outlast_job::clock::now_ms() ^ (own << 40);
    }
    u64::from_ne_bytes(bytes)
}
