//! What the stub is told to do.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use crate::Answer;

#[derive(Clone, Debug, Default)]
pub(crate) struct StubOptions {
    pub(crate) delay_us: u64,
    pub(crate) by_process: bool,
    pub(crate) init: Answer,
    pub(crate) devices: i32,
    pub(crate) refuse_register: bool,
    pub(crate) register_bytes_max: usize,
    pub(crate) no_read_only: bool,
    pub(crate) no_vmm: bool,
    pub(crate) no_stream_wait: bool,
    pub(crate) parts: bool,
    pub(crate) capturing: bool,
    pub(crate) capture_elsewhere: bool,
    pub(crate) hold_register: bool,
    fail: Vec<(String, u64, Answer)>,
}

#[derive(Default)]
struct State {
    options: Option<StubOptions>,
    calls: Option<HashMap<String, u64>>,
}

static STATE: Mutex<State> = Mutex::new(State { options: None, calls: None });

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(|e| e.into_inner())
}

fn parse(text: &str) -> StubOptions {
    let mut s =
        StubOptions { devices: 1, register_bytes_max: usize::MAX, ..StubOptions::default() };
    for word in text.split_whitespace() {
        let (key, value) = word.split_once('=').unwrap_or((word, "1"));
        let number = value.parse::<u64>().unwrap_or(0);
        match key {
            "delay_us" => s.delay_us = number,
            "engine" => s.by_process = value == "process",
            "init" => s.init = number as Answer,
            "devices" => s.devices = number as i32,
            "refuse_register" => s.refuse_register = number != 0,
            "register_bytes_max" => s.register_bytes_max = number as usize,
            "no_read_only" => s.no_read_only = number != 0,
            "no_vmm" => s.no_vmm = number != 0,
            "no_stream_wait" => s.no_stream_wait = number != 0,
            "parts" => s.parts = number != 0,
            "capturing" => s.capturing = number != 0,
            "capture_elsewhere" => s.capture_elsewhere = number != 0,
            "hold_register" => s.hold_register = number != 0,
            "fail" => {
                let mut parts = value.split(':');
                let name = parts.next().unwrap_or("").to_owned();
                let mut next = || parts.next().and_then(|p| p.parse().ok());
                let (nth, code) = (next().unwrap_or(1), next().unwrap_or(1));
                s.fail.push((name, nth, code as Answer));
            }
            _ => eprintln!("outlive-gpu-stub: no setting {key:?}"),
        }
    }
    s
}

pub(crate) fn set(text: &str) {
    let mut state = state();
    state.options = Some(parse(text));
    state.calls = None;
}

/// Reads the environment, unless told otherwise before.
pub(crate) fn read() {
    let mut state = state();
    if state.options.is_none() {
        state.options = Some(parse(&std::env::var("OUTLIVE_STUB").unwrap_or_default()));
    }
}

pub(crate) fn options() -> StubOptions {
    state().options.clone().unwrap_or_else(|| parse(""))
}

/// Devices there are, once initialised.
pub(crate) fn devices() -> Option<i32> {
    state().options.as_ref().map(|s| s.devices)
}

/// The answer a test wants of this call of `name`.
pub(crate) fn told_to_fail(name: &str) -> Option<Answer> {
    let mut state = state();
    let fail = &state.options.as_ref()?.fail;
    if !fail.iter().any(|(n, ..)| n == name) {
        return None;
    }
    let fail = fail.clone();
    let calls = state.calls.get_or_insert_default().entry(name.to_owned()).or_default();
    *calls += 1;
    let calls = *calls;
    fail.iter().find(|(n, nth, _)| n == name && *nth == calls).map(|(.., code)| *code)
}
