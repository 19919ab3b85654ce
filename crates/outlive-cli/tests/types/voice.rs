//! Generated messages in Rust: their descriptions, sent and seen; see test_types.py.

use std::io::{BufRead, stdin};

use outlive::zerocopy::IntoBytes;
use outlive::{Encoded, Message, Node};

#[path = "golden/mod.rs"]
mod messages;
#[path = "golden_msgpack/mod.rs"]
mod plans;
#[path = "golden_cdr/mod.rs"]
mod routes;

use messages::arm_msgs::{Arm, Battery, Defaults, Grid, Imu, Joint, Numbers, ReachRequest, Scan};
use messages::arm_msgs::{FollowGoal, Text, Wheels};
use messages::geo_msgs::{Flag, Nothing, Point};
use plans::plan_msgs::{Goal, Plan};
use routes::route_msgs::{Leg, Route};

/// Calls a function for each of the types.
macro_rules! each {
    ($call:ident ( $($with:expr)? )) => {
        [
            $call::<Arm>($($with)?),
            $call::<Battery>($($with)?),
            $call::<Defaults>($($with)?),
            $call::<Flag>($($with)?),
            $call::<FollowGoal>($($with)?),
            $call::<Grid>($($with)?),
            $call::<Imu>($($with)?),
            $call::<Joint>($($with)?),
            $call::<Nothing>($($with)?),
            $call::<Numbers>($($with)?),
            $call::<ReachRequest>($($with)?),
            $call::<Scan>($($with)?),
            $call::<Text>($($with)?),
            $call::<Wheels>($($with)?),
        ]
    };
}

trait Made: Message + Default + IntoBytes + outlive::zerocopy::Immutable {}

impl<T: Message + Default + IntoBytes + outlive::zerocopy::Immutable> Made for T {}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn layout<T: Made>() {
    let described = T::describe().to_text().replace('\n', "|");
    println!("{} {described} {}", T::TYPE_NAME, hex(T::default().as_bytes()));
}

/// What is done once for each number.
type Turn = Box<dyn FnMut() -> Result<(), outlive::Error>>;

fn topic<T: Made>(node: &Node) -> Result<outlive::topic::Builder<T>, outlive::Error> {
    node.topic::<T>(&format!("/all/{}", T::TYPE_NAME))
}

fn give<T: Made>(node: &Node) -> Result<Turn, outlive::Error> {
    let publisher = topic::<T>(node)?.publisher()?;
    Ok(Box::new(move || publisher.publish(&T::default()).map(drop)))
}

fn take<T: Made>(node: &Node) -> Result<Turn, outlive::Error> {
    let mut subscriber = topic::<T>(node)?.subscriber()?;
    Ok(Box::new(move || {
        let sample = loop {
            if let Some(sample) = subscriber.receive_until(outlive::Deadline::NEVER)? {
                break sample;
            }
        };
        println!("{} {}", T::TYPE_NAME, hex(sample.as_bytes()));
        Ok(())
    }))
}

/// A message of each type, as it is by default.
fn every_type(node: &Node, role: &str) -> Result<(), outlive::Error> {
    let turns = if role == "give" { each!(give(node)) } else { each!(take(node)) };
    let mut turns = turns.into_iter().collect::<Result<Vec<_>, _>>()?;
    println!("ready");
    let mut lines = stdin().lock().lines();
    while role == "take" || lines.next().is_some() {
        turns.iter_mut().try_for_each(|turn| turn())?;
        if role == "give" {
            println!("ok");
        }
    }
    Ok(())
}

fn arm(number: i32) -> Arm {
    let mut arm = Arm::default();
    arm.header.stamp.sec = number;
    arm.header.frame_id = outlive::msg::Text::cut("base");
    arm.joints[1].position = 0.5;
    arm.joints[1].brakes[2] = true;
    arm.reach.corners[0] = Point { x: 1.0, y: -2.0, z: number.into() };
    arm.reach.corners_count = 1;
    arm
}

fn plan(number: i64) -> Plan {
    let goal = Goal { name: "dock".into(), ..Goal::default() };
    let tags = vec!["a".into(), "b".into()];
    Plan { goals: vec![goal], tags, number, digest: vec![1, 2, 255], ..Plan::default() }
}

/// Plans travel as MessagePack.
fn plans(node: &Node, role: &str) -> Result<(), outlive::Error> {
    let topic = || -> Result<_, outlive::Error> {
        Ok(node.msgpack::<Plan>("/t/plan")?.type_name(Plan::TYPE_NAME))
    };
    if role == "plan" {
        let publisher = topic()?.publisher()?;
        println!("ready");
        for line in stdin().lock().lines() {
            let number = line.ok().and_then(|line| line.parse().ok()).unwrap_or(0);
            publisher.publish_value(&plan(number))?;
            println!("ok");
        }
        return Ok(());
    }
    let mut plans = topic()?.subscriber()?;
    println!("ready");
    loop {
        let Some(plan) = plans.receive_timeout(std::time::Duration::from_secs(60))? else {
            continue;
        };
        let plan: Plan = plan.decode_as()?;
        let (goal, digest) = (&plan.goals[0], &plan.digest);
        let sum = goal.covariance.len() + usize::from(digest[2]) + plan.key.len();
        println!("{} {} {} {} {}", plan.number, goal.name, goal.at[0], plan.tags[1], sum);
    }
}

fn route(last: u64) -> Route {
    let mut route = Route { last, words: vec!["x".into(), String::new()], ..Route::default() };
    route.plan.goals = vec![routes::plan_msgs::Goal { name: "dock".into(), ..Default::default() }];
    let signs = vec!["halt".into(), "ä".into()];
    route.legs = vec![Leg::default(), Leg { side: 1, metres: 2.5, signs }];
    (route.shorts, route.numbers, route.data) = (vec![-1], vec![1.5], vec![1, 2]);
    (route.flags, route.nothings) = (vec![true, false, true], vec![Default::default()]);
    route
}

/// Routes travel as CDR; whoever sees one says what its bytes add up to.
fn routes(node: &Node, role: &str) -> Result<(), outlive::Error> {
    let topic = || node.topic::<Encoded<Route>>("/t/route");
    if role == "route" {
        let publisher = topic()?.publisher()?;
        println!("ready");
        for line in stdin().lock().lines() {
            let number = line.ok().and_then(|line| line.parse().ok()).unwrap_or(0);
            publisher.publish_value(&route(number))?;
            println!("ok");
        }
        return Ok(());
    }
    let mut routes = topic()?.subscriber()?;
    println!("ready");
    loop {
        let Some(sample) = routes.receive_timeout(std::time::Duration::from_secs(60))? else {
            continue;
        };
        let bytes = sample.as_bytes().iter().zip(1..);
        let total: u64 = bytes.map(|(byte, i)| i * u64::from(*byte)).sum();
        let Route { last, plan, legs, label, .. } = sample.decode()?;
        println!("{last} {} {} {label} {total}", plan.goals[0].name, legs[1].signs[1]);
    }
}

fn main() -> Result<(), outlive::Error> {
    let role = std::env::args().nth(1).unwrap_or_default();
    if role == "layout" {
        each!(layout());
        println!("{} {} {}", Numbers::LEAST64, Numbers::MOST64, Numbers::GREETING);
        return Ok(());
    }
    let node = Node::open("rust")?;
    if ["give", "take"].contains(&&*role) {
        return every_type(&node, &role);
    }
    if ["plan", "follow"].contains(&&*role) {
        return plans(&node, &role);
    }
    if ["route", "ride"].contains(&&*role) {
        return routes(&node, &role);
    }
    if role == "send" {
        let publisher = node.topic::<Arm>("/t/arm")?.publisher()?;
        println!("ready");
        for line in stdin().lock().lines() {
            let number = line.ok().and_then(|line| line.parse().ok()).unwrap_or(0);
            publisher.publish(&arm(number))?;
            println!("ok");
        }
        return Ok(());
    }
    let mut arms = node.topic::<Arm>("/t/arm")?.subscriber()?;
    println!("ready");
    loop {
        let Some(arm) = arms.receive_timeout(std::time::Duration::from_secs(60))? else { continue };
        let joint = &arm.joints[1];
        println!(
            "{} {} {} {} {} {} {} {} {}",
            arm.header.stamp.sec,
            arm.header.frame_id,
            joint.position,
            u8::from(joint.brakes[1]),
            u8::from(joint.brakes[2]),
            joint.name,
            arm.tool.orientation.w,
            arm.reach.corners().len(),
            arm.reach.corners[0].z
        );
    }
}
