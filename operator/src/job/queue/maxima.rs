//! Reads the maxima that apply to a Job: from the Skill, from the annotation of the namespace, and from the settings.

use super::values::Maxima;
use crate::context::Context;
use bloomery_crds::v1alpha1::Job;
use kube::core::ResourceExt;

/// The maximum of a namespace, with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NamespaceMaximum {
    /// That of the installation; none for no maximum.
    Installation(Option<u32>),
    /// That of the namespace's annotation.
    Annotation(u32),
    /// The namespace's annotation is not a number. No Job starts, because the meaning is not known.
    Unreadable(String),
}

impl NamespaceMaximum {
    /// The number of Jobs; none for no maximum.
    pub fn value(&self) -> Option<u32> {
        match self {
            Self::Installation(maximum) => *maximum,
            Self::Annotation(maximum) => Some(*maximum),
            Self::Unreadable(_) => Some(0),
        }
    }
}

/// The maxima that apply to a Job now.
pub(super) fn of_job(context: &Context, job: &Job) -> Maxima {
    let namespace = job.namespace().unwrap_or_default();
    Maxima {
        cluster: context.settings.jobs.max_running,
        namespace: of_namespace(context, &namespace).value(),
        skill: of_skill(context, &namespace, &job.spec.skill),
    }
}

/// The maximum of a namespace.
pub(super) fn of_namespace(context: &Context, namespace: &str) -> NamespaceMaximum {
    match context.caches.max_running_jobs(namespace) {
        None => NamespaceMaximum::Installation(context.settings.jobs.max_running_per_namespace),
        Some(text) => text.parse().map_or(NamespaceMaximum::Unreadable(text), NamespaceMaximum::Annotation),
    }
}

/// The maximum of a Skill; none if it sets none, or cannot be read.
pub(super) fn of_skill(context: &Context, namespace: &str, name: &str) -> Option<u32> {
    context.caches.skills.get(namespace, name)?.0.as_ref().ok()?.spec.max_running_jobs
}
