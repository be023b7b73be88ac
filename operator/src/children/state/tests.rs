use super::*;
use crate::children::build::child_job;
use crate::job::fixtures::api::FakeApi;
use crate::job::fixtures::{self, status};
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::v1alpha1::{JobResult, RequestedChild, Usage};

const JOBS: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs";

/// A Job with the record of a new child for the call `c-1`.
fn parent() -> Job {
    let mut parent = fixtures::job();
    let name = Some(child_name(&parent, "c-1"));
    let child = ChildJob { call: "c-1".into(), name, phase: Some(Phase::Pending), ..ChildJob::default() };
    parent.status = Some(JobStatus { children: vec![child], ..status(1, Phase::AwaitingJob) });
    parent
}

fn child(phase: Phase) -> Job {
    let mut child = child_job(&parent(), ("c-1", "reviewer"), &RequestedChild::default()).unwrap();
    child.metadata.uid = Some("child-uid".into());
    let outcome = phase.is_terminal().then(|| Outcome::new(OutcomeCode::Succeeded, "it passed"));
    let result = Some(JobResult { text: "Looks good".into(), ..JobResult::default() });
    let usage = Some(Usage { input_tokens: 7, ..Usage::default() }.into());
    child.status = Some(JobStatus { phase: Some(phase), outcome, result, usage, ..JobStatus::default() });
    child
}

fn put(api: &FakeApi, job: &Job) {
    api.put(&format!("{JOBS}/{}", job.name_any()), serde_json::to_value(job).unwrap());
}

#[tokio::test]
async fn the_end_of_a_child_is_read_with_its_result() {
    let api = FakeApi::default();
    put(&api, &parent());
    put(&api, &child(Phase::Running));
    let context = api.operator().await;
    assert_eq!(states(&context, &parent(), &["c-1"]).await[0].state, ChildProgress::Running);
    assert_eq!((api.reads(), has_news(&context.caches, &parent())), (vec![], false));
    put(&api, &child(Phase::Succeeded));
    let context = api.operator().await;
    let found = states(&context, &parent(), &["c-1"]).await;
    let [state] = &found[..] else { panic!("one state: {found:?}") };
    let ChildProgress::Ended { code, text, usage, .. } = &state.state else { panic!("{state:?}") };
    assert_eq!(*code, OutcomeCode::Succeeded);
    assert_eq!((text.as_deref(), usage.input_tokens), (Some("Looks good"), 7));
    assert_eq!(state.job, child(Phase::Succeeded).name_any());
    assert!(has_news(&context.caches, &parent()));
}

#[tokio::test]
async fn a_child_is_deleted_only_if_the_cache_has_had_it() {
    let api = FakeApi::default();
    put(&api, &parent());
    assert_eq!(seen(&api.operator().await.caches, &parent(), "c-1"), Seen::Deleted);
    // The cache has the parent from before the creation of the child.
    let mut earlier = parent();
    earlier.status.as_mut().unwrap().children[0].name = None;
    put(&api, &earlier);
    let context = api.operator().await;
    let caches = &context.caches;
    assert_eq!((seen(caches, &parent(), "c-1"), seen(caches, &earlier, "c-1")), (Seen::Running, Seen::Running));
    // A person has created another Job with the name.
    put(&api, &parent());
    let mut foreign = child(Phase::Succeeded);
    foreign.spec.parent = None;
    put(&api, &foreign);
    assert_eq!(seen(&api.operator().await.caches, &parent(), "c-1"), Seen::Deleted);
}

#[tokio::test]
async fn a_child_that_is_deleted_after_its_end_is_not_deleted_but_requested_again() {
    let api = FakeApi::default();
    let mut ended = parent();
    ended.status.as_mut().unwrap().children[0].phase = Some(Phase::Succeeded);
    put(&api, &ended);
    let context = api.operator().await;
    assert_eq!(seen(&context.caches, &ended, "c-1"), Seen::Running);
    assert!(has_lost_end(&context.caches, &ended, &ended.status.as_ref().unwrap().children[0]));
    assert!(!has_news(&context.caches, &ended), "the leader drops the name first");
    let settled = ChildJob { settled: true, ..ended.status.as_ref().unwrap().children[0].clone() };
    assert!(!has_lost_end(&context.caches, &ended, &settled), "the parent has the end");
    ended.status.as_mut().unwrap().children[0].name = None;
    assert!(has_news(&context.caches, &ended));
    // The cache still shows a child that is gone.
    put(&api, &parent());
    put(&api, &child(Phase::Succeeded));
    let context = api.operator().await;
    api.remove(&format!("{JOBS}/{}", child(Phase::Succeeded).name_any()));
    assert_eq!(states(&context, &parent(), &["c-1"]).await[0].state, ChildProgress::Running);
}

#[tokio::test]
async fn a_refused_child_has_its_reason_and_a_settled_one_is_no_news() {
    let context = FakeApi::default().operator().await;
    let mut refused = parent();
    let children = &mut refused.status.as_mut().unwrap().children;
    (children[0].name, children[0].refused) = (None, Some("no".into()));
    assert_eq!(seen(&context.caches, &refused, "c-1"), Seen::Refused("no".into()));
    assert!(has_news(&context.caches, &refused));
    let children = &mut refused.status.as_mut().unwrap().children;
    children[0].settled = true;
    let request = Some(RequestedChild::default());
    children.push(ChildJob { call: "c-2".into(), request, ..ChildJob::default() });
    assert!(!has_news(&context.caches, &refused), "only the second one is open");
    let mut full = parent();
    full.status.as_mut().unwrap().children = vec![ChildJob::default(); MAX_CHILDREN];
    assert!(matches!(seen(&context.caches, &full, "c-9"), Seen::Refused(why) if why.contains("32")));
    assert!(has_news(&context.caches, &fixtures::job()), "without an open child, there is nothing to wait for");
}
