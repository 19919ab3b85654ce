//! The target `msgpack` for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| outlive_fuzz::msgpack::run(data));
