//! What is made for a Job: one pod an attempt, built of values.

mod part;
mod paths;
mod pod;
mod volumes;

pub use part::job_part;
pub use paths::model_key;
pub use pod::{pod, revision_of};

use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::run::{JobIdentity, ModelEndpoint, ReportEndpoint};
use bloomery_crds::v1alpha1::RevisionRef;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// All that the pod of one attempt is made of: read, checked, and without a reference left to resolve.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// Which Job.
    pub job: JobIdentity,
    /// The Job as the owner of its pods.
    pub owner: OwnerReference,
    /// What is to be reached.
    pub goal: String,
    /// Counts the Job's pods, from 1.
    pub attempt: u32,
    /// The Skill's name, which is its slag's.
    pub skill: String,
    /// The revision that the Job runs on.
    pub revision: RevisionRef,
    /// The budgets of the whole Job.
    pub limits: EffectiveLimits,
    /// Seconds of the duration that are left.
    pub remaining_seconds: u64,
    /// The model to call.
    pub model: ModelEndpoint,
    /// Where to report.
    pub report: ReportEndpoint,
    /// Whether the memory can be mounted by one node at a time.
    pub one_node: bool,
}
