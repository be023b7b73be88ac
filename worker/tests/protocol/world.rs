//! Models the volume and its attempts, and all actions that may happen.

use crate::attempt::{At, Attempt, StepResult};
use crate::conversation::{Act, Call, Line};
use crate::mutation::Mutation;
use crate::properties;
use crate::volume::Volume;
use stateright::{Model, Property};
use std::collections::HashMap;
use std::sync::Mutex;

/// The maximum number of faults of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Faults {
    pub power_losses: u8,
    /// Lost replies of links and lost answers of tools.
    pub lost_replies: u8,
    /// Whether attempts are killed. The other attempts cannot distinguish a killed attempt from one that is frozen forever.
    pub kills: bool,
}

/// The protocol to check, with the number of attempts and the faults.
#[derive(Debug)]
pub struct Protocol {
    attempts: usize,
    faults: Faults,
    mutation: Option<Mutation>,
    /// A cache of [`Protocol::makes_progress`], which depends only on the volume and the lock.
    progress: Mutex<HashMap<(Volume, bool), bool>>,
}

impl Protocol {
    pub fn new(attempts: usize, faults: Faults) -> Self {
        Self { attempts, faults, mutation: None, progress: Mutex::default() }
    }

    pub fn with(self, mutation: Mutation) -> Self {
        Self { mutation: Some(mutation), ..self }
    }

    /// Returns whether a new attempt finishes the conversation if there are no faults.
    pub fn makes_progress(&self, world: &World) -> bool {
        let volume = (world.volume.clone(), world.locked);
        *self.progress.lock().unwrap().entry(volume).or_insert_with(|| world.is_finished_by_a_new_attempt())
    }
}

/// What has happened so far, as the properties need it. The attempts do not see it.
#[allow(clippy::struct_excessive_bools, reason = "each one is a separate property")]
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Seen {
    /// The longest log that was acknowledged to an attempt.
    pub acknowledged: Vec<Line>,
    /// Whether the acknowledged logs of two attempts differ.
    pub forked: bool,
    /// The number of requests to the model, each of which has its own reserve.
    pub requests: usize,
    /// The number of refunds, of which there may be at most one.
    pub refunds: u8,
    /// Whether a call was made without a durable Allow.
    pub unallowed: bool,
    /// Whether an attempt acted without a durable claim.
    pub unclaimed: bool,
    /// Whether an attempt acted before the lines that the act needs were durable.
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

    /// Records an act of an attempt. `durable` is the log that a power loss would leave.
    pub fn act(&mut self, act: Act, attempt: usize, durable: &[Line]) {
        let claims = |line: &Line| matches!(line, Line::Epoch { attempt: of, .. } if *of == attempt);
        let claim = durable.iter().rposition(claims);
        self.unclaimed |= claim.is_none();
        let own = claim.and_then(|at| durable.get(at..)).unwrap_or_default();
        match act {
            Act::Nothing | Act::Look => {}
            Act::AskModel => {
                self.requests += 1;
                let reserves = durable.iter().filter(|line| **line == Line::Requested).count();
                self.too_early |= !own.contains(&Line::Requested) || reserves < self.requests;
            }
            Act::Effect(call) => {
                self.unallowed |= !durable.contains(&Line::Ruled(call));
                self.too_early |= !own.contains(&Line::Started(call));
                self.refunds += u8::from(call == Call::Refund);
            }
            Act::Report(outcome) => self.too_early |= !durable.contains(&Line::Finished(outcome)),
        }
    }
}

/// One state of the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    pub volume: Volume,
    /// Whether the lock file exists, which only a mutation uses.
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

    /// Changes an attempt and the world.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut Attempt, &mut Self)) {
        let Some(mut attempt) = self.attempts.get(at).cloned() else { return };
        change(&mut attempt, self);
        if let Some(place) = self.attempts.get_mut(at) {
            *place = attempt;
        }
    }

    /// Returns whether a new attempt reports an end if there are no faults.
    pub fn is_finished_by_a_new_attempt(&self) -> bool {
        const MAX_STEPS: usize = 64;
        let mut world = Self { attempts: Vec::new(), seen: Seen::default(), ..self.clone() };
        let mut attempt = Attempt::new(self.attempts.len());
        for _ in 0..MAX_STEPS {
            match (attempt.at, attempt.act) {
                (At::Acting, Act::Report(_)) => return true,
                (At::Over, _) => return false,
                (At::Reading, _) => {
                    let end = world.volume.log().len();
                    attempt.read(&mut world, end);
                }
                (At::Read | At::Linking | At::Linked | At::Acting, _) => attempt.step(&mut world, StepResult::Done),
            }
        }
        false
    }
}

/// An action that may happen next. An attempt that the checker gives no action is frozen, like a process in a paused container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// An attempt reads the log to its end, or less with a stale view of the directory.
    Reads { attempt: usize, lines: usize },
    /// An attempt performs one step.
    Steps(usize),
    /// An attempt performs one step, and the reply of its link or the answer of its tool is lost.
    LosesReply(usize),
    /// An attempt makes its pending lines durable before its read ends.
    Flushes(usize),
    /// An attempt is killed.
    Killed(usize),
    /// The power is lost. These segments lose everything unsynced, and all running attempts end.
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
                At::Read | At::Linked => actions.push(Action::Steps(at)),
                At::Linking | At::Acting => {
                    actions.push(Action::Steps(at));
                    let loses = attempt.at == At::Linking || matches!(attempt.act, Act::Effect(_));
                    if loses && world.faults.lost_replies > 0 {
                        actions.push(Action::LosesReply(at));
                    }
                }
            }
            if attempt.may_flush() {
                actions.push(Action::Flushes(at));
            }
            if *attempt == Attempt::new(at) {
                // Attempts begin in order, because they are interchangeable before they begin.
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
            Action::Reads { attempt, lines } => next.change(attempt, |attempt, world| attempt.read(world, lines)),
            Action::Steps(at) => next.change(at, |attempt, world| attempt.step(world, StepResult::Done)),
            Action::LosesReply(at) => {
                next.faults.lost_replies -= 1;
                next.change(at, |attempt, world| attempt.step(world, StepResult::ReplyLost));
            }
            Action::Flushes(at) => next.change(at, |attempt, _| attempt.flush()),
            Action::Killed(at) => next.change(at, |attempt, _| attempt.end()),
            Action::PowerLost(lost) => {
                next.faults.power_losses -= 1;
                next.volume.lose_power(&lost);
                if !next.mutated(Mutation::StorageLosesName) {
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
