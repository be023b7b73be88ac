//! Reads inside of the pod, whose events become durable with those of the next act.

use super::*;
use bloomery_crds::run::{BoundResource, ResourceSource};
use bloomery_crds::v1alpha1::ResourceType;
use bloomery_journal::fixture::checks::answers;
use bloomery_journal::fixture::faulty::{Fault, Faulty};
use serde_json::json;
use std::sync::Arc;

/// Returns a stand whose Job binds a directory with one file.
async fn stand(script: Vec<Answer>) -> Stand {
    let mut stand = Stand::new(script, Refund::Answers).await;
    let dir = stand.dir.path().join("code");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a.md"), "one\n").unwrap();
    let source = ResourceSource::Mount { path: dir.to_str().unwrap().into(), read_only: true };
    stand.resources = vec![BoundResource { name: "code".into(), kind: ResourceType::Filesystem, source }];
    stand
}

fn read() -> (&'static str, serde_json::Value) {
    ("read_file", json!({"path": "a.md"}))
}

/// Two steps that only read inside of the pod, a step that also reads outside of it, and an effect after a read.
fn script() -> Vec<Answer> {
    vec![
        Answer::Calls(vec![read(), ("list_files", json!({}))]),
        Answer::Calls(vec![read()]),
        Answer::Calls(vec![read(), ("lookup", json!({"order": "A-17"}))]),
        Answer::Calls(vec![read(), ("notify", json!({"order": "A-17"}))]),
        Answer::Says("Done.\n```json\n{\"status\": \"done\"}\n```\n"),
    ]
}

#[tokio::test]
async fn a_step_that_reads_only_inside_of_the_pod_writes_one_segment() {
    let stand = stand(script()).await;
    assert_eq!((stand.run(1).await, outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Succeeded));
    let ends = segment_ends(&stand);
    let from_first_request = ends.iter().skip_while(|name| **name != "model.requested").copied();
    assert_eq!(
        from_first_request.take(7).collect::<Vec<_>>(),
        [
            "model.requested", // before the first request
            "model.requested", // with the answer and the reads of the first step
            "model.requested", // with those of the second step
            "tool.ruled",      // before the read outside of the pod
            "model.requested",
            "tool.started", // before the effect, with the read before it
            "tool.completed",
        ]
    );
}

#[tokio::test]
async fn a_lost_answer_costs_its_reserve_and_nothing_reported_or_printed_is_lost() {
    let files = Faulty::default();
    let operations = files.operations.clone();
    stand(script()).await.run_with(1, files, Stop::default()).await.unwrap();
    let mut lost_answers = 0;
    for at in 0..operations.get() {
        let mut stand = stand(script()).await;
        stand.format = Format::Json;
        let _ = stand.run_with(1, Faulty::killed(at, Fault::KillBefore), Stop::default()).await;
        let left = stand.log();
        bloomery_journal::fixture::checks::assert_kept(&stand.printed.text(), &stand.lines(&Disk));
        let events = u64::try_from(left.len()).unwrap();
        assert!(stand.reports().iter().all(|one| one.report.projection.log.events <= events), "{at}");
        // Every request that was sent has a durable reserve, whether or not its answer was lost.
        let reserves = left.iter().filter(|entry| entry.event.name() == "model.requested").count();
        assert!(stand.model.request_count() <= reserves, "{at}");
        lost_answers += stand.model.request_count() - answers(&left);
    }
    assert!(lost_answers > 3, "{lost_answers}");
}

#[tokio::test]
async fn a_buffered_answer_is_durable_while_the_run_waits_for_a_key() {
    let first = Answer::Calls(vec![("notify", json!({"order": "A-17"})), read()]);
    let mut stand = stand(vec![first, Answer::Says("Done.\n```json\n{\"status\": \"done\"}\n```\n")]).await;
    let path = stand.dir.path().join("key");
    fs::write(&path, "sk-1").unwrap();
    stand.key = Some(KeyFile { path: path.to_str().unwrap().into(), secret: "llm".into(), key: "token".into() });
    let key = path.clone();
    stand.shop.before_effect = Some(Arc::new(move |_| fs::remove_file(&key).unwrap()));
    let repair = async {
        stand
            .operator
            .until_received(|received| {
                let events = stand.events();
                let is_durable = events.iter().filter(|name| **name == "tool.completed").count() == 2;
                let position = u64::try_from(events.len()).unwrap();
                is_durable && received.iter().any(|one| one.report.projection.log.events == position)
            })
            .await;
        fs::write(&path, "sk-1").unwrap();
    };
    let (exit, ()) = tokio::join!(stand.run(1), repair);
    assert_eq!((exit, outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Succeeded));
}
