//! One job's life: registry, log, keeper and client.
pub mod clock;
pub mod failure;
pub mod lifecycle;
pub mod registry;
pub mod session;
pub mod settings;
pub mod spec;
