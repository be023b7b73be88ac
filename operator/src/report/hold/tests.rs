use super::*;
use crate::job::fixtures::api::FakeApi;
use crate::job::fixtures::{self, UID, report, status};
use bloomery_crds::Digest;
use bloomery_crds::children::{self, ChildRequest, ChildState};
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::report::PodEnd;
use bloomery_crds::v1alpha1::{ChildJob, JobStatus, Limits, ParentJob, RequestedChild};
use futures::FutureExt;
use serde_json::{Value, json};
use std::sync::Arc;

const JOBS: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs";

/// A report that waits for the child of the call `c-1`.
fn waiting() -> Report {
    let request = ChildRequest {
        call: "c-1".into(),
        digest: Digest::of_bytes(b""),
        skill: "reviewer".into(),
        goal: "Review".into(),
        resources: Vec::new(),
        limits: Limits::default(),
    };
    Report { children: vec![request], wait_seconds: 60, ..report(1, 1, 9, Phase::Running) }
}

fn child_name() -> String {
    children::name("refund", "cs-tier-1", UID, "c-1")
}

/// A Job with a child in this phase.
fn family(phase: Phase) -> FakeApi {
    let api = FakeApi::default();
    let mut parent = fixtures::job();
    let record = ChildJob { call: "c-1".into(), name: Some(child_name()), ..ChildJob::default() };
    parent.status = Some(JobStatus { children: vec![record], ..status(1, Phase::Running) });
    api.put(&format!("{JOBS}/refund"), serde_json::to_value(&parent).unwrap());
    let mut child =
        crate::children::build::child_job(&parent, ("c-1", "reviewer"), &RequestedChild::default()).unwrap();
    child.metadata.uid = Some("child-uid".into());
    let outcome = phase.is_terminal().then(|| Outcome::new(OutcomeCode::Succeeded, "it passed"));
    child.status = Some(JobStatus { phase: Some(phase), outcome, ..JobStatus::default() });
    api.put(&format!("{JOBS}/{}", child_name()), serde_json::to_value(&child).unwrap());
    api
}

fn first() -> Directives {
    let child = ChildState { call: "c-1".into(), job: child_name(), state: ChildProgress::Running };
    Directives { ack: 9, children: vec![child], ..Directives::default() }
}

/// The response to a report that is held until a directive applies, or for this time.
async fn held_for(api: &FakeApi, time: Duration, stopping: &CancellationToken) -> Directives {
    let context = api.operator().await;
    let held = Held { until: Instant::now() + time, ..Held::new(&waiting()).unwrap() };
    hold(&context, &held, first(), stopping).await
}

/// The response to a report that is held until a directive applies.
async fn held(api: &FakeApi) -> Directives {
    held_for(api, Duration::from_hours(1), &CancellationToken::new()).await
}

#[tokio::test]
async fn a_report_is_held_until_its_time_is_over() {
    let api = family(Phase::Running);
    assert_eq!(held_for(&api, Duration::ZERO, &CancellationToken::new()).await, first());
    let longest = Instant::now() + Duration::from_secs(WAIT_SECONDS.into()) + Duration::from_secs(1);
    assert!(Held::new(&waiting()).unwrap().until < longest, "the report asks for a minute");
}

#[tokio::test]
async fn the_end_of_a_child_ends_the_wait() {
    let directives = held(&family(Phase::Succeeded)).await;
    assert!(has_news(&directives) && directives.ack == 9, "{directives:?}");
}

#[tokio::test]
async fn other_directives_and_the_shutdown_end_the_wait() {
    let changed = async |change: fn(&mut Value)| {
        let api = family(Phase::Running);
        api.change(&format!("{JOBS}/refund"), change);
        held(&api).await
    };
    assert!(changed(|job| job["spec"]["cancel"] = json!(true)).await.cancel);
    let replied = changed(|job| job["spec"]["replies"] = json!([{ "text": "stop" }])).await;
    assert_eq!(replied.replies.len(), 1);
    let stopping = CancellationToken::new();
    stopping.cancel();
    assert_eq!(held_for(&family(Phase::Running), Duration::from_hours(1), &stopping).await, first());
}

#[test]
fn only_a_running_worker_that_waits_for_a_child_is_held() {
    assert!(Held::new(&Report { wait_seconds: 0, ..waiting() }).is_none());
    assert!(Held::new(&Report { children: Vec::new(), ..waiting() }).is_none());
    assert!(Held::new(&Report { end: Some(PodEnd::Superseded), ..waiting() }).is_none());
}

#[tokio::test]
async fn only_changes_of_the_job_its_parent_and_its_children_are_looked_at() {
    let job = |namespace: &str, name: &str, parent: Option<&str>| {
        let mut job = fixtures::job();
        job.metadata.namespace = Some(namespace.to_owned());
        job.metadata.name = Some(name.to_owned());
        job.spec.parent = parent.map(|parent| ParentJob { name: parent.into(), ..ParentJob::default() });
        Change::Touched(Arc::new(Guarded(Ok(job))))
    };
    let (held, parent) = (Held::new(&waiting()).unwrap(), ParentJob { name: "audit".into(), ..ParentJob::default() });
    for (change, is_looked_at) in [
        (job("acme", "refund", None), true),
        (job("acme", "audit", None), true),
        (job("acme", "refund-1", Some("refund")), true),
        (Change::Anything, true),
        (job("acme", "other", None), false),
        (job("globex", "refund-1", Some("refund")), false),
        (job("globex", "audit", None), false),
    ] {
        let waits = format!("{change:?}");
        let mut changes = futures::stream::iter([change]).chain(futures::stream::pending()).boxed();
        assert_eq!(changed(&mut changes, &held, Some(&parent)).now_or_never().is_some(), is_looked_at, "{waits}");
    }
}
