//! Models a conversation: one model answer with a read inside of the pod and two calls with effect, and then the end.

/// A call of the model answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    Ruled(Call),
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
    Report(Outcome),
}

/// The maximum number of times that an idempotent call is sent.
const MAX_TRIES: usize = 2;

/// Returns the lines to make durable next, and the act after them. Both depend only on the log.
pub fn next(log: &[Line]) -> (Vec<Line>, Act) {
    let finished = log.iter().find_map(|line| if let Line::Finished(outcome) = line { Some(*outcome) } else { None });
    if let Some(outcome) = finished {
        return (Vec::new(), Act::Report(outcome));
    }
    if !log.contains(&Line::Answered) {
        return (vec![Line::Requested], Act::AskModel);
    }
    if !log.contains(&Line::Looked) {
        return (Vec::new(), Act::Look);
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

/// Returns the number of the last epoch, or 0.
pub fn epoch(log: &[Line]) -> u8 {
    log.iter()
        .rev()
        .find_map(|line| if let Line::Epoch { number, .. } = line { Some(*number) } else { None })
        .unwrap_or(0)
}
