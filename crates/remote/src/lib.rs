//! Jobs on other machines. The truth stays on the host: a far machine is only a pipe to it.
//!
//! [`relay::serve`] answers the [closed set of requests](outlast_protocol::request) over a pipe. [`link::RelayLink`] is the other end:
//! it runs whatever gives such a pipe (`ssh`, `docker exec`, any command), and makes it anew when it is cut. [`hosts`] are the machines that
//! the user has named. The frames between them are in [`frame`] and [`message`]; `docs/formats/relay.md` describes them.

pub mod bootstrap;
pub mod fleet;
pub mod frame;
pub mod hosts;
pub mod link;
pub mod message;
pub mod relay;
