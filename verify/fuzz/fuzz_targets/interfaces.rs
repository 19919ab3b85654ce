//! The target `interfaces` for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| outlive_fuzz::interfaces::run(data));
