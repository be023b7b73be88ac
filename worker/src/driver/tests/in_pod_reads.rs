//! Reads inside of the pod, whose events become durable with those of the next act.

use super::*;
use crate::fixture::desk::{Desk, Reaction};
use crate::fixture::focus_disk::FocusDisk;
use crate::fixture::stand::lines;
use crate::focus;
use bloomery_crds::Digest;
use bloomery_crds::run::{BoundResource, ResourceSource};
use bloomery_crds::v1alpha1::{LogPosition, ResourceType};
use bloomery_engine::line::Chain;
use bloomery_engine::people::{HumanRequest, Statement};
use bloomery_journal::Store;
use bloomery_journal::fixture::SOURCE;
use bloomery_journal::fixture::checks::{answers, parse};
use bloomery_journal::fixture::faulty::{Fault, Faulty};
use serde_json::json;
use std::sync::{Arc, Mutex, mpsc};

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

/// The content of the entry of the focus cache.
const ENTRY: &str = "an earlier result";

/// Returns a call that reads the entry of the focus cache.
fn read_entry() -> (&'static str, serde_json::Value) {
    ("focus_read", json!({"handle": Digest::of_bytes(ENTRY.as_bytes()).as_str()}))
}

/// Writes the entry of the focus cache.
fn write_entry(stand: &Stand) {
    let dir = stand.memory().join(focus::DIR);
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join(Digest::of_bytes(ENTRY.as_bytes()).short(64)), ENTRY).unwrap();
}

/// Returns a stand whose model reads a file in its first step, and an entry of the focus cache in its second step.
async fn stand_with_entry() -> Stand {
    let script = vec![
        Answer::Calls(vec![read()]),
        Answer::Calls(vec![read_entry()]),
        Answer::Says("Done.\n```json\n{\"status\": \"done\"}\n```\n"),
    ];
    let stand = stand(script).await;
    write_entry(&stand);
    stand
}

#[tokio::test]
async fn a_buffered_answer_is_durable_while_a_read_is_slow() {
    let stand = stand_with_entry().await;
    let (answer, until_answered) = mpsc::channel::<()>();
    let until_answered = Mutex::new(until_answered);
    let files = FocusDisk::on_other_thread(move || {
        // A failed test drops the sender, which ends the read too.
        let _ = until_answered.lock().unwrap().recv();
    });
    let seen = async {
        while !stand.printed.text().contains("focus_read: Allow") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!((stand.events().last(), stand.model.request_count()), (Some(&"tool.ruled"), 2));
        answer.send(()).unwrap();
    };
    let (exit, ()) = tokio::join!(stand.run_with(1, files, Stop::default()), seen);
    assert_eq!((exit.unwrap(), outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Succeeded));
}

/// Runs the first attempt, and requests that it stops while the answer of the second step is in the buffer, directly before the result
/// of its read is.
async fn stop_with_buffered_read(stand: &Stand, reason: StopReason) -> Exit {
    let stop = Stop::default();
    let (request, memory) = (stop.clone(), stand.memory());
    let files = FocusDisk::on_same_thread(move || {
        let durable = parse(&lines(&Disk, &memory));
        assert_eq!(durable.last().map(|entry| entry.event.name()), Some("model.requested"));
        request.request(reason);
    });
    stand.run_with(1, files, stop).await.unwrap()
}

/// Asserts that the log ends with the whole second step and then `ending`. Asserts also that the end of the pod is reported with the
/// position after `ending`, which is durable, and that no position within the second step was reported.
fn assert_step_is_durable_before(ending: &[&str], stand: &Stand) {
    let step = ["model.requested", "model.answered", "tool.requested", "tool.ruled", "tool.completed"];
    let expected = [&step[..], ending].concat();
    let events = stand.events();
    let begin = events.len() - expected.len();
    assert_eq!(events[begin..], expected);

    let position = durable_position(stand);
    assert_eq!(usize::try_from(position.events).unwrap(), events.len());
    let reports = stand.reports();
    assert_eq!(reports.last().unwrap().report.projection.log, position);
    assert_eq!(stand.termination(1).log, Some(position));
    let buffered = begin + 2..=begin + step.len();
    let reported = reports.iter().map(|one| usize::try_from(one.report.projection.log.events).unwrap());
    assert_eq!(reported.filter(|events| buffered.contains(events)).count(), 0, "not durable when it was reported");
}

/// Returns the position after the last event on disk.
fn durable_position(stand: &Stand) -> LogPosition {
    let store = Store::open(Disk, &stand.memory(), "k-1", "reader").unwrap();
    let mut chain = Chain::new(SOURCE);
    store.read(&mut chain, |_| {}).unwrap();
    chain.position(&store.path())
}

#[tokio::test]
async fn a_park_writes_buffered_reads_before_its_event_and_reports_the_position_after_it() {
    let stand = stand_with_entry().await;
    let exit = stop_with_buffered_read(&stand, StopReason::Drain).await;
    assert_eq!(exit, Exit::Parked(ParkReason::Drain));
    assert_step_is_durable_before(&["parked"], &stand);
    assert_eq!(segment_ends(&stand).last(), Some(&"model.requested"), "one segment has the step and the park");

    // The next attempt repeats neither the request nor the read.
    assert_eq!(stand.model.request_count(), 2);
    assert_eq!((stand.run(2).await, outcome(&stand, 2)), (Exit::Finished, OutcomeCode::Succeeded));
    assert_eq!(stand.events().iter().filter(|name| **name == "tool.completed").count(), 2);
    assert!(stand.model.requests()[2].to_string().contains(ENTRY));
}

#[tokio::test]
async fn a_cancellation_writes_buffered_reads_before_its_directive() {
    let stand = stand_with_entry().await;
    let exit = stop_with_buffered_read(&stand, StopReason::Cancelled).await;
    assert_eq!((exit, outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Cancelled));
    assert_step_is_durable_before(&["directive.received", "finished"], &stand);
    let ends = segment_ends(&stand);
    assert!(ends.ends_with(&["model.requested", "directive.received"]), "one segment has both: {ends:?}");
    assert_eq!(stand.model.request_count(), 2);
}

/// The question comes between two reads of one step.
#[tokio::test]
async fn a_buffered_read_is_durable_when_a_question_is_asked_and_the_reply_before_the_next_read() {
    let first = Answer::Calls(vec![read(), ("ask_user", json!({"text": "Which order?"})), read_entry()]);
    let mut stand = stand(vec![first, Answer::Says("Done.\n```json\n{\"status\": \"done\"}\n```\n")]).await;
    write_entry(&stand);
    let memory = stand.memory();
    let desk = Arc::new(Desk::new(move |asks| {
        let durable = parse(&lines(&Disk, &memory));
        let names: Vec<_> = durable.iter().map(|entry| entry.event.name()).collect();
        assert!(names.ends_with(&["tool.completed", "tool.ruled", "user.asked"]), "{names:?}");
        let HumanRequest::Question(open) = &asks[0] else { panic!("{asks:?}") };
        let question = open.question.id.clone();
        Reaction::Answers(Statement::Reply { question, text: "A-17".into(), by: "jane".into(), nth: None })
    }));
    stand.people = Some(Arc::clone(&desk));
    let memory = stand.memory();
    let files = FocusDisk::on_same_thread(move || {
        let durable = parse(&lines(&Disk, &memory));
        assert_eq!(durable.last().map(|entry| entry.event.name()), Some("user.replied"));
    });
    let exit = stand.run_with(1, files, Stop::default()).await.unwrap();
    assert_eq!((exit, outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Succeeded));
    assert_eq!(desk.asked(), ["Which order?"]);
    assert!(stand.model.requests()[1].to_string().contains(ENTRY), "the second read was made");
}
