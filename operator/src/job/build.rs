//! What is made for a Job: one pod an attempt, built of values.

mod affinity;
mod bound;
mod part;
mod pod;
mod volumes;

pub use part::{job_part, that_fit};
pub use pod::{pod, revision_of};

use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::run::{
    BoundResource, ContinuedJob, GivenDecision, GivenReply, JobIdentity, ModelEndpoint, ReportEndpoint,
};
use bloomery_crds::v1alpha1::{LogPosition, RevisionRef};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// All that the pod of one attempt is made of: read, checked, and without a reference left to resolve.
#[derive(Debug, Clone)]
pub struct ValidAttempt {
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
    /// The models to call, that of the main loop first.
    pub models: Vec<ModelEndpoint>,
    /// What the Job binds.
    pub bound: Bound,
    /// How far the log has come.
    pub log: Option<LogPosition>,
    /// What people have decided of the call that the Job waits with.
    pub approvals: Vec<GivenDecision>,
    /// The Job that the Job continues.
    pub continues: Option<ContinuedJob>,
    /// What people have said, and the log may not have yet.
    pub replies: Vec<GivenReply>,
    /// Where to report.
    pub report: ReportEndpoint,
    /// Whether the memory can be mounted by one node at a time.
    pub one_node: bool,
}

/// What a Job binds, resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bound {
    /// What the worker is told of, in the order of the Skill.
    pub resources: Vec<BoundResource>,
    /// The file systems among them, in the same order.
    pub filesystems: Vec<Filesystem>,
}

/// A file system that a Job binds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filesystem {
    /// The name of the resource.
    pub name: String,
    /// The claim.
    pub claim: String,
    /// The path within its volume; all of it where absent.
    pub sub_path: Option<String>,
    /// Whether nobody in the pod can change what is there.
    pub read_only: bool,
    /// Whether the claim can be mounted by one node at a time.
    pub one_node: bool,
}
