//! The calls that count towards the limits of a Job.

use crate::amount::Amount;
use crate::event::CallId;
use std::collections::BTreeMap;

/// The amounts of the calls that count, by call. A fold of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent(BTreeMap<CallId, Vec<(usize, Amount)>>);

impl Spent {
    /// Counts a call, with its amount for each limit by the position of the limit. A call counts once, however often it is sent.
    pub(crate) fn count(&mut self, call: &CallId, amounts: Vec<(usize, Amount)>) {
        if !amounts.is_empty() {
            self.0.entry(call.clone()).or_insert(amounts);
        }
    }

    /// Returns the amounts of a call that is known not to have happened.
    pub(crate) fn give_back(&mut self, call: &CallId) {
        self.0.remove(call);
    }

    /// Returns what other calls than `call` have spent of a limit.
    pub(super) fn by_others(&self, limit: usize, call: &CallId) -> Amount {
        let others = self.0.iter().filter(|(id, _)| *id != call).flat_map(|(_, amounts)| amounts);
        others.filter(|(at, _)| *at == limit).fold(Amount::default(), |sum, (_, amount)| sum.plus(*amount))
    }
}
