//! One job's life.
