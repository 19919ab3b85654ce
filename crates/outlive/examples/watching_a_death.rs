//! Who watches a peer learns of its death at once, whatever killed it; its last words are read.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use outlive::{Node, NodeId, WaitSet};

fn live() -> outlive::Result<()> {
    let node = Node::open("camera")?;
    let publisher = node.topic::<[u8]>("/heartbeat")?.publisher()?;
    publisher.publish(b"still here")?;
    println!("{}", node.id());
    loop {
        std::thread::park();
    }
}

fn main() -> outlive::Result<()> {
    if std::env::args().nth(1).is_some() {
        return live();
    }
    let program = std::env::current_exe().expect("this program");
    let mut camera =
        Command::new(program).arg("live").stdout(Stdio::piped()).spawn().expect("a camera");
    let watched = guard(&mut camera);
    let _ = camera.kill();
    let _ = camera.wait();
    watched
}

fn guard(camera: &mut Child) -> outlive::Result<()> {
    let mut line = String::new();
    let _ = BufReader::new(camera.stdout.take().expect("piped")).read_line(&mut line);
    let id = NodeId::from_raw(line.trim().parse().unwrap_or(0));

    let node = Node::open("guard")?;
    let mut words = node.topic::<[u8]>("/heartbeat")?.history(1).subscriber()?;
    let mut watch = node.watch(id)?;
    println!("alive: {}", watch.is_alive());
    let _ = camera.kill();
    let mut set = WaitSet::new();
    while set.wait(&mut [&mut watch], Duration::from_secs(10))?.is_empty() {}
    if let Some(last) = words.receive()? {
        let last = String::from_utf8_lossy(&last);
        println!("watching: the camera died; its last words were '{last}'");
    }
    Ok(())
}
