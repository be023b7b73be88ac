//! The objections of the gate's layers to a call.

use crate::event::RulingReason;
use bloomery_crds::v1alpha1::{GateReason, Verdict};

/// The objection of one layer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objection {
    /// The verdict: a hold or a denial.
    pub verdict: Verdict,
    /// The reason.
    pub reason: RulingReason,
}

impl Objection {
    /// Returns a denial.
    pub fn deny(layer: GateReason, detail: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Deny,
            reason: RulingReason { layer, detail: detail.into(), approver: None, rule: None },
        }
    }

    /// Returns a hold until `approver` has decided. If the layer names none, the gate finds the approver.
    pub fn hold(layer: GateReason, detail: impl Into<String>, approver: Option<&str>) -> Self {
        let approver = approver.map(str::to_owned);
        let reason = RulingReason { layer, detail: detail.into(), approver, rule: None };
        Self { verdict: Verdict::Hold, reason }
    }

    /// Names the rule, because its detail may change between two rulings on the same call.
    #[must_use]
    pub fn of_rule(self, rule: String) -> Self {
        Self { reason: RulingReason { rule: Some(rule), ..self.reason }, ..self }
    }
}
