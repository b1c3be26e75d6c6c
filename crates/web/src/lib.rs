//! The web view: which job needs somebody, its terminal, its past, and what is asked, in a browser.
//!
//! It is a door like the others: it asks hosts the [closed set of requests](outlast_protocol::request), and the gate before it
//! acts. What it keeps of its own is in a few small files in the home ([`store`]), so it can be killed at any time.
//!
//! Follow a request: [`server`] (connections and their limits) → [`guard`] (who is it, and does the browser say that our own page
//! asks) → [`api`] or [`socket`] → `outlast_job`. Follow a change: a keeper → [`feed`] (the list) or [`socket`] (screens) → the page.

mod api;
mod assets;
mod cards;
mod feed;
mod guard;
mod inbox;
mod limits;
mod metrics;
mod options;
mod qr;
mod rights;
mod server;
mod socket;
mod store;
mod timeline;

pub use assets::terminal_engine;
pub use options::{Options, Pictures, Ready};
pub use qr::in_terminal as qr_code;
pub use server::{serve, ticket_for_running};
pub use store::{Share, Store};
