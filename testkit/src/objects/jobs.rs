//! Jobs for tests.

use bloomery_crds::outcome::{Outcome, Phase};
use bloomery_crds::v1alpha1::{Job, JobStatus};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The current time of the tests: one hour after the creation of each Job.
pub fn now() -> Timestamp {
    "2027-01-15T09:00:00Z".parse().unwrap()
}

/// A Job without a status.
pub fn job(name: &str) -> Job {
    with_status(name, &Value::Null)
}

fn with_status(name: &str, status: &Value) -> Job {
    serde_json::from_value(json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Job",
        "metadata": {
            "name": name, "namespace": "acme", "uid": "uid-1", "resourceVersion": "41",
            "creationTimestamp": "2027-01-15T08:00:00Z",
        },
        "spec": {"skill": "cs-tier-1", "goal": "Refund order A-443"},
        "status": status,
    }))
    .unwrap()
}

/// A Job in a phase.
pub fn in_phase(phase: Phase) -> Job {
    with_status("refund", &json!({"phase": phase}))
}

/// The status fields of a Job that has started.
fn started_status() -> Value {
    let digest = format!("sha256:{}", "0".repeat(64));
    json!({
        "attempt": {"number": 1, "pod": "refund-1-01234"},
        "skillRevision": {"name": "cs-tier-1-4f1c9a2e", "digest": digest},
        "gates": {
            "intent": {"id": "refund", "entities": {"order_id": "A-443"}, "outOfDomain": false},
            "preTool": {
                "allowed": 1, "denied": 1, "held": 1,
                "last": [
                    {"tool": "check_eligibility", "verdict": "Allow"},
                    {"tool": "delete_order", "verdict": "Deny", "rule": "Policy", "reason": "no tool of the Skill"},
                ],
            },
            "finalization": {
                "attempts": [{
                    "passed": false, "score": 0.4, "reasons": [{"code": "GOAL_NOT_MET", "detail": "nothing was refunded"}],
                }],
                "passed": false,
            },
        },
        "workflows": [{"name": "refund", "required": true, "done": ["check"], "open": ["pay"]}],
        "usage": {
            "llmCalls": {"intent": 1, "plan": 3}, "inputTokens": 900, "outputTokens": 100, "toolCalls": 1, "seconds": 9,
        },
        "log": {"path": "jobs/refund-01234", "events": 21, "head": digest},
        "startTime": "2027-01-15T08:10:00Z",
        "conditions": [],
    })
}

fn extend(status: &mut Value, more: &Value) {
    let (Some(status), Some(more)) = (status.as_object_mut(), more.as_object()) else { return };
    status.extend(more.clone());
}

/// A Job with a held call that waits for two approvers.
pub fn with_held_call() -> Job {
    let mut status = started_status();
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": status, "reason": reason, "message": message,
               "lastTransitionTime": "2027-01-15T08:20:00Z"})
    };
    let message = "process_refund waits for supervisor";
    extend(
        &mut status,
        &json!({
            "phase": "AwaitingApproval",
            "waitingFor": {
                "since": "2027-01-15T08:20:00Z",
                "call": {
                    "id": "c-7", "tool": "process_refund", "digest": format!("sha256:{}", "0".repeat(64)),
                    "approvers": ["finance", "supervisor"], "reason": "amount > 500 needs approval",
                },
                "approvals": ["refund-1f0c4a9b27", "refund-2f0c4a9b27"],
            },
            "conditions": [
                condition("Ready", "False", "AwaitingApproval", message),
                condition("Reconciling", "True", "AwaitingApproval", message),
                condition("SkillAsWritten", "False", "Differs", "the tool delete_order is not there"),
            ],
        }),
    );
    with_status("refund", &status)
}

/// A Job with two open questions: `q-1` has no choices, `q-2` has choices.
pub fn with_questions() -> Job {
    let mut status = started_status();
    extend(
        &mut status,
        &json!({
            "phase": "AwaitingReply",
            "repliesHeard": 1,
            "waitingFor": {"since": "2027-01-15T08:20:00Z", "questions": [
                {"id": "q-1", "text": "Which order\nis meant?", "refused": "\"B\" is no order"},
                {"id": "q-2", "text": "Did it happen?", "choices": ["happened", "did not happen", "stop"]},
            ]},
        }),
    );
    let mut job = with_status("refund", &status);
    job.spec.replies = vec![serde_json::from_value(json!({"question": "q-1", "text": "B"})).unwrap()];
    job
}

/// A Job that has ended.
pub fn ended(outcome: &Outcome) -> Job {
    let mut status = started_status();
    extend(
        &mut status,
        &json!({
            "phase": outcome.phase(), "outcome": outcome, "completionTime": "2027-01-15T08:40:00Z",
            "result": {"text": "Order A-443 was refunded.", "fields": {"amount": 901.9}, "verified": true},
        }),
    );
    with_status("refund", &status)
}

/// Changes the status of a Job.
pub fn changed(mut job: Job, change: impl FnOnce(&mut JobStatus)) -> Job {
    change(job.status.get_or_insert_default());
    job
}
