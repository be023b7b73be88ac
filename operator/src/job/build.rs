//! Builds the pod of an attempt, from the validated attempt alone.
//!
//! The Job's part of the run document reaches the worker in three steps: `part` builds it, `pod` stores it in the
//! annotation `ANNOTATION_JOB_PART` and passes its digest, and `volumes` mounts the annotation as the file that `--job`
//! names.

mod affinity;
mod part;
mod pod;
mod tenant_volumes;
mod volumes;

pub use pod::revision_of;

use super::plan::Blocked;
use super::validate::{Continued, ValidAttempt};
use crate::settings::WorkerSettings;
use bloomery_crds::v1alpha1::{ApprovedCall, RevisionRef};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::NetworkPolicy;

/// The built pod of an attempt, not created yet.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedPod {
    /// The pod.
    pub pod: Pod,
    /// The network policy of the Job, which is applied before the pod is created.
    pub network_policy: Option<NetworkPolicy>,
    /// The number of its attempt.
    pub attempt: u32,
    /// The revision that it runs on.
    pub revision: RevisionRef,
    /// The Job that the pod's Job continues, if any.
    pub continued: Option<Continued>,
    /// The latest call whose approvals are passed to a worker.
    pub approved_call: Option<ApprovedCall>,
    /// A sentence for each limit of the Job that is above that of its Skill, so that the Skill's limit applies.
    pub lowered_limits: Vec<String>,
}

/// Builds the pod of an attempt around its part of the run document.
pub fn build(attempt: &ValidAttempt, settings: &WorkerSettings) -> Result<PreparedPod, Blocked> {
    let part = part::build_job_part(attempt)?;
    Ok(PreparedPod {
        pod: pod::build_pod(attempt, settings, &part),
        network_policy: attempt.network_policy.clone(),
        attempt: attempt.number,
        revision: attempt.revision.clone(),
        continued: attempt.continues.clone(),
        approved_call: attempt.approved_call.clone(),
        lowered_limits: attempt.lowered_limits.clone(),
    })
}
