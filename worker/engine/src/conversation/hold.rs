//! What holds a call, and what of it people have lifted.

use crate::event::RulingReason;
use std::collections::BTreeSet;

/// The reasons that hold a call until people have decided.
///
/// An approval lifts the reasons that name its approver and stood there when it was given, and no other: two holds
/// with different approvers need both, and what holds the call later holds it (`engine.md`, section 3).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hold {
    reasons: Vec<RulingReason>,
    lifted: Vec<RulingReason>,
}

impl Hold {
    /// Holds by the reasons of a ruling; those that were lifted before stay so.
    pub(super) fn by(&mut self, reasons: &[RulingReason]) {
        reasons.clone_into(&mut self.reasons);
    }

    /// Lifts what names the approver; gives whether there was anything.
    pub(super) fn lift(&mut self, approver: &str) -> bool {
        let names = |reason: &RulingReason| reason.approver.as_deref() == Some(approver);
        let (lifted, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.reasons).into_iter().partition(names);
        self.reasons = left;
        let any = !lifted.is_empty();
        self.lifted.extend(lifted);
        any
    }

    /// What still holds the call.
    pub fn reasons(&self) -> &[RulingReason] {
        &self.reasons
    }

    /// Who still has to approve.
    pub fn approvers(&self) -> Vec<&str> {
        let named: BTreeSet<&str> = self.reasons.iter().filter_map(|reason| reason.approver.as_deref()).collect();
        named.into_iter().collect()
    }

    /// Whether this reason was lifted.
    pub fn is_lifted(&self, reason: &RulingReason) -> bool {
        self.lifted.contains(reason)
    }
}
