//! The `outlast` binary.

fn main() {}
