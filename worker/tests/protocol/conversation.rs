//! What the protocol needs to know of a conversation: one answer that asks for two calls, then the end.

/// A call of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// May happen once at most.
    Refund,
    /// May be repeated: its tool is idempotent.
    Notify,
}

/// How a conversation ends.
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
    Ruled(Call),
    Started(Call),
    Completed(Call),
    Indeterminate(Call),
    Finished(Outcome),
    /// What is left of a line whose content was never synced.
    Lost,
}

/// What is done once it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// Nothing outside: the line itself was the point.
    Nothing,
    AskModel,
    Effect(Call),
    Report(Outcome),
}

/// How often a call that may be repeated is sent.
const MAX_TRIES: usize = 2;

/// What is to be durable next, and what is to be done then. A fold of the log and of nothing else.
pub fn next(log: &[Line]) -> (Vec<Line>, Act) {
    let finished = log.iter().find_map(|line| if let Line::Finished(outcome) = line { Some(*outcome) } else { None });
    if let Some(outcome) = finished {
        return (Vec::new(), Act::Report(outcome));
    }
    if !log.contains(&Line::Answered) {
        return (vec![Line::Requested], Act::AskModel);
    }
    for call in [Call::Refund, Call::Notify] {
        let about = |line: &&Line| {
            [Line::Ruled(call), Line::Started(call), Line::Completed(call), Line::Indeterminate(call)].contains(line)
        };
        match log.iter().rev().find(about) {
            Some(Line::Completed(_)) => {}
            None => return (vec![Line::Ruled(call), Line::Started(call)], Act::Effect(call)),
            Some(Line::Ruled(_)) => return (vec![Line::Started(call)], Act::Effect(call)),
            Some(Line::Started(_)) => return (vec![Line::Indeterminate(call)], Act::Nothing),
            Some(_) => {
                let tries = log.iter().filter(|line| **line == Line::Started(call)).count();
                return if call == Call::Notify && tries < MAX_TRIES {
                    (vec![Line::Started(call)], Act::Effect(call))
                } else {
                    (vec![Line::Finished(Outcome::Indeterminate)], Act::Report(Outcome::Indeterminate))
                };
            }
        }
    }
    (vec![Line::Finished(Outcome::Succeeded)], Act::Report(Outcome::Succeeded))
}

/// The number of the last epoch.
pub fn epoch(log: &[Line]) -> u8 {
    log.iter()
        .rev()
        .find_map(|line| if let Line::Epoch { number, .. } = line { Some(*number) } else { None })
        .unwrap_or(0)
}
