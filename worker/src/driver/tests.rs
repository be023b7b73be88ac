//! Tests whole attempts against servers in this process.

use super::*;
use crate::fixture::shop::Refund;
use crate::fixture::stand::{Stand, refund};
use crate::printer::Format;
use crate::stop::{Stop, StopReason};
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::report::{ExternalWait, PodEnd};
use bloomery_crds::run::KeyFile;
use bloomery_engine::step::ToolCall;
use bloomery_engine::tool::ListedTool;
use bloomery_journal::files::Disk;
use bloomery_testkit::recording_model::Answer;
use bloomery_testkit::report_server::Received;
use std::fs;

mod attached;
mod cancelled;
mod children;
mod crashed;
mod decision_inbox;
mod deleted_secret;
mod drifted;
mod endpoints;
mod files;
mod focus_size;
mod frozen;
mod in_pod_reads;
mod killed;
mod limited;
mod people;
mod pruned;
mod remembered;
mod replayed;
mod replies;
mod secrets;
mod selected;
mod stopped;
mod storage;
mod tampered;

fn outcome(stand: &Stand, attempt: u32) -> OutcomeCode {
    stand.termination(attempt).outcome.unwrap().code
}

/// Runs an attempt. Returns the part of its time that the log does not count as work.
async fn run_and_measure_idle_time(stand: &Stand) -> Duration {
    let began = std::time::Instant::now();
    assert_eq!(stand.run(1).await, Exit::Finished);
    let worked = stand.log().iter().map(|entry| entry.stamp.elapsed_ms).sum();
    began.elapsed().saturating_sub(Duration::from_millis(worked))
}

#[tokio::test]
async fn a_job_succeeds_and_its_outcome_is_in_the_message_the_report_and_the_record() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    assert_eq!(stand.run(1).await, Exit::Finished);

    let tools: Vec<String> = stand.shop.effects().into_iter().map(|(tool, _)| tool).collect();
    assert_eq!(tools, ["refund", "notify"]);
    let events = u64::try_from(stand.log().len()).unwrap();
    let message = stand.termination(1);
    assert_eq!((message.end, message.acked, message.epoch), (PodEnd::Finished, true, Some(1)));
    assert_eq!(outcome(&stand, 1), OutcomeCode::Succeeded);
    assert_eq!(message.log.unwrap().events, events);

    let reports = stand.reports();
    let (first, last) = (&reports.first().unwrap().report, &reports.last().unwrap().report);
    assert_eq!((first.job.uid.as_str(), first.attempt, first.epoch), ("uid-j0", 1, 1));
    assert_eq!((last.end.clone(), last.projection.log.events), (Some(PodEnd::Finished), events));
    assert_eq!(last.projection.result.as_ref().unwrap().fields["status"], "refunded");

    let record = stand.record();
    assert_eq!(record.outcome, last.projection.outcome);
    assert_eq!(record.result.unwrap().fields["status"], "refunded");
    assert_eq!(record.goal, "Refund order A-17");
}

/// Returns the last event of each segment but the last one. It is the event that the next act needs.
fn segment_ends(stand: &Stand) -> Vec<&'static str> {
    let firsts: Vec<u64> = fs::read_dir(stand.memory().join("jobs/k-1"))
        .unwrap()
        .filter_map(|file| bloomery_journal::segment::seq_of(file.unwrap().file_name().to_str().unwrap()))
        .collect();
    stand.log().iter().filter(|entry| firsts.contains(&(entry.seq + 1))).map(|entry| entry.event.name()).collect()
}

#[tokio::test]
async fn a_segment_is_written_before_each_act_that_needs_it() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    stand.run(1).await;
    assert_eq!(
        segment_ends(&stand),
        [
            "epoch.started",   // before anything
            "model.requested", // before the request
            "tool.ruled",      // before the reads
            "model.requested", // before the next request, with the outcomes of the reads
            "tool.started",    // before the effect, with the answer of the model
            "tool.completed",  // directly after the effect
            "tool.started",
            "tool.completed",
            "model.requested",
            "model.requested", // before the request of the finalization gate
            "model.requested", // before the request of the polisher
        ]
    );
}

#[tokio::test]
async fn the_json_format_prints_the_lines_of_the_log() {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    stand.format = Format::Json;
    stand.run(1).await;
    let mut chain = bloomery_engine::line::Chain::new(bloomery_journal::fixture::SOURCE);
    let printed: Vec<_> = stand.printed.text().lines().map(|line| chain.read(line).unwrap()).collect();
    assert_eq!(printed, stand.log());
}

#[tokio::test]
async fn the_text_format_has_one_line_for_each_event() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    stand.run(1).await;
    let lines: Vec<String> = stand.printed.text().lines().map(|line| line[25..].to_owned()).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[tokio::test]
async fn a_finished_conversation_is_reported_again_without_another_act() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    stand.run(1).await;
    let asked = stand.model.request_count();
    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!((stand.model.request_count(), stand.shop.effects().len()), (asked, 2));
    assert_eq!(outcome(&stand, 2), OutcomeCode::Succeeded);
    assert_eq!(stand.termination(2).epoch, Some(2));
}

#[tokio::test]
async fn a_lost_call_ends_the_job_if_nobody_can_be_asked() {
    let stand = Stand::new(refund(), Refund::Loses).await;
    assert_eq!(stand.run(1).await, Exit::Finished);
    assert_eq!(outcome(&stand, 1), OutcomeCode::ToolIndeterminate);
    assert_eq!(stand.shop.effects().len(), 1);
}

#[tokio::test]
async fn the_run_waits_for_a_late_mcp_server_and_reports_it() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    *stand.shop.failing_lists.lock().unwrap() = 1;
    // The first delay is at least 250 ms.
    assert!(run_and_measure_idle_time(&stand).await >= Duration::from_millis(250));
    assert_eq!(outcome(&stand, 1), OutcomeCode::Succeeded);
    let waited = ExternalWait::McpUnavailable { message: "connection refused".into() };
    assert!(stand.reports().iter().any(|one| one.report.waiting.as_ref() == Some(&waited)));
    assert_eq!(stand.reports().last().unwrap().report.waiting, None);
}

#[tokio::test]
async fn the_run_waits_for_a_busy_model_and_this_is_not_work() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    *stand.model.busy.lock().unwrap() = 1;
    assert!(run_and_measure_idle_time(&stand).await >= Duration::from_secs(1));
    assert_eq!(outcome(&stand, 1), OutcomeCode::Succeeded);
    let waited = |received: &Received| matches!(received.report.waiting, Some(ExternalWait::ModelUnavailable { .. }));
    assert!(stand.reports().iter().any(waited));
    assert_eq!(stand.reports().last().unwrap().report.waiting, None);
}

#[tokio::test]
async fn a_busy_model_ends_the_job_after_the_time_limit() {
    let stand = Stand::new(refund(), Refund::Answers).await.impatient();
    *stand.model.busy.lock().unwrap() = u32::MAX;
    stand.run(1).await;
    let Outcome { code, message, .. } = stand.termination(1).outcome.unwrap();
    assert_eq!(code, OutcomeCode::ModelUnavailable);
    let model = format!("The Model `default` (gpt-5 at {})", stand.model.url);
    assert!(message.starts_with(&format!("{model} answered HTTP 503: busy. It was tried once in ")), "{message}");
    assert_eq!(stand.model.request_count(), 1);
}

#[tokio::test]
async fn an_mcp_server_that_never_answers_ends_the_job() {
    let stand = Stand::new(refund(), Refund::Answers).await.impatient();
    *stand.shop.failing_lists.lock().unwrap() = 1;
    stand.run(1).await;
    let outcome = stand.termination(1).outcome.unwrap();
    assert_eq!(outcome.code, OutcomeCode::McpUnavailable);
    assert_eq!(
        outcome.message,
        "Connection refused. The worker waited 0 s for it. Repair the MCP server, or correct its address, then start the \
         Job again."
    );
}

#[tokio::test]
async fn the_run_waits_for_a_missing_key_and_reports_it() {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    let path = stand.dir.path().join("key");
    stand.key = Some(KeyFile { path: path.to_str().unwrap().into(), secret: "llm".into(), key: "token".into() });
    let stand = stand;
    let is_missing = |waiting: Option<&ExternalWait>| matches!(waiting, Some(ExternalWait::SecretMissing { name, key, until: Some(_) }) if name == "llm" && key == "token");
    let repair = async {
        stand
            .operator
            .until_received(|received| received.iter().any(|one| is_missing(one.report.waiting.as_ref())))
            .await;
        assert!(stand.model.requests().is_empty());
        // No tokens are reserved while no request can be sent.
        assert!(!stand.events().contains(&"model.requested"));
        fs::write(&path, "sk-1").unwrap();
    };
    let (exit, ()) = tokio::join!(stand.run(1), repair);
    assert_eq!((exit, outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Succeeded));
}

#[tokio::test]
async fn a_missing_key_ends_the_job_after_the_time_limit() {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    // The time limit of other waits does not count.
    stand.patience.secret_wait = Duration::ZERO;
    stand.key = Some(KeyFile { path: "/nowhere".into(), secret: "llm".into(), key: "token".into() });
    stand.run(1).await;
    let outcome = stand.termination(1).outcome.unwrap();
    assert_eq!(outcome.code, OutcomeCode::ModelUnavailable);
    assert_eq!(
        outcome.message,
        "The key `token` of the Secret `llm` is missing or empty. The worker waited 0 s for it. Add the key to the Secret, then start \
         the Job again."
    );
}

#[tokio::test]
async fn a_model_that_answers_after_the_duration_ends_the_job() {
    let mut stand = Stand::new(vec![Answer::HangsOnce, Answer::Says("never")], Refund::Answers).await;
    stand.limits = EffectiveLimits { duration_seconds: 1, ..EffectiveLimits::DEFAULT };
    stand.run(1).await;
    assert_eq!(outcome(&stand, 1), OutcomeCode::DurationLimit);
    assert_eq!(stand.model.request_count(), 1);
}

#[tokio::test]
async fn a_log_that_lost_acknowledged_events_is_not_continued() {
    let stand = Stand::new(refund(), Refund::Answers).await.impatient();
    stand.run(1).await;
    let log = stand.log();
    let effects = stand.shop.effects();
    let started = log.iter().find(|entry| matches!(entry.event, Event::ToolStarted { .. })).unwrap().seq;
    for entry in fs::read_dir(stand.memory().join("jobs/k-1")).unwrap() {
        let path = entry.unwrap().path();
        if bloomery_journal::segment::seq_of(path.file_name().unwrap().to_str().unwrap()) >= Some(started) {
            fs::remove_file(path).unwrap();
        }
    }
    let failed = stand.run_with(2, Disk, Stop::default()).await.unwrap_err().to_string();
    assert!(failed.contains(&format!("has acknowledged {}:", log.len())), "{failed}");
    assert_eq!(stand.shop.effects(), effects);
}

#[tokio::test]
async fn a_broken_log_is_not_continued_and_the_error_names_the_segment() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    stand.run(1).await;
    fs::remove_file(stand.memory().join("jobs/k-1").join(bloomery_journal::segment::name(2))).unwrap();
    let args = stand.args(2);
    let failed = stand.run_with(2, Disk, Stop::default()).await.unwrap_err();
    crate::ending::write_failure(&failed.to_string(), &args.termination_log);
    assert!(stand.failure(2).contains(&bloomery_journal::segment::name(2)), "{}", stand.failure(2));
}
