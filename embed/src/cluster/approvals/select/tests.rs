use super::*;
use crate::error::ErrorKind;
use bloomery_testkit::objects::approvals::{approval, decided, now};
use rstest::rstest;
use serde_json::{Value, json};

fn of_job(approvals: Vec<Approval>) -> NameMatch {
    NameMatch::OfJob("refund".into(), approvals)
}

fn by_jane() -> Approval {
    decided(json!({"verdict": "Approve", "by": "jane@acme.io", "reason": "the photo shows it"}))
}

#[test]
fn the_name_of_a_job_selects_its_only_open_approval() {
    let open = approval("refund-2", "finance", "{}");
    assert_eq!(select_open(of_job(vec![by_jane(), open.clone()]), now()), Ok(open));
}

#[test]
fn one_of_several_open_approvals_has_to_be_named() {
    let both = vec![approval("refund-1", "supervisor", "{}"), approval("refund-2", "finance", "{}")];
    let error = select_open(of_job(both), now()).unwrap_err();
    let expected = "the Job refund has several open Approvals. Name one of them:\n  \
                    refund-1  process_refund: waits for supervisor\n  refund-2  process_refund: waits for finance";
    assert_eq!(error, Error::invalid(expected));
}

#[test]
fn the_error_for_a_job_without_open_approvals_lists_the_decisions() {
    let error = select_open(of_job(vec![by_jane()]), now()).unwrap_err();
    let expected = "no Approval of the Job refund is open:\n  \
                    refund-1  process_refund: is approved already, by jane@acme.io: the photo shows it";
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::TooLate, expected));
}

#[rstest]
#[case::approved(by_jane(), "refund-1 is approved already, by jane@acme.io: the photo shows it")]
#[case::denied(decided(json!({"verdict": "Deny", "by": "jane@acme.io"})), "refund-1 is denied already, by jane@acme.io")]
#[case::expired(
    decided(json!({"verdict": "Expired", "by": "system:serviceaccount:bloomery:bloomery"})),
    "refund-1 expired at 2027-01-16T08:00:00Z: nobody decided in time"
)]
#[case::cancelled(
    withdrawn("the Job was cancelled"),
    "refund-1 expired at 2027-01-15T08:20:00Z: the Job was cancelled"
)]
#[case::nobody_in_time(
    counted_at(expired(Some("nobody decided in time")), "2027-01-16T08:00:04Z"),
    "refund-1 expired at 2027-01-16T08:00:00Z: nobody decided in time"
)]
#[case::another_denied(
    decided(json!({"verdict": "Expired", "by": "bloomery", "reason": "another approver has denied the call"})),
    "refund-1 expired: another approver has denied the call"
)]
#[case::too_late(
    counted(json!({"verdict": "Approve", "by": "jane@acme.io"})),
    "refund-1 expired at 2027-01-16T08:00:00Z: the operator received the decision of jane@acme.io only after that"
)]
fn a_closed_approval_cannot_be_decided(#[case] approval: Approval, #[case] expected: &str) {
    let error = select_open(NameMatch::Approval(Box::new(approval)), now()).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::TooLate, expected));
}

fn expired(reason: Option<&str>) -> Value {
    json!({"verdict": "Expired", "by": "system:serviceaccount:bloomery:bloomery", "reason": reason})
}

/// An Approval that expired before its time, because its decision is no longer needed.
fn withdrawn(why: &str) -> Approval {
    counted_at(expired(Some(why)), "2027-01-15T08:20:00Z")
}

fn counted(decision: Value) -> Approval {
    counted_at(decision, "2027-01-16T08:00:00Z")
}

fn counted_at(decision: Value, at: &str) -> Approval {
    let mut approval = decided(decision);
    let status = json!({"counted": {"verdict": "Expired", "at": at}});
    approval.status = serde_json::from_value(status).unwrap();
    approval
}

#[test]
fn an_approval_expires_exactly_at_its_time() {
    let approval = approval("refund-1", "supervisor", "{}");
    let at = |time: &str| closed_reason(&approval, time.parse().unwrap());
    assert_eq!(at("2027-01-16T07:59:59.999Z"), None);
    assert!(at("2027-01-16T08:00:00Z").is_some_and(|why| why.contains("by the clock of this machine")));
}

#[test]
fn a_misspelled_name_gets_a_suggestion() {
    let known = BTreeSet::from(["refund-1f0c4a9b27".to_owned(), "refund".to_owned()]);
    let message = not_found("refnud", "acme", &known).message;
    assert!(message.contains("no Approval refnud") && message.ends_with("Did you mean \"refund\"?"), "{message}");
    let message = not_found("refund", "acme", &BTreeSet::new()).message;
    assert!(message.ends_with("There are no Approvals in it."), "{message}");
}

#[test]
fn a_change_in_the_meantime_is_reported() {
    let report = |current: Option<&Approval>| {
        let error = changed_error(current, "refund-1", now());
        (error.kind, error.message)
    };
    let (exit, message) = report(Some(&by_jane()));
    assert!(
        exit == ErrorKind::TooLate && message.contains("by jane@acme.io") && message.contains("was not recorded"),
        "{message}"
    );
    let (exit, message) = report(Some(&approval("refund-1", "supervisor", "{}")));
    assert!(exit == ErrorKind::Conflict && message.contains("Nothing was decided: check it again"), "{message}");
    assert_eq!(report(None).0, ErrorKind::TooLate);
}
