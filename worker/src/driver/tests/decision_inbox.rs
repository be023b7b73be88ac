//! Held calls that people decide while no pod runs.

use super::*;
use bloomery_crds::report::HeldCallDetails;
use bloomery_crds::run::GivenDecision;
use bloomery_crds::v1alpha1::ApprovalVerdict;
use rstest::rstest;
use serde_json::json;

/// Returns a stand whose first attempt has parked with a held refund, and the details of the call.
pub(super) async fn parked() -> (Stand, HeldCallDetails) {
    parked_by("amount > 10").await
}

/// Returns a stand whose first attempt has parked with a refund that is held by this condition, and the details of the call.
pub(super) async fn parked_by(condition: &str) -> (Stand, HeldCallDetails) {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    stand.skill.policy = Some(
        // The server lists no arguments.
        serde_json::from_value(json!({"allowUnmatched": true, "approvals": [
            { "toolId": "refund", "when": condition, "action": "require_approval", "approver": "supervisor" },
        ]}))
        .unwrap(),
    );
    stand.skill.engine = Some(serde_json::from_value(json!({"approvalExpiry": "90m"})).unwrap());
    assert_eq!(stand.run(1).await, Exit::Parked(ParkReason::Approval));
    let hold = reported_hold(&stand);
    (stand, hold)
}

/// Returns the details of the held call in the last report.
pub(super) fn reported_hold(stand: &Stand) -> HeldCallDetails {
    let last = stand.reports().pop().unwrap().report;
    assert_eq!(last.end, Some(PodEnd::Parked(ParkReason::Approval)));
    let hold = last.hold.unwrap();
    let call = last.projection.waiting_for.unwrap().call.unwrap();
    assert_eq!((call.id, call.digest), (hold.call.clone(), bloomery_crds::Digest::of_bytes(hold.arguments.as_bytes())));
    hold
}

pub(super) fn decision_on(hold: &HeldCallDetails, verdict: ApprovalVerdict) -> GivenDecision {
    GivenDecision {
        call: hold.call.clone(),
        tool: Some("refund".into()),
        digest: bloomery_crds::Digest::of_bytes(hold.arguments.as_bytes()),
        approver: "supervisor".into(),
        verdict,
        by: "jane@acme.io".into(),
        reason: (verdict != ApprovalVerdict::Expired).then(|| "it arrived whole".to_owned()),
    }
}

fn count(stand: &Stand, event: &str) -> usize {
    stand.events().iter().filter(|name| **name == event).count()
}

#[tokio::test]
async fn the_report_of_a_held_call_has_the_details_for_the_decision() {
    let (stand, hold) = parked().await;
    assert_eq!((hold.goal.as_str(), hold.expiry_seconds), ("Refund order A-17", Some(5400)));
    assert!(hold.arguments.starts_with('{'), "{}", hold.arguments);
    let rule = &hold.rules[0];
    assert!(rule.text.contains("amount > 10") && rule.approver.as_deref() == Some("supervisor"), "{rule:?}");
    let last = hold.events.last().unwrap();
    assert!(last.contains("tool.held"), "{:?}", hold.events);
    assert!(hold.events.len() <= 8);
    assert_eq!(stand.shop.effects().len(), 0);
}

#[tokio::test]
async fn the_next_attempt_makes_an_approved_call_once_without_another_model_request() {
    let (mut stand, hold) = parked().await;
    let asked = stand.model.request_count();
    let before = stand.log();
    stand.decided = vec![decision_on(&hold, ApprovalVerdict::Approve)];
    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!((outcome(&stand, 2), count(&stand, "tool.approved")), (OutcomeCode::Succeeded, 1));
    assert_eq!(stand.log()[..before.len()], before);
    assert_eq!(stand.shop.effects().iter().filter(|(tool, _)| tool == "refund").count(), 1);
    let undisturbed = Stand::new(refund(), Refund::Answers).await;
    undisturbed.run(1).await;
    assert_eq!(stand.model.request_count(), undisturbed.model.request_count(), "{asked} of them before");
    // The reports of the next attempt have no held call.
    let resumed: Vec<_> = stand.reports().into_iter().filter(|received| received.report.attempt == 2).collect();
    assert!(resumed.last().unwrap().report.hold.is_none());
}

#[rstest]
#[case::denied(ApprovalVerdict::Deny, "Denied by a person: jane@acme.io denied it for supervisor: it arrived whole")]
#[case::expired(ApprovalVerdict::Expired, "Denied: no decision for supervisor was seen in time")]
#[tokio::test]
async fn the_model_sees_the_reason_of_a_denial(#[case] verdict: ApprovalVerdict, #[case] reason: &str) {
    let (mut stand, hold) = parked().await;
    stand.decided = vec![decision_on(&hold, verdict)];
    stand.run(2).await;
    assert_eq!(count(&stand, "tool.denied"), 1);
    assert!(stand.shop.effects().iter().all(|(tool, _)| tool != "refund"));
    let asked = stand.model.requests();
    assert!(asked.iter().any(|request| request["messages"].to_string().contains(reason)), "{:?}", asked.last());
}

#[tokio::test]
async fn a_decision_for_another_call_is_ignored() {
    let (mut stand, hold) = parked().await;
    let decided = decision_on(&hold, ApprovalVerdict::Approve);
    stand.decided = vec![
        GivenDecision { call: "c-99".into(), ..decided.clone() },
        GivenDecision { digest: bloomery_crds::Digest::of_bytes(b"other"), ..decided.clone() },
        GivenDecision { approver: "me".into(), ..decided },
    ];
    assert_eq!(stand.run(2).await, Exit::Parked(ParkReason::Approval));
    assert_eq!((count(&stand, "tool.approved"), stand.shop.effects().len()), (0, 0));
    // The held call is reported again, so that other people can be asked.
    assert_eq!(reported_hold(&stand), hold, "the details have the events of the first attempt");
}
