//! The robot's file: its core, its services.

use crate::teller::Failure;

pub(crate) const CORE: [&str; 5] = ["drives", "planner", "ik", "ethercat", "guard"];
pub(crate) const SERVICES: [&str; 4] = ["camera", "detector", "tracker", "dashboard"];

/// Whether this user may give itself a real-time priority.
pub(crate) fn may_fifo(priority: u8) -> bool {
    priority > 0
        && std::thread::spawn(move || {
            let wanted =
                outlive::rt::Realtime { priority: Some(priority + 3), ..Default::default() };
            wanted.apply().is_complete()
        })
        .join()
        .unwrap_or(false)
}

/// The processor for the core, and those for the services; where there is but one, both have it.
pub(crate) fn split(cpus: &[usize]) -> (&[usize], &[usize]) {
    match cpus {
        [services @ .., core] if !services.is_empty() => (std::slice::from_ref(core), services),
        all => (all, all),
    }
}

/// The file; cycle 0 of the core is released at `start_ns`.
pub(crate) fn robot_file(
    period_us: u64,
    start_ns: u64,
    fifo: u8,
    cpus: &[usize],
) -> Result<String, Failure> {
    let (for_core, for_services) = split(cpus);
    let program = std::env::current_exe().map_err(|e| Failure::io("find this program", &e))?;
    let program = program.display();
    let mut text = String::from("[robot]\nlogs = \"logs\"\ngrace = \"1s\"\n");
    text += "on_supervisor_death = \"kill\"\n";
    for part in CORE {
        text += &format!(
            "[process.{part}]\nkind = \"core\"\ncores = {for_core:?}\non_end = \"stay\"\n\
             ready.nodes = \"{part}\"\n\
             command = ['{program}', 'part', '{part}', '--period-us', '{period_us}', \
             '--start-ns', '{start_ns}', '--fifo', '{fifo}']\n"
        );
    }
    for part in SERVICES {
        text += &format!(
            "[process.{part}]\nnice = 5\ncores = {for_services:?}\nready.nodes = \"{part}\"\n\
             command = ['{program}', 'part', '{part}']\n\
             backoff = {{ first = \"20ms\", max = \"100ms\", limit = 1000000 }}\n"
        );
    }
    Ok(text)
}
