//! Who decides on held calls: the operator or, in local mode, the log.

use bloomery_crds::Digest;
use bloomery_crds::run::GivenDecision;
use bloomery_crds::v1alpha1::ApprovalVerdict;

/// The source of the decisions that count. It is an input of the run and no part of the log: a process that can write to the log can
/// write an approval into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decisions {
    /// The log. In local mode, one user owns the log and makes the decisions.
    Log,
    /// The operator, which has passed these decisions to this attempt. An approval in the log needs one of them.
    Given(Vec<GivenDecision>),
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
        let Self::Given(given) = self else { return true };
        let is_about = |given: &&GivenDecision| given.call == approval.call && given.approver == approval.approver;
        // A denial wins over an approval.
        let mut about = given.iter().filter(is_about).peekable();
        about.peek().is_some()
            && about.all(|given| {
                given.verdict == ApprovalVerdict::Approve
                    && given.digest == *approval.digest
                    && given.tool.as_deref() == Some(approval.tool)
            })
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
        assert_eq!(Decisions::Given(given).contain(&approval), counts);
        assert!(Decisions::Log.contain(&approval));
    }
}
