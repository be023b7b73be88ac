//! The volume and its attempts, and everything that may happen to them.

use crate::attempt::{At, Attempt, Luck};
use crate::conversation::{Act, Call, Line};
use crate::mutation::Mutation;
use crate::properties;
use crate::volume::Volume;
use stateright::{Model, Property};
use std::collections::HashMap;
use std::sync::Mutex;

/// How many faults of a kind there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Faults {
    pub power_losses: u8,
    /// Replies of links, and answers of tools.
    pub lost_replies: u8,
    /// Whether attempts are killed. One that is killed is one that was frozen and is never let go: for the others
    /// it makes no difference.
    pub kills: bool,
}

/// The protocol, and how much is to go wrong.
#[derive(Debug)]
pub struct Protocol {
    attempts: usize,
    faults: Faults,
    mutation: Option<Mutation>,
    /// Whether a new attempt would come to an end, which the volume alone decides.
    ends: Mutex<HashMap<(Volume, bool), bool>>,
}

impl Protocol {
    pub fn new(attempts: usize, faults: Faults) -> Self {
        Self { attempts, faults, mutation: None, ends: Mutex::default() }
    }

    pub fn with(self, mutation: Mutation) -> Self {
        Self { mutation: Some(mutation), ..self }
    }

    /// Whether an attempt that begins now and that nothing disturbs comes to an end.
    pub fn makes_progress(&self, world: &World) -> bool {
        let volume = (world.volume.clone(), world.locked);
        *self.ends.lock().unwrap().entry(volume).or_insert_with(|| world.is_finished_by_a_new_attempt())
    }
}

/// What has been seen outside, which no attempt knows.
// Each is a property of its own; in words of several they would be one.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Seen {
    /// The longest log of which an attempt was sure.
    pub acknowledged: Vec<Line>,
    /// Two attempts were sure of logs of which neither begins the other.
    pub forked: bool,
    /// How often the call that must happen once at most has happened.
    pub refunds: u8,
    /// A call was made that nothing durable allowed.
    pub unallowed: bool,
    /// Something was done by an attempt of which no claim is durable.
    pub unclaimed: bool,
    /// Something was done before what it needs was durable.
    pub too_early: bool,
}

impl Seen {
    pub fn acknowledged(&mut self, view: &[Line]) {
        if view.starts_with(&self.acknowledged) {
            self.acknowledged = view.to_vec();
        } else if !self.acknowledged.starts_with(view) {
            self.forked = true;
        }
    }

    /// An attempt does something while `durable` is what a power loss would leave.
    pub fn act(&mut self, act: Act, attempt: usize, durable: &[Line]) {
        let claims = |line: &Line| matches!(line, Line::Epoch { attempt: of, .. } if *of == attempt);
        let claim = durable.iter().rposition(claims);
        self.unclaimed |= claim.is_none();
        let own = claim.and_then(|at| durable.get(at..)).unwrap_or_default();
        match act {
            Act::Nothing => {}
            Act::AskModel => self.too_early |= !own.contains(&Line::Requested),
            Act::Effect(call) => {
                self.unallowed |= !durable.contains(&Line::Ruled(call));
                self.too_early |= !own.contains(&Line::Started(call));
                self.refunds += u8::from(call == Call::Refund);
            }
            Act::Report(outcome) => self.too_early |= !durable.contains(&Line::Finished(outcome)),
        }
    }
}

/// One moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    pub volume: Volume,
    /// The claim file of a mutation.
    pub locked: bool,
    pub attempts: Vec<Attempt>,
    pub seen: Seen,
    faults: Faults,
    mutation: Option<Mutation>,
}

impl World {
    pub fn mutated(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// Lets an attempt do something; gives how it is then.
    fn with(&mut self, at: usize, does: impl FnOnce(&mut Attempt, &mut Self)) {
        let Some(mut attempt) = self.attempts.get(at).cloned() else { return };
        does(&mut attempt, self);
        if let Some(place) = self.attempts.get_mut(at) {
            *place = attempt;
        }
    }

    /// Lets a new attempt run, which nothing disturbs; gives whether it comes to tell an end.
    pub fn is_finished_by_a_new_attempt(&self) -> bool {
        const ENOUGH: usize = 64;
        let mut world = Self { attempts: Vec::new(), seen: Seen::default(), ..self.clone() };
        let mut attempt = Attempt::new(self.attempts.len());
        for _ in 0..ENOUGH {
            match (attempt.at, attempt.act) {
                (At::Acting, Act::Report(_)) => return true,
                (At::Over, _) => return false,
                (At::Reading, _) => {
                    let end = world.volume.log().len();
                    attempt.read(&mut world, end);
                }
                (At::Read | At::Linking | At::Linked | At::Acting, _) => attempt.step(&mut world, Luck::Good),
            }
        }
        false
    }
}

/// What may happen. A frozen attempt is one that does not go on; a container that was stopped and let go too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// An attempt reads as far as it finds something: to the end, or, with a stale view, less far.
    Reads { attempt: usize, lines: usize },
    /// An attempt goes on by one step.
    Goes(usize),
    /// The same; and the reply of its link, or the answer of its tool, is lost.
    LosesReply(usize),
    /// An attempt is killed.
    Killed(usize),
    /// The power is lost, and with it what was not synced of these segments, and all who are running.
    PowerLost(Vec<usize>),
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            volume: Volume::default(),
            locked: false,
            attempts: (0..self.attempts).map(Attempt::new).collect(),
            seen: Seen::default(),
            faults: self.faults,
            mutation: self.mutation,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for attempt in &world.attempts {
            let at = attempt.number;
            match attempt.at {
                At::Over => {}
                At::Reading => {
                    let ends = world.volume.ends().into_iter().filter(|end| *end >= attempt.view.len());
                    actions.extend(ends.map(|lines| Action::Reads { attempt: at, lines }));
                }
                At::Read | At::Linked => actions.push(Action::Goes(at)),
                At::Linking | At::Acting => {
                    actions.push(Action::Goes(at));
                    let loses = attempt.at == At::Linking || matches!(attempt.act, Act::Effect(_));
                    if loses && world.faults.lost_replies > 0 {
                        actions.push(Action::LosesReply(at));
                    }
                }
            }
            if *attempt == Attempt::new(at) {
                // Attempts begin in order: what begins later is no other attempt.
                break;
            }
            if attempt.at != At::Over && self.faults.kills {
                actions.push(Action::Killed(at));
            }
        }
        if world.faults.power_losses > 0 {
            actions.extend(subsets(&world.volume.at_risk()).into_iter().map(Action::PowerLost));
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        match action {
            Action::Reads { attempt, lines } => next.with(attempt, |attempt, world| attempt.read(world, lines)),
            Action::Goes(at) => next.with(at, |attempt, world| attempt.step(world, Luck::Good)),
            Action::LosesReply(at) => {
                next.faults.lost_replies -= 1;
                next.with(at, |attempt, world| attempt.step(world, Luck::ReplyLost));
            }
            Action::Killed(at) => next.with(at, |attempt, _| attempt.end()),
            Action::PowerLost(lost) => {
                next.faults.power_losses -= 1;
                next.volume.lose(&lost);
                if !next.mutated(Mutation::StorageForgets) {
                    let begun = next.attempts.iter_mut().filter(|attempt| **attempt != Attempt::new(attempt.number));
                    begun.for_each(Attempt::end);
                }
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

fn subsets(of: &[usize]) -> Vec<Vec<usize>> {
    of.iter().fold(vec![Vec::new()], |subsets, one| {
        let with = subsets.iter().map(|subset| subset.iter().chain([one]).copied().collect());
        subsets.clone().into_iter().chain(with).collect()
    })
}
