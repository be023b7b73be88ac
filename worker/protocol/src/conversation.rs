//! Models a conversation: the list of tools, one model answer with a read inside of the pod and two calls, and then the end. The calls
//! may need the approval of a person.

use crate::mutation::Mutation;

/// A call of the model answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// Only reads, outside of the pod. It may be repeated, and has no `tool.started`.
    Check,
    /// May happen at most once.
    Refund,
    /// May be repeated, because its tool is idempotent.
    #[default]
    Notify,
}

/// The arguments of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Text {
    /// As the model wrote them.
    Real,
    /// As a writer that lies wrote them.
    Forged,
}

/// The outcome of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    Succeeded,
    Indeterminate,
}

/// One line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Line {
    Epoch {
        number: u8,
        attempt: usize,
    },
    /// The list of tools. The first one counts.
    Fixed {
        /// Whether it says that all tools only read. Only a writer that lies says so.
        all_read: bool,
    },
    Requested,
    /// A message or a result that lifts the rule which holds the calls, if the rule depends on facts.
    Fact,
    Answered {
        text: Text,
        /// The stored digest, which may be that of another text.
        digest: Text,
    },
    /// The ruling and the outcome of the read inside of the pod.
    Looked,
    /// The gate has allowed the call.
    Ruled(Call),
    /// The gate holds the call until a person decides.
    Held(Call),
    Approved(Call),
    Denied(Call),
    Started(Call),
    Completed(Call),
    Indeterminate(Call),
    Finished(Outcome),
    /// A line whose content was not synced and is lost.
    Lost,
}

/// An act of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// No act outside of the log.
    Nothing,
    AskModel,
    /// The read inside of the pod.
    Look,
    Effect(Call),
    /// The report that a call is held, with which the attempt parks.
    Ask(Call),
    Report(Outcome),
}

/// The decision of a person on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    Approve,
    Deny,
}

/// The calls that people were asked about and have not approved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Asked {
    refund: bool,
    other: bool,
}

impl Asked {
    pub fn contains(self, call: Call) -> bool {
        if call == Call::Refund { self.refund } else { self.other }
    }

    pub fn set(&mut self, call: Call, is_asked: bool) {
        *(if call == Call::Refund { &mut self.refund } else { &mut self.other }) = is_asked;
    }
}

/// What an attempt decides from, besides the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Rules {
    /// Whether the calls need an approval.
    pub approvals: bool,
    /// Whether the rule that holds the calls depends on facts in the log.
    pub facts: bool,
    /// The call beside the refund.
    pub other: Call,
    /// The decision in the run document of the attempt. It is about these arguments.
    pub given: Option<(Call, Text, Verdict)>,
    /// The calls in the run document that people were asked about and have not approved.
    pub asked: Asked,
    pub mutation: Option<Mutation>,
}

impl Rules {
    fn mutated(self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// The calls of the answer, in their order.
    fn calls(self) -> [Call; 2] {
        let mut calls = [Call::Refund, self.other];
        calls.sort();
        calls
    }

    fn allows(self, call: Call, log: &[Line]) -> bool {
        !self.needs_approval(call, log) || folded(call, log, self).approved
    }

    fn needs_approval(self, call: Call, log: &[Line]) -> bool {
        let is_lifted = self.facts && log.contains(&Line::Fact);
        self.approvals && (!is_lifted || (self.asked.contains(call) && !self.mutated(Mutation::BelieveFacts)))
    }

    fn decision_on(self, call: Call, log: &[Line]) -> Option<Verdict> {
        let (of, text, verdict) = self.given?;
        (of == call && Some(text) == digest(log, self)).then_some(verdict)
    }

    /// Returns whether a call only reads. The Skill in the run document decides, and not the list of tools in the log.
    fn is_read(self, call: Call, log: &[Line]) -> bool {
        let all_read =
            log.iter().find_map(|line| if let Line::Fixed { all_read } = line { Some(*all_read) } else { None });
        call == Call::Check || (self.mutated(Mutation::BelieveCatalogue) && all_read == Some(true))
    }
}

/// Returns the arguments of the calls, which are those of the first answer.
pub fn text(log: &[Line]) -> Option<Text> {
    log.iter().find_map(|line| if let Line::Answered { text, .. } = line { Some(*text) } else { None })
}

/// Returns the digest of the arguments, which identifies a text. It is computed from the text.
fn digest(log: &[Line], rules: Rules) -> Option<Text> {
    let stored =
        || log.iter().find_map(|line| if let Line::Answered { digest, .. } = line { Some(*digest) } else { None });
    if rules.mutated(Mutation::BelieveDigest) { stored() } else { text(log) }
}

/// The state of a call, as a fold of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct CallState {
    last: Option<Line>,
    is_settled: bool,
    /// Whether an approval counts.
    approved: bool,
    /// Whether the log has an approval that does not count.
    uncounted: bool,
}

fn folded(call: Call, log: &[Line], rules: Rules) -> CallState {
    let mut state = CallState::default();
    let mut lost = 0;
    for line in log {
        if state.is_settled {
            break;
        }
        let previous = state.last;
        let is_lost = call == Call::Refund && previous == Some(Line::Indeterminate(call)) && !rules.is_read(call, log);
        match *line {
            Line::Approved(of) if of == call && previous == Some(Line::Held(call)) => {
                let is_approved = rules.decision_on(call, log) == Some(Verdict::Approve);
                let counts = is_approved || rules.mutated(Mutation::BelieveApprovals);
                state.uncounted |= !counts;
                if counts {
                    (state.approved, state.last) = (true, Some(*line));
                }
            }
            Line::Denied(of) if of == call && previous == Some(Line::Held(call)) => {
                (state.is_settled, state.last) = (true, Some(*line));
            }
            Line::Completed(of) if of == call => (state.is_settled, state.last) = (true, Some(*line)),
            // A call that was started is not ruled on before its answer is known to be lost. A lost refund is settled.
            Line::Ruled(of) | Line::Held(of)
                if of == call
                    && !is_lost
                    && (previous != Some(Line::Started(call)) || rules.mutated(Mutation::FollowLateRulings)) =>
            {
                state.last = Some(*line);
            }
            // A worker starts only a call that the gate has allowed.
            Line::Started(of)
                if of == call && !is_lost && matches!(previous, Some(Line::Ruled(_) | Line::Indeterminate(_))) =>
            {
                state.last = Some(*line);
            }
            Line::Indeterminate(of) if of == call => {
                lost += 1;
                // A read that is lost too often has failed.
                state.is_settled = rules.is_read(call, log) && lost >= MAX_TRIES;
                state.last = Some(*line);
            }
            _ => {}
        }
    }
    state
}

/// Returns whether the log approves a call that is not settled, without the decision of the operator. Nothing is added to such a
/// log.
pub fn is_tampered(log: &[Line], rules: Rules) -> bool {
    let is_tampered = |call| {
        let state = folded(call, log, rules);
        state.uncounted && !state.is_settled
    };
    rules.approvals && finished(log).is_none() && rules.calls().into_iter().any(is_tampered)
}

fn finished(log: &[Line]) -> Option<Outcome> {
    log.iter().find_map(|line| if let Line::Finished(outcome) = line { Some(*outcome) } else { None })
}

/// The maximum number of times that a read, or a call of an idempotent tool, is sent.
const MAX_TRIES: usize = 2;

/// Returns the lines to make durable next, and the act after them. Both depend only on the log and the run document.
pub fn next(log: &[Line], rules: Rules) -> (Vec<Line>, Act) {
    if let Some(outcome) = finished(log) {
        return (Vec::new(), Act::Report(outcome));
    }
    if text(log).is_none() {
        let is_fixed = log.iter().any(|line| matches!(line, Line::Fixed { .. }));
        let tools = (!is_fixed).then_some(Line::Fixed { all_read: false });
        return (tools.into_iter().chain([Line::Requested]).collect(), Act::AskModel);
    }
    if !log.contains(&Line::Looked) {
        return (Vec::new(), Act::Look);
    }
    rules.calls().into_iter().find_map(|call| next_of_call(call, log, rules)).unwrap_or_else(|| end(Outcome::Succeeded))
}

fn end(outcome: Outcome) -> (Vec<Line>, Act) {
    (vec![Line::Finished(outcome)], Act::Report(outcome))
}

/// Returns the next lines and the act of a call; none if it is settled.
fn next_of_call(call: Call, log: &[Line], rules: Rules) -> Option<(Vec<Line>, Act)> {
    let state = folded(call, log, rules);
    if state.is_settled {
        return None;
    }
    // The gate rules again just before the call.
    let allowed = rules.allows(call, log)
        || (state.last == Some(Line::Ruled(call)) && rules.mutated(Mutation::FollowRulings))
        || (state.last == Some(Line::Started(call)) && rules.mutated(Mutation::FollowStartedReads));
    let is_read = rules.is_read(call, log);
    let hold = (vec![Line::Held(call)], Act::Ask(call));
    let send = || (if is_read { Vec::new() } else { vec![Line::Started(call)] }, Act::Effect(call));
    Some(match state.last {
        None | Some(Line::Approved(_)) if allowed => {
            let (lines, act) = send();
            ([vec![Line::Ruled(call)], lines].concat(), act)
        }
        Some(Line::Ruled(_)) if allowed => send(),
        Some(Line::Held(_)) => match rules.decision_on(call, log) {
            Some(Verdict::Approve) => (vec![Line::Approved(call)], Act::Nothing),
            Some(Verdict::Deny) => (vec![Line::Denied(call)], Act::Nothing),
            None => (Vec::new(), Act::Ask(call)),
        },
        Some(Line::Started(_)) if is_read && allowed => send(),
        Some(Line::Started(_)) if !is_read => (vec![Line::Indeterminate(call)], Act::Nothing),
        Some(Line::Indeterminate(_)) => {
            let tries = log.iter().filter(|line| **line == Line::Started(call)).count();
            match (is_read || (call == Call::Notify && tries < MAX_TRIES), allowed) {
                (true, true) => send(),
                (true, false) => hold,
                (false, _) => end(Outcome::Indeterminate),
            }
        }
        _ => hold,
    })
}

/// Returns the number of the last epoch, or 0.
pub fn epoch(log: &[Line]) -> u8 {
    log.iter()
        .rev()
        .find_map(|line| if let Line::Epoch { number, .. } = line { Some(*number) } else { None })
        .unwrap_or(0)
}
