//! Approvals for tests.

use bloomery_crds::v1alpha1::Approval;
use jiff::Timestamp;
use serde_json::{Value, json};

/// An open Approval of the Job `refund` for an approver, until 08:00 of the day after [`now`].
pub fn approval(name: &str, approver: &str, arguments: &str) -> Approval {
    serde_json::from_value(json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Approval",
        "metadata": {"name": name, "namespace": "acme", "labels": {"bloomery.dev/job": "refund"}},
        "spec": {
            "job": "refund", "jobUid": "uid-1", "approver": approver, "tool": "process_refund", "callId": "c-7",
            "arguments": arguments, "argumentsDigest": format!("sha256:{}", "0".repeat(64)),
            "rules": [
                {"layer": "Approval", "text": "amount > 500", "approver": "supervisor"},
                {"layer": "Guardrail", "text": "Always confirm before making changes"},
            ],
            "goal": "Refund order A-17,\nit arrived broken",
            "events": ["2027-01-15T08:00:00Z    9 tool.held           c-7"],
            "expiresAt": "2027-01-16T08:00:00Z",
        },
    }))
    .unwrap()
}

/// The Approval `refund-1` with a decision.
pub fn decided(decision: Value) -> Approval {
    let mut approval = approval("refund-1", "supervisor", "{}");
    approval.spec.decision = serde_json::from_value(decision).unwrap();
    approval
}

/// A time at which the Approval is open.
pub fn now() -> Timestamp {
    "2027-01-15T08:30:10Z".parse().unwrap()
}
