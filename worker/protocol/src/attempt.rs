//! Models one attempt: it reads the log, claims an epoch, and then repeatedly makes lines durable and acts, until it ends or is
//! superseded.

use crate::conversation::{Act, Call, Line, Rules, Text, epoch, is_tampered, next, text};
use crate::mutation::Mutation;
use crate::volume::Segment;
use crate::world::World;

/// The state of an attempt. It may freeze in each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum At {
    /// Before it reads the log, for the first time or again.
    Reading,
    /// After it has read the log, before it syncs the directory.
    Read,
    /// Before a link.
    Linking,
    /// After a link, before the directory is synced.
    Linked,
    /// After all lines that the act needs are durable. A read inside of the pod needs none, so lines may be pending.
    Acting,
    /// The attempt was killed, was superseded, found a broken log, or has reported its end.
    Over,
}

/// An attempt: its state, and what it has in memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Attempt {
    pub number: usize,
    pub at: At,
    /// The log as the attempt has read and written it.
    pub view: Vec<Line>,
    /// The lines to make durable next.
    pub pending: Vec<Line>,
    /// The act after these lines are durable.
    pub act: Act,
    /// Whether its epoch has begun.
    pub begun: bool,
    /// The decision in its run document, and the rules that it follows.
    pub rules: Rules,
}

/// Whether the attempt learns the result of its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepResult {
    Done,
    /// The reply of a successful link, or the answer of a tool, is lost.
    ReplyLost,
}

impl Attempt {
    pub fn new(number: usize) -> Self {
        Self {
            number,
            at: At::Reading,
            view: Vec::new(),
            pending: Vec::new(),
            act: Act::Nothing,
            begun: false,
            rules: Rules::default(),
        }
    }

    /// Ends the attempt. Clears its memory, so that the checker recognizes equal states.
    pub fn end(&mut self) {
        *self = Self { at: At::Over, ..Self::new(self.number) };
    }

    /// Returns whether a later attempt has begun. The operator then ignores the reports of this one.
    fn is_replaced(&self, world: &World) -> bool {
        world.attempts.iter().skip(self.number + 1).any(|later| *later != Self::new(later.number))
    }

    /// Reads the log up to `end`. With a stale view of the directory, a reader stops before the real end.
    pub fn read(&mut self, world: &mut World, end: usize) {
        if *self == Self::new(self.number) {
            self.rules = world.rules();
        }
        self.view = world.volume.log().into_iter().take(end).collect();
        // A log that lacks acknowledged lines is not continued either.
        if self.view.len() < world.people.acknowledged {
            return self.end();
        }
        // A log with a gap or an unreadable segment is broken and is not continued.
        if self.view.contains(&Line::Lost) || (world.volume.has_gap() && Some(&end) == world.volume.ends().last()) {
            return self.end();
        }
        if is_tampered(&self.view, self.rules) && !world.mutated(Mutation::ClaimTampered) {
            world.seen.tampered |= !self.is_replaced(world);
            return self.end();
        }
        self.at = At::Read;
        if world.mutated(Mutation::NoSyncOfPrefix) {
            self.claim(world);
        }
    }

    /// Performs one step.
    pub fn step(&mut self, world: &mut World, result: StepResult) {
        match self.at {
            At::Reading | At::Over => {}
            At::Read => {
                world.volume.sync();
                self.claim(world);
            }
            At::Linking => self.link(world, result),
            At::Linked => {
                if !world.mutated(Mutation::NoSyncOfNames) {
                    world.volume.sync();
                }
                self.lines_acknowledged(world);
            }
            At::Acting => self.perform(world, result),
        }
    }

    fn claim(&mut self, world: &mut World) {
        if world.mutated(Mutation::ActBeforeClaim) {
            self.begun = true;
            return self.plan(world, Vec::new());
        }
        if world.mutated(Mutation::LockFile) && std::mem::replace(&mut world.locked, true) {
            return self.end();
        }
        self.pending = vec![Line::Epoch { number: epoch(&self.view) + 1, attempt: self.number }];
        self.act = Act::Nothing;
        self.at = At::Linking;
    }

    /// Returns whether lines are pending during a read inside of the pod.
    pub fn may_flush(&self) -> bool {
        (self.at, self.act) == (At::Acting, Act::Look) && !self.pending.is_empty()
    }

    /// Makes the pending lines durable before the read ends, because it takes long.
    pub fn flush(&mut self) {
        self.at = At::Linking;
    }

    /// Determines the lines to make durable next, and the act after them. `outcome` are the lines of the last act.
    fn plan(&mut self, world: &World, outcome: Vec<Line>) {
        let known: Vec<Line> = self.view.iter().chain(&outcome).copied().collect();
        // The outcome of an effect is made durable at once. Other outcomes are written with the next lines.
        if let [Line::Completed(call) | Line::Indeterminate(call)] = outcome.as_slice()
            && *call != Call::Check
        {
            (self.pending, self.act) = (outcome, Act::Nothing);
        } else {
            let (lines, act) = next(&known, self.rules);
            self.pending = outcome.into_iter().chain(lines).collect();
            self.act = act;
        }
        if self.pending.first() == Some(&Line::Indeterminate(Call::Refund)) && world.mutated(Mutation::StartedSentAgain)
        {
            (self.pending, self.act) = (vec![Line::Started(Call::Refund)], Act::Effect(Call::Refund));
        }
        let early = match self.act {
            Act::Effect(_) => world.mutated(Mutation::EffectBeforeDurable),
            Act::Report(_) => world.mutated(Mutation::ReportBeforeDurable),
            Act::AskModel => world.mutated(Mutation::RequestBeforeDurable),
            // Lines may be pending during this read. They become durable with the lines of the next act, or earlier.
            Act::Look => true,
            Act::Ask(_) | Act::Nothing => false,
        };
        self.at = if self.pending.is_empty() || early { At::Acting } else { At::Linking };
    }

    fn link(&mut self, world: &mut World, result: StepResult) {
        let name = self.view.len() + 1;
        if self.begun && world.mutated(Mutation::AppendToSegment) {
            if let Some((_, own)) = world.volume.segments.range_mut(..name).next_back() {
                own.lines.extend(&self.pending);
            }
            return self.lines_acknowledged(world);
        }
        if world.volume.segments.contains_key(&name) && !world.mutated(Mutation::NamesReplaced) {
            return self.link_refused(world, name);
        }
        let content_synced = !world.mutated(Mutation::NoSyncOfContent);
        let segment = Segment { lines: self.pending.clone(), content_synced, name_synced: false };
        world.volume.segments.insert(name, segment);
        world.seen.added_to_tampered |= is_tampered(&self.view, self.rules);
        match result {
            StepResult::Done => self.at = At::Linked,
            StepResult::ReplyLost => self.link_refused(world, name),
        }
    }

    /// Reacts to a link that was refused, or whose reply was lost.
    fn link_refused(&mut self, world: &mut World, name: usize) {
        if !self.begun {
            (self.pending, self.at) = (Vec::new(), At::Reading);
        } else if world.mutated(Mutation::ContinueSuperseded) {
            self.lines_acknowledged(world);
        } else if world.mutated(Mutation::AdoptLines) {
            let found = world.volume.segments.get(&name).map(|segment| segment.lines.clone()).unwrap_or_default();
            let same = found == self.pending;
            self.view.extend(found);
            if same { self.at = At::Acting } else { self.plan(world, Vec::new()) }
        } else {
            self.end();
        }
    }

    /// Continues after the pending lines are durable, as far as the attempt knows.
    fn lines_acknowledged(&mut self, world: &mut World) {
        self.view.append(&mut self.pending);
        self.begun = true;
        world.seen.acknowledged(&self.view);
        if self.act == Act::Nothing { self.plan(world, Vec::new()) } else { self.at = At::Acting }
    }

    fn perform(&mut self, world: &mut World, result: StepResult) {
        let act = std::mem::replace(&mut self.act, Act::Nothing);
        world.seen.act(act, self, &world.volume.durable_log());
        let outcome = match (act, result) {
            (Act::Nothing, _) => Vec::new(),
            (Act::Look, _) => {
                if world.mutated(Mutation::PositionWithPending) {
                    world.seen.acknowledged(&[self.view.clone(), self.pending.clone()].concat());
                }
                let mut lines = std::mem::take(&mut self.pending);
                lines.push(Line::Looked);
                return self.plan(world, lines);
            }
            (Act::AskModel, _) => vec![Line::Answered { text: Text::Real, digest: Text::Real }],
            (Act::Effect(call), StepResult::Done) => vec![Line::Completed(call)],
            (Act::Effect(call), StepResult::ReplyLost) => vec![Line::Indeterminate(call)],
            (Act::Ask(call), _) => {
                if let Some(text) = text(&self.view).filter(|_| !self.is_replaced(world)) {
                    world.people.ask((call, text), self.view.len());
                }
                world.locked = false;
                return self.end();
            }
            (Act::Report(_), _) => {
                if world.mutated(Mutation::LogRemoved) {
                    world.volume.segments.clear();
                }
                world.locked = false;
                return self.end();
            }
        };
        if self.pending.is_empty() {
            self.plan(world, outcome);
        } else {
            // A mutation has acted before the pending lines were durable.
            self.pending.extend(outcome);
            self.at = At::Linking;
        }
    }
}
