//! One attempt: reads, claims, then makes durable what an act needs and acts, until it ends or loses.

use crate::conversation::{Act, Call, Line, epoch, next};
use crate::mutation::Mutation;
use crate::volume::Segment;
use crate::world::World;

/// Where an attempt stands, which is where it may freeze.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum At {
    /// Before it reads, or reads again.
    Reading,
    /// Has read, and has not synced the directory.
    Read,
    /// Before a link.
    Linking,
    /// After a link, before the directory is synced.
    Linked,
    /// Everything is durable that the act needs.
    Acting,
    /// It is dead, superseded, broken, or has told its end.
    Over,
}

/// What one attempt knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Attempt {
    pub number: usize,
    pub at: At,
    /// The log as it has read and written it.
    pub view: Vec<Line>,
    /// The lines that are to be durable next.
    pub pending: Vec<Line>,
    /// What is to be done then.
    pub act: Act,
    /// Its epoch has begun.
    pub begun: bool,
}

/// What becomes of what an attempt does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Luck {
    Good,
    /// A link succeeds and its reply is lost; an answer of a tool is lost.
    ReplyLost,
}

impl Attempt {
    pub fn new(number: usize) -> Self {
        Self { number, at: At::Reading, view: Vec::new(), pending: Vec::new(), act: Act::Nothing, begun: false }
    }

    /// Ends it; nothing that it knew matters any more.
    pub fn end(&mut self) {
        *self = Self { at: At::Over, ..Self::new(self.number) };
    }

    /// Reads the log up to `end`. A reader stops where it finds no next segment, now or, with a stale view, earlier.
    pub fn read(&mut self, world: &mut World, end: usize) {
        self.view = world.volume.log().into_iter().take(end).collect();
        // A segment beyond a gap, or one that cannot be read: the log is broken and is not continued.
        if self.view.contains(&Line::Lost) || (world.volume.has_gap() && Some(&end) == world.volume.ends().last()) {
            return self.end();
        }
        self.at = At::Read;
        if world.mutated(Mutation::NoSyncOfPrefix) {
            self.claim(world);
        }
    }

    /// Goes on by one step.
    pub fn step(&mut self, world: &mut World, luck: Luck) {
        match self.at {
            At::Reading | At::Over => {}
            At::Read => {
                world.volume.sync();
                self.claim(world);
            }
            At::Linking => self.link(world, luck),
            At::Linked => {
                if !world.mutated(Mutation::NoSyncOfNames) {
                    world.volume.sync();
                }
                self.acknowledged(world);
            }
            At::Acting => self.perform(world, luck),
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

    /// Says what is to be durable next, and what is to be done then. `outcome` is what the last act has brought.
    fn plan(&mut self, world: &World, outcome: Vec<Line>) {
        let known: Vec<Line> = self.view.iter().chain(&outcome).copied().collect();
        // The outcome of an effect is made durable at once; other outcomes go with what is written next.
        if let [Line::Completed(_) | Line::Indeterminate(_)] = outcome.as_slice() {
            (self.pending, self.act) = (outcome, Act::Nothing);
        } else {
            let (lines, act) = next(&known);
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
            Act::Nothing | Act::AskModel => false,
        };
        self.at = if self.pending.is_empty() || early { At::Acting } else { At::Linking };
    }

    fn link(&mut self, world: &mut World, luck: Luck) {
        let name = self.view.len() + 1;
        if self.begun && world.mutated(Mutation::AppendToSegment) {
            if let Some((_, own)) = world.volume.segments.range_mut(..name).next_back() {
                own.lines.extend(&self.pending);
            }
            return self.acknowledged(world);
        }
        if world.volume.segments.contains_key(&name) && !world.mutated(Mutation::NamesReplaced) {
            return self.refused(world, name);
        }
        let content_synced = !world.mutated(Mutation::NoSyncOfContent);
        let segment = Segment { lines: self.pending.clone(), content_synced, name_synced: false };
        world.volume.segments.insert(name, segment);
        match luck {
            Luck::Good => self.at = At::Linked,
            Luck::ReplyLost => self.refused(world, name),
        }
    }

    /// The name that it wanted exists, for all it knows.
    fn refused(&mut self, world: &mut World, name: usize) {
        if !self.begun {
            (self.pending, self.at) = (Vec::new(), At::Reading);
        } else if world.mutated(Mutation::LoserGoesOn) {
            self.acknowledged(world);
        } else if world.mutated(Mutation::AdoptLines) {
            let found = world.volume.segments.get(&name).map(|segment| segment.lines.clone()).unwrap_or_default();
            let same = found == self.pending;
            self.view.extend(found);
            if same { self.at = At::Acting } else { self.plan(world, Vec::new()) }
        } else {
            self.end();
        }
    }

    /// What was pending is durable, for all it knows.
    fn acknowledged(&mut self, world: &mut World) {
        self.view.append(&mut self.pending);
        self.begun = true;
        world.seen.acknowledged(&self.view);
        if self.act == Act::Nothing { self.plan(world, Vec::new()) } else { self.at = At::Acting }
    }

    fn perform(&mut self, world: &mut World, luck: Luck) {
        let act = std::mem::replace(&mut self.act, Act::Nothing);
        world.seen.act(act, self.number, &world.volume.durable_log());
        let outcome = match (act, luck) {
            (Act::Nothing, _) => Vec::new(),
            (Act::AskModel, _) => vec![Line::Answered],
            (Act::Effect(call), Luck::Good) => vec![Line::Completed(call)],
            (Act::Effect(call), Luck::ReplyLost) => vec![Line::Indeterminate(call)],
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
            // It has acted before what the act needs was durable.
            self.pending.extend(outcome);
            self.at = At::Linking;
        }
    }
}
