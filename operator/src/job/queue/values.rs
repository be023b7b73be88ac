//! The values that the scheduler takes and returns.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// A Job that has a place, or waits for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedJob {
    /// The namespace.
    pub namespace: String,
    /// The Skill.
    pub skill: String,
    /// The name.
    pub name: String,
    /// The UID.
    pub uid: String,
    /// True if the Job had a pod before. It continues before Jobs that never had one.
    pub has_started: bool,
    /// True if another Job invoked the Job. It starts before Jobs that people created, because the other one waits for it.
    pub is_child: bool,
    /// The creation time.
    pub created: Option<Timestamp>,
}

/// The order of the Jobs of a Skill. Jobs of one second, which is the resolution of creation times, are in the order of their names.
pub(super) type Rank = (Precedence, Option<Timestamp>, String, String);

/// The Jobs that come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    /// A Job that had a pod before.
    Started,
    /// A Job that another one invoked.
    Child,
    /// Any other Job.
    New,
}

impl QueuedJob {
    pub(super) fn rank(&self) -> Rank {
        let precedence = match (self.has_started, self.is_child) {
            (true, _) => Precedence::Started,
            (false, true) => Precedence::Child,
            (false, false) => Precedence::New,
        };
        (precedence, self.created, self.name.clone(), self.uid.clone())
    }
}

/// The maxima that apply to a Job; none for no maximum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Maxima {
    /// The maximum of the cluster.
    pub cluster: Option<u32>,
    /// The maximum of the namespace.
    pub namespace: Option<u32>,
    /// The maximum of the Skill.
    pub skill: Option<u32>,
}

/// The answer to a Job that asks for a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The Job has a place, and may create a pod.
    Granted,
    /// As many Jobs have places as this maximum allows.
    Full {
        /// The scope of the maximum.
        scope: Scope,
        /// The number of places that are taken.
        running: u32,
        /// The maximum.
        maximum: u32,
    },
    /// A quota refuses the pods of the namespace, and another Job probes it, or the backoff is not over.
    Quota {
        /// The latest refusal.
        message: String,
        /// The time after which the Job has to ask again; none if another Job does.
        retry: Option<SignedDuration>,
    },
}

/// The scope of a maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Scope {
    /// The Jobs of the Skill.
    Skill,
    /// The Jobs of the namespace.
    Namespace,
    /// All Jobs.
    Cluster,
}

/// The waiting Jobs of a Skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueLength {
    /// The namespace.
    pub namespace: String,
    /// The Skill.
    pub skill: String,
    /// The number of waiting Jobs.
    pub waiting: usize,
    /// What they wait for: the scope of a maximum, or `quota`.
    pub waits_for: String,
    /// The position of the first of them among the first Jobs of all Skills, from 1.
    pub position: usize,
}
