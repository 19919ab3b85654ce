//! Topics and services to and from ROS 2, as rmw_zenoh carries them.
//!
//! | file | what |
//! |---|---|
//! | `known` | types of ROS and the user's own |
//! | `names`, `qos` | keys, tokens, hashes, attachments; what ports promise |
//! | `member` | what all routes have in common |
//! | `topics` | a topic on its way to ROS, and from there |
//! | `services` | calls, both ways |
//!
//! The bridge is one node of ROS. A topic here with a live publisher is a publisher of that node; a
//! topic with a publisher there is a subscription of it, and a publisher here. A service here is a
//! server of that node, one there a client of it, and a server here. Begin with [`Graph`], which
//! starts a route for each.

mod known;
mod member;
pub(crate) mod names;
mod qos;
mod services;
mod topics;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use outlive::service;
use outlive::topic;
use outlive_record::ros2::Service;
use zenoh::Wait;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::sample::SampleKind;

use crate::config::ros2::Ros2Config;
use crate::link::listen::Token;
use crate::report::{Failed, say};
use crate::shared::Shared;
use crate::work::News;
use crate::work::routes::{Kind, Routes};
pub(crate) use known::Known;
use member::Member;
use names::{Participant, Port, Remote, Topic};
use qos::Qos;
use topics::{incoming, outgoing};

/// Publishers and servers there that are remembered at most.
const PORTS_MAX: usize = 16_384;
/// Topics that cannot be carried, told once each; more of them are told again.
const TOLD_MAX: usize = 4096;

/// The bridge as a node of ROS.
pub(crate) struct Graph {
    config: Ros2Config,
    member: Arc<Member>,
    _node: LivelinessToken,
    _listening: Subscriber<()>,
    tokens: Receiver<Token>,
    /// Tokens of each topic's publishers there, and of each service's servers.
    publishers: HashMap<Topic, HashMap<String, Qos>>,
    servers: HashMap<Topic, HashMap<String, Qos>>,
    known: usize,
    /// Topics and sessions whose publishers keep messages and are still to be asked for them.
    keeping: HashSet<(Topic, String)>,
    told: HashSet<String>,
}

impl Graph {
    /// Shows the bridge, and begins to listen to who else is there.
    pub(crate) fn join(shared: &Arc<Shared>, config: Ros2Config) -> Result<Self, Failed> {
        let participant = Participant {
            domain: config.domain,
            session: shared.link.own.clone(),
            namespace: config.namespace.clone(),
            name: config.node.clone(),
        };
        let liveliness = shared.link.session.liveliness();
        let (to, tokens) = channel();
        let listening = liveliness
            .declare_subscriber(format!("@ros2_lv/{}/**", config.domain))
            .history(true)
            .callback(move |sample| {
                let there = sample.kind() == SampleKind::Put;
                let _ = to.send(Token { key: sample.key_expr().as_str().to_owned(), there });
            })
            .wait()?;
        let node = liveliness.declare_token(participant.node_token()).wait()?;
        let (shared, known) = (shared.clone(), config.known.clone());
        let member = Member::new(shared, participant, known);
        Ok(Self {
            config,
            member: Arc::new(member),
            _node: node,
            _listening: listening,
            tokens,
            publishers: HashMap::new(),
            servers: HashMap::new(),
            known: 0,
            keeping: HashSet::new(),
            told: HashSet::new(),
        })
    }

    /// Keeps a route for each topic that is to be carried; `topics` are those with a live publisher
    /// here that is no bridge.
    pub(crate) fn look<'a>(
        &mut self,
        routes: &mut Routes,
        topics: impl Iterator<Item = &'a topic::Info>,
    ) {
        self.member.epoch.look();
        while let Ok(token) = self.tokens.try_recv() {
            self.token(token);
        }
        for topic in topics {
            self.goes_out(routes, topic);
        }
        routes.of(Kind::RosTopicOut).settle();
        self.comes_in(routes);
    }

    fn goes_out(&mut self, routes: &mut Routes, topic: &topic::Info) {
        let Some((rule, there)) = self.config.goes_out(&topic.name) else { return };
        if routes.of(Kind::RosTopicOut).keep("", &topic.name) {
            return;
        }
        let rule = rule.clone();
        if !names::is_topic_name(&there) {
            let name = &topic.name;
            return self.tell(format!(
                "topic {name} is not carried to ROS 2: {there} is not a valid ROS name"
            ));
        }
        let epoch = self.member.epoch.clone();
        let way = outgoing::Way::new(topic, &rule, &there, epoch, &self.config.known);
        let way = match way {
            Ok(way) => way,
            Err(why) => {
                let name = &topic.name;
                return self.tell(format!("topic {name} is not carried to ROS 2: {why}"));
            }
        };
        let depth = rule.depth.unwrap_or(topic.depth);
        let start = || way.start(&self.member, depth, rule);
        routes.of(Kind::RosTopicOut).want("", &topic.name, start);
    }

    fn token(&mut self, token: Token) {
        let Participant { domain, session, .. } = &self.member.participant;
        let Some(remote) = names::remote(&token.key, *domain, session) else { return };
        let Remote { port, topic, session, qos } = remote;
        let ports = if port == Port::Server { &mut self.servers } else { &mut self.publishers };
        if token.there {
            if self.known < PORTS_MAX
                && ports.entry(topic.clone()).or_default().insert(token.key, qos).is_none()
            {
                self.known += 1;
                if qos.keeps && port == Port::Publisher {
                    self.keeping.insert((topic, session));
                }
            }
        } else if let Some(of) = ports.get_mut(&topic) {
            self.known -= usize::from(of.remove(&token.key).is_some());
            if of.is_empty() {
                ports.remove(&topic);
            }
        }
    }

    /// Keeps a route for each service that is to be carried; `services` are those with a live
    /// server here that is no bridge.
    pub(crate) fn look_at_services<'a>(
        &mut self,
        routes: &mut Routes,
        services: impl Iterator<Item = &'a service::Info>,
    ) {
        for info in services {
            self.service_goes_out(routes, info);
        }
        routes.of(Kind::RosServiceOut).settle();
        self.services_come_in(routes);
    }

    fn service_goes_out(&mut self, routes: &mut Routes, info: &service::Info) {
        let Some((rule, there)) = self.config.service_goes_out(&info.name) else { return };
        if routes.of(Kind::RosServiceOut).keep("", &info.name) {
            return;
        }
        let rule = rule.clone();
        let what = format!("service {} is not offered to ROS 2", info.name);
        if !names::is_topic_name(&there) {
            return self.tell(format!("{what}: {there} is not a valid ROS name"));
        }
        let known = &self.config.known;
        let known = services::type_of(info, known)
            .and_then(|(of, service)| Some((known.topic(&there, &of)?, service)));
        let Some((topic, service)) = known else {
            let (request, response) = (info.request.name(), info.response.name());
            return self.tell(format!(
                "{what}: no ROS service has request {request} and response {response}"
            ));
        };
        let start = || services::offer(&self.member, info, topic, service, &rule);
        routes.of(Kind::RosServiceOut).want("", &info.name, start);
    }

    /// A server here for each service with a server there.
    fn services_come_in(&mut self, routes: &mut Routes) {
        let mut strange = Vec::new();
        for topic in self.servers.keys() {
            if routes.of(Kind::RosServiceIn).keep(&topic.kind(), &topic.name) {
                continue;
            }
            let Some((rule, here)) = self.config.service_comes_in(&topic.name) else { continue };
            let own = &self.config.known;
            let known = own.hash(&topic.of).filter(|hash| *hash == topic.hash);
            match known.and_then(|_| Service::among(&topic.of, own.definitions()).ok()?) {
                Some(service) => {
                    let start = || services::stand_for(&self.member, topic, service, here, rule);
                    routes.of(Kind::RosServiceIn).want(&topic.kind(), &topic.name, start);
                }
                None => strange.push(topic.clone()),
            }
        }
        routes.of(Kind::RosServiceIn).settle();
        for topic in strange {
            self.tell_strange("service", topic);
        }
    }

    /// A route in for each topic with a publisher there.
    fn comes_in(&mut self, routes: &mut Routes) {
        let mut strange = Vec::new();
        for (topic, publishers) in &self.publishers {
            if routes.of(Kind::RosTopicIn).keep(&topic.kind(), &topic.name) {
                continue;
            }
            let Some((rule, here)) = self.config.comes_in(topic) else { continue };
            if self.config.known.hash(&topic.of).as_ref() != Some(&topic.hash) {
                strange.push(topic.clone());
                continue;
            }
            let Some(qos) = Qos::of_all(publishers.values()) else { continue };
            let begins = Cell::new(false);
            let start = || {
                begins.set(true);
                incoming::start(&self.member, topic, &here, rule, qos)
            };
            routes.of(Kind::RosTopicIn).want(&topic.kind(), &topic.name, start);
            // One that begins again knows nothing of those that were told to the one before.
            let keep = publishers.iter().filter(|(_, qos)| begins.get() && qos.keeps);
            let Participant { domain, session, .. } = &self.member.participant;
            let remotes = keep.filter_map(|(token, _)| names::remote(token, *domain, session));
            self.keeping.extend(remotes.map(|remote| (topic.clone(), remote.session)));
        }
        routes.of(Kind::RosTopicIn).settle();
        for (topic, session) in self.keeping.drain() {
            let side = routes.of(Kind::RosTopicIn);
            side.tell(&topic.kind(), &topic.name, News::Keeps(session));
        }
        for topic in strange {
            self.tell_strange("topic", topic);
        }
    }

    fn tell_strange(&mut self, what: &str, Topic { name, of, hash }: Topic) {
        let why = match self.config.known.hash(&of) {
            Some(own) => format!("its {of} has the hash {hash}, ours is {own}"),
            None => format!("{of} is not known here: give its file with --types"),
        };
        self.tell(format!("{what} {name} of ROS 2 is not carried: {why}"));
    }

    /// Once.
    fn tell(&mut self, line: String) {
        if self.told.len() >= TOLD_MAX {
            self.told.clear();
        }
        if self.told.insert(line.clone()) {
            say(line);
        }
    }
}
