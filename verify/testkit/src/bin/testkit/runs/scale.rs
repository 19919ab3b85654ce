//! What a thousand topics, 64 subscribers of one topic and 200 nodes cost: mappings, descriptors,
//! start-up time, memory. Counts have bounds and fail the run; times are only shown. Quick: a fifth
//! of everything.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use outlive::{Domain, Node, Publisher, Subscriber, WaitSet, Waitable};
use testkit::process::{Child, wait_until};
use testkit::{TempDomain, fork_child};

use crate::args::Quick;

const LONG: Duration = Duration::from_secs(60);

/// Its options.
#[derive(clap::Args, Debug)]
pub(crate) struct ScaleArgs {
    #[command(flatten)]
    quick: Quick,
    /// Only these
    #[arg(value_parser = ["topics", "subscribers", "nodes"])]
    parts: Vec<String>,
}

type Failure = Box<dyn std::error::Error>;
type Outcome<T> = Result<T, Failure>;

/// What this process holds.
#[derive(Clone, Copy, Default)]
struct Use {
    mappings: usize,
    descriptors: usize,
    /// Private memory and page tables, KiB.
    memory_kib: usize,
}

impl Use {
    fn now() -> Outcome<Self> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let field = |name: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(name));
            line.and_then(|l| l.split_whitespace().nth(0)?.parse::<usize>().ok()).unwrap_or(0)
        };
        Ok(Self {
            mappings: std::fs::read_to_string("/proc/self/maps")?.lines().count(),
            // One is that of the directory being read.
            descriptors: std::fs::read_dir("/proc/self/fd")?.count() - 1,
            memory_kib: field("RssAnon:") + field("VmPTE:"),
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            mappings: self.mappings.saturating_sub(before.mappings),
            descriptors: self.descriptors.saturating_sub(before.descriptors),
            memory_kib: self.memory_kib.saturating_sub(before.memory_kib),
        }
    }
}

/// Bytes of the RAM disk below `dir`, KiB.
fn disk_kib(dir: &Path) -> usize {
    use std::os::unix::fs::MetadataExt;
    let paths = testkit::temp::listing(dir);
    let blocks =
        paths.iter().filter_map(|p| dir.join(p).symlink_metadata().ok()).map(|m| m.blocks());
    blocks.sum::<u64>() as usize / 2
}

/// One line of the table: totals and what one item costs.
struct Row {
    what: String,
    items: usize,
    used: Use,
    disk_kib: usize,
    first_us: f64,
    last_us: f64,
}

impl Row {
    fn print(&self) {
        let each = |n: usize| n as f64 / self.items as f64;
        println!(
            "scale: {:<34} {:>6} {:>9.2} {:>9.2} {:>10.1} {:>10.1} {:>10.1} {:>10.1}",
            self.what,
            self.items,
            each(self.used.mappings),
            each(self.used.descriptors),
            each(self.used.memory_kib),
            each(self.disk_kib),
            self.first_us,
            self.last_us,
        );
    }

    /// Bounds on counts for each item, and on what they are in all.
    fn demand(&self, mappings: f64, descriptors: f64, disk_kib: f64) -> Outcome<()> {
        let check = |what: &str, is: usize, most: f64| {
            let most = most * self.items as f64;
            if is as f64 <= most {
                Ok(())
            } else {
                Err(format!("{}: {is} {what}, at most {most}", self.what))
            }
        };
        check("mappings", self.used.mappings, mappings)?;
        check("descriptors", self.used.descriptors, descriptors)?;
        check("KiB of the RAM disk", self.disk_kib, disk_kib)?;
        Ok(())
    }
}

/// Makes `n` things; returns them with the mean time of the first and of the last tenth, us.
fn timed<T>(n: usize, mut make: impl FnMut(usize) -> Outcome<T>) -> Outcome<(Vec<T>, f64, f64)> {
    let (mut made, mut times) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for i in 0..n {
        let start = Instant::now();
        made.push(make(i)?);
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    let tenth = (n / 10).max(1);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    Ok((made, mean(&times[..tenth]), mean(&times[n - tenth..])))
}

fn node(root: &Path, name: &str) -> Outcome<Node> {
    Ok(Node::builder().root(root).name(name).open()?)
}

/// One process with a publisher and a subscriber on each of many topics.
fn topics(root: &Path, n: usize) -> Outcome<()> {
    let node = node(root, "many-topics")?;
    let before = Use::now()?;
    let (mut ports, first_us, last_us) = timed(n, |i| {
        let topic = || node.topic::<[u64; 64]>(&format!("/many/{i}"));
        let publisher = topic()?.depth(4).publisher()?;
        let subscriber = topic()?.depth(4).subscriber()?;
        Ok((publisher, subscriber))
    })?;
    let opened = Use::now()?.since(before);
    let what = "topic, 1 publisher, 1 subscriber".into();
    let row = Row { what, items: n, used: opened, disk_kib: disk_kib(root), first_us, last_us };
    row.print();
    row.demand(6.0, 0.1, 48.0)?;
    // The first message: chunks, and what a subscriber maps of them.
    let (_, first_us, last_us) = timed(n, |i| {
        let (publisher, subscriber) = &mut ports[i];
        publisher.publish(&[i as u64; 64])?;
        let got = subscriber.receive()?.ok_or("no message")?;
        if got[0] == i as u64 { Ok(()) } else { Err("another message".into()) }
    })?;
    let used = Use::now()?.since(before);
    let what = "the same after a message of 512 B".into();
    let row = Row { what, items: n, used, disk_kib: disk_kib(root), first_us, last_us };
    row.print();
    row.demand(8.0, 0.1, 64.0)?;
    wait_for_all(&mut ports)
}

/// Both ports of a topic.
type Ports = (Publisher<[u64; 64]>, Subscriber<[u64; 64]>);

/// A wait set over all subscribers finds the one with a message, asleep on a doorbell.
fn wait_for_all(ports: &mut [Ports]) -> Outcome<()> {
    let before = Use::now()?;
    let mut set = WaitSet::new();
    for (_, subscriber) in ports.iter_mut() {
        while subscriber.next_event().is_some() {}
    }
    let n = ports.len();
    let (_, first_us, last_us) = timed(n.min(200), |i| {
        ports[i].0.publish(&[7; 64])?;
        let mut list: Vec<_> = ports.iter_mut().map(|(_, s)| s as &mut dyn Waitable).collect();
        let ready: Vec<_> = set.wait(&mut list, LONG)?.collect();
        if ready != [i] {
            return Err(format!("{ready:?} are ready instead of {i}").into());
        }
        ports[i].1.receive()?.ok_or("no message")?;
        Ok(())
    })?;
    let used = Use::now()?.since(before);
    let what = format!("look at a wait set of {n}");
    Row { what, items: 1, used, disk_kib: 0, first_us, last_us }.print();
    Ok(())
}

/// Processes with a subscriber each on one topic.
fn subscribers(root: &Path, n: usize) -> Outcome<()> {
    let publishing = node(root, "publisher")?;
    let publisher = publishing.topic::<u64>("/one")?.publisher()?;
    let before = Use::now()?;
    let report = |i: usize| root.with_extension(format!("report-{i}"));
    let join = |i: usize| -> Outcome<()> {
        let node = node(root, &format!("subscriber-{i}"))?;
        let before = Use::now()?;
        let start = Instant::now();
        let mut subscriber = node.topic::<u64>("/one")?.subscriber()?;
        let us = start.elapsed().as_secs_f64() * 1e6;
        let used = Use::now()?.since(before);
        std::fs::write(report(i), format!("{us} {} {}", used.mappings, used.descriptors))?;
        loop {
            if subscriber.receive_timeout(LONG)?.is_some_and(|sample| *sample == u64::MAX) {
                return Ok(());
            }
        }
    };
    let mut children: Vec<Child> = Vec::new();
    let (mut worst, mut times) = (Use::default(), Vec::new());
    for i in 0..n {
        children.push(fork_child(|| i32::from(join(i).is_err()))?);
        let read = || std::fs::read_to_string(report(i)).unwrap_or_default();
        if !wait_until(LONG, || read().split(' ').count() == 3) {
            return Err(format!("subscriber {i} does not join").into());
        }
        let numbers: Vec<f64> = read().split(' ').filter_map(|w| w.parse().ok()).collect();
        std::fs::remove_file(report(i))?;
        times.push(numbers[0]);
        worst.mappings = worst.mappings.max(numbers[1] as usize);
        worst.descriptors = worst.descriptors.max(numbers[2] as usize);
    }
    let what = "subscriber process of one topic".into();
    let row =
        Row { what, items: 1, used: worst, disk_kib: 0, first_us: times[0], last_us: times[n - 1] };
    row.print();
    row.demand(8.0, 3.0, 0.0)?;
    let (_, first_us, last_us) = timed(n, |_| Ok(publisher.publish(&1)?))?;
    let used = Use::now()?.since(before);
    let what = format!("publisher, for each of {n}");
    let row = Row { what, items: n, used, disk_kib: disk_kib(root), first_us, last_us };
    row.print();
    row.demand(1.2, 1.2, 56.0)?;
    if publisher.subscribers()? != n {
        return Err(format!("{} of {n} subscribers are known", publisher.subscribers()?).into());
    }
    publisher.publish(&u64::MAX)?;
    for child in &mut children {
        if !child.wait_timeout(LONG).is_some_and(|exit| exit.success()) {
            return Err("a subscriber failed".into());
        }
    }
    Ok(())
}

/// Nodes of one domain, in processes of their own, all on one topic and all watched.
fn nodes(root: &Path, n: usize) -> Outcome<()> {
    let watching = node(root, "watcher")?;
    let mut subscriber = watching.topic::<u64>("/all")?.subscriber()?;
    let before = Use::now()?;
    let (mut children, first_us, last_us) = timed(n, |i| {
        let body = || {
            let run = || -> Outcome<()> {
                let _node = node(root, &format!("node-{i}"))?;
                std::fs::write(root.with_extension(format!("up-{i}")), [])?;
                loop {
                    std::thread::sleep(LONG);
                }
            };
            i32::from(run().is_err())
        };
        let child = fork_child(body)?;
        let up = root.with_extension(format!("up-{i}"));
        if !wait_until(LONG, || up.exists()) {
            return Err(format!("node {i} does not open").into());
        }
        std::fs::remove_file(up)?;
        Ok(child)
    })?;
    let domain = Domain::of(&Node::builder().root(root))?;
    let listed = domain.nodes()?;
    let mut watches = Vec::new();
    for info in listed.iter().filter(|info| info.id != watching.id()) {
        watches.push(watching.watch(info.id)?);
    }
    let used = Use::now()?.since(before);
    let what = "node process, watched".into();
    let row = Row { what, items: n, used, disk_kib: disk_kib(root), first_us, last_us };
    row.print();
    row.demand(1.2, 1.2, 56.0)?;
    let mut set = WaitSet::new();
    let (_, first_us, last_us) = timed(n, |i| {
        children[i].kill();
        let mut list: Vec<_> = watches.iter_mut().map(|w| w as &mut dyn Waitable).collect();
        list.push(&mut subscriber);
        let ready: Vec<_> = set.wait(&mut list, LONG)?.collect();
        let &[dead] = &ready[..] else { return Err(format!("{ready:?} died").into()) };
        drop(watches.remove(dead));
        Ok(())
    })?;
    let what = format!("a death among {n}, told to a set");
    Row { what, items: 1, used: Use::default(), disk_kib: 0, first_us, last_us }.print();
    domain.clean()?;
    Ok(())
}

pub(crate) fn run(args: &ScaleArgs) -> ExitCode {
    println!(
        "scale: {:<34} {:>6} {:>9} {:>9} {:>10} {:>10} {:>10} {:>10}",
        "for each", "of", "mappings", "fds", "KiB own", "KiB disk", "first us", "last us"
    );
    let run = |name: &str, body: &dyn Fn(&Path) -> Outcome<()>| {
        if !args.parts.is_empty() && !args.parts.iter().any(|part| part == name) {
            return true;
        }
        let temp = TempDomain::new(name).expect("a directory on the RAM disk");
        let done = body(&temp.path().join("root"));
        if let Err(what) = &done {
            println!("scale: {name} FAILS: {what}");
        }
        done.is_ok()
    };
    let (many, wide, crowd) = if args.quick.quick { (200, 16, 40) } else { (1000, 64, 200) };
    let all = [
        run("topics", &|root| topics(root, many)),
        run("subscribers", &|root| subscribers(root, wide)),
        run("nodes", &|root| nodes(root, crowd)),
    ];
    if all == [true; 3] { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
