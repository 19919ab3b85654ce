//! The CUDA driver and its devices.

use outlive_gpu::{Cuda, ErrorKind, Info};

use super::check::Check;
use crate::os_probe::{self as os, Limit};
use crate::output::bytes;

pub(super) fn checks() -> Vec<Check> {
    match Cuda::devices() {
        Ok(devices) => devices.iter().map(check).collect(),
        Err(e) if e.kind() == ErrorKind::NoDriver => {
            vec![Check::ok("gpu", "no CUDA driver: host copies only")]
        }
        Err(e) => vec![Check::warn("gpu", e.to_string(), e.remedy())],
    }
}

fn check(info: &Info) -> Check {
    let (device, (major, minor)) = (&info.device, info.version);
    let pinned = match os::limit(Limit::LockedMemory) {
        _ if os::is_root() => "no limit".to_owned(),
        Some((u64::MAX, _)) => "no limit".to_owned(),
        Some((n, _)) => bytes(n),
        None => "unknown".to_owned(),
    };
    let (name, memory) = (&device.name, bytes(device.bytes as u64));
    let found = format!("{name}, {memory}, driver {major}.{minor}, pinned memory: {pinned}");
    let missing: Vec<_> = [
        (device.registers, "cannot register host memory: copies take the driver's own buffers"),
        (device.registers_read_only, "cannot register a subscriber's memory: reading is slower"),
        (device.shares, "cannot share its memory between processes"),
        (device.waits, "its streams cannot wait for the host"),
    ]
    .into_iter()
    .filter_map(|(has, what)| (!has).then_some(what))
    .collect();
    match missing.is_empty() {
        true => Check::ok("gpu", found),
        false => Check::warn("gpu", found, missing.join("\n")),
    }
}
