//! Decides which Jobs may start: pure, with the clock as an input.
//!
//! A Job has a place from the moment at which it may create a pod until its pod is terminal or gone. A free place goes to the namespace
//! with the fewest places that has a Job to start; in it, to the Skill whose first Job is a child, or else to the one with the fewest places;
//! of this Skill, to the oldest Job. Jobs that had a pod before come first, then children. If two namespaces (or Skills) have as many
//! places, the one whose latest place is older comes first. So every waiting Job starts after a bounded number of ends of others, and many
//! Jobs of one namespace do not delay another namespace.

use super::quota::Quota;
use super::values::{Answer, Maxima, Precedence, QueueLength, QueuedJob, Rank, Scope};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, HashMap};

/// The places of all Jobs, and the Jobs that wait for one.
#[derive(Debug, Default)]
pub struct Scheduler {
    maximum: Option<u32>,
    running: u32,
    /// Grows with each place that is given. Twice the number of places given so far.
    turn: u64,
    namespaces: BTreeMap<String, Namespace>,
    jobs: HashMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    job: QueuedJob,
    has_place: bool,
}

#[derive(Debug, Default)]
struct Namespace {
    maximum: Option<u32>,
    running: u32,
    /// The turn of the latest place.
    latest: u64,
    quota: Option<Quota>,
    skills: BTreeMap<String, Skill>,
}

#[derive(Debug, Default)]
struct Skill {
    maximum: Option<u32>,
    running: u32,
    /// The turn of the latest place.
    latest: u64,
    /// The UIDs of the waiting Jobs, in their order.
    waiting: BTreeMap<Rank, String>,
}

/// The order in which a free place is offered to a Skill.
type Order<'a> = (u32, u64, bool, u32, u64, &'a str, &'a str);

impl Scheduler {
    /// Asks for a place for a Job that can start. Returns the answer, and the other Jobs that may start now.
    pub fn request(&mut self, job: &QueuedJob, maxima: &Maxima, now: Timestamp) -> (Answer, Vec<QueuedJob>) {
        let uid = job.uid.clone();
        if !self.has_place(&uid) {
            self.remove(&uid);
            self.insert(job.clone(), false);
        }
        self.set_maxima(job, maxima);
        if let Some(quota) = self.quota(&job.namespace) {
            quota.check_time(now);
        }
        let mut granted = self.grant();
        granted.retain(|other| other.uid != uid);
        (self.answer(job, now), granted)
    }

    /// Records that a Job has a pod, whatever the maxima allow. Returns the Jobs that may start now.
    pub fn start(&mut self, job: &QueuedJob, maxima: &Maxima) -> Vec<QueuedJob> {
        let is_new = !self.has_place(&job.uid);
        if is_new {
            self.remove(&job.uid);
            self.insert(job.clone(), true);
        }
        let are_changed = self.set_maxima(job, maxima);
        let is_probe = self.quota(&job.namespace).is_some_and(|quota| quota.accept(&job.uid));
        // Most reconciles are of a Job that has its place already, and then no other Job may start.
        if !is_new && !are_changed && !is_probe {
            return Vec::new();
        }
        self.forget_quota(&job.namespace);
        self.grant()
    }

    /// Records that a Job waits, as its status says. It gets no place before it asks. `refusal` is set if a quota refused its pod.
    pub fn restore_waiting(&mut self, job: &QueuedJob, maxima: &Maxima, refusal: Option<&str>, now: Timestamp) {
        if self.jobs.contains_key(&job.uid) {
            return;
        }
        self.insert(job.clone(), false);
        self.set_maxima(job, maxima);
        if let (Some(message), Some(namespace)) = (refusal, self.namespaces.get_mut(&job.namespace)) {
            namespace.quota.get_or_insert_with(|| Quota::unprobed(message, &job.uid, now));
        }
    }

    /// Records that a quota refused the pod of a Job with a place. The Job waits again. Returns when the Job has to ask again (none if
    /// another Job does), and the Jobs that may start now.
    pub fn refuse(&mut self, uid: &str, message: &str, now: Timestamp) -> (Option<SignedDuration>, Vec<QueuedJob>) {
        let Some(job) = self.remove(uid) else { return (None, Vec::new()) };
        let name = job.namespace.clone();
        self.insert(job, false);
        let Some(namespace) = self.namespaces.get_mut(&name) else { return (None, Vec::new()) };
        match &mut namespace.quota {
            Some(quota) => quota.refuse(message, uid, now),
            none => *none = Some(Quota::refused(message, uid, now)),
        }
        let retry = namespace.quota.as_ref().and_then(|quota| quota.retry_after(uid, now));
        (retry, self.grant())
    }

    /// Records that a Job has no pod and wants none, or does not exist. Returns the Jobs that may start now.
    pub fn finish(&mut self, uid: &str) -> Vec<QueuedJob> {
        let Some(job) = self.remove(uid) else { return Vec::new() };
        if let Some(quota) = self.quota(&job.namespace) {
            quota.leave(uid);
        }
        self.forget_quota(&job.namespace);
        self.grant()
    }

    /// Removes a Job that waits. A Job with a place keeps it. Returns the Jobs that may start now.
    pub fn withdraw(&mut self, uid: &str) -> Vec<QueuedJob> {
        if self.has_place(uid) { Vec::new() } else { self.finish(uid) }
    }

    /// Records that a pod of a namespace has ended, so that a quota may have room. Returns the Job that may probe the quota.
    pub fn pod_ended(&mut self, namespace: &str) -> Vec<QueuedJob> {
        let Some(quota) = self.quota(namespace) else { return Vec::new() };
        quota.pod_ended();
        self.grant()
    }

    /// Sets the maximum of a namespace. Returns the Jobs that may start now.
    pub fn set_namespace_maximum(&mut self, namespace: &str, maximum: Option<u32>) -> Vec<QueuedJob> {
        let Some(namespace) = self.namespaces.get_mut(namespace) else { return Vec::new() };
        namespace.maximum = maximum;
        self.grant()
    }

    /// Sets the maximum of a Skill. Returns the Jobs that may start now.
    pub fn set_skill_maximum(&mut self, namespace: &str, skill: &str, maximum: Option<u32>) -> Vec<QueuedJob> {
        let Some(namespace) = self.namespaces.get_mut(namespace) else { return Vec::new() };
        let Some(skill) = namespace.skills.get_mut(skill) else { return Vec::new() };
        skill.maximum = maximum;
        self.grant()
    }

    /// All Jobs that have a place or wait for one.
    pub fn jobs(&self) -> impl Iterator<Item = &QueuedJob> {
        self.jobs.values().map(|entry| &entry.job)
    }

    /// The waiting Jobs of each Skill that has any, in the order in which the Skills get free places.
    pub fn lengths(&self) -> Vec<QueueLength> {
        let mut waiting: Vec<(Order<'_>, &Namespace, &Skill)> = Vec::new();
        for (namespace_name, namespace) in &self.namespaces {
            for (name, skill) in namespace.skills.iter().filter(|(_, skill)| !skill.waiting.is_empty()) {
                waiting.push((order(namespace_name, namespace, name, skill), namespace, skill));
            }
        }
        waiting.sort_by_key(|(order, ..)| *order);
        let in_order = (1..).zip(waiting);
        let length =
            |(position, ((.., namespace_name, name), namespace, skill)): (_, (Order<'_>, &Namespace, &Skill))| {
                let scope = self.full(namespace, skill).map(|(scope, ..)| scope.to_string());
                QueueLength {
                    namespace: namespace_name.to_owned(),
                    skill: name.to_owned(),
                    waiting: skill.waiting.len(),
                    waits_for: scope.unwrap_or_else(|| "quota".to_owned()),
                    position,
                }
            };
        in_order.map(length).collect()
    }

    fn quota(&mut self, namespace: &str) -> Option<&mut Quota> {
        self.namespaces.get_mut(namespace)?.quota.as_mut()
    }

    fn has_place(&self, uid: &str) -> bool {
        self.jobs.get(uid).is_some_and(|entry| entry.has_place)
    }

    fn insert(&mut self, job: QueuedJob, has_place: bool) {
        // One that is new comes after those that wait already, and before the one that got the latest place.
        let latest = self.turn.saturating_sub(1);
        let new_namespace = || Namespace { latest, ..Namespace::default() };
        let namespace = self.namespaces.entry(job.namespace.clone()).or_insert_with(new_namespace);
        let skill = namespace.skills.entry(job.skill.clone()).or_insert_with(|| Skill { latest, ..Skill::default() });
        if has_place {
            skill.running += 1;
            namespace.running += 1;
            self.running += 1;
        } else {
            skill.waiting.insert(job.rank(), job.uid.clone());
        }
        self.jobs.insert(job.uid.clone(), Entry { job, has_place });
    }

    fn remove(&mut self, uid: &str) -> Option<QueuedJob> {
        let Entry { job, has_place } = self.jobs.remove(uid)?;
        let namespace = self.namespaces.get_mut(&job.namespace)?;
        let skill = namespace.skills.get_mut(&job.skill)?;
        if has_place {
            skill.running -= 1;
            namespace.running -= 1;
            self.running -= 1;
        } else {
            skill.waiting.remove(&job.rank());
        }
        Some(job)
    }

    /// Sets the maxima that apply to a Job. Returns whether one of them has changed.
    fn set_maxima(&mut self, job: &QueuedJob, maxima: &Maxima) -> bool {
        let mut is_changed = std::mem::replace(&mut self.maximum, maxima.cluster) != maxima.cluster;
        let Some(namespace) = self.namespaces.get_mut(&job.namespace) else { return is_changed };
        is_changed |= std::mem::replace(&mut namespace.maximum, maxima.namespace) != maxima.namespace;
        if let Some(skill) = namespace.skills.get_mut(&job.skill) {
            is_changed |= std::mem::replace(&mut skill.maximum, maxima.skill) != maxima.skill;
        }
        is_changed
    }

    /// Gives free places to waiting Jobs, and returns these Jobs.
    fn grant(&mut self) -> Vec<QueuedJob> {
        let mut granted = Vec::new();
        while let Some(uid) = self.next_uid() {
            let Some(job) = self.remove(&uid) else { break };
            self.insert(job.clone(), true);
            self.turn += 2;
            let turn = self.turn;
            if let Some(namespace) = self.namespaces.get_mut(&job.namespace) {
                namespace.latest = turn;
                if let Some(skill) = namespace.skills.get_mut(&job.skill) {
                    skill.latest = turn;
                }
                if let Some(quota) = &mut namespace.quota {
                    quota.begin_probe(&uid);
                }
            }
            granted.push(job);
        }
        self.remove_empty();
        granted
    }

    /// The Job that gets the next free place.
    fn next_uid(&self) -> Option<String> {
        if is_full(self.running, self.maximum) {
            return None;
        }
        let mut first: Option<(Order<'_>, &String)> = None;
        for (namespace_name, namespace) in &self.namespaces {
            let may_probe = namespace.quota.as_ref().is_none_or(Quota::may_probe);
            if is_full(namespace.running, namespace.maximum) || !may_probe {
                continue;
            }
            for (name, skill) in &namespace.skills {
                let Some((_, uid)) = skill.waiting.first_key_value() else { continue };
                let order = order(namespace_name, namespace, name, skill);
                if !is_full(skill.running, skill.maximum) && first.is_none_or(|(earlier, _)| order < earlier) {
                    first = Some((order, uid));
                }
            }
        }
        first.map(|(_, uid)| uid.clone())
    }

    /// Removes the namespaces and Skills without Jobs.
    fn remove_empty(&mut self) {
        self.namespaces.retain(|_, namespace| {
            namespace.skills.retain(|_, skill| skill.running > 0 || !skill.waiting.is_empty());
            !namespace.skills.is_empty()
        });
    }

    /// Forgets the quota of a namespace without waiting Jobs: the next Job tries to create its pod.
    fn forget_quota(&mut self, name: &str) {
        if let Some(namespace) = self.namespaces.get_mut(name)
            && namespace.skills.values().all(|skill| skill.waiting.is_empty())
        {
            namespace.quota = None;
        }
    }

    fn answer(&self, job: &QueuedJob, now: Timestamp) -> Answer {
        let namespace = self.namespaces.get(&job.namespace).filter(|_| !self.has_place(&job.uid));
        let skill = namespace.and_then(|namespace| namespace.skills.get(&job.skill));
        let (Some(namespace), Some(skill)) = (namespace, skill) else { return Answer::Granted };
        if let Some((scope, running, maximum)) = self.full(namespace, skill) {
            return Answer::Full { scope, running, maximum };
        }
        let quota = namespace.quota.as_ref();
        let message = quota.map_or("another Job comes first", Quota::message).to_owned();
        Answer::Quota { message, retry: quota.and_then(|quota| quota.retry_after(&job.uid, now)) }
    }

    /// Returns the narrowest maximum that is reached for a Skill: its scope, the places that are taken, and the maximum.
    fn full(&self, namespace: &Namespace, skill: &Skill) -> Option<(Scope, u32, u32)> {
        let scopes = [
            (Scope::Skill, skill.running, skill.maximum),
            (Scope::Namespace, namespace.running, namespace.maximum),
            (Scope::Cluster, self.running, self.maximum),
        ];
        let mut full = scopes.into_iter().filter(|(_, running, maximum)| is_full(*running, *maximum));
        full.find_map(|(scope, running, maximum)| Some((scope, running, maximum?)))
    }
}

fn is_full(running: u32, maximum: Option<u32>) -> bool {
    maximum.is_some_and(|maximum| running >= maximum)
}

fn order<'a>(namespace_name: &'a str, namespace: &Namespace, name: &'a str, skill: &Skill) -> Order<'a> {
    let is_child =
        skill.waiting.first_key_value().is_some_and(|((precedence, ..), _)| *precedence == Precedence::Child);
    (namespace.running, namespace.latest, !is_child, skill.running, skill.latest, namespace_name, name)
}

#[cfg(test)]
mod tests;
