//! Help for tests.
