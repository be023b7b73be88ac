//! Builds the Approvals of a held call, one for each approver: pure.

use crate::owned;
use bloomery_crds::Digest;
use bloomery_crds::names;
use bloomery_crds::report::HeldCallDetails;
use bloomery_crds::v1alpha1::{Approval, ApprovalSpec, HeldCall, Job};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::core::ResourceExt;
use std::time::Duration;

/// The maximum time that an Approval stays open: one year. The CRD sets the same maximum for the expiry in a Skill.
const MAX_EXPIRY: SignedDuration = SignedDuration::from_hours(8760);

/// The reason why no Approvals can be built from a report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The held call is not the one that the Job waits for.
    #[error("hold describes the call {held}, but waitingFor names the call {waiting}")]
    OtherCall {
        /// The id of the held call.
        held: String,
        /// The id of the call that the Job waits for.
        waiting: String,
    },
    /// The held arguments do not match the digest of the call.
    #[error("hold.arguments do not match waitingFor.call.digest")]
    OtherArguments,
    /// The Job has no UID, because it is not stored.
    #[error("the Job {job} has no UID")]
    NoUid {
        /// The name of the Job.
        job: String,
    },
}

/// Builds the Approvals of a reported call. They expire after the time in the report, or else after `default_expiry`,
/// but at the latest after one year. `policy` is the digest of the admission policy that validates their decisions.
///
/// # Errors
/// Returns an error if `hold` describes another call or other arguments than `call`, or if the Job is not stored.
pub fn approvals(
    job: &Job,
    call: &HeldCall,
    hold: &HeldCallDetails,
    (default_expiry, now): (Duration, Timestamp),
    policy: &Digest,
) -> Result<Vec<Approval>, Error> {
    if hold.call != call.id {
        return Err(Error::OtherCall { held: hold.call.clone(), waiting: call.id.clone() });
    }
    if Digest::of_bytes(hold.arguments.as_bytes()) != call.digest {
        return Err(Error::OtherArguments);
    }
    let (uid, name) = (job.uid().unwrap_or_default(), job.name_any());
    let owner = owned::owner_reference(job).ok_or_else(|| Error::NoUid { job: name.clone() })?;
    let expiry = hold.expiry_seconds.map_or_else(
        || SignedDuration::try_from(default_expiry).unwrap_or(MAX_EXPIRY),
        |seconds| SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX)),
    );
    let expires_at = Time(whole_seconds(now) + expiry.min(MAX_EXPIRY));
    let approvals = call.approvers.iter().map(|approver| {
        let spec = ApprovalSpec {
            job: name.clone(),
            job_uid: uid.clone(),
            approver: approver.clone(),
            tool: call.tool.clone(),
            call_id: call.id.clone(),
            arguments: hold.arguments.clone(),
            arguments_digest: call.digest.clone(),
            rules: hold.rules.clone(),
            goal: hold.goal.clone(),
            events: hold.events.clone(),
            expires_at: expires_at.clone(),
            guard: Some(policy.clone()),
            decision: None,
        };
        let mut approval = Approval::new(&names::approval(&name, &uid, &call.id, approver), spec);
        approval.metadata.namespace = job.namespace();
        approval.metadata.owner_references = Some(vec![owner.clone()]);
        let mut labels = owned::labels("approval");
        labels.insert(names::LABEL_JOB.to_owned(), name.clone());
        approval.metadata.labels = Some(labels);
        approval
    });
    Ok(approvals.collect())
}

/// Drops fractions of a second, which the API server does not store.
pub(super) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::{at, held_call, hold, job, policy_digest};

    const DAY: Duration = Duration::from_hours(24);

    #[test]
    fn each_approver_gets_an_approval_with_all_details_of_the_call() {
        let built = approvals(&job(), &held_call(), &hold(), (DAY, at(0)), &policy_digest()).unwrap();
        let objects: Vec<_> = built.iter().map(|approval| serde_json::to_value(approval).unwrap()).collect();
        insta::assert_snapshot!(serde_yaml::to_string(&objects).unwrap());
    }

    #[test]
    fn the_expiry_of_the_skill_is_limited_to_a_year() {
        let expires = |seconds: Option<u64>| {
            let hold = HeldCallDetails { expiry_seconds: seconds, ..hold() };
            approvals(&job(), &held_call(), &hold, (DAY, at(0)), &policy_digest()).unwrap()[0].spec.expires_at.0
        };
        assert_eq!(expires(None), at(24 * 3600));
        assert_eq!(expires(Some(90)), at(90));
        assert_eq!(expires(Some(u64::MAX)), at(8760 * 3600));
    }

    #[test]
    fn details_of_another_call_are_refused() {
        let error = |hold: HeldCallDetails| {
            approvals(&job(), &held_call(), &hold, (DAY, at(0)), &policy_digest()).unwrap_err().to_string()
        };
        assert!(error(HeldCallDetails { call: "c-8".into(), ..hold() }).contains("c-8"));
        assert!(error(HeldCallDetails { arguments: r#"{"amount":9}"#.into(), ..hold() }).contains("hold.arguments"));
    }
}
