//! The fold, given any bytes: `outlast_fuzz::fold` says what must hold.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| outlast_fuzz::fold(data));
