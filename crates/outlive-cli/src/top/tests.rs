//! The screen at two sizes, of a domain that is made up.

use expect_test::expect_file;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::App;
use super::draw::draw;
use crate::look::{Life, Lock, Look, Node, Publisher, Reader, Topic};

const S: u64 = 1_000_000_000;

fn node(id: u64, name: &str, life: Life) -> Node {
    let started_ns = 90 * S;
    Node { id, name: name.into(), pid: 4000 + id as u32, life, started_ns, ..Node::default() }
}

fn publisher(node: u64, name: &str, life: Life, hz: f64) -> Publisher {
    Publisher {
        node,
        port: 1,
        name: name.into(),
        life,
        messages: 1000 * node,
        memory_bytes: 12_000_000,
        hz,
        bytes_per_s: hz * 6_220_800.0,
        ..Publisher::default()
    }
}

fn made_up() -> Look {
    let reader = |node: u64, name: &str| Reader {
        node,
        port: 4096,
        name: name.into(),
        life: Life::Alive,
        borrows: 8,
        ..Reader::default()
    };
    let slow = Reader {
        lag: 7,
        lost: 12,
        held: vec!["#997 of camera".into(), "overwritten of camera".into()],
        ..reader(3, "viewer")
    };
    let asleep = Reader { waiting: true, reliable: true, ..reader(4, "recorder") };
    let camera = Topic {
        name: "/camera/front".into(),
        type_name: "[u8]".into(),
        depth: 8,
        publishers: vec![publisher(1, "camera", Life::Alive, 30.0)],
        readers: vec![slow, asleep],
        ..Topic::default()
    };
    let lone = |name: &str, publisher| Topic {
        name: name.into(),
        type_name: "Pose".into(),
        depth: 16,
        publishers: vec![publisher],
        ..Topic::default()
    };
    let mut arm = publisher(2, "planner", Life::Stopped, 0.0);
    arm.bytes_per_s = 0.0;
    let gone = publisher(5, "lidar", Life::Dead, 0.0);
    let mut viewer = node(3, "viewer", Life::Alive);
    viewer.reads = vec!["/camera/front".into()];
    viewer.holds = 2;
    let mut planner = node(2, "planner", Life::Stopped);
    planner.publishes = vec!["/arm/goal".into()];
    planner.locks = vec!["/calibration".into()];
    let held = Lock {
        name: "/calibration".into(),
        kind: "mutex".into(),
        state: "held",
        holder: Some((2, "planner".into(), Life::Stopped)),
        waiters: true,
        users: 0,
    };
    let free =
        Lock { name: "/map".into(), kind: "rwlock".into(), state: "free", ..Lock::default() };
    Look {
        at_ns: 100 * S,
        nodes: vec![
            node(1, "camera", Life::Alive),
            planner,
            viewer,
            node(4, "recorder", Life::Alive),
            node(5, "lidar", Life::Dead),
        ],
        topics: vec![camera, lone("/arm/goal", arm), lone("/scan", gone)],
        locks: vec![held, free],
        ..Look::default()
    }
}

fn app() -> App {
    let mut app = App::new("default".into());
    app.see(&made_up());
    app
}

fn press(app: &mut App, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            '\t' => KeyCode::Tab,
            'v' => KeyCode::Down,
            c => KeyCode::Char(c),
        };
        app.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
}

fn screen(app: &App, (width, height): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, app)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| {
        let cells = (0..width).map(|x| buffer[(x, y)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    };
    (0..height).map(|y| line(y) + "\n").collect()
}

#[test]
fn screens_are_as_they_were() {
    let mut text = String::new();
    for size in [(80, 24), (200, 50)] {
        for (what, keys) in [
            ("topics", ""),
            ("topics by rate, one in detail", "s\n"),
            ("nodes", "2"),
            ("a node in detail", "2v\n"),
            ("locks", "3"),
            ("filtered, held still", "/cam\np"),
        ] {
            let mut app = app();
            press(&mut app, keys);
            let (width, height) = size;
            text += &format!("== {width}x{height}: {what}\n{}", screen(&app, size));
        }
    }
    expect_file!["../../tests/snapshots/top.txt"].assert_eq(&text);
}

#[test]
fn keys_sort_filter_and_go_into_detail_and_back() {
    let mut app = app();
    let names = |app: &App| app.rows().iter().map(|r| r.key.clone()).collect::<Vec<_>>();
    assert_eq!(names(&app), ["/arm/goal", "/camera/front", "/scan"]);
    press(&mut app, "s");
    assert_eq!(names(&app)[0], "/camera/front", "the fastest first");
    press(&mut app, "r");
    assert_eq!(names(&app)[2], "/camera/front");
    press(&mut app, "/SCAN\n");
    assert_eq!(names(&app), ["/scan"]);
    press(&mut app, "\n");
    assert!(app.details()[0].starts_with("/scan"), "{:?}", app.details());
    press(&mut app, "\x1b");
    assert!(app.detail.is_none() && !app.filter.is_empty());
    press(&mut app, "\x1b\t\t");
    assert_eq!(names(&app), ["/calibration", "/map"]);
    press(&mut app, "\n");
    assert!(app.details()[1].contains("2 planner: stopped"));
    press(&mut app, "p");
    app.see(&Look::default());
    assert!(!app.rows().is_empty(), "it holds still");
    press(&mut app, "p");
    app.see(&Look::default());
    assert_eq!((app.rows().len(), app.details()), (0, vec!["gone".to_owned()]));
    press(&mut app, "vvv\nq");
    assert!(app.leaves);
}

#[test]
fn no_size_is_too_small_to_draw() {
    for size in [(1, 1), (10, 3), (79, 23), (300, 100)] {
        let mut app = app();
        press(&mut app, "\n");
        screen(&app, size);
    }
}
