//! Tests of Jobs in the queue. The queue lives longer than one reconcile, and each reconcile has fresh caches.

use super::*;
use crate::job::fixtures::pod;
use crate::job::queue::Queue;
use futures::{FutureExt, StreamExt};

const JOBS: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs";

/// A tenant with the Jobs `j0`, `j1` and so on, in the order of their creation, and the queue of its operator.
struct Tenant {
    api: FakeApi,
    state: Arc<ControllerState>,
    woken: futures::stream::BoxStream<'static, crate::controller::Wake<Job>>,
    flags: Vec<&'static str>,
}

impl Tenant {
    fn new(jobs: usize, flags: &[&'static str]) -> Self {
        let api = FakeApi::default();
        put_skill(&api);
        put_model(&api);
        for number in 0..jobs {
            put_job(&api);
            let mut job = api.get(JOB);
            job["metadata"]["name"] = json!(format!("j{number}"));
            job["metadata"]["uid"] = json!(format!("{number:05}-uid"));
            job["metadata"]["creationTimestamp"] = json!(fixtures::at(i64::try_from(number).unwrap()).to_string());
            api.put(&path(number), job);
        }
        api.remove(JOB);
        let state = Arc::<ControllerState>::default();
        let woken = state.queue.woken();
        Self { api, state, woken, flags: flags.to_vec() }
    }

    async fn operator(&self) -> Arc<Context> {
        self.api.operator_with(&self.flags).await
    }

    async fn reconcile(&self, number: usize) -> Action {
        let job = serde_json::from_value(self.api.get(&path(number))).unwrap();
        reconcile(job, self.operator().await, self.state.clone()).await.unwrap()
    }

    /// The phase of a Job, and the reason and the message of its condition `Ready`.
    fn status(&self, number: usize) -> (String, String, String) {
        let status = self.api.get(&path(number))["status"].clone();
        let ready = status["conditions"].as_array().unwrap().iter().find(|condition| condition["type"] == "Ready");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let ready = ready.unwrap();
        (text(&status["phase"]), text(&ready["reason"]), text(&ready["message"]))
    }

    /// Ends the pod and the Job.
    async fn end(&self, number: usize) {
        self.api.change(&path(number), |job| job["status"]["phase"] = json!("Succeeded"));
        let pod = self.api.get(&path(number))["status"]["attempt"]["pod"].as_str().unwrap().to_owned();
        self.api.change(&format!("/api/v1/namespaces/acme/pods/{pod}"), |pod| {
            pod["status"] = json!({ "phase": "Succeeded" });
        });
        self.reconcile(number).await;
    }

    /// The names of the Jobs that the queue has woken since the last call.
    fn woken(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        while let Some(Some(job)) = self.woken.next().now_or_never() {
            names.push(job.name);
        }
        names
    }

    fn set_maximum_of_skill(&self, maximum: &Value) {
        self.api.change(SKILL, |skill| skill["spec"]["maxRunningJobs"] = maximum.clone());
    }

    fn annotate_namespace(&self, maximum: &str) {
        let annotations = json!({ names::ANNOTATION_MAX_RUNNING_JOBS: maximum });
        let metadata = json!({ "name": "acme", "uid": "acme-uid", "annotations": annotations });
        self.api
            .put("/api/v1/namespaces/acme", json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata }));
    }
}

fn path(number: usize) -> String {
    format!("{JOBS}/j{number}")
}

#[tokio::test]
async fn a_job_over_the_maximum_waits_and_is_woken_by_the_end_of_another() {
    let mut tenant = Tenant::new(4, &[]);
    tenant.set_maximum_of_skill(&json!(1));
    for number in [0, 3, 1, 2] {
        tenant.reconcile(number).await;
    }
    assert_eq!(tenant.status(0).1, "Starting");
    tenant.api.writes();
    let (phase, reason, message) = tenant.status(2);
    assert_eq!((phase.as_str(), reason.as_str()), ("Queued", "Queued"));
    assert!(message.starts_with("1 of at most 1 Jobs of the Skill cs-tier-1 run (spec.maxRunningJobs"), "{message}");
    // While it waits, it costs nothing.
    assert_eq!(tenant.reconcile(2).await, Action::await_change());
    assert_eq!((tenant.api.writes(), tenant.woken()), (vec![], vec![]));
    tenant.end(0).await;
    assert_eq!(tenant.woken(), ["j1"]);
    for (number, reason) in [(3, "Queued"), (1, "Starting"), (2, "Queued")] {
        tenant.reconcile(number).await;
        assert_eq!(tenant.status(number).1, reason, "j{number}");
    }
}

#[tokio::test]
async fn each_maximum_is_named_in_the_message() {
    for (flag, annotation, expected) in [
        ("--max-running-jobs=1", "", "of the cluster run (jobs.maxRunning of the chart)"),
        ("--max-running-jobs-per-namespace=1", "", "(jobs.maxRunningPerNamespace of the chart)"),
        ("--max-running-jobs-per-namespace=9", "1", "(the annotation bloomery.dev/max-running-jobs of the namespace)"),
    ] {
        let tenant = Tenant::new(2, &[flag]);
        if !annotation.is_empty() {
            tenant.annotate_namespace(annotation);
        }
        tenant.reconcile(0).await;
        tenant.reconcile(1).await;
        let (_, reason, message) = tenant.status(1);
        assert_eq!(reason, "Queued");
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn no_job_starts_while_the_maximum_of_the_namespace_is_not_a_number() {
    let mut tenant = Tenant::new(1, &[]);
    tenant.annotate_namespace("ten");
    tenant.reconcile(0).await;
    let (_, reason, message) = tenant.status(0);
    assert!(reason == "Queued" && message.contains("is not a number: \"ten\""), "{message}");
    tenant.annotate_namespace("10");
    let context = tenant.operator().await;
    let namespace = context.caches.namespaces.store().state();
    let woken = tenant.state.queue.namespace_changed(&context, &namespace[0]);
    assert_eq!(woken.into_iter().map(|job| job.name).collect::<Vec<_>>(), ["j0"]);
    tenant.reconcile(0).await;
    assert_eq!((tenant.status(0).1.as_str(), tenant.woken()), ("Starting", vec![]));
}

#[tokio::test]
async fn a_raised_maximum_of_a_skill_wakes_exactly_the_jobs_that_may_start() {
    let tenant = Tenant::new(5, &[]);
    tenant.set_maximum_of_skill(&json!(1));
    for number in 0..5 {
        tenant.reconcile(number).await;
    }
    tenant.set_maximum_of_skill(&json!(3));
    let context = tenant.operator().await;
    let skill = context.caches.skills.get("acme", "cs-tier-1").unwrap();
    let woken = tenant.state.queue.skill_changed(&context, &skill);
    assert_eq!(woken.into_iter().map(|job| job.name).collect::<Vec<_>>(), ["j1", "j2"]);
}

#[tokio::test]
async fn jobs_keep_their_turns_while_their_skill_is_checked() {
    let mut tenant = Tenant::new(3, &[]);
    tenant.set_maximum_of_skill(&json!(1));
    for number in 0..3 {
        tenant.reconcile(number).await;
    }
    tenant.set_maximum_of_skill(&json!(2));
    let generation = tenant.api.get(SKILL)["metadata"]["generation"].as_i64().unwrap();
    tenant.api.change(SKILL, |skill| skill["metadata"]["generation"] = json!(generation + 1));
    let context = tenant.operator().await;
    let skill = context.caches.skills.get("acme", "cs-tier-1").unwrap();
    assert!(tenant.state.queue.skill_changed(&context, &skill).is_empty(), "no Job may start yet");
    tenant.reconcile(1).await;
    assert_eq!(tenant.status(1).1, "SkillNotReady");
    tenant.api.change(SKILL, |skill| skill["status"]["observedGeneration"] = json!(generation + 1));
    tenant.reconcile(2).await;
    assert_eq!((tenant.status(2).1.as_str(), tenant.woken()), ("Queued", vec!["j1".to_owned()]));
    tenant.reconcile(1).await;
    assert_eq!(tenant.status(1).1, "Starting");
}

#[tokio::test]
async fn a_job_that_got_a_place_keeps_it_while_its_skill_is_checked() {
    let mut tenant = Tenant::new(3, &[]);
    tenant.set_maximum_of_skill(&json!(1));
    for number in 0..3 {
        tenant.reconcile(number).await;
    }
    tenant.set_maximum_of_skill(&json!(2));
    // The cache of the third Job has the higher maximum before the change is known as unchecked.
    tenant.reconcile(2).await;
    assert_eq!(tenant.woken(), ["j1"]);
    let generation = tenant.api.get(SKILL)["metadata"]["generation"].as_i64().unwrap();
    tenant.api.change(SKILL, |skill| skill["metadata"]["generation"] = json!(generation + 1));
    tenant.reconcile(1).await;
    assert_eq!((tenant.status(1).1.as_str(), tenant.woken()), ("SkillNotReady", vec![]));
    tenant.api.change(SKILL, |skill| skill["status"]["observedGeneration"] = json!(generation + 1));
    tenant.reconcile(1).await;
    assert_eq!(tenant.status(1).1, "Starting");
}

#[tokio::test]
async fn a_place_that_is_not_used_goes_to_the_next_job() {
    let mut tenant = Tenant::new(2, &["--max-running-jobs=1"]);
    tenant.api.remove(MODEL);
    tenant.reconcile(0).await;
    assert_eq!(tenant.status(0).1, "ModelNotFound");
    put_model(&tenant.api);
    tenant.reconcile(1).await;
    assert_eq!(tenant.status(1).1, "Starting");
    tenant.reconcile(0).await;
    assert_eq!(tenant.status(0).1, "Queued");
    tenant.api.change(&path(0), |job| job["spec"]["cancel"] = json!(true));
    tenant.reconcile(0).await;
    tenant.end(1).await;
    assert_eq!(tenant.woken(), [""; 0], "the cancelled Job has left the queue");
}

#[tokio::test]
async fn a_job_that_waits_for_people_has_no_place_and_continues_before_new_jobs() {
    let mut tenant = Tenant::new(3, &["--max-running-jobs=1"]);
    for number in 0..3 {
        tenant.reconcile(number).await;
    }
    // The second Job runs, and waits for a reply.
    tenant.end(0).await;
    assert_eq!(tenant.woken(), ["j1"]);
    tenant.reconcile(1).await;
    let pod_of_1 = tenant.api.get(&path(1))["status"]["attempt"]["pod"].as_str().unwrap().to_owned();
    tenant.api.change(&format!("/api/v1/namespaces/acme/pods/{pod_of_1}"), |pod| {
        pod["status"] = json!({ "phase": "Succeeded" });
    });
    let waiting = serde_json::to_value(fixtures::asked(0)).unwrap();
    let log = serde_json::to_value(fixtures::log(9)).unwrap();
    tenant.api.change(&path(1), |job| {
        job["status"]["phase"] = json!("AwaitingReply");
        job["status"]["waitingFor"] = waiting;
        job["status"]["log"] = log;
    });
    tenant.reconcile(1).await;
    assert_eq!(tenant.woken(), ["j2"]);
    tenant.reconcile(2).await;
    // Another Job comes, and then the answer.
    let mut late = tenant.api.get(&path(2));
    late["metadata"]["name"] = json!("j0");
    late["metadata"]["uid"] = json!("00009-new");
    late["metadata"]["creationTimestamp"] = json!(fixtures::at(-9).to_string());
    late["status"] = json!({ "observedGeneration": -1 });
    tenant.api.put(&path(0), late);
    tenant.reconcile(0).await;
    tenant.api.change(&path(1), |job| job["spec"]["replies"] = json!([{ "question": "q-1", "text": "A-17" }]));
    tenant.reconcile(1).await;
    assert_eq!([tenant.status(0).1, tenant.status(1).1], ["Queued", "Queued"]);
    tenant.end(2).await;
    assert_eq!(tenant.woken(), ["j1"]);
    tenant.reconcile(1).await;
    assert_eq!(tenant.status(1).1, "Starting");
}

#[tokio::test]
async fn a_new_leader_restores_the_places_and_the_queue() {
    let mut tenant = Tenant::new(4, &["--max-running-jobs=1"]);
    for number in 0..4 {
        tenant.reconcile(number).await;
    }
    tenant.state = Arc::default();
    tenant.woken = tenant.state.queue.woken();
    tenant.state.queue.restore(&*tenant.operator().await, Timestamp::now());
    for number in [3, 2, 1, 0] {
        tenant.reconcile(number).await;
    }
    assert_eq!([1, 2, 3].map(|number| tenant.status(number).1), ["Queued", "Queued", "Queued"]);
    tenant.end(0).await;
    assert_eq!(tenant.woken(), ["j1"]);
}

#[tokio::test]
async fn the_place_of_a_deleted_job_is_free_once_its_pod_has_ended() {
    let tenant = Tenant::new(2, &["--max-running-jobs=1"]);
    tenant.reconcile(0).await;
    tenant.reconcile(1).await;
    let deleted = tenant.api.get(&path(0));
    let pod_path = "/api/v1/namespaces/acme/pods/j0-1-00000";
    tenant.api.change(pod_path, |pod| pod["status"] = json!({ "phase": "Running" }));
    tenant.api.remove(&path(0));
    let job = serde_json::from_value(deleted).unwrap();
    let names = |woken: Vec<crate::controller::Wake<Job>>| woken.into_iter().map(|job| job.name).collect::<Vec<_>>();
    let queue: &Queue = &tenant.state.queue;
    let context = tenant.operator().await;
    assert_eq!(names(queue.job_changed(&context, &job)), [""; 0]);
    assert_eq!(names(queue.jobs_changed(&context)), [""; 0]);
    let running: Pod = serde_json::from_value(tenant.api.get(pod_path)).unwrap();
    assert_eq!(names(queue.pod_changed(&context, &running)), [""; 0]);
    tenant.api.remove(pod_path);
    assert_eq!(names(queue.pod_changed(&*tenant.operator().await, &running)), ["j1"]);
}

/// Refuses pods as a quota of a number of pods does.
fn exceeded(used: u32) -> Value {
    let message = format!(
        "pods \"j0-1-00000\" is forbidden: exceeded quota: small, requested: pods=1, used: pods={used}, limited: pods={used}"
    );
    json!({ "kind": "Status", "code": 403, "reason": "Forbidden", "message": message })
}

#[tokio::test]
async fn a_quota_is_probed_by_one_job_of_the_namespace() {
    let mut tenant = Tenant::new(4, &[]);
    tenant.api.refuse_creates(Some(exceeded(2)));
    assert_eq!(tenant.reconcile(0).await, Action::requeue(Duration::from_secs(2)));
    for number in 1..4 {
        assert_eq!(tenant.reconcile(number).await, Action::await_change());
    }
    let created = |writes: Vec<String>| writes.iter().filter(|write| write.starts_with("create")).count();
    assert_eq!(created(tenant.api.writes()), 1);
    let expected = "a quota of the namespace refuses the pod: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2.";
    for number in 0..4 {
        let (phase, reason, message) = tenant.status(number);
        assert_eq!((phase.as_str(), reason.as_str()), ("Pending", "QuotaExceeded"));
        assert!(message.starts_with(expected), "{message}");
    }
    // The end of a pod wakes one Job. Only the numbers of the refusal changed, so its status is not written.
    let context = tenant.operator().await;
    let ended = pod(1, "Succeeded");
    assert_eq!(tenant.state.queue.pod_changed(&context, &ended).len(), 1);
    tenant.api.refuse_creates(Some(exceeded(3)));
    tenant.reconcile(0).await;
    let writes = tenant.api.writes();
    assert_eq!((writes.len(), created(writes)), (1, 1));
    // The quota has room: the Jobs start one after another.
    tenant.api.refuse_creates(None);
    assert_eq!(tenant.state.queue.pod_changed(&context, &ended).len(), 1);
    for number in 0..4 {
        tenant.reconcile(number).await;
        assert_eq!(tenant.status(number).1, "Starting");
        let next: Vec<String> = (number + 1 < 4).then(|| format!("j{}", number + 1)).into_iter().collect();
        assert_eq!(tenant.woken(), next);
    }
}
