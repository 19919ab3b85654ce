//! Kernel, memory and limits of this process.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use super::check::Check;
use crate::os_probe::{self as os, Feature, Limit};
use crate::output::bytes;

pub(super) fn checks() -> Vec<Check> {
    let mut all = vec![kernel(), cores()];
    all.extend([robust_list(), ofd_locks(), o_tmpfile(), futex_waitv()]);
    all.extend([cgroup(), open_files(), rtprio(), memlock(), remove_ipc()]);
    all
}

fn kernel() -> Check {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let mut numbers = release.split(['.', '-']).map_while(|n| n.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match version {
        v if v >= (5, 10) => Check::ok("kernel", format!("Linux {release}")),
        _ => Check::warn(
            "kernel",
            format!("Linux {release}"),
            "older than any tested: update, or run the tests here (make test)",
        ),
    }
}

fn cores() -> Check {
    match std::thread::available_parallelism().map_or(1, |n| n.get()) {
        1 => Check::warn(
            "cores",
            "1 core for this process",
            "publisher and subscriber take turns: give the process more cores (taskset, cpuset)",
        ),
        n => Check::ok("cores", format!("{n} cores for this process")),
    }
}

fn robust_list() -> Check {
    match os::has(Feature::RobustList) {
        true => Check::ok("robust-list", "the kernel marks the words of dead threads"),
        false => Check::bad(
            "robust-list",
            "get_robust_list is blocked: no lock can be taken, killed sleepers wake others late",
            "allow get_robust_list and set_robust_list in the container's seccomp profile",
        ),
    }
}

fn ofd_locks() -> Check {
    match os::has(Feature::OfdLocks) {
        true => Check::ok("ofd-locks", "file locks belong to open files"),
        false => Check::bad(
            "ofd-locks",
            "F_OFD_SETLK is blocked: dead processes cannot be told from live ones",
            "use Linux 3.15 or later, and allow fcntl in the container's seccomp profile",
        ),
    }
}

fn o_tmpfile() -> Check {
    match os::has(Feature::TmpFile) {
        true => Check::ok("o-tmpfile", "files appear complete"),
        false => Check::warn(
            "o-tmpfile",
            "no O_TMPFILE on /dev/shm: unfinished files have names until somebody cleans",
            "mount a tmpfs at /dev/shm, and /proc in the container",
        ),
    }
}

fn futex_waitv() -> Check {
    match os::has(Feature::FutexWaitv) {
        true => Check::ok("futex-waitv", "sleepers wait for many publishers without polling"),
        false => Check::warn(
            "futex-waitv",
            "no futex_waitv: waiting on several publishers polls every 2 ms",
            "use Linux 5.16 or later; in a container allow futex_waitv in the seccomp profile",
        ),
    }
}

/// Shared memory counts for the group whose process touched it first.
fn cgroup() -> Check {
    let own = read("/proc/self/cgroup").unwrap_or_default();
    let path = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let v2 = Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/'));
    let number = |file: &str| {
        let text = fs::read_to_string(v2.join(file)).ok();
        let text = text.or_else(|| read(&format!("/sys/fs/cgroup/{file}")))?;
        text.trim().parse::<u64>().ok()
    };
    let v1 = |file: &str| {
        let text = read(&format!("/sys/fs/cgroup/memory/{file}"))?;
        // What is no limit is nearly 2^63.
        text.trim().parse::<u64>().ok().filter(|n| *n < 1 << 60)
    };
    let limit = number("memory.max").or_else(|| v1("memory.limit_in_bytes"));
    let Some(limit) = limit else { return Check::ok("cgroup", "no memory limit") };
    let used = number("memory.current").or_else(|| v1("memory.usage_in_bytes")).unwrap_or(0);
    let found = format!("{} of {} used", bytes(used), bytes(limit));
    if used > limit / 10 * 9 {
        let remedy = "shared memory counts: at the limit the kernel kills. Raise the limit \
                      (docker run --memory), or bound publishers (memory_bytes_max)";
        return Check::warn("cgroup", found, remedy);
    }
    Check::ok("cgroup", found)
}

fn open_files() -> Check {
    let Some((soft, hard)) = os::limit(Limit::OpenFiles) else {
        return Check::warn("open-files", "unknown", "see 'ulimit -n'");
    };
    let found = format!("{} open files", amount(soft));
    match soft {
        n if n >= 4096 => Check::ok("open-files", found),
        n => {
            let remedy = format!(
                "for hundreds of topics or nodes: 'ulimit -n {}', or LimitNOFILE= in the unit",
                hard.min(65536)
            );
            if n < 256 {
                Check::bad("open-files", found, remedy)
            } else {
                Check::warn("open-files", found, remedy)
            }
        }
    }
}

fn rtprio() -> Check {
    match os::limit(Limit::RtPriority) {
        Some((n, _)) if n > 0 => {
            Check::ok("rtprio", format!("real-time priority up to {}", amount(n)))
        }
        _ if os::is_root() => Check::ok("rtprio", "root may use any real-time priority"),
        _ => Check::warn(
            "rtprio",
            "no real-time priority for this user",
            "for control loops: '@robot - rtprio 80' in /etc/security/limits.d/, or LimitRTPRIO=80",
        ),
    }
}

fn memlock() -> Check {
    match os::limit(Limit::LockedMemory) {
        Some((n, _)) if n >= 256 << 20 => {
            Check::ok("memlock", format!("{} can be locked", size(n)))
        }
        _ if os::is_root() => Check::ok("memlock", "root may lock any amount"),
        Some((n, _)) => Check::warn(
            "memlock",
            format!("{} can be locked", size(n)),
            "for control loops: '@robot - memlock unlimited' in /etc/security/limits.d/, or \
             LimitMEMLOCK=infinity",
        ),
        None => Check::warn("memlock", "unknown", "see 'ulimit -l'"),
    }
}

/// What systemd's logind takes `key` to be: the drop-ins of all directories in the order of their
/// names, one in /etc in place of one of the same name elsewhere, all of them after the main file.
fn logind_setting(root: &Path, key: &str) -> Option<String> {
    let folders = ["usr/lib", "usr/local/lib", "run", "etc"].map(|d| root.join(d).join("systemd"));
    let main = folders.iter().rev().map(|d| d.join("logind.conf")).find(|f| f.exists());
    let mut dropped = BTreeMap::new();
    for folder in &folders {
        let entries = fs::read_dir(folder.join("logind.conf.d")).into_iter().flatten().flatten();
        let files =
            entries.map(|e| e.path()).filter(|f| f.extension().is_some_and(|e| e == "conf"));
        dropped.extend(files.map(|f| (f.file_name().map(OsStr::to_owned), f)));
    }
    let mut value = None;
    for file in main.into_iter().chain(dropped.into_values()) {
        let text = fs::read_to_string(file).unwrap_or_default();
        let set = text.lines().filter_map(|l| l.trim().strip_prefix(key));
        value = set.map(|v| v.trim().to_lowercase()).next_back().or(value);
    }
    value
}

/// With RemoveIPC=yes, the default, logging out removes the user's files in /dev/shm.
fn remove_ipc() -> Check {
    if !Path::new("/run/systemd/system").exists() {
        return Check::ok("remove-ipc", "no systemd: nobody removes files at log-out");
    }
    let value = logind_setting(Path::new("/"), "RemoveIPC=");
    let off = value.is_some_and(|v| ["no", "false", "0", "off"].contains(&v.as_str()));
    match off || os::is_system_user() {
        true => Check::ok("remove-ipc", "shared memory stays when its user logs out"),
        false => Check::warn(
            "remove-ipc",
            "shared memory goes when its user's last session ends, also under running services",
            "RemoveIPC=no in /etc/systemd/logind.conf, or run services as a system user",
        ),
    }
}

fn amount(n: u64) -> String {
    if n == u64::MAX { "any number of".into() } else { n.to_string() }
}

fn size(n: u64) -> String {
    if n == u64::MAX { "all memory".into() } else { bytes(n) }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;

    #[test]
    fn drop_ins_of_logind_count_by_their_names_not_their_folders() {
        let stage = Stage::set("doctor", 0).unwrap();
        let root = stage.dir();
        let write = |file: &str, value: &str| {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("[Login]\n#RemoveIPC=old\nRemoveIPC={value}\n")).unwrap();
        };
        let told = || logind_setting(root, "RemoveIPC=");
        assert_eq!(told(), None);
        write("usr/lib/systemd/logind.conf", "vendor");
        assert_eq!(told().as_deref(), Some("vendor"));
        write("etc/systemd/logind.conf", "main");
        assert_eq!(told().as_deref(), Some("main"));
        write("etc/systemd/logind.conf.d/10-a.conf", "early");
        write("usr/lib/systemd/logind.conf.d/99-x.conf", "late");
        write("etc/systemd/logind.conf.d/99-x.conf.off", "off");
        assert_eq!(told().as_deref(), Some("late"));
        write("run/systemd/logind.conf.d/99-x.conf", "Masked");
        assert_eq!(told().as_deref(), Some("masked"));
    }
}
