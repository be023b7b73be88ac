//! Who decides on held calls: the operator or, in local mode, the log.

use crate::event::Decision;
use bloomery_crds::Digest;
use bloomery_crds::run::GivenDecision;
use bloomery_crds::v1alpha1::{ApprovalVerdict, ApprovedCall, AskedCall};
use std::collections::BTreeSet;

/// The source of the decisions that count. It is an input of the run and no part of the log: a process that can write to the log can
/// write an approval into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decisions {
    /// The log. In local mode, one user owns the log and makes the decisions.
    Log,
    /// The operator.
    Given {
        /// The decisions that it has passed to this attempt. An approval in the log needs one of them.
        decisions: Vec<GivenDecision>,
        /// Approvals that it has passed to an earlier attempt and that do not count any more.
        void: Option<ApprovedCall>,
        /// The calls that people were asked about. They need their approvals, whatever the gate finds now: its rules may read the log and
        /// the ledger, which others can write to.
        asked: Vec<AskedCall>,
    },
}

/// Returns a given decision as a denial, unless it is an approval. An expiry counts as a denial by nobody.
pub fn denial(given: &GivenDecision) -> Option<Decision> {
    let by = match given.verdict {
        ApprovalVerdict::Approve => return None,
        ApprovalVerdict::Deny => &given.by,
        ApprovalVerdict::Expired => Decision::NO_PERSON,
    };
    Some(Decision { approver: given.approver.clone(), by: by.to_owned(), reason: given.reason.clone() })
}

/// An approval of a call for one of its approvers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApprovalOf<'a> {
    /// The id of the call.
    pub call: &'a str,
    /// The tool, as the approvers see it.
    pub tool: &'a str,
    /// The digest of the arguments.
    pub digest: &'a Digest,
    /// The approver.
    pub approver: &'a str,
}

impl Decisions {
    /// Returns whether an approval counts.
    pub(crate) fn contain(&self, approval: &ApprovalOf<'_>) -> bool {
        let Self::Given { decisions, .. } = self else { return true };
        let is_about = |given: &&GivenDecision| given.call == approval.call && given.approver == approval.approver;
        // A denial wins over an approval.
        let mut about = decisions.iter().filter(is_about).peekable();
        about.peek().is_some()
            && about.all(|given| {
                given.verdict == ApprovalVerdict::Approve
                    && given.digest == *approval.digest
                    && given.tool.as_deref() == Some(approval.tool)
            })
    }

    /// Returns a denial of this call by the operator.
    pub(crate) fn denial_of(&self, call: &str) -> Option<Decision> {
        let Self::Given { decisions, .. } = self else { return None };
        decisions.iter().filter(|given| given.call == call).find_map(denial)
    }

    /// Returns the approvers who were asked about a call and have not approved it. A call that they have not approved is the same call
    /// under another id: a model may repeat it, and somebody else may write it into the log.
    pub(crate) fn missing_approvers<'a>(&'a self, call: &'a str, tool: &str, digest: &Digest) -> BTreeSet<&'a str> {
        let Self::Given { asked, .. } = self else { return BTreeSet::new() };
        let lacks = |call: &str, approver: &str| !self.contain(&ApprovalOf { call, tool, digest, approver });
        let is_approved = |asked: &AskedCall| !asked.approvers.iter().any(|approver| lacks(&asked.id, approver));
        let is_repeated = |asked: &AskedCall| asked.tool == tool && asked.digest == *digest && !is_approved(asked);
        let is_about = |asked: &&AskedCall| asked.id == call || is_repeated(asked);
        let approvers = asked.iter().filter(is_about).flat_map(|asked| &asked.approvers).map(String::as_str);
        approvers.filter(|approver| lacks(call, approver)).collect()
    }

    /// Returns whether the operator has passed an approval to an earlier attempt, and it does not count any more. Nobody has forged it.
    pub(crate) fn was_passed(&self, call: &str, digest: &Digest, approver: &str) -> bool {
        let Self::Given { void: Some(void), .. } = self else { return false };
        void.id == call && void.digest == *digest && void.approvers.iter().any(|passed| passed == approver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn given() -> GivenDecision {
        GivenDecision {
            call: "7-0".into(),
            tool: Some("process_refund".into()),
            digest: Digest::of_bytes(b"arguments"),
            approver: "supervisor".into(),
            verdict: ApprovalVerdict::Approve,
            by: "jane".into(),
            reason: None,
        }
    }

    #[rstest]
    #[case::the_same(vec![given()], true)]
    #[case::nothing(vec![], false)]
    #[case::another_call(vec![GivenDecision { call: "7-1".into(), ..given() }], false)]
    #[case::another_tool(vec![GivenDecision { tool: Some("track_order".into()), ..given() }], false)]
    #[case::no_tool(vec![GivenDecision { tool: None, ..given() }], false)]
    #[case::other_arguments(vec![GivenDecision { digest: Digest::of_bytes(b"other"), ..given() }], false)]
    #[case::another_approver(vec![GivenDecision { approver: "finance".into(), ..given() }], false)]
    #[case::denied(vec![GivenDecision { verdict: ApprovalVerdict::Deny, ..given() }], false)]
    #[case::expired(vec![GivenDecision { verdict: ApprovalVerdict::Expired, ..given() }], false)]
    #[case::approved_and_denied(vec![given(), GivenDecision { verdict: ApprovalVerdict::Deny, ..given() }], false)]
    fn an_approval_counts_only_with_the_same_decision_of_the_operator(
        #[case] given: Vec<GivenDecision>,
        #[case] counts: bool,
    ) {
        let digest = Digest::of_bytes(b"arguments");
        let approval = ApprovalOf { call: "7-0", tool: "process_refund", digest: &digest, approver: "supervisor" };
        assert_eq!(Decisions::Given { decisions: given, void: None, asked: Vec::new() }.contain(&approval), counts);
        assert!(Decisions::Log.contain(&approval));
    }

    #[rstest]
    #[case::the_same("7-0", "supervisor", b"arguments", true)]
    #[case::another_call("7-1", "supervisor", b"arguments", false)]
    #[case::another_approver("7-0", "finance", b"arguments", false)]
    #[case::other_arguments("7-0", "supervisor", b"other", false)]
    fn a_void_approval_does_not_count_and_is_not_forged(
        #[case] call: &str,
        #[case] approver: &str,
        #[case] arguments: &[u8],
        #[case] was_passed: bool,
    ) {
        let digest = Digest::of_bytes(b"arguments");
        let void = ApprovedCall { id: "7-0".into(), digest, approvers: vec!["supervisor".into()] };
        let decisions = Decisions::Given { decisions: Vec::new(), void: Some(void), asked: Vec::new() };
        let digest = Digest::of_bytes(arguments);
        let approval = ApprovalOf { call, tool: "process_refund", digest: &digest, approver };
        assert!(!decisions.contain(&approval));
        assert_eq!(decisions.was_passed(call, &digest, approver), was_passed);
    }

    fn asked(id: &str) -> AskedCall {
        let approvers = vec!["supervisor".into(), "finance".into()];
        AskedCall { id: id.into(), tool: "process_refund".into(), digest: Digest::of_bytes(b"arguments"), approvers }
    }

    #[rstest]
    #[case::nobody_has_decided("7-0", &[], &["finance", "supervisor"])]
    #[case::one_has_approved("7-0", &[("7-0", "supervisor")], &["finance"])]
    #[case::both_have_approved("7-0", &[("7-0", "supervisor"), ("7-0", "finance")], &[])]
    #[case::repeated_after_a_denial("9-0", &[], &["finance", "supervisor"])]
    #[case::repeated_and_approved("9-0", &[("9-0", "supervisor"), ("9-0", "finance")], &[])]
    #[case::repeated_after_an_approval("9-0", &[("7-0", "supervisor"), ("7-0", "finance")], &[])]
    fn a_call_that_people_were_asked_about_needs_their_approvals(
        #[case] call: &str,
        #[case] approved: &[(&str, &str)],
        #[case] missing: &[&str],
    ) {
        let decision = |(call, approver): &(&str, &str)| GivenDecision {
            call: (*call).into(),
            approver: (*approver).into(),
            ..given()
        };
        let decisions = approved.iter().map(decision).collect();
        let decisions = Decisions::Given { decisions, void: None, asked: vec![asked("7-0")] };
        let digest = Digest::of_bytes(b"arguments");
        let found = decisions.missing_approvers(call, "process_refund", &digest);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), missing);
        assert!(decisions.missing_approvers("9-0", "track_order", &digest).is_empty());
        assert!(decisions.missing_approvers("9-0", "process_refund", &Digest::of_bytes(b"other")).is_empty());
    }
}
