//! What a list says of a job, as the [index](super::index) keeps it too.

pub use outlast_protocol::request::Summary;
