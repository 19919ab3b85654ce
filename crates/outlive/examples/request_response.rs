//! A planner that answers requests, in a process of its own; its death ends the client's wait.

use std::process::Command;
use std::time::Duration;

use outlive::{Deadline, Node};

type Point = [f64; 2];

fn plan() -> outlive::Result<()> {
    let node = Node::open("planner")?;
    let mut server = node.service::<Point, f64>("/planner/distance")?.server()?;
    loop {
        if let Some(request) = server.receive_until(Deadline::NEVER)? {
            let [x, y] = *request;
            if x.is_nan() {
                std::process::abort(); // the crash of this example
            }
            server.respond(request, &x.hypot(y))?;
        }
    }
}

fn main() -> outlive::Result<()> {
    if std::env::args().nth(1).is_some() {
        return plan();
    }
    let program = std::env::current_exe().expect("this program");
    let mut planner = Command::new(program).arg("plan").spawn().expect("a planner");
    let asked = ask();
    let _ = planner.kill();
    let _ = planner.wait();
    asked
}

fn ask() -> outlive::Result<()> {
    let node = Node::open("robot")?;
    let mut client = node.service::<Point, f64>("/planner/distance")?.client()?;
    client.wait_for_server(Duration::from_secs(10))?;

    let way = *client.call_timeout(&[3.0, 4.0], Duration::from_secs(10))?;
    match client.call_timeout(&[f64::NAN, 0.0], Duration::from_secs(10)) {
        Ok(_) => println!("the planner lives"),
        Err(e) => println!("request/response: {way:.1} m, then {}", e.kind()),
    }
    Ok(())
}
