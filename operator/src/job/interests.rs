//! Which Jobs depend on which Skill, Models and claims, so that a change wakes those and no others.

use crate::controller::Wake;
use bloomery_crds::v1alpha1::Job;
use kube::runtime::reflector::ObjectRef;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

/// Something that a Job depends on, by name: it need not exist.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Interest {
    /// Which kind it is of.
    pub kind: Kind,
    /// Its namespace, which is the Job's.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Kinds that Jobs depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A Skill, and all that is made for it.
    Skill,
    /// A Model.
    Model,
    /// A `PersistentVolumeClaim` that the Job binds.
    Claim,
    /// The Job that the Job continues.
    Job,
}

impl Interest {
    /// Names what is depended on.
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// Which Jobs depend on what.
#[derive(Debug, Default)]
pub struct Interests(Mutex<Index>);

#[derive(Debug, Default)]
struct Index {
    jobs: HashMap<Interest, HashSet<String>>,
    interests: HashMap<(String, String), HashSet<Interest>>,
}

impl Interests {
    /// Records that a Job depends on something. Do it before looking at it: what changes in between is not missed.
    pub fn record(&self, job: &str, interest: Interest) {
        let mut index = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        index.jobs.entry(interest.clone()).or_default().insert(job.to_owned());
        index.interests.entry((interest.namespace.clone(), job.to_owned())).or_default().insert(interest);
    }

    /// Forgets a Job that ended or is gone.
    pub fn forget(&self, namespace: &str, job: &str) {
        let mut index = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let interests = index.interests.remove(&(namespace.to_owned(), job.to_owned())).unwrap_or_default();
        for interest in interests {
            if let Some(jobs) = index.jobs.get_mut(&interest) {
                jobs.remove(job);
                if jobs.is_empty() {
                    index.jobs.remove(&interest);
                }
            }
        }
    }

    /// The Jobs that depend on something.
    pub fn of(&self, interest: &Interest) -> Vec<Wake<Job>> {
        let index = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let jobs = index.jobs.get(interest).into_iter().flatten();
        jobs.map(|job| ObjectRef::new(job).within(&interest.namespace)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_wakes_who_depends_on_it_and_nobody_else() {
        let interests = Interests::default();
        let skill = Interest::new(Kind::Skill, "acme", "cs-tier-1");
        interests.record("refund", skill.clone());
        interests.record("refund", skill.clone());
        interests.record("lookup", skill.clone());
        interests.record("refund", Interest::new(Kind::Model, "acme", "fast"));
        let mut names: Vec<_> = interests.of(&skill).iter().map(|job| job.name.clone()).collect();
        names.sort();
        assert_eq!(names, ["lookup", "refund"]);
        assert!(interests.of(&Interest::new(Kind::Skill, "other", "cs-tier-1")).is_empty());
        assert!(interests.of(&Interest::new(Kind::Model, "acme", "cs-tier-1")).is_empty());
        interests.forget("acme", "refund");
        assert_eq!(interests.of(&skill).len(), 1);
        interests.forget("acme", "lookup");
        assert_eq!(interests.0.lock().unwrap().jobs.len(), 0);
    }
}
