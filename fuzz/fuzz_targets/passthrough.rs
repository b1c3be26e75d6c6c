//! The filter for a person's terminal, given any bytes: `outlast_fuzz::passthrough` says what must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| outlast_fuzz::passthrough(data));
