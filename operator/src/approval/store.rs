//! Reads and updates stored Approvals: counts a decision, expires an Approval that nobody decided, deletes one that
//! cannot be trusted.
//!
//! Each function reads the Approval again before it writes, because the caches hold no arguments and may be behind.

use super::build::whole_seconds;
use super::evaluate::{
    ApprovalUpdate, ExpectedApproval, expected_approval, is_open, is_withdrawn, required_update, verdict_at,
};
use super::policy::{self, PolicyState};
use crate::caches::Guarded;
use crate::context::Context;
use crate::error::Error;
use crate::events::EventMessage;
use crate::owned;
use bloomery_crds::Digest;
use bloomery_crds::conditions::{self, Health, Reason};
use bloomery_crds::names;
use bloomery_crds::run::GivenDecision;
use bloomery_crds::v1alpha1::{
    Approval, ApprovalDecision, ApprovalSpec, ApprovalStatus, ApprovalVerdict, CountedDecision, HeldCall,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::core::ResourceExt;
use std::collections::BTreeSet;

/// The reason that the operator records if nobody decided before the expiry.
const EXPIRY_REASON: &str = "nobody decided in time";

/// Reads an Approval from the API server.
pub async fn read(context: &Context, namespace: &str, name: &str) -> Result<Option<Approval>, Error> {
    let api: Api<Guarded<Approval>> = Api::namespaced(context.client.clone(), namespace);
    let action = format!("read Approval {namespace}/{name}");
    let stored = api.get_opt(name).await.map_err(Error::api(&action))?;
    stored
        .map(|approval| approval.0.map_err(|invalid| Error::Unreadable { what: action, why: invalid.error }))
        .transpose()
}

/// Updates one Approval, if the stored object still needs it.
pub async fn update(
    context: &Context,
    namespace: &str,
    name: &str,
    expected: &ExpectedApproval<'_>,
) -> Result<(), Error> {
    let Some(approval) = read(context, namespace, name).await? else { return Ok(()) };
    let policy = policy::check(context.settings.approvals.shipped_policies.as_ref(), &context.caches);
    let now = Timestamp::now();
    match update_of_stored(&approval, expected, &policy, now) {
        // These two depend on the Job: the Job controller writes them with `withdraw` and `record_call_not_started`.
        None | Some(ApprovalUpdate::Withdraw { .. } | ApprovalUpdate::CallNotStarted { .. }) => Ok(()),
        Some(ApprovalUpdate::Void { name, uid, why }) => {
            let note = format!("the Approval is deleted, and a new one is created for the call: {why}");
            context.events.publish(&approval, EventMessage::warning(Reason::Invalid, note)).await;
            let metadata = ObjectMeta {
                namespace: Some(namespace.to_owned()),
                name: Some(name),
                uid: Some(uid),
                ..ObjectMeta::default()
            };
            context.applier.delete::<Approval>(&metadata).await
        }
        Some(ApprovalUpdate::Count(_)) => {
            let approval = match &approval.spec.decision {
                None => expire(context, namespace, approval, EXPIRY_REASON).await?,
                Some(_) => approval,
            };
            let status = counted_status(&approval, now);
            context.statuses.replace(&approval, status).await.map(|_| ())
        }
    }
}

/// Expires an Approval early, because no decision is needed any more. If a person has decided already, the decision is
/// recorded as too late.
pub async fn withdraw(context: &Context, namespace: &str, (name, uid): (&str, &str), why: &str) -> Result<(), Error> {
    let stored = read(context, namespace, name).await?;
    let is_same_and_open = |stored: &Approval| stored.metadata.uid.as_deref() == Some(uid) && is_open(stored);
    let Some(approval) = stored.filter(is_same_and_open) else { return Ok(()) };
    let now = Timestamp::now();
    let (approval, status) = match &approval.spec.decision {
        None => {
            let expired = expire(context, namespace, approval, why).await?;
            let status = counted_status(&expired, now);
            (expired, status)
        }
        Some(decision) => {
            let message = format!("{why}: the decision of {} came too late, and the call is not made", decision.by);
            let status = status_with(&approval, ApprovalVerdict::Expired, (Reason::Expired, message), now);
            (approval, status)
        }
    };
    context.statuses.replace(&approval, status).await.map(|_| ())
}

/// Records in an Approval that the approved call is not made, because the Job ended before a worker started it.
pub async fn record_call_not_started(
    context: &Context,
    namespace: &str,
    (name, uid): (&str, &str),
    why: &str,
) -> Result<(), Error> {
    let Some(approval) = read(context, namespace, name).await? else { return Ok(()) };
    let counted = approval.status.as_ref().and_then(|status| status.counted.clone());
    let approves = |counted: &CountedDecision| counted.verdict == ApprovalVerdict::Approve;
    let (Some(counted), Some(decision)) = (counted.filter(approves), &approval.spec.decision) else { return Ok(()) };
    if approval.metadata.uid.as_deref() != Some(uid) {
        return Ok(());
    }
    let message = format!("{} approved the call, and {why} before the call was started: it is not made", decision.by);
    let new = status_with(&approval, counted.verdict, (Reason::JobEnded, message), Timestamp::now());
    // The decision keeps the time at which it was counted.
    let status = ApprovalStatus { counted: Some(counted), ..new };
    context.statuses.replace(&approval, status).await.map(|_| ())
}

/// Returns the update that a stored Approval needs. Unlike the cached Approval, the stored one has its arguments, which
/// must match their digest.
fn update_of_stored(
    approval: &Approval,
    expected: &ExpectedApproval<'_>,
    policy: &PolicyState,
    now: Timestamp,
) -> Option<ApprovalUpdate> {
    let is_edited = Digest::of_bytes(approval.spec.arguments.as_bytes()) != approval.spec.arguments_digest;
    match (&approval.metadata.name, &approval.metadata.uid) {
        (Some(name), Some(uid)) if is_edited => Some(ApprovalUpdate::Void {
            name: name.clone(),
            uid: uid.clone(),
            why: "its arguments are not those of the call",
        }),
        _ => required_update(approval, expected, policy, now),
    }
}

/// Writes the verdict `Expired` with a reason, so that no further decision is possible.
async fn expire(context: &Context, namespace: &str, mut approval: Approval, why: &str) -> Result<Approval, Error> {
    let by = context.settings.approvals.shipped_policies.as_ref().map_or(names::MANAGER, |policy| &policy.operator);
    let decision =
        ApprovalDecision { verdict: ApprovalVerdict::Expired, by: by.to_owned(), reason: Some(why.to_owned()) };
    approval.spec.decision = Some(decision);
    let name = approval.name_any();
    let api: Api<Approval> = Api::namespaced(context.client.clone(), namespace);
    context.metrics.count_write("Approval", "update");
    let written = api.replace(&name, &owned::post_params(), &approval).await;
    written.map_err(Error::api(format!("expire Approval {namespace}/{name}")))
}

/// The status of an Approval that was decided, or that expired.
fn counted_status(approval: &Approval, now: Timestamp) -> ApprovalStatus {
    let verdict = verdict_at(&approval.spec, now);
    let by = approval.spec.decision.as_ref().map_or("nobody", |decision| decision.by.as_str());
    let is_late = approval.spec.decision.as_ref().is_some_and(|decision| decision.verdict != verdict);
    let (reason, message) = match verdict {
        ApprovalVerdict::Approve => {
            (Reason::Approved, format!("{by} approved the call; it is made once every approver has approved it"))
        }
        ApprovalVerdict::Deny => (Reason::Denied, format!("{by} denied the call")),
        ApprovalVerdict::Expired if is_late => {
            let late = format!("the Approval had expired before the operator saw the decision of {by}");
            (Reason::Expired, format!("{late}: it counts as denied, and the call is not made"))
        }
        ApprovalVerdict::Expired => {
            let why = approval
                .spec
                .decision
                .as_ref()
                .and_then(|decision| decision.reason.as_deref())
                .unwrap_or(EXPIRY_REASON);
            (Reason::Expired, format!("{why}: the call is not made"))
        }
    };
    status_with(approval, verdict, (reason, message), now)
}

/// The status of an Approval with this verdict and condition.
fn status_with(
    approval: &Approval,
    verdict: ApprovalVerdict,
    (reason, message): (Reason, String),
    now: Timestamp,
) -> ApprovalStatus {
    let current = approval.status.clone().unwrap_or_default();
    let observations = Health::Ready(reason, message).observations();
    let at = Time(whole_seconds(now));
    ApprovalStatus {
        observed_generation: approval.metadata.generation,
        conditions: conditions::merge(&current.conditions, &observations, approval.metadata.generation, &at),
        counted: Some(CountedDecision { verdict, at }),
    }
}

/// Reads the decision on an Approval for the worker. Returns none unless the decision counts, the Approval is that of the
/// call that the status names as held (`held`), and the admission policy that validated it is still in force. An Approval
/// of an earlier call is trusted by itself.
pub async fn decision_for_worker(
    context: &Context,
    namespace: &str,
    (job, uid): (&str, &str),
    name: &str,
    held: Option<&HeldCall>,
) -> Result<Option<(GivenDecision, IsWithdrawn)>, Error> {
    let Some(approval) = read(context, namespace, name).await? else { return Ok(None) };
    let policy = policy::check(context.settings.approvals.shipped_policies.as_ref(), &context.caches);
    let own = HeldCall { approvers: vec![approval.spec.approver.clone()], ..call_of(&approval.spec) };
    let call = match held.filter(|call| call.id == own.id) {
        Some(held) => HeldCall { approvers: own.approvers, ..held.clone() },
        None => own,
    };
    let expected = expected_approval(job, uid, &call, name);
    let is_trusted = expected.is_some_and(|expected| is_trusted(&approval, &expected, &policy));
    Ok(given_decision(&approval).filter(|_| is_trusted).map(|given| (given, is_withdrawn(&approval))))
}

/// Whether the operator expired the Approval early, because no decision was needed any more.
pub type IsWithdrawn = bool;

/// The call that an Approval is about.
fn call_of(spec: &ApprovalSpec) -> HeldCall {
    HeldCall {
        id: spec.call_id.clone(),
        tool: spec.tool.clone(),
        digest: spec.arguments_digest.clone(),
        approvers: Vec::new(),
        reason: String::new(),
    }
}

/// Returns whether the content of an Approval can be trusted: it is unchanged, and the policy allowed only authorized
/// writers.
fn is_trusted(approval: &Approval, expected: &ExpectedApproval<'_>, policy: &PolicyState) -> bool {
    match policy {
        PolicyState::InForce(_) => update_of_stored(approval, expected, policy, Timestamp::now()).is_none(),
        PolicyState::Missing(_) => false,
    }
}

/// The decision for the worker. A withdrawn Approval counts as expired.
fn given_decision(approval: &Approval) -> Option<GivenDecision> {
    let verdict = approval.status.as_ref()?.counted.as_ref()?.verdict;
    let decision = approval.spec.decision.as_ref()?;
    let spec = &approval.spec;
    // The reason of a decision that came too late is not passed on: the decision did not count.
    let decision_counted = decision.verdict == verdict;
    Some(GivenDecision {
        call: spec.call_id.clone(),
        tool: Some(spec.tool.clone()),
        digest: spec.arguments_digest.clone(),
        approver: spec.approver.clone(),
        verdict,
        by: decision.by.clone(),
        reason: if decision_counted && verdict != ApprovalVerdict::Expired { decision.reason.clone() } else { None },
    })
}

/// Returns the decisions without those of withdrawn Approvals, if another decision denies their call: the model then reads
/// the reason of that one. Without it, a withdrawn Approval denies the call, so that the call does not stay held.
pub fn without_needless(decisions: Vec<(GivenDecision, IsWithdrawn)>) -> Vec<GivenDecision> {
    let denied: BTreeSet<String> = decisions
        .iter()
        .filter(|(given, is_withdrawn)| given.verdict != ApprovalVerdict::Approve && !is_withdrawn)
        .map(|(given, _)| given.call.clone())
        .collect();
    let is_needless = |given: &GivenDecision, is_withdrawn| is_withdrawn && denied.contains(&given.call);
    decisions
        .into_iter()
        .filter(|(given, is_withdrawn)| !is_needless(given, *is_withdrawn))
        .map(|(given, _)| given)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::evaluate::expected_approval;
    use crate::job::fixtures::{UID, approval, at, decided, held_call, policy_in_force};

    #[test]
    fn an_approval_with_edited_arguments_is_void_even_if_it_is_decided() {
        let call = held_call();
        let mut edited = decided(approval("supervisor"), ApprovalVerdict::Approve);
        edited.spec.arguments = r#"{"amount":9000}"#.into();
        let name = edited.name_any();
        let expected = expected_approval("refund", UID, &call, &name).unwrap();
        let update = update_of_stored(&edited, &expected, &policy_in_force(), at(1));
        assert!(matches!(update, Some(ApprovalUpdate::Void { .. })), "{update:?}");
    }

    /// The operator may have been down when the person decided, and the object has no trustworthy time of the decision.
    #[test]
    fn the_message_of_a_late_decision_names_when_it_was_seen() {
        let status = counted_status(&decided(approval("supervisor"), ApprovalVerdict::Approve), at(9_000_000));
        let message = "the Approval had expired before the operator saw the decision of jane@acme.io: it counts as denied, and the call is not made";
        assert_eq!(status.conditions[0].message, message);
    }

    #[test]
    fn a_withdrawn_approval_records_the_reason_and_denies_the_call_only_if_nothing_else_does() {
        let mut withdrawn = approval("supervisor");
        let reason = Some("the Job was cancelled".to_owned());
        withdrawn.spec.decision =
            Some(ApprovalDecision { verdict: ApprovalVerdict::Expired, by: "operator".into(), reason });
        let status = counted_status(&withdrawn, at(1));
        assert_eq!(status.conditions[0].message, "the Job was cancelled: the call is not made");
        withdrawn.status = Some(status);
        let expired = given_decision(&withdrawn).unwrap();
        assert_eq!((expired.verdict, expired.reason.as_ref()), (ApprovalVerdict::Expired, None));
        let other = |verdict| GivenDecision { approver: "finance".into(), verdict, ..expired.clone() };
        let passed = |other: &GivenDecision| without_needless(vec![(expired.clone(), true), (other.clone(), false)]);
        for denial in [ApprovalVerdict::Deny, ApprovalVerdict::Expired].map(other) {
            assert_eq!(passed(&denial), [denial]);
        }
        let approval = other(ApprovalVerdict::Approve);
        assert_eq!(passed(&approval), [expired.clone(), approval]);
    }

    #[test]
    fn a_counted_decision_is_recorded_and_passed_to_the_worker() {
        for (verdict, seconds, reason) in [
            (ApprovalVerdict::Approve, 1, "Approved"),
            (ApprovalVerdict::Deny, 1, "Denied"),
            (ApprovalVerdict::Expired, 9_000_000, "Expired"),
            (ApprovalVerdict::Approve, 9_000_000, "Expired"),
        ] {
            let mut approval = decided(approval("supervisor"), verdict);
            assert_eq!(given_decision(&approval), None, "the decision does not count yet");
            let status = counted_status(&approval, at(seconds));
            assert_eq!(status.conditions[0].reason, reason);
            approval.status = Some(status);
            let given = given_decision(&approval).unwrap();
            assert_eq!((given.call.as_str(), given.approver.as_str()), ("c-7", "supervisor"));
            let expected = if reason == "Expired" { ApprovalVerdict::Expired } else { verdict };
            assert_eq!(given.verdict, expected);
            assert_eq!(given.reason.is_some(), reason != "Expired", "{given:?}");
        }
    }
}
