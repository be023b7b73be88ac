//! Whole attempts against real in-process servers.

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

mod cancelled;
mod crashed;
mod decision_inbox;
mod drifted;
mod endpoints;
mod files;
mod frozen;
mod killed;
mod people;
mod remembered;
mod replayed;
mod replies;
mod secrets;
mod selected;
mod stopped;
mod storage;

fn outcome(stand: &Stand, attempt: u32) -> OutcomeCode {
    stand.termination(attempt).outcome.unwrap().code
}

/// Runs an attempt; gives the time in it that its log does not call work.
async fn idle_in(stand: &Stand) -> Duration {
    let began = std::time::Instant::now();
    assert_eq!(stand.run(1).await, Exit::Finished);
    let worked = stand.log().iter().map(|entry| entry.stamp.elapsed_ms).sum();
    began.elapsed().saturating_sub(Duration::from_millis(worked))
}

#[tokio::test]
async fn a_goal_is_worked_through_and_told_everywhere() {
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

#[tokio::test]
async fn each_act_is_preceded_by_what_must_be_durable() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    stand.run(1).await;
    let firsts: Vec<u64> = fs::read_dir(stand.memory().join("jobs/k-1"))
        .unwrap()
        .filter_map(|file| bloomery_journal::segment::seq_of(file.unwrap().file_name().to_str().unwrap()))
        .collect();
    // The last event of each segment is what the act after it needs.
    let last: Vec<&str> =
        stand.log().iter().filter(|entry| firsts.contains(&(entry.seq + 1))).map(|entry| entry.event.name()).collect();
    assert_eq!(
        last,
        [
            "epoch.started",   // before anything
            "model.requested", // before the request
            "tool.ruled",      // before the reads
            "model.requested", // with the outcomes of the reads
            "tool.started",    // with the answer
            "tool.completed",  // the outcome of an effect, at once
            "tool.started",
            "tool.completed",
            "model.requested",
            "model.requested", // whether the answer may go out
            "model.requested", // its polish
        ]
    );
}

#[tokio::test]
async fn what_is_printed_is_the_log() {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    stand.format = Format::Json;
    stand.run(1).await;
    let mut chain = bloomery_engine::line::Chain::new(bloomery_journal::fixture::SOURCE);
    let printed: Vec<_> = stand.printed.text().lines().map(|line| chain.read(line).unwrap()).collect();
    assert_eq!(printed, stand.log());
}

#[tokio::test]
async fn people_read_one_line_an_event() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    stand.run(1).await;
    let lines: Vec<String> = stand.printed.text().lines().map(|line| line[25..].to_owned()).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[tokio::test]
async fn a_finished_conversation_is_told_again_and_nothing_is_done() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    stand.run(1).await;
    let asked = stand.model.request_count();
    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!((stand.model.request_count(), stand.shop.effects().len()), (asked, 2));
    assert_eq!(outcome(&stand, 2), OutcomeCode::Succeeded);
    assert_eq!(stand.termination(2).epoch, Some(2));
}

#[tokio::test]
async fn a_call_that_nobody_knows_about_ends_the_job() {
    let stand = Stand::new(refund(), Refund::Loses).await;
    assert_eq!(stand.run(1).await, Exit::Finished);
    assert_eq!(outcome(&stand, 1), OutcomeCode::ToolIndeterminate);
    assert_eq!(stand.shop.effects().len(), 1);
}

#[tokio::test]
async fn an_mcp_server_that_comes_late_is_waited_for_and_said_so() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    *stand.shop.unlisted.lock().unwrap() = 1;
    // The first pause is 250 ms at least.
    assert!(idle_in(&stand).await >= Duration::from_millis(250));
    assert_eq!(outcome(&stand, 1), OutcomeCode::Succeeded);
    let waited = ExternalWait::McpUnavailable { message: "connection refused".into() };
    assert!(stand.reports().iter().any(|taken| taken.report.waiting.as_ref() == Some(&waited)));
    assert_eq!(stand.reports().last().unwrap().report.waiting, None);
}

#[tokio::test]
async fn a_busy_model_is_waited_for_and_that_is_no_work() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    *stand.model.busy.lock().unwrap() = 1;
    assert!(idle_in(&stand).await >= Duration::from_secs(1));
    assert_eq!(outcome(&stand, 1), OutcomeCode::Succeeded);
    let waited = |taken: &Received| matches!(taken.report.waiting, Some(ExternalWait::ModelUnavailable { .. }));
    assert!(stand.reports().iter().any(waited));
    assert_eq!(stand.reports().last().unwrap().report.waiting, None);
}

#[tokio::test]
async fn a_model_is_waited_for_as_long_as_anything_else() {
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
    *stand.shop.unlisted.lock().unwrap() = 1;
    stand.run(1).await;
    let outcome = stand.termination(1).outcome.unwrap();
    assert_eq!(outcome.code, OutcomeCode::McpUnavailable);
    assert_eq!(
        outcome.message,
        "Connection refused. It was waited for 0 s. Mend the MCP server, or what names it, and make the Job anew."
    );
}

#[tokio::test]
async fn a_missing_key_is_named_and_waited_for() {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    let path = stand.dir.path().join("key");
    stand.key = Some(KeyFile { path: path.to_str().unwrap().into(), secret: "llm".into(), key: "token".into() });
    let stand = stand;
    let missing = ExternalWait::SecretMissing { name: "llm".into(), key: "token".into() };
    let mended = async {
        stand
            .operator
            .until_received(|taken| taken.iter().any(|taken| taken.report.waiting.as_ref() == Some(&missing)))
            .await;
        assert!(stand.model.requests().is_empty());
        // No reserve is spent on what was never asked.
        assert!(!stand.events().contains(&"model.requested"));
        fs::write(&path, "sk-1").unwrap();
    };
    let (exit, ()) = tokio::join!(stand.run(1), mended);
    assert_eq!((exit, outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Succeeded));
}

#[tokio::test]
async fn a_key_that_never_comes_ends_the_job_and_is_named() {
    let mut stand = Stand::new(refund(), Refund::Answers).await.impatient();
    stand.key = Some(KeyFile { path: "/nowhere".into(), secret: "llm".into(), key: "token".into() });
    stand.run(1).await;
    let outcome = stand.termination(1).outcome.unwrap();
    assert_eq!(outcome.code, OutcomeCode::ModelUnavailable);
    assert_eq!(
        outcome.message,
        "The key `token` of the Secret `llm` is needed, and it is missing or empty. It was waited for 0 s. Put it \
         there, and make the Job anew."
    );
}

#[tokio::test]
async fn a_model_that_outlasts_the_duration_ends_the_job() {
    let mut stand = Stand::new(vec![Answer::HangsOnce, Answer::Says("never")], Refund::Answers).await;
    stand.limits = EffectiveLimits { duration_seconds: 1, ..EffectiveLimits::DEFAULT };
    stand.run(1).await;
    assert_eq!(outcome(&stand, 1), OutcomeCode::DurationLimit);
    assert_eq!(stand.model.request_count(), 1);
}

#[tokio::test]
async fn a_log_that_lost_a_refund_is_not_continued_and_nothing_is_refunded_again() {
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
async fn a_broken_log_is_not_continued_and_the_pod_says_where() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    stand.run(1).await;
    fs::remove_file(stand.memory().join("jobs/k-1").join(bloomery_journal::segment::name(2))).unwrap();
    let args = stand.args(2);
    let failed = stand.run_with(2, Disk, Stop::default()).await.unwrap_err();
    crate::ending::write_failure(&failed.to_string(), &args.termination_log);
    assert!(stand.failure(2).contains(&bloomery_journal::segment::name(2)), "{}", stand.failure(2));
}
