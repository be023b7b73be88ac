//! Models the volume and its attempts, and all actions that may happen.

use crate::attempt::{At, Attempt, StepResult};
use crate::conversation::{Act, Asked, Call, Line, Rules, Text, Verdict, epoch, text};
use crate::mutation::Mutation;
use crate::properties;
use crate::volume::{Segment, Volume};
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

impl Faults {
    pub const NONE: Self = Self { power_losses: 0, lost_replies: 0, kills: false };
}

/// The protocol to check, with the number of attempts and the faults.
#[derive(Debug)]
pub struct Protocol {
    attempts: usize,
    faults: Faults,
    mutation: Option<Mutation>,
    /// Whether the calls need approvals.
    approvals: bool,
    /// Whether the rule that holds the calls depends on facts in the log.
    facts: bool,
    /// The call beside the refund.
    other: Call,
    /// The number of changes of a writer that lies.
    lies: u8,
    /// A cache of [`Protocol::makes_progress`], which depends only on the volume, the lock and the decisions.
    progress: Mutex<HashMap<(Volume, bool, People), bool>>,
}

impl Protocol {
    pub fn new(attempts: usize, faults: Faults) -> Self {
        Self {
            attempts,
            faults,
            mutation: None,
            approvals: false,
            facts: false,
            other: Call::Notify,
            lies: 0,
            progress: Mutex::default(),
        }
    }

    /// Lets the calls need approvals.
    pub fn with_approvals(self) -> Self {
        Self { approvals: true, ..self }
    }

    /// Adds a writer that can change the directory so often. It may be a pod that claims epochs.
    pub fn with_liar(self, lies: u8) -> Self {
        Self { approvals: true, lies, ..self }
    }

    /// Lets the rule that holds the calls depend on facts in the log. A writer that lies can lift the rule.
    pub fn with_facts(self) -> Self {
        Self { facts: true, ..self }
    }

    /// Lets the calls need no approvals.
    pub fn without_approvals(self) -> Self {
        Self { approvals: false, ..self }
    }

    /// Begins with a call that only reads. It needs an approval all the same. A writer that lies then lies about this call.
    pub fn with_read(self) -> Self {
        Self { other: Call::Check, ..self }
    }

    pub fn with(self, mutation: Mutation) -> Self {
        Self { mutation: Some(mutation), ..self }
    }

    /// Returns whether a new attempt finishes the conversation if there are no faults.
    pub fn makes_progress(&self, world: &World) -> bool {
        let key = (world.volume.clone(), world.locked, world.people);
        *self.progress.lock().unwrap().entry(key).or_insert_with(|| world.is_finished_by_a_new_attempt())
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
    /// Whether the read that needs an approval was made.
    pub checks: bool,
    /// Whether a writer that lies has removed lines.
    pub has_lost_lines: bool,
    /// Whether a call was made without a durable Allow.
    pub unallowed: bool,
    /// Whether an attempt acted without a durable claim.
    pub unclaimed: bool,
    /// Whether an attempt acted before the lines that the act needs were durable.
    pub too_early: bool,
    /// Whether a call that needs an approval was made without the decision in the attempt's run document.
    pub unapproved: bool,
    /// Whether a call that people were asked about was made without the decision in the attempt's run document.
    pub undecided: bool,
    /// Whether the latest attempt ended because the log was tampered with.
    pub tampered: bool,
    /// Whether an attempt added lines to a log that was tampered with.
    pub added_to_tampered: bool,
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
    pub fn act(&mut self, act: Act, attempt: &Attempt, durable: &[Line]) {
        let claims = |line: &Line| matches!(line, Line::Epoch { attempt: of, .. } if *of == attempt.number);
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
                self.too_early |= call != Call::Check && !own.contains(&Line::Started(call));
                self.refunds += u8::from(call == Call::Refund);
                self.checks |= call == Call::Check;
                // The worker sends the text of the log.
                let approved = attempt.rules.given.filter(|(_, _, verdict)| *verdict == Verdict::Approve);
                let is_approved =
                    approved.map(|(call, text, _)| (call, Some(text))) == Some((call, text(&attempt.view)));
                self.unapproved |= attempt.rules.approvals && !is_approved;
                self.undecided |= attempt.rules.asked.contains(call) && !is_approved;
            }
            Act::Ask(call) => self.too_early |= !durable.contains(&Line::Held(call)),
            Act::Report(outcome) => self.too_early |= !durable.contains(&Line::Finished(outcome)),
        }
    }
}

/// The people and the operator: the calls that people were asked about, and their decisions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct People {
    /// The latest call that an attempt has reported as held, and its arguments.
    asked: Option<(Call, Text)>,
    /// The decision on it. Decisions on earlier calls are not passed to attempts.
    decided: Option<Verdict>,
    /// The calls that they were asked about and have not approved. The status of the Job records them.
    unapproved: Asked,
    /// The number of lines that the operator has acknowledged with that report. Later attempts wait for them.
    pub acknowledged: usize,
    /// The attempts that have read the decision.
    passed: u8,
    /// Whether a person has denied the refund.
    pub refund_denied: bool,
}

impl People {
    /// Reports a held call. The operator ignores a call before the latest one. It asks again about other arguments.
    pub fn ask(&mut self, asked: (Call, Text), lines: usize) {
        let is_new = self.asked.is_none_or(|latest| latest.0 < asked.0 || (latest.0 == asked.0 && latest.1 != asked.1));
        if is_new {
            *self = Self { asked: Some(asked), decided: None, passed: 0, acknowledged: lines, ..*self };
            self.unapproved.set(asked.0, true);
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
    pub people: People,
    faults: Faults,
    mutation: Option<Mutation>,
    approvals: bool,
    facts: bool,
    other: Call,
    lies: u8,
}

impl World {
    pub fn mutated(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// Returns the rules of an attempt that starts now. Its run document has the decision on the latest call that people were asked
    /// about.
    pub fn rules(&mut self) -> Rules {
        let People { asked, decided, passed, .. } = self.people;
        let is_withheld = self.mutated(Mutation::DecisionPassedOnce) && passed > 0;
        self.people.passed += u8::from(decided.is_some() && self.mutated(Mutation::DecisionPassedOnce));
        Rules {
            approvals: self.approvals,
            facts: self.facts,
            other: self.other,
            asked: self.people.unapproved,
            given: asked.zip(decided).filter(|_| !is_withheld).map(|((call, text), verdict)| (call, text, verdict)),
            mutation: self.mutation,
        }
    }

    /// Changes the directory as a writer that lies.
    fn lie(&mut self, lie: &Lie) {
        let ends = self.volume.ends();
        let last = ends.last().copied().unwrap_or_default();
        match lie {
            Lie::Removes => {
                if let Some(before) = ends.iter().rev().nth(1) {
                    self.volume.segments.remove(&(before + 1));
                    self.seen.has_lost_lines = true;
                }
            }
            Lie::Adds(lines) => {
                let segment = Segment { lines: lines.clone(), content_synced: true, name_synced: true };
                self.volume.segments.insert(last + 1, segment);
            }
        }
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
                // A held call waits for a person, and not for a pod.
                (At::Acting, Act::Report(_) | Act::Ask(_)) => return true,
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
    /// A person decides on the call that is held.
    Decides(Verdict),
    /// A writer that lies changes the directory.
    Lies(Lie),
    /// The power is lost. These segments lose everything unsynced, and all running attempts end.
    PowerLost(Vec<usize>),
}

/// A change of the directory by a writer that lies. It replaces a segment in two changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lie {
    /// It removes the last segment.
    Removes,
    /// It adds a segment with these lines.
    Adds(Vec<Line>),
}

/// Returns the lies that a writer may add to a log, in an epoch of its own or in that of another attempt. If a call only
/// reads, the lies are about this call.
fn lies(log: &[Line], other: Call, facts: bool) -> Vec<Lie> {
    const LIAR: usize = usize::MAX;
    let claim = Line::Epoch { number: epoch(log) + 1, attempt: LIAR };
    let about = if other == Call::Check { vec![other] } else { vec![Call::Refund, other] };
    let lines = about.into_iter().flat_map(|call| {
        let [held, approved, denied, ruled, started] =
            [Line::Held(call), Line::Approved(call), Line::Denied(call), Line::Ruled(call), Line::Started(call)];
        [
            vec![claim, approved],
            vec![ruled],
            vec![ruled, started],
            vec![held, approved, ruled],
            vec![approved, ruled, started],
            vec![ruled, started, Line::Indeterminate(call)],
            vec![denied, approved, ruled],
        ]
        .into_iter()
        .chain(facts.then(|| vec![Line::Fact, ruled]))
    });
    let facts = facts.then(|| vec![Line::Fact]);
    let tools = vec![Line::Fixed { all_read: true }];
    let forged =
        vec![Line::Answered { text: Text::Forged, digest: Text::Real }, Line::Looked, Line::Held(Call::Refund)];
    let forged = Some(forged).filter(|_| text(log).is_none());
    lines.chain([tools]).chain(facts).chain(forged).map(Lie::Adds).chain([Lie::Removes]).collect()
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
            people: People::default(),
            faults: self.faults,
            mutation: self.mutation,
            approvals: self.approvals,
            facts: self.facts,
            other: self.other,
            lies: self.lies,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for attempt in &world.attempts {
            let at = attempt.number;
            match attempt.at {
                At::Over => {}
                At::Reading => {
                    let ends = world.volume.ends();
                    let last = ends.last().copied().unwrap_or_default();
                    let acknowledged = world.people.acknowledged.min(last);
                    let ends = ends.into_iter().filter(|end| *end >= attempt.view.len() && *end >= acknowledged);
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
        if world.people.asked.is_some() && world.people.decided.is_none() {
            actions.extend([Verdict::Approve, Verdict::Deny].map(Action::Decides));
        }
        if world.lies > 0 {
            actions.extend(lies(&world.volume.log(), self.other, self.facts).into_iter().map(Action::Lies));
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
            Action::Decides(verdict) => {
                next.people.decided = Some(verdict);
                if let (Some((call, _)), Verdict::Approve) = (next.people.asked, verdict) {
                    next.people.unapproved.set(call, false);
                }
                next.people.refund_denied |=
                    (next.people.asked.map(|(call, _)| call), verdict) == (Some(Call::Refund), Verdict::Deny);
            }
            Action::Lies(lie) => {
                next.lies -= 1;
                next.lie(&lie);
            }
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
        match (self.approvals, self.lies) {
            (_, 1..) if self.facts => properties::despite_forged_facts(),
            (_, 1..) => properties::despite_lies(self.other),
            (true, 0) => properties::with_approvals(self.other),
            (false, 0) => properties::all(),
        }
    }
}

fn subsets(of: &[usize]) -> Vec<Vec<usize>> {
    of.iter().fold(vec![Vec::new()], |subsets, one| {
        let with = subsets.iter().map(|subset| subset.iter().chain([one]).copied().collect());
        subsets.clone().into_iter().chain(with).collect()
    })
}
