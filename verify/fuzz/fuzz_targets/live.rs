//! The target `live` for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| outlive_fuzz::live::run(data));
