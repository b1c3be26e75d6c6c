//! Names of keys, given any bytes: `outlast_fuzz::keys` says what must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| outlast_fuzz::keys(data));
