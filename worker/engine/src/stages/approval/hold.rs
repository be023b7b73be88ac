//! The reasons that hold a call, and the reasons that people have lifted.

use crate::event::RulingReason;
use std::collections::BTreeSet;

/// The reasons that hold a call until people have decided.
///
/// An approval lifts the current reasons of its approver, and no others. Two holds with different approvers need both, and a
/// later reason holds the call again (`docs/explanation/engine.md`, section 3).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hold {
    reasons: Vec<RulingReason>,
    lifted: Vec<RulingReason>,
}

impl Hold {
    /// Replaces the reasons by those of a ruling. Lifted reasons stay lifted.
    pub(super) fn set_reasons(&mut self, reasons: &[RulingReason]) {
        reasons.clone_into(&mut self.reasons);
    }

    /// Lifts the reasons that name the approver. Returns whether there was one.
    pub(super) fn lift(&mut self, approver: &str) -> bool {
        let names_approver = |reason: &RulingReason| reason.approver.as_deref() == Some(approver);
        let (lifted, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.reasons).into_iter().partition(names_approver);
        self.reasons = left;
        let has_lifted = !lifted.is_empty();
        self.lifted.extend(lifted);
        has_lifted
    }

    /// The reasons that still hold the call.
    pub fn reasons(&self) -> &[RulingReason] {
        &self.reasons
    }

    /// Returns the approvers who still have to approve.
    pub fn approvers(&self) -> Vec<&str> {
        let named: BTreeSet<&str> = self.reasons.iter().filter_map(|reason| reason.approver.as_deref()).collect();
        named.into_iter().collect()
    }

    /// Returns whether a reason was lifted.
    pub fn is_lifted(&self, reason: &RulingReason) -> bool {
        self.lifted.iter().any(|lifted| lifted.is_same_rule(reason))
    }
}
