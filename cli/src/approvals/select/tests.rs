use super::*;
use crate::approvals::fixtures::{approval, decided, now};
use crate::exit::Exit;
use rstest::rstest;
use serde_json::{Value, json};

fn of_job(approvals: Vec<Approval>) -> Found {
    Found::OfJob("refund".into(), approvals)
}

fn by_jane() -> Approval {
    decided(json!({"verdict": "Approve", "by": "jane@acme.io", "reason": "the photo shows it"}))
}

#[test]
fn a_job_stands_for_its_one_open_approval() {
    let open = approval("refund-2", "finance", "{}");
    assert_eq!(select_open(of_job(vec![by_jane(), open.clone()]), now()), Ok(open));
}

#[test]
fn of_several_one_has_to_be_named() {
    let both = vec![approval("refund-1", "supervisor", "{}"), approval("refund-2", "finance", "{}")];
    let error = select_open(of_job(both), now()).unwrap_err();
    let expected = "the Job refund has several open Approvals. Name one of them:\n  \
                    refund-1  process_refund: asks supervisor\n  refund-2  process_refund: asks finance";
    assert_eq!(error, Error::usage(expected));
}

#[test]
fn a_job_that_waits_for_nobody_says_who_decided() {
    let error = select_open(of_job(vec![by_jane()]), now()).unwrap_err();
    let expected = "no Approval of the Job refund is open:\n  \
                    refund-1  process_refund: is approved already, by jane@acme.io: the photo shows it";
    assert_eq!((error.exit, error.message.as_str()), (Exit::TooLate, expected));
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
    "refund-1 expired at 2027-01-16T08:00:00Z: the decision of jane@acme.io was seen only after it had expired"
)]
fn what_is_decided_is_not_decided_again(#[case] approval: Approval, #[case] expected: &str) {
    let error = select_open(Found::Approval(Box::new(approval)), now()).unwrap_err();
    assert_eq!((error.exit, error.message.as_str()), (Exit::TooLate, expected));
}

fn expired(reason: Option<&str>) -> Value {
    json!({"verdict": "Expired", "by": "system:serviceaccount:bloomery:bloomery", "reason": reason})
}

/// One that nobody need decide on any more, a day before its time.
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
fn the_time_is_up_at_the_instant_and_not_before() {
    let approval = approval("refund-1", "supervisor", "{}");
    let at = |time: &str| closed_reason(&approval, time.parse().unwrap());
    assert_eq!(at("2027-01-16T07:59:59.999Z"), None);
    assert!(at("2027-01-16T08:00:00Z").is_some_and(|why| why.contains("by the clock of this machine")));
}

#[test]
fn the_nearest_name_is_said() {
    let known = BTreeSet::from(["refund-1f0c4a9b27".to_owned(), "refund".to_owned()]);
    let said = not_found("refnud", "acme", &known).message;
    assert!(said.contains("no Approval refnud") && said.ends_with("Did you mean \"refund\"?"), "{said}");
    let said = not_found("refund", "acme", &BTreeSet::new()).message;
    assert!(said.ends_with("There are no Approvals in it."), "{said}");
}

#[test]
fn a_change_in_the_meantime_is_reported() {
    let report = |there: Option<&Approval>| {
        let error = changed(there, "refund-1", now());
        (error.exit, error.message)
    };
    let (exit, said) = report(Some(&by_jane()));
    assert!(exit == Exit::TooLate && said.contains("by jane@acme.io") && said.contains("was not recorded"), "{said}");
    let (exit, said) = report(Some(&approval("refund-1", "supervisor", "{}")));
    assert!(exit == Exit::Error && said.contains("Nothing was decided: check it again"), "{said}");
    assert_eq!(report(None).0, Exit::TooLate);
}
