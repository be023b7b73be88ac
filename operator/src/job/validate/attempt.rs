//! The validated attempt: the only input of the build step.

use crate::mcp_container::sidecar::Sidecar;
use crate::network::destination::Destination;
use bloomery_crds::children::{ChildState, MAX_CHILD_WAIT_SECONDS};
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::run::{
    BoundResource, ContinuedJob, ExternalMcp, GivenDecision, GivenReply, JobIdentity, ModelEndpoint, ReportEndpoint,
};
use bloomery_crds::tool_pins::ToolPins;
use bloomery_crds::v1alpha1::{ApprovedCall, AskedCall, CoreNote, LogPosition, PodSettings, RevisionRef, ToolPolicy};
use ipnet::IpNet;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use std::collections::BTreeSet;

/// The seconds before the deadline of a pod at which its worker must have stopped waiting for a missing key or for children: the time to
/// start and to report.
const WAIT_MARGIN_SECONDS: u64 = 120;

/// The seconds that a pod may outlive the duration of its Job: the time to start, to wait for children, to park and to report.
const DEADLINE_MARGIN_SECONDS: u64 = WAIT_MARGIN_SECONDS + MAX_CHILD_WAIT_SECONDS as u64;

/// An attempt whose pod can be built: all its inputs are read, checked and resolved.
#[derive(Debug, Clone)]
pub struct ValidAttempt {
    /// The Job.
    pub job: JobIdentity,
    /// The run key, if the spec of the Job names it.
    pub run_key: Option<String>,
    /// The owner reference to the Job, for its pods.
    pub owner: OwnerReference,
    /// The goal of the Job.
    pub goal: String,
    /// True if the Job tests the features of its Skill.
    pub validates: bool,
    /// The number of the attempt, from 1.
    pub number: u32,
    /// True if the previous attempt was disrupted.
    pub after_disruption: bool,
    /// The name of the Skill and of its directory in the memory.
    pub skill: String,
    /// The revision that the Job runs on.
    pub revision: RevisionRef,
    /// The limits of the whole Job.
    pub limits: EffectiveLimits,
    /// A sentence for each limit of the Job that is above that of its Skill, so that the Skill's limit applies.
    pub lowered_limits: Vec<String>,
    /// The seconds that are left of the Job's maximum duration.
    pub remaining_seconds: u64,
    /// The models to call, beginning with that of the main loop.
    pub models: Vec<ModelEndpoint>,
    /// The credentials of an MCP server outside of the cluster.
    pub external_mcp: Option<ExternalMcp>,
    /// The MCP servers that the pod has as sidecars: that of the Job, and the one that runs the scripts of the Skill.
    pub sidecars: Vec<Sidecar>,
    /// The settings that the Skill makes for its worker pods.
    pub pod: Option<PodSettings>,
    /// The resources that the Job binds.
    pub bound: BoundResources,
    /// The destinations that the network policy of the Skill allows to the worker, until the worker has ended.
    pub connects_to: BTreeSet<Destination>,
    /// The network policy of the Job, if the one of its Skill is not enough.
    pub network_policy: Option<NetworkPolicy>,
    /// The hosts that the worker may connect to at private addresses.
    pub shared_hosts: Vec<String>,
    /// The ranges that the worker may never connect to.
    pub denied_ranges: Vec<IpNet>,
    /// The position in the event log that the status of the Job records.
    pub log: Option<LogPosition>,
    /// The decisions of people that the worker needs.
    pub approvals: Vec<GivenDecision>,
    /// The approvals that were passed to an earlier attempt and do not count any more.
    pub void_approvals: Option<ApprovedCall>,
    /// The latest call whose approvals are passed to a worker, after this attempt.
    pub approved_call: Option<ApprovedCall>,
    /// The calls that people were asked about.
    pub asked: Vec<AskedCall>,
    /// The Job that this one continues.
    pub continues: Option<Continued>,
    /// The core notes that the Job reads at its start. `None` for all that the Skill has in its scope.
    pub memory_scope: Option<Vec<CoreNote>>,
    /// The replies that the log may not have yet.
    pub replies: Vec<GivenReply>,
    /// The pins of the tools of the MCP server, if they belong to the server of the revision.
    pub pins: Option<ToolPins>,
    /// The tool policy of the tenant.
    pub tenant_tools: Option<ToolPolicy>,
    /// The depth of the Job among parents and children.
    pub depth: u32,
    /// The states of the children whose ends the conversation lacks.
    pub children: Vec<ChildState>,
    /// The configured time that a worker waits for a child before it parks, in seconds; none for the default.
    pub child_wait_seconds: Option<u32>,
    /// The report endpoint.
    pub report: ReportEndpoint,
    /// True if only one node at a time can mount the memory.
    pub memory_single_node: bool,
}

impl ValidAttempt {
    /// Returns the seconds that the pod may run.
    pub fn deadline_seconds(&self) -> u64 {
        self.remaining_seconds.saturating_add(DEADLINE_MARGIN_SECONDS)
    }

    /// Returns the longest time that the worker may wait for a missing key, in seconds.
    pub fn longest_wait_seconds(&self) -> u64 {
        self.deadline_seconds() - WAIT_MARGIN_SECONDS
    }

    /// Returns the time that the worker waits for a child before it parks, in seconds; none for the default.
    pub fn bounded_child_wait(&self) -> Option<u32> {
        self.child_wait_seconds.map(|seconds| seconds.min(MAX_CHILD_WAIT_SECONDS))
    }
}

/// The Job that another one continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continued {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Its run key, if its spec names it.
    pub run_key: Option<String>,
}

impl Continued {
    /// Returns the Job as a worker sees it.
    pub fn for_worker(&self) -> ContinuedJob {
        let run_key = self.run_key.as_ref().unwrap_or(&self.uid);
        ContinuedJob { name: self.name.clone(), run_key: run_key.clone() }
    }
}

/// The resources that a Job binds, resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BoundResources {
    /// The resources that the worker is given, in the order of the Skill.
    pub resources: Vec<BoundResource>,
    /// The file systems among them, in the same order.
    pub filesystems: Vec<Filesystem>,
}

/// A file system that a Job binds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filesystem {
    /// The name of the resource.
    pub name: String,
    /// The name of the claim.
    pub claim: String,
    /// The path within its volume; the whole volume if absent.
    pub sub_path: Option<String>,
    /// True if the pod cannot change it.
    pub read_only: bool,
    /// True if only one node at a time can mount the claim.
    pub single_node: bool,
}
