//! A namespace whose quota refuses pods: one Job of it probes the quota at a time. Pure.
//!
//! The quota is not watched. It is probed when the backoff is over, when a pod of the namespace ends, and after a probe that succeeded,
//! because the quota may have room for one more pod.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The longest time between two probes. The first one is 2 s, and each is twice as long as the one before.
pub const MAX_BACKOFF: SignedDuration = SignedDuration::from_secs(60);

/// The refusals of the pods of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// The latest refusal.
    message: String,
    /// The number of refused probes in a row.
    failures: u32,
    /// The time of the next probe.
    retry_at: Timestamp,
    /// The UID of the Job that asks again at that time.
    timer: String,
    /// The UID of the Job that probes now.
    probe: Option<String>,
    /// True if a Job may probe now.
    is_ready: bool,
    /// True if a pod ended during the current probe, so that a refusal may be out of date.
    has_room: bool,
}

impl Quota {
    /// Records the first refusal, which is that of the pod of this Job.
    pub fn refused(message: &str, uid: &str, now: Timestamp) -> Self {
        let mut quota = Self::unprobed(message, uid, now);
        quota.fail(message, uid, now);
        quota
    }

    /// Records that a quota refused the pod of this Job before this process started, so that a Job may probe now.
    pub fn unprobed(message: &str, uid: &str, now: Timestamp) -> Self {
        Self {
            message: message.to_owned(),
            failures: 0,
            retry_at: now,
            timer: uid.to_owned(),
            probe: None,
            is_ready: true,
            has_room: false,
        }
    }

    /// Records the refusal of another pod. That of a Job which does not probe changes nothing: its pod was created before the quota was
    /// known.
    pub fn refuse(&mut self, message: &str, uid: &str, now: Timestamp) {
        if self.probe.as_deref() == Some(uid) {
            self.probe = None;
            self.fail(message, uid, now);
        }
    }

    fn fail(&mut self, message: &str, uid: &str, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        message.clone_into(&mut self.message);
        uid.clone_into(&mut self.timer);
        self.retry_at = now + MAX_BACKOFF.min(SignedDuration::from_secs(1 << self.failures.min(6)));
        self.is_ready = std::mem::take(&mut self.has_room);
    }

    /// Returns whether a Job may probe now.
    pub fn may_probe(&self) -> bool {
        self.is_ready && self.probe.is_none()
    }

    /// Records that this Job probes.
    pub fn begin_probe(&mut self, uid: &str) {
        (self.probe, self.is_ready, self.has_room) = (Some(uid.to_owned()), false, false);
    }

    /// Records that the pod of a Job was created. Returns whether this Job probed the quota.
    pub fn accept(&mut self, uid: &str) -> bool {
        let is_probe = self.probe.as_deref() == Some(uid);
        if is_probe {
            (self.probe, self.failures, self.is_ready) = (None, 0, true);
        }
        is_probe
    }

    /// Records that a Job needs no pod any more. If it probes, or would ask again, another Job may probe now.
    pub fn leave(&mut self, uid: &str) {
        if self.probe.as_deref() == Some(uid) {
            self.probe = None;
            self.is_ready = true;
        } else if self.timer == uid {
            self.is_ready = true;
        }
    }

    /// Records that a pod of the namespace has ended.
    pub fn pod_ended(&mut self) {
        if self.probe.is_some() {
            self.has_room = true;
        } else {
            self.is_ready = true;
        }
    }

    /// Lets a Job probe if the backoff is over.
    pub fn check_time(&mut self, now: Timestamp) {
        if now >= self.retry_at {
            self.is_ready = true;
        }
    }

    /// Returns when a waiting Job has to ask again; none if another Job does.
    pub fn retry_after(&self, uid: &str, now: Timestamp) -> Option<SignedDuration> {
        // If the clock was set back, the wait does not become longer.
        (self.timer == uid).then(|| self.retry_at.duration_since(now).clamp(SignedDuration::ZERO, MAX_BACKOFF))
    }

    /// The latest refusal.
    pub fn message(&self) -> &str {
        &self.message
    }
}
