//! Calls that people decide on while no pod runs.

use super::*;
use bloomery_crds::report::HeldCallDetails;
use bloomery_crds::run::GivenDecision;
use bloomery_crds::v1alpha1::ApprovalVerdict;
use rstest::rstest;
use serde_json::json;

/// A stand whose refund is held, after its first attempt has parked with it.
async fn parked() -> (Stand, HeldCallDetails) {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    stand.skill.policy = Some(
        serde_json::from_value(json!({"approvals": [
            { "toolId": "refund", "when": "amount > 10", "action": "require_approval", "approver": "supervisor" },
        ]}))
        .unwrap(),
    );
    stand.skill.engine = Some(serde_json::from_value(json!({"approvalExpiry": "90m"})).unwrap());
    assert_eq!(stand.run(1).await, Exit::Parked(ParkReason::Approval));
    let hold = told(&stand);
    (stand, hold)
}

/// What the last report says of the held call.
fn told(stand: &Stand) -> HeldCallDetails {
    let last = stand.reports().pop().unwrap().report;
    assert_eq!(last.end, Some(PodEnd::Parked(ParkReason::Approval)));
    let hold = last.hold.unwrap();
    let call = last.projection.waiting_for.unwrap().call.unwrap();
    assert_eq!((call.id, call.digest), (hold.call.clone(), bloomery_crds::Digest::of_bytes(hold.arguments.as_bytes())));
    hold
}

fn decides(hold: &HeldCallDetails, verdict: ApprovalVerdict) -> GivenDecision {
    GivenDecision {
        call: hold.call.clone(),
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
async fn a_held_call_is_told_with_all_that_people_decide_on() {
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
async fn an_approved_call_is_made_once_in_the_next_attempt_and_no_model_is_asked_again() {
    let (mut stand, hold) = parked().await;
    let asked = stand.model.request_count();
    let before = stand.log();
    stand.decided = vec![decides(&hold, ApprovalVerdict::Approve)];
    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!((outcome(&stand, 2), count(&stand, "tool.approved")), (OutcomeCode::Succeeded, 1));
    assert_eq!(stand.log()[..before.len()], before);
    assert_eq!(stand.shop.effects().iter().filter(|(tool, _)| tool == "refund").count(), 1);
    let undisturbed = Stand::new(refund(), Refund::Answers).await;
    undisturbed.run(1).await;
    assert_eq!(stand.model.request_count(), undisturbed.model.request_count(), "{asked} of them before");
    // The worker says that it is at work before anybody else would.
    let resumed: Vec<_> = stand.reports().into_iter().filter(|taken| taken.report.attempt == 2).collect();
    assert!(resumed.last().unwrap().report.hold.is_none());
}

#[rstest]
#[case::denied(ApprovalVerdict::Deny, "Denied by a person: jane@acme.io denied it for supervisor: it arrived whole")]
#[case::expired(ApprovalVerdict::Expired, "Denied: no decision for supervisor was seen in time")]
#[tokio::test]
async fn what_is_not_approved_is_told_to_the_model(#[case] verdict: ApprovalVerdict, #[case] told: &str) {
    let (mut stand, hold) = parked().await;
    stand.decided = vec![decides(&hold, verdict)];
    stand.run(2).await;
    assert_eq!(count(&stand, "tool.denied"), 1);
    assert!(stand.shop.effects().iter().all(|(tool, _)| tool != "refund"));
    let asked = stand.model.requests();
    assert!(asked.iter().any(|request| request["messages"].to_string().contains(told)), "{:?}", asked.last());
}

#[tokio::test]
async fn a_decision_that_is_not_of_this_call_is_not_heard() {
    let (mut stand, hold) = parked().await;
    let decided = decides(&hold, ApprovalVerdict::Approve);
    stand.decided = vec![
        GivenDecision { call: "c-99".into(), ..decided.clone() },
        GivenDecision { digest: bloomery_crds::Digest::of_bytes(b"other"), ..decided.clone() },
        GivenDecision { approver: "me".into(), ..decided },
    ];
    assert_eq!(stand.run(2).await, Exit::Parked(ParkReason::Approval));
    assert_eq!((count(&stand, "tool.approved"), stand.shop.effects().len()), (0, 0));
    // It is told again, so that people can be asked who were not.
    assert_eq!(told(&stand), hold, "with what led to it, which was in the attempt before");
}
