//! Jobs of a story.

use bloomery_crds::conditions::ConditionType;
use bloomery_crds::names;
use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::v1alpha1::{AskedQuestion, CoreNote, Job, JobMode, JobSpec, JobStatus, Limits, Reply};
use bloomery_testkit::json::typed;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt;
use kube::api::{ListParams, LogParams, Patch, PatchParams};
use serde_json::json;

use super::objects::write;
use super::tenant::Tenant;
use super::wait::{condition_message, eventually, gone, until};

/// A Job to be created. Awaiting it creates the Job.
pub struct JobDraft<'t> {
    tenant: &'t Tenant,
    job: Job,
}

/// A Job in the cluster.
pub struct JobHandle<'t> {
    tenant: &'t Tenant,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

impl Tenant {
    /// Returns a Job of the Skill `cs-tier-1` that refunds an order.
    pub fn job(&self, name: &str) -> JobDraft<'_> {
        let spec =
            JobSpec { skill: "cs-tier-1".to_owned(), goal: "Refund order A-17".to_owned(), ..JobSpec::default() };
        JobDraft { tenant: self, job: Job::new(name, spec) }
    }
}

impl Tenant {
    /// Returns the handle of a Job that exists.
    pub fn existing_job(&self, job: &Job) -> JobHandle<'_> {
        JobHandle { tenant: self, name: job.name_any(), uid: job.uid().unwrap_or_default() }
    }
}

impl JobDraft<'_> {
    /// Returns the Job as it would be created.
    pub fn object(&self) -> &Job {
        &self.job
    }

    /// Sets the goal.
    #[must_use]
    pub fn goal(mut self, goal: &str) -> Self {
        goal.clone_into(&mut self.job.spec.goal);
        self
    }

    /// Sets the Skill.
    #[must_use]
    pub fn for_skill(mut self, skill: &str) -> Self {
        skill.clone_into(&mut self.job.spec.skill);
        self
    }

    /// Sets an annotation.
    #[must_use]
    pub fn annotated(mut self, name: &str, value: &str) -> Self {
        self.job.annotations_mut().insert(name.to_owned(), value.to_owned());
        self
    }

    /// Sets a label.
    #[must_use]
    pub fn labelled(mut self, name: &str, value: &str) -> Self {
        self.job.labels_mut().insert(name.to_owned(), value.to_owned());
        self
    }

    /// Sets the run key.
    #[must_use]
    pub fn with_run_key(mut self, key: &str) -> Self {
        self.job.spec.run_key = Some(key.to_owned());
        self
    }

    /// Binds a resource of the Skill.
    #[must_use]
    pub fn binding(mut self, name: &str, binding: serde_json::Value) -> Self {
        self.job.spec.resources.insert(name.to_owned(), typed(binding));
        self
    }

    /// Tests the features of the Skill, instead of working on the goal.
    #[must_use]
    pub fn validating(mut self) -> Self {
        self.job.spec.mode = Some(JobMode::Validate);
        self
    }

    /// Continues another Job.
    #[must_use]
    pub fn continuing(mut self, job: &str) -> Self {
        self.job.spec.continues = Some(job.to_owned());
        self
    }

    /// Reads only these core notes at its start.
    #[must_use]
    pub fn reading(mut self, notes: &[CoreNote]) -> Self {
        self.job.spec.memory_scope = Some(notes.to_vec());
        self
    }

    /// Sets the TTL of the Job after its end, in seconds.
    #[must_use]
    pub fn lasting(mut self, seconds: i64) -> Self {
        self.job.spec.ttl_seconds_after_finished = Some(seconds);
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.job.spec.limits = Some(limits);
        self
    }
}

impl<'t> IntoFuture for JobDraft<'t> {
    type Output = JobHandle<'t>;
    type IntoFuture = BoxFuture<'t, JobHandle<'t>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let made = self.tenant.api::<Job>().create(&write(), &self.job).await;
            let made = made.unwrap_or_else(|error| panic!("Job {} cannot be created: {error}", self.job.name_any()));
            JobHandle { tenant: self.tenant, name: made.name_any(), uid: made.uid().unwrap_or_default() }
        })
    }
}

impl JobHandle<'_> {
    /// Waits for a status and returns it. `what` describes it in the failure message.
    pub async fn until(&self, what: &str, wanted: impl Fn(&JobStatus) -> bool) -> JobStatus {
        let wanted = |job: &Job| job.status.as_ref().is_some_and(&wanted);
        until(&self.tenant.api::<Job>(), &self.name, what, wanted).await.status.unwrap_or_default()
    }

    /// Waits for a phase.
    pub async fn until_phase(&self, phase: Phase) -> JobStatus {
        self.until(&format!("the phase {phase}"), |status| status.phase == Some(phase)).await
    }

    /// Waits until the condition `Ready` has this reason and a message with all of `parts`, and returns the message.
    pub async fn until_reason(&self, reason: &str, parts: &[&str]) -> String {
        let what = format!("the reason {reason} with a message that names {parts:?}");
        let message = |status: &JobStatus| condition_message(&status.conditions, ConditionType::Ready, reason, parts);
        let status = self.until(&what, |status| message(status).is_some()).await;
        message(&status).unwrap_or_default()
    }

    /// Waits until the Job has ended, and checks its outcome.
    pub async fn ended(&self, code: OutcomeCode) -> JobStatus {
        let status = self.until(&format!("the end of the Job ({code})"), JobStatus::is_terminal).await;
        let outcome = status.outcome.as_ref().expect("a Job that has ended has an outcome");
        assert_eq!(outcome.code, code, "{}: {}", self.name, outcome.message);
        assert_eq!(status.phase, Some(outcome.phase()), "the phase of {} follows from its outcome", self.name);
        status
    }

    /// Waits until the Job has succeeded.
    pub async fn succeeded(&self) -> JobStatus {
        self.ended(OutcomeCode::Succeeded).await
    }

    /// Waits for an Event of the Job with a reason, whose message has all of `parts`. The operator publishes an Event after it has written
    /// the status.
    pub async fn until_event(&self, reason: &str, parts: &[&str]) {
        let about = ListParams::default().fields(&format!("involvedObject.uid={}", self.uid));
        eventually(&format!("the Event {reason} of {}", self.name), async || {
            let events = self.tenant.api::<Event>().list(&about).await.map_err(|error| error.to_string())?;
            let seen: Vec<_> = events.items.into_iter().map(|event| (event.reason, event.message)).collect();
            let is_wanted = |(other, message): &(Option<String>, Option<String>)| {
                let message = message.as_deref().unwrap_or_default();
                other.as_deref() == Some(reason) && parts.iter().all(|part| message.contains(part))
            };
            if seen.iter().any(is_wanted) { Ok(()) } else { Err(format!("{seen:?}")) }
        })
        .await;
    }

    /// Waits for the pod of an attempt, and returns it.
    pub async fn pod(&self, attempt: u32) -> Pod {
        let name = names::worker_pod(&self.name, attempt, &self.uid);
        until(&self.tenant.api::<Pod>(), &name, "the pod of an attempt", |_| true).await
    }

    /// Returns the existing pods of the Job.
    pub async fn pods(&self) -> Vec<Pod> {
        let own = ListParams::default().labels(&format!("{}={}", names::LABEL_JOB, self.name));
        let pods = self.tenant.api::<Pod>().list(&own).await;
        pods.unwrap_or_else(|error| panic!("pods cannot be listed: {error}")).items
    }

    /// Waits until all existing pods of the Job have succeeded.
    pub async fn pods_have_ended(&self) {
        eventually(&format!("the pods of {} to end", self.name), async || {
            let phases: Vec<_> = self.pods().await.into_iter().filter_map(|pod| pod.status?.phase).collect();
            if phases.iter().all(|phase| phase == "Succeeded") { Ok(()) } else { Err(phases) }
        })
        .await;
    }

    /// Returns the log of an attempt's pod.
    pub async fn logs(&self, attempt: u32) -> String {
        let name = names::worker_pod(&self.name, attempt, &self.uid);
        let log = self.tenant.api::<Pod>().logs(&name, &LogParams::default()).await;
        log.unwrap_or_else(|error| panic!("the log of {name} cannot be read: {error}"))
    }

    /// Waits until the pods of these attempts have ended, and returns their logs.
    pub async fn all_logs(&self, attempts: u32) -> String {
        let mut logs = String::new();
        for attempt in 1..=attempts {
            let name = names::worker_pod(&self.name, attempt, &self.uid);
            let has_ended = |pod: &Pod| {
                let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                matches!(phase, Some("Succeeded" | "Failed"))
            };
            until(&self.tenant.api::<Pod>(), &name, "the pod of an attempt to end", has_ended).await;
            logs += &self.logs(attempt).await;
        }
        logs
    }

    /// Cancels the Job and does not wait for its end.
    pub async fn cancel(&self) {
        let patch = Patch::Merge(json!({"spec": {"cancel": true}}));
        let cancelled = self.tenant.api::<Job>().patch(&self.name, &PatchParams::default(), &patch).await;
        cancelled.unwrap_or_else(|error| panic!("{} cannot be cancelled: {error}", self.name));
    }

    /// Appends a reply to the spec: the answer to a question, or a message.
    pub async fn reply(&self, question: Option<&str>, text: &str) {
        self.reply_all([(question, text)]).await;
    }

    /// Appends several replies in one write.
    pub async fn reply_all<'a>(&self, said: impl IntoIterator<Item = (Option<&'a str>, &'a str)>) {
        let jobs = self.tenant.api::<Job>();
        let job = jobs.get(&self.name).await.unwrap_or_else(|error| panic!("{} cannot be read: {error}", self.name));
        let mut replies = job.spec.replies;
        let reply = |(question, text): (Option<&str>, &str)| Reply {
            question: question.map(str::to_owned),
            text: text.to_owned(),
        };
        replies.extend(said.into_iter().map(reply));
        let more = Patch::Merge(json!({"spec": {"replies": replies}}));
        let said = jobs.patch(&self.name, &PatchParams::default(), &more).await;
        said.unwrap_or_else(|error| panic!("{} cannot be replied to: {error}", self.name));
    }

    /// Waits until the Job waits for answers to this number of questions, and returns the questions.
    pub async fn until_questions(&self, questions: usize) -> Vec<AskedQuestion> {
        let open = |status: &JobStatus| status.waiting_for.clone().map(|waiting| waiting.questions).unwrap_or_default();
        let asks = |status: &JobStatus| status.phase == Some(Phase::AwaitingReply) && open(status).len() == questions;
        open(&self.until(&format!("{questions} questions"), asks).await)
    }

    /// Deletes the Job and does not wait for its removal.
    pub async fn delete(&self) {
        self.tenant.remove::<Job>(&self.name).await;
    }

    /// Waits until the Job is gone.
    pub async fn gone(&self) {
        gone(&self.tenant.api::<Job>(), &self.name, Some(&self.uid)).await;
    }
}
