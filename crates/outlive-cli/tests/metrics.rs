//! `outlive metrics`, once and over HTTP.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use common::*;

/// The value of the line with this name and labels.
fn value(text: &str, line: &str) -> Option<f64> {
    let rest = text.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(' '))?;
    rest.parse().ok()
}

#[test]
fn a_domain_is_shown_as_metrics() {
    let home = Home::new("metrics");
    let node = outlive::Node::builder().root(home.root()).name("camera").open().unwrap();
    let publisher = node.topic::<[u8]>("/frames").unwrap().publisher().unwrap();
    let _subscriber = node.topic::<[u8]>("/frames").unwrap().subscriber().unwrap();
    let _consumer = node.queue::<[u8]>("/jobs").unwrap().consumer().unwrap();
    let mut producer = node.queue::<[u8]>("/jobs").unwrap().producer().unwrap();
    for _ in 0..3 {
        publisher.publish(&[1; 100]).unwrap();
        producer.send(&[1]).unwrap();
    }
    let text = home.run("metrics").expect(DONE).text().to_owned();
    let publisher = format!("topic=\"/frames\",publisher=\"{}\",node=\"camera\"", publisher.id());
    for (line, wanted) in [
        ("outlive_nodes{state=\"alive\"}", 1.0),
        (&format!("outlive_publisher_messages_total{{{publisher}}}"), 3.0),
        (&format!("outlive_publisher_bytes_total{{{publisher}}}"), 300.0),
        ("outlive_topic_subscribers{topic=\"/frames\",state=\"alive\"}", 1.0),
        ("outlive_queue_unread_messages{queue=\"/jobs\"}", 3.0),
        ("outlive_queue_consumers{queue=\"/jobs\"}", 1.0),
        ("outlive_node_deaths_total", 0.0),
    ] {
        assert_eq!(value(&text, line), Some(wanted), "{line} in {text}");
    }
    // Each family once, with its type, and no sample outside of one.
    let types = text.lines().filter_map(|l| l.strip_prefix("# TYPE "));
    let names: Vec<_> = types.map(|l| l.split(' ').next().unwrap()).collect();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        assert_eq!(names.iter().filter(|n| **n == name).count(), 1, "{line}");
    }
}

/// A client waited, and a core was busy with looking at it.
#[test]
fn without_a_descriptor_for_a_client_it_waits_and_sleeps() {
    let home = Home::new("metrics-descriptors");
    let _node = outlive::Node::builder().root(home.root()).open().unwrap();
    let mut child = home.outlive("metrics --listen 127.0.0.1:0").spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("outlive: metrics at http://").unwrap();
    let address = address.strip_suffix("/metrics").unwrap();
    limit(child.id(), libc::RLIMIT_NOFILE, 3);
    let mut client = TcpStream::connect(address).unwrap();
    write!(client, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    // In hundredths of a second.
    let busy = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let (before, began) = (busy(), std::time::Instant::now());
    std::thread::sleep(std::time::Duration::from_secs(3));
    let (busy, of) = (busy() - before, began.elapsed().as_millis() as u64 / 10);
    assert!(busy < of / 10, "busy for {busy} of {of}");
    limit(child.id(), libc::RLIMIT_NOFILE, 100);
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("outlive_nodes"), "{answer}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn deaths_are_counted_while_it_serves() {
    let home = Home::new("metrics-http");
    let _node = outlive::Node::builder().root(home.root()).name("stays").open().unwrap();
    let mut child = home.outlive("metrics --listen 127.0.0.1:0").spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("outlive: metrics at http://").unwrap();
    let address = address.strip_suffix("/metrics").unwrap();
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let deaths = || value(&ask("GET /metrics"), "outlive_node_deaths_total").unwrap();
    assert_eq!(deaths(), 0.0);
    let publisher = home.start("topic pub /n --type f64 --json 1 --linger inf", b"");
    home.await_messages(1);
    publisher.signal(libc::SIGKILL);
    publisher.end();
    assert_eq!(deaths(), 1.0);
    assert_eq!(deaths(), 1.0, "once");
    assert!(ask("GET /").starts_with("HTTP/1.1 404 "), "{}", ask("GET /"));
    assert!(ask("POST /metrics").starts_with("HTTP/1.1 405 "));
    assert!(!ask("HEAD /metrics").contains("outlive_nodes"));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Of 32 places none was left for anybody else.
#[test]
fn clients_that_trickle_keep_nobody_out() {
    let home = Home::new("metrics-trickle");
    let mut child = home.outlive("metrics --listen 127.0.0.1:0").spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("outlive: metrics at http://").unwrap();
    let address = address.strip_suffix("/metrics").unwrap().to_owned();
    let (mut good, mut busy) = (0, 0);
    beside_trickling(200, &address, || {
        for _ in 0..40 {
            let mut answer = String::new();
            let asked = TcpStream::connect(&address).and_then(|mut stream| {
                stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")?;
                stream.read_to_string(&mut answer)
            });
            match asked.is_ok() && answer.starts_with("HTTP/1.1 200 ") {
                true => good += 1,
                false => busy += 1,
            }
        }
    });
    println!("beside 200 clients that trickle {good} requests were answered, {busy} not");
    // One may be overtaken by two dozen others before its thread has read it.
    assert!(good >= 30, "{good} answered, {busy} not");
    child.kill().unwrap();
    child.wait().unwrap();
}
