//! Makes up the next step of a history, from a seed and from what is there.

mod rt;
mod scene;
mod segments;
mod semaphores;
mod services;
mod sets;
mod swarm;
mod theme;
mod timers;

use super::languages::{self, PYTHON, RUST};
use super::member::WAYS;
use super::model::{Kind, MUTEX, Model, PI, RWLOCK};
use super::step::{BATCH_MAX, FIXED, FOREVER_MS, Handle, Step, Verb, WORDS};
use crate::rng::Rng;
use scene::Scene;
use swarm::Taste;
use theme::Theme;
pub use theme::be_bold;

/// What a history is about, and how wild it is.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    rng: Rng,
    members_max: u64,
    names: u64,
    /// Kinds of objects that take part, see `about`.
    kinds: Vec<u64>,
    taste: Taste,
    /// It goes where the model has not been before, see `theme::be_bold`.
    bold: bool,
    scene: Scene,
    theme: Theme,
    /// Kind of all locks, if they are of one.
    locks: Option<u64>,
    /// Type of most messages: one of a fixed size, or slices.
    fixed: u64,
    /// Of most sets.
    capacity: u64,
    /// Size of most segments.
    large: u64,
    /// Members wait for notifications, too.
    condvars: bool,
    /// Members wait in sets, too.
    sets: bool,
    /// Permits of most semaphores.
    permits: u64,
    forks: bool,
    limits: bool,
    crowds: bool,
    priorities: bool,
    /// Publishers wait for their readers.
    patient: bool,
    /// The domain's counters come near their ends.
    old: bool,
    next_member: usize,
    next_handle: Handle,
    next_value: u64,
}

/// Of a message that needs a whole lane of the smaller bound.
const LANE_WORDS: u64 = (LANE_BYTES - 96) / 8;
const LANE_BYTES: u64 = 64 << 10;
/// Sorts of steps that are tried, and how often each.
const TURNS: usize = 50;
const TRIES: usize = 12;
/// Kinds of objects.
const KINDS: u64 = 9;
/// Mutexes and reader/writer locks among them.
const LOCKS: u64 = 2;
/// Timers and interrupts.
const TIMERS: u64 = 7;

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let members_max = if rng.one_in(8) { 12 } else { 2 + rng.below(4) };
        let about = 1 + rng.below((1 << KINDS) - 1);
        // Half of the histories are about few kinds.
        let few = about & rng.below(1 << KINDS);
        let about = if few == 0 || rng.one_in(2) { about } else { few };
        // Who waits for notifications needs mutexes, and many of them.
        let condvars = rng.one_in(4);
        let about = match (condvars, rng.one_in(2)) {
            (true, true) => 1 << LOCKS,
            (true, false) => about | 1 << LOCKS,
            (false, _) => about,
        };
        let mut kinds: Vec<u64> = (0..KINDS).filter(|kind| about >> kind & 1 != 0).collect();
        let bold = theme::is_bold();
        let taste = Taste::new(&mut rng, &mut kinds, bold);
        let theme = if bold { Theme::new(&mut rng) } else { Theme::default() };
        let (next_member, next_handle) = theme.free();
        let scene = if bold { Scene::new(&mut rng) } else { Scene::default() };
        Self {
            members_max,
            names: 1 + rng.below(2),
            locks: (bold && rng.one_in(2)).then(|| [MUTEX, RWLOCK, PI][rng.below(3) as usize]),
            fixed: if rng.one_in(2) { FIXED + rng.below(2) } else { 0 },
            capacity: [1, 3, 64, 65, 70][rng.below(5) as usize],
            large: rng.below(2),
            condvars: condvars && kinds.contains(&LOCKS),
            sets: taste.likes(Verb::Wait) || kinds.contains(&TIMERS) || rng.one_in(2),
            permits: 1 + rng.below(3),
            forks: taste.likes(Verb::Fork) || rng.one_in(2),
            limits: taste.likes(Verb::Limit) || taste.likes(Verb::Fill) || rng.one_in(3),
            crowds: rng.one_in(6),
            priorities: taste.likes(Verb::Priority) || rng.one_in(4),
            patient: rng.one_in(3),
            old: rng.one_in(4),
            next_member,
            next_handle,
            next_value: 1,
            taste,
            bold,
            scene,
            theme,
            kinds,
            rng,
        }
    }

    /// How many steps it is to have.
    pub(super) fn length(&mut self) -> u64 {
        30 + self.rng.below(120)
    }

    fn new_handle(&mut self) -> Handle {
        self.next_handle += 1;
        self.next_handle - 1
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        if of.is_empty() { None } else { Some(of[self.rng.below(of.len() as u64) as usize]) }
    }

    /// A step that the model allows.
    pub(super) fn next(&mut self, model: &Model) -> Step {
        let step = self.choose(model);
        self.scene.saw(&step);
        step
    }

    fn choose(&mut self, model: &Model) -> Step {
        // Now and then something else comes in between.
        while !self.rng.one_in(8)
            && let Some(step) = self.theme.next(&mut self.rng)
        {
            if model.allows(&step) {
                return step;
            }
        }
        if let Some(step) = self.scene.thread().filter(|step| model.allows(step)) {
            return step;
        }
        let alive = model.members.iter().filter(|(_, m)| m.alive).count() as u64;
        let opening = self.scene.is_opening();
        let seldom = if opening { 4 } else { 16 };
        if alive < 2 || alive < self.members_max && self.rng.one_in(seldom) {
            self.next_member += 1;
            let others: Vec<u64> = languages::programs().keys().copied().collect();
            let of_others = !others.is_empty() && self.rng.one_in(2);
            let language = if of_others { self.pick(&others).unwrap_or(RUST) } else { RUST };
            return Step::new(self.next_member - 1, 0, Verb::Start, &[language]);
        }
        if self.bold
            && self.rng.one_in(8)
            && let Some(step) = self.joins_a_wait(model)
        {
            return step;
        }
        let wish = self.taste.wish(&mut self.rng).filter(|_| !opening);
        for turn in 0..TURNS {
            let wish = wish.filter(|_| turn < TURNS / 2);
            let dice = self.rng.below(100);
            // Always possible, so that it is tried once.
            let node = (turn == 0 || !self.bold) && self.rng.one_in(40);
            // Of one sort, so that what is always possible does not crowd out what needs much.
            for _ in 0..TRIES {
                let Some(step) = self.propose(model, dice, node) else { continue };
                let suits = match wish {
                    Some(wish) => step.verb == wish,
                    None if opening => scene::opens(step.verb),
                    None => self.taste.suits(step.verb),
                };
                if suits && model.allows(&step) {
                    return step;
                }
            }
        }
        Step::new(0, 0, Verb::Pause, &[1])
    }

    /// The wait of a thread, by another one of its process: several are woken otherwise than one.
    fn joins_a_wait(&mut self, model: &Model) -> Option<Step> {
        let alive = model.members.values().filter(|m| m.alive);
        let waits: Vec<&Step> = alive.flat_map(|m| m.threads.values().flatten()).collect();
        let mut step = self.pick(&waits)?.clone();
        let idle = model.members[&step.member].threads.iter().filter(|(_, wait)| wait.is_none());
        step.thread = self.pick(&idle.map(|(thread, _)| *thread).collect::<Vec<_>>())?;
        if step.new_handle().is_some() {
            let new = self.new_handle();
            step.set("new", new);
        }
        model.allows(&step).then_some(step)
    }

    /// A step of the sort that `dice`, below 100, says, or another `node`.
    fn propose(&mut self, model: &Model, dice: u64, node: bool) -> Option<Step> {
        let alive: Vec<usize> =
            model.members.iter().filter(|(_, m)| m.alive).map(|(id, _)| *id).collect();
        let (near, last) = match self.scene.stays(&mut self.rng) {
            Some((near, last)) => (near.to_vec(), last),
            None => (Vec::new(), None),
        };
        let threads = |member: &usize| model.members[member].threads.keys().copied();
        let still = |(member, thread): &(usize, usize)| {
            alive.contains(member) && threads(member).any(|it| it == *thread)
        };
        let (member, thread) = match last.filter(still) {
            Some(last) => last,
            None => {
                let member = self.pick(&alive)?;
                (member, self.pick(&threads(&member).collect::<Vec<_>>())?)
            }
        };
        let step = |verb, args: &[u64]| Some(Step::new(member, thread, verb, args));
        let usable = |is: fn(&Kind) -> bool| -> Vec<Handle> {
            let all = model.objects.keys().copied();
            let all = all.filter(|h| model.usable(*h, member, thread).is_some_and(is));
            let (close, others): (Vec<_>, Vec<_>) = all.partition(|h| near.contains(h));
            if close.is_empty() { others } else { close }
        };
        let nodes = usable(|k| matches!(k, Kind::Node { .. }));
        if nodes.is_empty() || node {
            // Who finds no more numbers asks rarely, and others live on.
            if model.out_of_nodes() && !self.rng.one_in(40) {
                return None;
            }
            let new = self.new_handle();
            return step(Verb::Node, &[new]);
        }
        let closable = model.closable(member);
        if model.members[&member].language == PYTHON && !closable.is_empty() && self.rng.one_in(20)
        {
            let on = self.pick(&closable)?;
            return step(Verb::Close, &[on]);
        }
        if model.full && self.rng.one_in(20) {
            return Some(Step::new(0, 0, Verb::Free, &[]));
        }
        if let Some(what) = model.members[&member].limits.first().copied()
            && self.rng.one_in(12)
        {
            return step(Verb::Unlimit, &[what]);
        }
        // Few threads hold a mutex: who does sleeps soon.
        if self.condvars && self.rng.one_in(3) {
            let guards = usable(|k| matches!(k, Kind::Guard { reads: false, .. }));
            let condvars = usable(|k| matches!(k, Kind::Condvar { .. }));
            if !guards.is_empty() && !condvars.is_empty() {
                let node = self.pick(&nodes)?;
                let (verb, args) = self.about_condvars(node, &condvars, &guards)?;
                return step(verb, &args);
            }
        }
        match dice {
            0..6 => self.life(model, member, thread),
            6..8 => step(Verb::Clean, &[]),
            8..10 => step(Verb::Audit, &[]),
            10 if self.rng.one_in(8) => {
                let to = self.rng.below(3);
                step(Verb::Chdir, &[to])
            }
            10..12 => {
                // Now and then so long that who does not sleep meanwhile is seen.
                let ms = if self.rng.one_in(30) { 250 } else { 1 + self.rng.below(5) };
                step(Verb::Pause, &[ms])
            }
            12..15 => {
                let (new, node) = (self.new_handle(), self.pick(&nodes)?);
                let others: Vec<Handle> = model
                    .objects
                    .iter()
                    .filter(|(_, o)| matches!(o.kind, Kind::Node { .. }) && o.member != member)
                    .map(|(h, _)| *h)
                    .collect();
                let target = self.pick(&others)?;
                step(Verb::Watch, &[new, node, target])
            }
            27 if self.priorities => {
                let fifo = if self.rng.one_in(3) { 0 } else { 1 + self.rng.below(3) };
                let one = u64::from(!self.rng.one_in(8));
                step(Verb::Priority, &[fifo, one])
            }
            28 if self.old => {
                let (nodes, threads) = (self.rng.below(6), self.rng.below(12));
                Some(Step::new(0, 0, Verb::Ordinals, &[nodes, threads]))
            }
            17 if self.crowds && self.rng.one_in(3) => {
                let many = if self.rng.one_in(12) { 600 } else { 120 };
                let count = [3, 20, 60, many][self.rng.below(4) as usize];
                let keep = u64::from(count < 200 && self.rng.one_in(2));
                let new = self.next_handle;
                let node = self.pick(&nodes)?;
                let args = [new, node, self.rng.below(4), self.name(), count, keep, self.type_()];
                let crowd = Step::new(member, thread, Verb::Crowd, &args);
                self.next_handle += Model::handles(&crowd);
                Some(crowd)
            }
            29..40 if self.sets => {
                let ports = usable(|k| {
                    use Kind::{Client, Consumer, Server, Subscriber, Watch};
                    let port = matches!(k, Subscriber(_) | Client(_) | Server(_));
                    let port = port || matches!(k, Kind::Timer(_) | Kind::Interrupt { .. });
                    port || matches!(k, Consumer { hand: None, .. } | Watch { .. })
                });
                let mut others = [0, 0];
                for other in &mut others {
                    *other = self.pick(&ports).filter(|_| !self.rng.one_in(3)).unwrap_or(0);
                }
                let (on, fd) = (self.pick(&ports)?, u64::from(self.rng.one_in(3)));
                let ms = if self.rng.one_in(2) { self.rng.below(3) } else { FOREVER_MS };
                step(Verb::Wait, &[on, others[0], others[1], fd, ms])
            }
            15..18 => {
                let on = self.pick(&usable(|k| matches!(k, Kind::Watch { .. })))?;
                let ms = if self.rng.one_in(2) { 5 } else { FOREVER_MS };
                step(Verb::Await, &[on, ms])
            }
            25..27 if self.forks && self.rng.one_in(2) => {
                let how = self.rng.below(WAYS);
                step(Verb::Fork, &[how])
            }
            25..27 if self.limits => {
                let what = self.rng.below(4);
                let left = match what {
                    0 => self.rng.below(10),
                    1 if self.rng.one_in(4) => 0,
                    1 => 128 << self.rng.below(8),
                    _ => [0, 4, 16, 64, 256, 2048][self.rng.below(6) as usize],
                };
                match what {
                    0..3 => step(Verb::Limit, &[what, left]),
                    _ => Some(Step::new(0, 0, Verb::Fill, &[left])),
                }
            }
            18..25 => {
                let all = usable(|_| true);
                let on = self.pick(&all)?;
                // Most of a life goes on in its first node.
                if nodes.contains(&on) && !self.rng.one_in(4) {
                    return None;
                }
                let verb = match self.rng.below(6) {
                    0 => Verb::Leak,
                    1 => Verb::Unwind,
                    _ => Verb::Drop,
                };
                step(verb, &[on])
            }
            n => {
                let node = self.pick(&nodes)?;
                let wait = if n % 8 == 0 { FOREVER_MS } else { 0 };
                let kinds = self.kinds.clone();
                let (verb, args) = match self.pick(&kinds)? {
                    0 => self.about_topics(node, wait, &usable)?,
                    1 => self.about_queues(node, wait, &usable)?,
                    2 => self.about_locks(node, wait, &usable)?,
                    3 => self.about_services(node, wait, &usable)?,
                    4 => self.about_rt(node, &usable)?,
                    5 => self.about_semaphores(node, wait, &usable)?,
                    6 => self.about_sets(node, &usable)?,
                    7 => self.about_timers(&usable)?,
                    _ => self.about_segments(node, wait, &usable)?,
                };
                step(verb, &args)
            }
        }
    }

    /// Processes and threads begin, stop and end.
    fn life(&mut self, model: &Model, member: usize, thread: usize) -> Option<Step> {
        let step = |verb, args: &[u64]| Some(Step::new(member, thread, verb, args));
        if model.members[&member].stopped {
            return step(Verb::Continue, &[]);
        }
        match self.rng.below(11) {
            0..2 => step(Verb::Kill, &[libc::SIGKILL as u64]),
            2 => step(Verb::Kill, &[libc::SIGSEGV as u64]),
            3 => step(Verb::Exit, &[]),
            4 => step(Verb::Stop, &[]),
            5..8 => {
                let new = 1 + self.rng.below(6);
                step(Verb::Thread, &[new])
            }
            8 => step(Verb::End, &[]),
            9 => Some(Step::new(member, 0, Verb::Quit, &[])),
            _ => step(Verb::Crash, &[]),
        }
    }

    fn name(&mut self) -> u64 {
        self.rng.below(self.names)
    }

    fn type_(&mut self) -> u64 {
        u64::from(self.rng.one_in(12))
    }

    /// As `type_`, of topics and queues.
    fn message_type(&mut self) -> u64 {
        if self.fixed == 0 || self.rng.one_in(12) { self.type_() } else { self.fixed }
    }

    /// Whether a batch is tried.
    fn in_batches(&mut self) -> bool {
        self.fixed > 0 && !self.rng.one_in(3)
    }

    fn words(&mut self) -> u64 {
        WORDS[self.rng.below(WORDS.len() as u64) as usize]
    }

    fn count(&mut self) -> u64 {
        if self.rng.one_in(6) { 1 + self.rng.below(BATCH_MAX) } else { 1 + self.rng.below(4) }
    }

    fn about_topics(
        &mut self,
        node: Handle,
        wait: u64,
        usable: &dyn Fn(fn(&Kind) -> bool) -> Vec<Handle>,
    ) -> Option<(Verb, Vec<u64>)> {
        let publishers = usable(|k| matches!(k, Kind::Publisher(p) if !p.patient));
        let patient = usable(|k| matches!(k, Kind::Publisher(p) if p.patient));
        let subscribers = usable(|k| matches!(k, Kind::Subscriber(_)));
        Some(match self.rng.below(20) {
            0..2 if !self.bold
                || self.rng.one_in(1 + (publishers.len() + patient.len()) as u64) =>
            {
                let patient = self.patient && self.rng.one_in(2);
                let depth = 1 << self.rng.below(if patient { 4 } else { 6 });
                let volatile = u64::from(self.rng.one_in(6));
                let wait_ms = if self.rng.one_in(2) { 0 } else { 2 };
                let wait_ms = if patient { FOREVER_MS } else { wait_ms };
                let args = [self.new_handle(), node, self.name(), depth, volatile, wait_ms];
                let args = [&args[..], &[self.message_type()]].concat();
                (Verb::Publisher, args)
            }
            2..4 if !self.bold || self.rng.one_in(1 + subscribers.len() as u64) => {
                let history = if self.rng.one_in(2) { self.rng.below(40) } else { 0 };
                let reliable = u64::from(self.rng.one_in(if self.patient { 2 } else { 3 }));
                let borrows = 1 + self.rng.below(4);
                let args = [
                    self.new_handle(),
                    node,
                    self.name(),
                    history,
                    reliable,
                    borrows,
                    self.message_type(),
                ];
                (Verb::Subscriber, args.to_vec())
            }
            0..10 if !patient.is_empty() && !self.rng.one_in(4) => {
                (Verb::Insist, vec![self.pick(&patient)?, self.words(), FOREVER_MS])
            }
            0..10 => {
                let verb = if self.in_batches() { Verb::PublishBatch } else { Verb::Publish };
                (verb, vec![self.pick(&publishers)?, self.count(), self.words()])
            }
            10..15 => {
                let max = if self.rng.one_in(3) { 1 + self.rng.below(4) } else { 1000 };
                if self.in_batches() {
                    return Some((Verb::ReceiveBatch, vec![self.pick(&subscribers)?, max]));
                }
                (Verb::Receive, vec![self.pick(&subscribers)?, max, wait])
            }
            15 => (Verb::Take, vec![self.new_handle(), self.pick(&subscribers)?]),
            16 => (Verb::Check, vec![self.pick(&usable(|k| matches!(k, Kind::Sample { .. })))?]),
            17 => (Verb::Loan, vec![self.new_handle(), self.pick(&publishers)?, self.words()]),
            18 => (Verb::Commit, vec![self.pick(&usable(|k| matches!(k, Kind::Loan { .. })))?]),
            _ => {
                let held = usable(|k| matches!(k, Kind::Sample { .. }));
                (Verb::Drop, vec![self.pick(&held)?])
            }
        })
    }

    fn about_queues(
        &mut self,
        node: Handle,
        wait: u64,
        usable: &dyn Fn(fn(&Kind) -> bool) -> Vec<Handle>,
    ) -> Option<(Verb, Vec<u64>)> {
        let producers = usable(|k| matches!(k, Kind::Producer(_)));
        let consumers = usable(|k| matches!(k, Kind::Consumer { .. }));
        Some(match self.rng.below(20) {
            0..2 if !self.bold || self.rng.one_in(1 + producers.len() as u64) => {
                let bound = if self.rng.one_in(4) { LANE_BYTES } else { 0 };
                let args = [self.new_handle(), node, self.name(), bound, self.message_type()];
                (Verb::Producer, args.to_vec())
            }
            2..5 if !self.bold || self.rng.one_in(1 + 3 * consumers.len() as u64) => {
                let args = [self.new_handle(), node, self.name(), self.message_type()];
                (Verb::Consumer, args.to_vec())
            }
            0..11 => {
                let words = if self.rng.one_in(16) { LANE_WORDS } else { self.words() };
                let verb = if self.in_batches() { Verb::SendBatch } else { Verb::Send };
                (verb, vec![self.pick(&producers)?, self.count(), words])
            }
            11..15 if self.fixed == 0 || self.rng.one_in(2) => {
                let max = if self.rng.one_in(2) { 1 + self.rng.below(4) } else { 1000 };
                if self.in_batches() {
                    return Some((Verb::GetBatch, vec![self.pick(&consumers)?, max]));
                }
                (Verb::Get, vec![self.pick(&consumers)?, max, wait])
            }
            11..18 if self.fixed > 0 => {
                let ms = wait.max(self.rng.below(3));
                (Verb::HoldSlice, vec![self.new_handle(), self.pick(&consumers)?, ms])
            }
            15..18 => (Verb::Hold, vec![self.new_handle(), self.pick(&consumers)?]),
            n => {
                let hand = self.pick(&usable(|k| matches!(k, Kind::Received { .. })))?;
                let verb = match (n, self.rng.below(2)) {
                    (18, _) => Verb::Drop,
                    (_, 0) => Verb::Unwind,
                    _ => Verb::Leak,
                };
                (verb, vec![hand])
            }
        })
    }

    fn about_locks(
        &mut self,
        node: Handle,
        wait: u64,
        usable: &dyn Fn(fn(&Kind) -> bool) -> Vec<Handle>,
    ) -> Option<(Verb, Vec<u64>)> {
        let guards = usable(|k| matches!(k, Kind::Guard { .. }));
        let guards_first = self.condvars && !self.rng.one_in(4);
        let kind = if guards_first {
            MUTEX
        } else if let Some(kind) = self.locks {
            kind
        } else if self.rng.one_in(2) {
            RWLOCK
        } else {
            [MUTEX, MUTEX, PI][self.rng.below(3) as usize]
        };
        let rw = kind == RWLOCK;
        let is = |kind: u64| -> fn(&Kind) -> bool {
            match kind {
                RWLOCK => |k| matches!(k, Kind::Lock { name: (RWLOCK, _), .. }),
                PI => |k| matches!(k, Kind::Lock { name: (PI, _), .. }),
                _ => |k| matches!(k, Kind::Lock { name: (MUTEX, _), .. }),
            }
        };
        let condvars = usable(|k| matches!(k, Kind::Condvar { .. }));
        if self.condvars && self.rng.one_in(2) {
            return self.about_condvars(node, &condvars, &guards);
        }
        Some(match self.rng.below(20) {
            0..3 if self.rng.one_in(1 + 3 * usable(is(kind)).len() as u64) => {
                let verb = [Verb::Mutex, Verb::RwLock, Verb::PiMutex][kind as usize];
                (verb, vec![self.new_handle(), node, self.name()])
            }
            0..12 => {
                let on = self.pick(&usable(is(kind)))?;
                let ms = if self.rng.one_in(3) { FOREVER_MS } else { wait.max(self.rng.below(2)) };
                if rw && self.rng.below(5) < 3 {
                    return Some((Verb::Read, vec![self.new_handle(), on, ms]));
                }
                let heal = [1, 1, 1, 1, 1, 2, 2, 0][self.rng.below(8) as usize];
                (Verb::Lock, vec![self.new_handle(), on, ms, heal])
            }
            12..15 => {
                self.next_value += 1;
                let half = u64::from(self.rng.one_in(3));
                (Verb::Write, vec![self.pick(&guards)?, self.next_value, half])
            }
            15..18 => (Verb::Drop, vec![self.pick(&guards)?]),
            18 => (Verb::Leak, vec![self.pick(&guards)?]),
            _ => (Verb::RemoveLock, vec![node, self.name(), kind]),
        })
    }

    fn about_condvars(
        &mut self,
        node: Handle,
        condvars: &[Handle],
        guards: &[Handle],
    ) -> Option<(Verb, Vec<u64>)> {
        Some(match self.rng.below(10) {
            0..2 if self.rng.one_in(1 + 3 * condvars.len() as u64) => {
                (Verb::Condvar, vec![self.new_handle(), node, self.name()])
            }
            0..6 => {
                let ms = if self.rng.one_in(4) { self.rng.below(4) } else { FOREVER_MS };
                let heal = [1, 1, 2, 0][self.rng.below(4) as usize];
                (Verb::Sleep, vec![self.pick(condvars)?, self.pick(guards)?, ms, heal])
            }
            _ => (Verb::Notify, vec![self.pick(condvars)?, self.rng.below(2)]),
        })
    }
}
