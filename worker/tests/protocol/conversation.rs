//! Models a conversation: one model answer with a read inside of the pod and two calls with effect, and then the end. The calls may
//! need the approval of a person.

/// A call of the model answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// May happen at most once.
    Refund,
    /// May be repeated, because its tool is idempotent.
    Notify,
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
    Requested,
    Answered,
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

/// What an attempt decides from, besides the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Rules {
    /// Whether the calls need an approval.
    pub approvals: bool,
    /// The decision in the run document of the attempt.
    pub given: Option<(Call, Verdict)>,
    /// Whether a mutation believes the approvals in the log.
    pub believes_approvals: bool,
    /// Whether a mutation follows the rulings in the log.
    pub follows_rulings: bool,
}

impl Rules {
    fn allows(self, call: Call, log: &[Line]) -> bool {
        !self.approvals || folded(call, log, self).approved
    }
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
    for line in log {
        if state.is_settled {
            break;
        }
        match *line {
            Line::Approved(of) if of == call && state.last == Some(Line::Held(call)) => {
                let counts = rules.believes_approvals || rules.given == Some((call, Verdict::Approve));
                state.uncounted |= !counts;
                if counts {
                    (state.approved, state.last) = (true, Some(*line));
                }
            }
            Line::Denied(of) if of == call => {
                state.is_settled = state.last == Some(Line::Held(call));
                state.last = state.is_settled.then_some(*line).or(state.last);
            }
            Line::Completed(of) if of == call => (state.is_settled, state.last) = (true, Some(*line)),
            Line::Ruled(of) | Line::Held(of) | Line::Started(of) | Line::Indeterminate(of) if of == call => {
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
    rules.approvals && finished(log).is_none() && [Call::Refund, Call::Notify].into_iter().any(is_tampered)
}

fn finished(log: &[Line]) -> Option<Outcome> {
    log.iter().find_map(|line| if let Line::Finished(outcome) = line { Some(*outcome) } else { None })
}

/// The maximum number of times that an idempotent call is sent.
const MAX_TRIES: usize = 2;

/// Returns the lines to make durable next, and the act after them. Both depend only on the log and the run document.
pub fn next(log: &[Line], rules: Rules) -> (Vec<Line>, Act) {
    if let Some(outcome) = finished(log) {
        return (Vec::new(), Act::Report(outcome));
    }
    if !log.contains(&Line::Answered) {
        return (vec![Line::Requested], Act::AskModel);
    }
    if !log.contains(&Line::Looked) {
        return (Vec::new(), Act::Look);
    }
    let mut calls = [Call::Refund, Call::Notify].into_iter();
    calls.find_map(|call| next_of_call(call, log, rules)).unwrap_or_else(|| end(Outcome::Succeeded))
}

fn end(outcome: Outcome) -> (Vec<Line>, Act) {
    (vec![Line::Finished(outcome)], Act::Report(outcome))
}

/// Returns the next lines and the act of a call; none if it is settled.
fn next_of_call(call: Call, log: &[Line], rules: Rules) -> Option<(Vec<Line>, Act)> {
    let state = folded(call, log, rules);
    // The gate rules again just before the call.
    let allowed = rules.allows(call, log) || (rules.follows_rulings && state.last == Some(Line::Ruled(call)));
    let hold = (vec![Line::Held(call)], Act::Ask(call));
    let send = (vec![Line::Started(call)], Act::Effect(call));
    Some(match state.last {
        Some(Line::Completed(_) | Line::Denied(_)) => return None,
        None | Some(Line::Approved(_)) if allowed => (vec![Line::Ruled(call), Line::Started(call)], Act::Effect(call)),
        Some(Line::Ruled(_)) if allowed => send,
        Some(Line::Held(_)) => match rules.given {
            Some((of, Verdict::Approve)) if of == call => (vec![Line::Approved(call)], Act::Nothing),
            Some((of, Verdict::Deny)) if of == call => (vec![Line::Denied(call)], Act::Nothing),
            _ => (Vec::new(), Act::Ask(call)),
        },
        Some(Line::Started(_)) => (vec![Line::Indeterminate(call)], Act::Nothing),
        Some(Line::Indeterminate(_)) => {
            let tries = log.iter().filter(|line| **line == Line::Started(call)).count();
            match (call == Call::Notify && tries < MAX_TRIES, allowed) {
                (true, true) => send,
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
