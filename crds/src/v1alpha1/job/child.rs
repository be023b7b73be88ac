//! The parent of a Job, and the record of its children.

use super::super::shared::Limits;
use crate::outcome::Phase;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// The Job that invoked another one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParentJob {
    /// The name of the Job.
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// The UID of the Job.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
    /// The id of the call in the log of the Job.
    #[schemars(length(min = 1, max = ParentJob::MAX_CALL_BYTES))]
    pub call: String,
}

impl ParentJob {
    /// The longest id of a call, in bytes.
    pub const MAX_CALL_BYTES: usize = 64;
}

/// A Job that this one invoked with `use_skill`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChildJob {
    /// The id of the call in the log of this Job.
    #[schemars(length(max = ParentJob::MAX_CALL_BYTES))]
    pub call: String,
    /// The name of the Skill.
    #[schemars(length(max = 63))]
    pub skill: String,
    /// The name of the child. Absent until it is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50))]
    pub name: Option<String>,
    /// The phase of the child. Absent until it is created. While the child works, a change to another phase in which it works is not
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The reason why the child was not created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = ChildJob::MAX_REFUSED_BYTES))]
    pub refused: Option<String>,
    /// True once the conversation has the end of the child.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// The request for the child, until it is created or refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestedChild>,
}

impl ChildJob {
    /// The largest number of children in a status.
    pub const MAX_CHILDREN: usize = 32;

    /// The longest reason why a child was not created, in bytes.
    pub const MAX_REFUSED_BYTES: usize = 512;
}

/// The parameters of a child that is not created yet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestedChild {
    /// The goal of the child.
    #[schemars(length(max = RequestedChild::MAX_GOAL_BYTES))]
    pub goal: String,
    /// The names of the bindings of this Job that the child gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = RequestedChild::MAX_RESOURCES), inner(length(max = RequestedChild::MAX_RESOURCE_BYTES)))]
    pub resources: Vec<String>,
    /// The limits of the child.
    pub limits: Limits,
}

impl RequestedChild {
    /// The longest goal, in bytes.
    pub const MAX_GOAL_BYTES: usize = 4096;

    /// The largest number of bindings.
    pub const MAX_RESOURCES: usize = 16;

    /// The longest name of a binding, in bytes.
    pub const MAX_RESOURCE_BYTES: usize = 64;
}
