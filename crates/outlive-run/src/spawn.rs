//! Starts a process: a session of its own, then everything that its section asks for.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::process::{
    Gid, Pid, Resource, Rlimit, Signal, Uid, getppid, getrlimit, kill_process_group,
    set_parent_process_death_signal, setpriority_process, setrlimit, setsid,
};
use rustix::thread::{
    CpuSet, sched_setaffinity, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use crate::cgroup::Cgroup;
use crate::config::{InheritEnv, Kind, Orphan, ProcessSpec};
use crate::os;
use crate::proc::{Identity, MARK_DIR, MARK_FORM, MARK_NAME, fingerprint};

/// Where a process of another user looks for programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What it has of the supervisor's environment without being asked.
const KEPT: [&str; 2] = ["LANG", "TZ"];
/// No core dump: a process that is being dumped is neither dead nor alive for as long as that
/// takes. 0 would still hand it to a program (`core_pattern` with `|`); 1 is what the kernel takes
/// for none at all.
const NO_CORE: u64 = 1;

/// What is set up in the child, in this order. What needs rights comes before the change of user,
/// and the wish to die with the supervisor last: a change of user ends that wish.
const STEPS: [&str; 8] = [
    "begin a session",
    "pin it to its cores",
    "set its niceness",
    "give it SCHED_FIFO (raise the limit rtprio, or grant CAP_SYS_NICE)",
    "bound its memory",
    "become its user (only root can)",
    "tie it to the supervisor's life",
    "run its program",
];

/// Where a started process finds its supervisor and its domain.
#[derive(Clone, Debug)]
pub(crate) struct SpawnEnv {
    /// The supervisor's directory, for the mark.
    pub(crate) dir: String,
    /// `OUTLIVE_DIR`.
    pub(crate) root: String,
    /// `OUTLIVE_DOMAIN`.
    pub(crate) domain: String,
}

/// What a process is made of: another form means that it has to start again. The same from every
/// compiler: a supervisor may be replaced by one of another build.
pub(crate) fn form(spec: &ProcessSpec) -> u64 {
    let ProcessSpec { command, dir, env, cores, fifo, nice, memory, address_space, user, .. } =
        spec;
    let limits = (cores, fifo, nice, memory, address_space, spec.core_dumps);
    let ends = (spec.on_supervisor_death as u8, spec.stop_signal, spec.kind == Kind::Core);
    let text = format!("{:?}", ((command, dir, env, &spec.inherit_env), limits, user, ends));
    fingerprint(text.as_bytes())
}

/// Starts the process, both outputs into the pipe `log`; a descriptor that can be read once it has
/// ended comes with it. After an error nothing runs.
pub(crate) fn spawn(
    spec: &ProcessSpec,
    log: &File,
    cgroup: Option<&Cgroup>,
    env: &SpawnEnv,
) -> io::Result<(Identity, OwnedFd)> {
    start(spec, log, cgroup, env).map_err(|e| match is_want(&e) {
        true => {
            let what = "start a process (raise ulimit -u, ulimit -n or pids.max)";
            io::Error::new(e.kind(), format!("cannot {what}: {e}"))
        }
        false => e,
    })
}

fn start(
    spec: &ProcessSpec,
    log: &File,
    cgroup: Option<&Cgroup>,
    env: &SpawnEnv,
) -> io::Result<(Identity, OwnedFd)> {
    let mut command = Command::new(&spec.command[0]);
    command.args(&spec.command[1..]).current_dir(&spec.dir);
    if let InheritEnv::Named(names) = &spec.inherit_env {
        command.env_clear().env("PATH", PATH);
        let kept = KEPT.into_iter().chain(names.iter().map(String::as_str));
        command.envs(kept.filter_map(|name| Some((name, std::env::var_os(name)?))));
    }
    if let Some(user) = &spec.user {
        // Not those of root.
        command.env("HOME", &user.home).env("USER", &user.name).env("LOGNAME", &user.name);
    }
    command.env("OUTLIVE_DOMAIN", &env.domain).envs(&spec.env);
    // They are for the supervisor alone.
    for own in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID"] {
        command.env_remove(own);
    }
    command.env("OUTLIVE_DIR", &env.root);
    command.env(MARK_DIR, &env.dir).env(MARK_NAME, &spec.name);
    command.env(MARK_FORM, form(spec).to_string());
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
    if let Some(user) = &spec.user {
        // So that it can open /dev/stdout. Only root can, as only root can become another user.
        let _ = std::os::unix::fs::fchown(log, Some(user.uid), Some(user.gid));
    }

    let (mut told, tells) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map(|(read, write)| (File::from(read), write))?;
    let supervisor = rustix::process::getpid();
    let mut cores = CpuSet::new();
    spec.cores.iter().for_each(|core| cores.set(*core));
    let pinned = !spec.cores.is_empty();
    let (nice, fifo, user) = (spec.nice, spec.fifo, spec.user.clone());
    let groups: Vec<Gid> =
        user.iter().flat_map(|user| user.groups.iter().map(|g| Gid::from_raw(*g))).collect();
    let user = user.map(|user| (user.uid, user.gid));
    let core_dumps = spec.core_dumps;
    let procs = cgroup.and_then(|group| group.procs().ok());
    let limits = [(Resource::Data, spec.memory), (Resource::As, spec.address_space)];
    let death = match spec.on_supervisor_death {
        Orphan::Adopt => None,
        Orphan::Stop => Signal::from_named_raw(spec.stop_signal),
        Orphan::Kill => Some(Signal::KILL),
    };
    os::in_child(&mut command, move || {
        let step = |n: u8| rustix::io::write(&tells, &[n]).map(drop);
        step(0)?;
        setsid()?;
        if let Some(procs) = &procs {
            // Without it the marks have to do.
            let _ = rustix::io::write(procs, b"0");
        }
        step(1)?;
        if pinned {
            sched_setaffinity(None, &cores)?;
        }
        step(2)?;
        if let Some(nice) = nice {
            setpriority_process(None, i32::from(nice))?;
        }
        step(3)?;
        if let Some(priority) = fifo {
            os::fifo(priority)?;
        }
        step(4)?;
        for (resource, bytes) in limits {
            if bytes.is_some() {
                setrlimit(resource, Rlimit { current: bytes, maximum: bytes })?;
            }
        }
        let most = getrlimit(Resource::Core).maximum;
        let current = if core_dumps { most } else { Some(NO_CORE.min(most.unwrap_or(NO_CORE))) };
        setrlimit(Resource::Core, Rlimit { current, maximum: most })?;
        step(5)?;
        if let Some((uid, gid)) = user {
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            set_thread_groups(&groups)?;
            set_thread_res_gid(gid, gid, gid)?;
            set_thread_res_uid(uid, uid, uid)?;
        }
        step(6)?;
        if let Some(signal) = death {
            // Until its program begins the supervisor's handler would take it: lost.
            os::default_action(signal);
        }
        set_parent_process_death_signal(death)?;
        // It died before the kernel knew the wish, or before the marks are readable.
        if getppid() != Some(supervisor) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        step(7)?;
        Ok(())
    });
    match command.spawn() {
        Ok(child) => watched(child, |pid| {
            // Not reaped before we reap it, so this is that very process.
            let identity = Identity::of_child(pid)?;
            Ok((identity, identity.open_child()?))
        }),
        Err(e) => {
            drop(command);
            let mut steps = Vec::new();
            let _ = told.read_to_end(&mut steps);
            let step = steps.last().and_then(|n| STEPS.get(usize::from(*n)));
            let what = match step {
                Some(&"run its program") => format!("run {}", spec.command[0]),
                Some(step) => (*step).to_owned(),
                // Before the child was there.
                None if is_want(&e) => return Err(e),
                None => format!("enter {}", spec.dir.display()),
            };
            Err(io::Error::new(e.kind(), format!("cannot {what}: {e}")))
        }
    }
}

/// Whether there was no process, descriptor or memory to be had.
fn is_want(e: &io::Error) -> bool {
    let wants = [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE];
    e.raw_os_error().is_some_and(|number| wants.contains(&number))
}

/// What `look` finds out about a child. One of which nothing can be found out, as without a free
/// descriptor, is ended: else it would run on beside the next one, and nobody would know it.
fn watched<T>(mut child: Child, look: impl FnOnce(i32) -> io::Result<T>) -> io::Result<T> {
    let pid = child.id() as i32;
    look(pid).inspect_err(|_| {
        // Neither takes a descriptor. It leads its group, and keeps its number until it is reaped.
        let _ = Pid::from_raw(pid).map(|pid| kill_process_group(pid, Signal::KILL));
        let _ = child.kill();
        let _ = child.wait();
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The supervisor had died, its handler took the signal that says so, and a core moved on.
    #[test]
    fn a_signal_that_comes_before_the_program_begins_is_not_the_supervisors() {
        use std::os::unix::process::ExitStatusExt;

        let taken = std::sync::Arc::default();
        signal_hook::flag::register(libc::SIGUSR1, taken).unwrap();
        let mut command = Command::new("true");
        os::in_child(&mut command, || {
            let signal = Signal::USR1;
            os::default_action(signal);
            rustix::process::kill_process(rustix::process::getpid(), signal)?;
            Ok(())
        });
        let ended = command.spawn().unwrap().wait().unwrap();
        assert_eq!(ended.signal(), Some(libc::SIGUSR1));
    }

    /// It ran on, and a second one was started beside it.
    #[test]
    fn a_process_that_cannot_be_watched_is_ended() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep infinity & echo $!; wait"]).stdout(Stdio::piped());
        os::in_child(&mut command, || setsid().map(drop).map_err(io::Error::from));
        let mut child = command.spawn().unwrap();
        let mut says = child.stdout.take().unwrap();
        let mut line = [0; 20];
        let n = says.read(&mut line).unwrap();
        let helper: i32 = str::from_utf8(&line[..n]).unwrap().trim().parse().unwrap();
        let (pid, helper) = (child.id() as i32, Identity::of(helper).unwrap());
        let refused = watched(child, |_| Err::<(), _>(io::ErrorKind::OutOfMemory.into()));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        assert_eq!(Identity::of(pid), None, "ended and reaped");
        // It was killed; that it has ended shows a moment later.
        let mut looks = 0..2000;
        while helper.is_alive() && looks.next().is_some() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(!helper.is_alive());
    }
}
