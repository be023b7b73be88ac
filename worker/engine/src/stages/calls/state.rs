//! The state of the calls.

use super::arguments::InvalidArguments;
use super::script_ends::{ScriptEnds, failure_clause};
use crate::event::{Answer, Arguments, CallId, Decision, RequestedCall, ReservationAnswer, RulingReason};
use crate::stages::approval::Hold;
use bloomery_crds::Digest;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{HeldCall, Limits, PreTool, Ruling, Verdict};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The number of failures of the same call after which the Job ends as `Stuck`.
const MAX_FAILURES_OF_ONE_CALL: u32 = 3;

/// The longest name of a tool in a ruling, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// The longest reason of a ruling, in bytes.
const MAX_REASON_BYTES: usize = 256;

/// The calls of the latest answer, and the counts and evidence of all calls of the conversation.
#[derive(Debug, Default)]
pub struct Calls {
    all: Vec<Call>,
    /// The text of the answer that requested the calls.
    answer_text: String,
    /// The counts and the latest rulings of the gate.
    rulings: PreTool,
    /// The calls that have given evidence: the digests of the arguments, by tool.
    evidence: BTreeMap<String, BTreeSet<[u8; 32]>>,
    /// The number of failures of each call, by tool and digest of the arguments.
    failures: BTreeMap<(String, Digest), u32>,
    /// The number of children that were started.
    children: usize,
    /// The ends of the latest calls of scripts.
    script_ends: ScriptEnds,
}

impl Calls {
    /// Replaces the calls by those of an answer, which is logged at `seq`.
    pub(super) fn begin(&mut self, seq: u64, answer: &Answer) {
        self.answer_text.clone_from(&answer.text);
        let requested = answer.calls.iter().enumerate();
        self.all = requested.map(|(i, requested)| Call::new(CallId::new(seq, i), requested, answer.cut)).collect();
    }

    /// Returns the calls, which are all settled, and removes them. If one of them is lost, it removes none: the end of the Job names
    /// the lost call.
    pub(super) fn take_settled(&mut self) -> Vec<Call> {
        if self.all.iter().any(Call::is_lost) { self.all.clone() } else { std::mem::take(&mut self.all) }
    }

    /// Counts a ruling, and keeps it among the latest.
    pub(crate) fn count_ruling(&mut self, tool: &str, verdict: Verdict, reasons: &[RulingReason]) {
        match verdict {
            Verdict::Allow => self.rulings.allowed += 1,
            Verdict::Hold => self.rulings.held += 1,
            Verdict::Deny => self.rulings.denied += 1,
        }
        if self.rulings.last.len() == PreTool::MAX_LAST {
            self.rulings.last.remove(0);
        }
        self.rulings.last.push(Ruling {
            tool: bounded(tool, MAX_NAME_BYTES),
            verdict,
            rule: reasons.first().map(|reason| reason.layer),
            reason: reasons.first().map(|reason| bounded(&reason.detail, MAX_REASON_BYTES)),
        });
    }

    /// Records that a call has given evidence. Returns whether the evidence is new: no earlier call with the same tool and arguments
    /// has given evidence.
    pub(super) fn add_evidence(&mut self, id: &CallId) -> bool {
        let Some((tool, digest)) = self.identity(id) else { return false };
        digest.bytes().is_some_and(|digest| self.evidence.entry(tool).or_default().insert(digest))
    }

    /// Counts the failure of a call. Returns how often calls with the same tool and arguments have failed.
    pub(super) fn count_failure(&mut self, id: &CallId) -> u32 {
        let identity = self.identity(id);
        // Repetitions within one answer count once: the model did not know of the failure yet.
        let is_repeated = self.all.iter().any(|call| call.has_failed() && self.identity(&call.id) == identity);
        let Some(identity) = identity else { return 1 };
        let times = self.failures.entry(identity).or_default();
        *times += u32::from(!is_repeated);
        *times
    }

    /// Records the end of a call of a script, and the text of its failure if it has failed. `tool` is the name of the tool.
    pub(super) fn record_script(&mut self, tool: String, failure: Option<&str>) {
        self.script_ends.insert(tool, failure.map(failure_clause));
    }

    /// The ends of the latest calls of scripts.
    pub(crate) fn script_ends(&self) -> &ScriptEnds {
        &self.script_ends
    }

    /// Counts a child that was started.
    pub(super) fn count_child(&mut self) {
        self.children += 1;
    }

    /// The number of children that were started.
    pub(super) fn children(&self) -> usize {
        self.children
    }

    /// Returns the tool of a call that has failed too often.
    pub(crate) fn stuck_on(&self) -> Option<&str> {
        let failed = self.failures.iter().find(|(_, times)| **times >= MAX_FAILURES_OF_ONE_CALL);
        failed.map(|((tool, _), _)| tool.as_str())
    }

    /// Forgets the approvals that do not count, because they were given for an earlier Job with the same run key.
    pub(crate) fn forget_uncounted_approvals(&mut self) {
        for call in &mut self.all {
            call.uncounted = None;
        }
    }

    pub(crate) fn get(&self, id: &CallId) -> Option<&Call> {
        self.all.iter().find(|call| &call.id == id)
    }

    pub(crate) fn get_mut(&mut self, id: &CallId) -> Option<&mut Call> {
        self.all.iter_mut().find(|call| &call.id == id)
    }

    /// The calls of the latest answer, until all of them are settled.
    pub fn all(&self) -> &[Call] {
        &self.all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The text of the answer that requested the calls.
    pub fn answer_text(&self) -> &str {
        &self.answer_text
    }

    /// The counts and the latest rulings of the gate.
    pub fn rulings(&self) -> &PreTool {
        &self.rulings
    }

    /// The first call that waits for an approval.
    pub fn held(&self) -> Option<&HeldCall> {
        self.all.iter().filter(|call| call.state == CallState::Held).find_map(|call| call.held.as_ref())
    }

    /// Returns the tool of a call and the digest of its arguments. Calls with the same identity count as the same call.
    fn identity(&self, id: &CallId) -> Option<(String, Digest)> {
        let call = self.get(id)?;
        match call.arguments.as_ref()? {
            Arguments::Canonical(arguments) => Some((call.tool.clone(), arguments.digest().clone())),
            Arguments::Malformed { .. } => None,
        }
    }
}

/// A call of the latest answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The id, unique within the Job.
    pub id: CallId,
    /// The provider's id, for the history.
    pub provider_id: String,
    /// The alias of the tool: the name that the model uses.
    pub tool: String,
    /// The arguments as the model wrote them.
    pub raw_arguments: String,
    /// The secrets whose values the model wrote into the arguments.
    pub secrets: Vec<String>,
    /// Whether the answer was cut off at a length limit, so that the call may be incomplete.
    pub cut: bool,
    /// The canonical arguments, once the call is requested.
    pub arguments: Option<Arguments>,
    /// The progress of the call.
    pub state: CallState,
    /// The reasons that hold the call.
    pub hold: Hold,
    /// The call as `Job.status` shows it while it is held.
    pub held: Option<HeldCall>,
    /// An approval in the log that does not count.
    pub uncounted: Option<Decision>,
    /// The answer of the ledger of the Skill, for the limits with a window.
    pub reservation: Option<ReservationAnswer>,
    /// The number of times that the call was sent.
    pub tries: u32,
    /// The child of the call, if it invokes a Skill.
    pub child: Option<Child>,
    /// The result for the model, once the call is settled.
    pub result: String,
}

/// The child of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Child {
    /// It was requested, and is not known to have ended.
    Open {
        /// The name of its Job.
        job: String,
        /// The name of its Skill.
        skill: String,
        /// The reserved limits.
        limits: Limits,
    },
    /// It has ended.
    Ended {
        /// The result of the call, for the model.
        text: String,
    },
}

/// The progress of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    /// The model has requested it, and the gate has not ruled on it.
    Requested,
    /// The gate has allowed it.
    Allowed,
    /// It waits for a person's decision.
    Held,
    /// It is a question whose answer will be its result.
    AwaitingReply,
    /// The worker of an epoch has sent it, or was about to.
    Started {
        /// The epoch.
        epoch: u64,
    },
    /// Its answer was lost, and it may be sent again.
    Retry,
    /// It has its result.
    Settled(Settlement),
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// The server answered it.
    Completed,
    /// The server answered with a failure, the call was never sent, or the answer to a read was lost too often.
    Failed,
    /// The gate or a person denied it.
    Denied,
    /// An earlier call of the answer was not completed.
    Skipped,
    /// Its answer was lost: it may have happened.
    Indeterminate,
}

impl Call {
    fn new(id: CallId, requested: &RequestedCall, cut: bool) -> Self {
        Self {
            id,
            provider_id: requested.id.clone(),
            tool: requested.name.clone(),
            raw_arguments: requested.arguments.clone(),
            secrets: requested.secrets.clone(),
            cut,
            arguments: None,
            state: CallState::Requested,
            hold: Hold::default(),
            held: None,
            uncounted: None,
            reservation: None,
            tries: 0,
            child: None,
            result: String::new(),
        }
    }

    /// Reads the canonical arguments.
    ///
    /// # Errors
    /// If the call has no arguments yet, or they have no canonical form.
    pub fn read_arguments(&self) -> Result<&Value, InvalidArguments> {
        match &self.arguments {
            Some(Arguments::Canonical(arguments)) => arguments.value().map_err(InvalidArguments::new),
            Some(Arguments::Malformed { reason }) => Err(InvalidArguments::new(reason)),
            None => Err(InvalidArguments::new("the call has no arguments on record")),
        }
    }

    /// Returns whether the call has its result.
    pub fn is_settled(&self) -> bool {
        matches!(self.state, CallState::Settled(_))
    }

    /// Returns whether the call was sent and has no result yet.
    pub(crate) fn is_sent(&self) -> bool {
        matches!(self.state, CallState::Started { .. } | CallState::Retry)
    }

    /// Returns whether the call is settled without a known outcome.
    pub(crate) fn is_lost(&self) -> bool {
        self.state == CallState::Settled(Settlement::Indeterminate)
    }

    fn has_failed(&self) -> bool {
        self.state == CallState::Settled(Settlement::Failed)
    }

    /// Returns whether the call was denied, failed or was lost, so that later calls with effect are skipped.
    pub(crate) fn was_not_completed(&self) -> bool {
        match self.state {
            CallState::Settled(Settlement::Denied | Settlement::Failed | Settlement::Indeterminate) => true,
            CallState::Settled(Settlement::Completed | Settlement::Skipped)
            | CallState::Requested
            | CallState::Allowed
            | CallState::Held
            | CallState::AwaitingReply
            | CallState::Started { .. }
            | CallState::Retry => false,
        }
    }
}

/// Returns the result of a failed call for the model. If one more failure ends the Job, it adds a warning.
pub(super) fn failed_text(text: &str, times: u32) -> String {
    if times + 1 < MAX_FAILURES_OF_ONE_CALL {
        return format!("Failed: {text}");
    }
    format!("Failed: {text}\nThis call has failed {times} times. One more failure ends the Job: do something else.")
}
