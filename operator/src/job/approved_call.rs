//! The latest call whose approvals were passed to a worker: pure. The Job's status records it, so that a worker can distinguish an
//! approval that does not count any more from one that somebody has written into the log.

use crate::approval::evaluate::place_of_call;
use bloomery_crds::run::GivenDecision;
use bloomery_crds::v1alpha1::{ApprovalVerdict, ApprovedCall};

/// Returns the record of a Job once these decisions are passed to a worker.
pub fn with_passed(before: Option<&ApprovedCall>, decisions: &[GivenDecision]) -> Option<ApprovedCall> {
    let approvals = decisions.iter().filter(|given| given.verdict == ApprovalVerdict::Approve);
    let Some(latest) = approvals.clone().max_by_key(|given| place_of_call(&given.call)) else { return before.cloned() };
    let (id, digest) = (latest.call.clone(), latest.digest.clone());
    let earlier = before.filter(|before| before.id == id && before.digest == digest);
    let mut approvers = earlier.map(|earlier| earlier.approvers.clone()).unwrap_or_default();
    for approval in approvals.filter(|given| (&given.call, &given.digest) == (&id, &digest)) {
        if !approvers.contains(&approval.approver) {
            approvers.push(approval.approver.clone());
        }
    }
    approvers.truncate(ApprovedCall::MAX_APPROVERS);
    Some(ApprovedCall { id, digest, approvers })
}

/// Returns the recorded approvals that these decisions lack; none if they lack none. Their Approvals were deleted or replaced.
pub fn void(recorded: Option<&ApprovedCall>, decisions: &[GivenDecision]) -> Option<ApprovedCall> {
    let mut void = recorded?.clone();
    void.approvers.retain(|approver| {
        !decisions.iter().any(|given| {
            given.verdict == ApprovalVerdict::Approve
                && (&given.call, &given.digest, &given.approver) == (&void.id, &void.digest, approver)
        })
    });
    (!void.approvers.is_empty()).then_some(void)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::Digest;

    fn given(call: &str, approver: &str, verdict: ApprovalVerdict) -> GivenDecision {
        GivenDecision {
            call: call.into(),
            tool: Some("process_refund".into()),
            digest: Digest::of_bytes(call.as_bytes()),
            approver: approver.into(),
            verdict,
            by: "jane@acme.io".into(),
            reason: None,
        }
    }

    fn record(call: &str, approvers: &[&str]) -> ApprovedCall {
        let approvers = approvers.iter().map(|&approver| approver.into()).collect();
        ApprovedCall { id: call.into(), digest: Digest::of_bytes(call.as_bytes()), approvers }
    }

    #[test]
    fn the_approvals_of_the_latest_call_are_recorded() {
        use ApprovalVerdict::{Approve, Deny, Expired};
        let first = with_passed(None, &[given("7-0", "supervisor", Approve), given("7-0", "finance", Deny)]);
        assert_eq!(first, Some(record("7-0", &["supervisor"])));
        let second =
            with_passed(first.as_ref(), &[given("7-0", "finance", Approve), given("7-0", "supervisor", Approve)]);
        assert_eq!(second, Some(record("7-0", &["supervisor", "finance"])));
        assert_eq!(with_passed(second.as_ref(), &[]), second);
        assert_eq!(with_passed(second.as_ref(), &[given("9-0", "supervisor", Expired)]), second);
        assert_eq!(with_passed(second.as_ref(), &[given("9-0", "legal", Approve)]), Some(record("9-0", &["legal"])));
        let of_two =
            [given("7-0", "supervisor", Approve), given("7-0", "finance", Deny), given("7-1", "finance", Approve)];
        assert_eq!(with_passed(None, &of_two), Some(record("7-1", &["finance"])));
        let many: Vec<_> = (0..40).map(|n| given("9-0", &format!("a{n}"), Approve)).collect();
        assert_eq!(with_passed(None, &many).unwrap().approvers.len(), ApprovedCall::MAX_APPROVERS);
    }

    #[test]
    fn a_recorded_approval_is_void_without_the_same_approval_now() {
        use ApprovalVerdict::{Approve, Deny};
        let recorded = Some(record("7-0", &["supervisor", "finance"]));
        let void = |decisions: &[GivenDecision]| void(recorded.as_ref(), decisions);
        assert_eq!(void(&[given("7-0", "supervisor", Approve), given("7-0", "finance", Approve)]), None);
        assert_eq!(void(&[given("7-0", "supervisor", Approve)]), Some(record("7-0", &["finance"])));
        assert_eq!(
            void(&[given("7-0", "supervisor", Approve), given("7-0", "finance", Deny)]),
            Some(record("7-0", &["finance"]))
        );
        let other = GivenDecision { digest: Digest::of_bytes(b"other"), ..given("7-0", "finance", Approve) };
        assert_eq!(void(&[other, given("9-0", "finance", Approve)]), recorded);
        assert_eq!(super::void(None, &[]), None);
    }
}
