//! The suite of conversations in local mode. The stories of e2e run the same cases on a cluster.

use super::resume::ended;
use super::setup::{CommandOutput, Setup};
use super::terminal::TerminalSession;
use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::{ApprovalVerdict, JobStatus, Limits, Model, Skill};
use bloomery_testkit::script::script_text;
use bloomery_testkit::shop::Shop;
use bloomery_testkit::suite::{Case, CaseRecord, DECIDER, Decision, FOLDER, LEDGER, Mishap, SKILL, THINKING};
use serde::Serialize;
use serde_json::Value;
use std::fs;

/// The prompt for an answer.
const ANSWER_PROMPT: &str = "Your answer";
/// The prompt for a decision.
const DECISION_PROMPT: &str = "Approve it";

bloomery_testkit::suite!(run_case);

/// Runs all Jobs of a case, and compares their records with the expected ones.
async fn run_case(name: &str, case: Case) {
    let setup = Setup::new(&script_text(&case.conversations)).await;
    let mut shop = Shop::start(None).await;
    fs::create_dir(setup.path("folder")).unwrap();
    setup.write("skill.yaml", &yaml(&Skill::new(SKILL, case.skill.clone())));
    let origin = setup.model.url();
    let models = case.models_at(&origin).map(|(name, spec)| yaml(&Model::new(name, spec)));
    setup.write("models.yaml", &models.collect::<Vec<_>>().join("---\n"));

    let mut record = CaseRecord::default();
    for (at, goal) in case.goals.iter().enumerate() {
        let key = format!("job-{at}");
        let mishap = case.mishap.filter(|_| at == 0);
        let result = run_job(&setup, &mut shop, &case, (&key, goal, mishap)).await;
        let seen = setup.bloomery(&["get", &key, "-o", "json"]).await;
        let seen: Value =
            serde_json::from_str(&seen.out).unwrap_or_else(|error| panic!("{error}: {result:#?} {seen:#?}"));
        let status: JobStatus = serde_json::from_value(seen["status"].clone()).unwrap();
        assert_eq!(result.code, exit_code(&status), "{result:#?}");
        let answer = status.result.as_ref().map(|result| result.text.as_str()).unwrap_or_default();
        // At a terminal, stdout contains the dialogue too.
        assert!(result.out.starts_with(answer) || case.needs_people(), "{result:#?}");
        record.add(status, &setup.bloomery(&["events", &key]).await.out);
    }
    setup.assert_no_violations().await;
    record.assert_expected(name, &shop.summary().await);
}

/// Runs a Job, with the mishap of the case.
async fn run_job(
    setup: &Setup,
    shop: &mut Shop,
    case: &Case,
    (key, goal, mishap): (&str, &str, Option<Mishap>),
) -> CommandOutput {
    let mcp = shop.mcp_url();
    let mut servers = vec!["run", "--model", "models.yaml"];
    if case.has_orders {
        servers.extend(["--mcp", &mcp]);
    }
    let mut first = [&servers[..], &["--skill", "./skill.yaml", "--run-key", key, "--goal", goal]].concat();
    let again = [&servers[..], &["--resume", key]].concat();
    let resources = [(FOLDER, format!("{FOLDER}=folder")), (LEDGER, format!("{LEDGER}={}", shop.ledger.url()))];
    for (_, bound) in resources.iter().filter(|(name, _)| case.binds(name)) {
        first.extend(["--resource", bound]);
    }
    let limits: Vec<String> = case.limits.iter().flat_map(limit_args).collect();
    first.extend(limits.iter().flat_map(|limit| ["--limit", limit.as_str()]));
    if case.needs_people() {
        return run_at_terminal(setup, shop, (&first, &again), case, mishap).await;
    }
    match mishap {
        None => setup.bloomery(&first).await,
        Some(Mishap::ServerKilledAfterRefund(order)) => {
            let run = setup.command(&first).spawn().unwrap();
            shop.until_refunded(order).await;
            shop.kill_orders();
            ended(run).await
        }
        Some(Mishap::WorkerKilledAfterRefund(order)) => {
            run_killed(setup, (&first, &again), shop.until_refunded(order)).await
        }
        Some(Mishap::WorkerKilledWhileTheModelThinks) => {
            run_killed(setup, (&first, &again), setup.wait_for_held(1)).await
        }
    }
}

/// Runs a Job at a terminal. The user interrupts it at the first prompt, resumes it, and answers.
async fn run_at_terminal(
    setup: &Setup,
    shop: &mut Shop,
    (first, again): (&[&str], &[&str]),
    case: &Case,
    mishap: Option<Mishap>,
) -> CommandOutput {
    let mut session = match mishap {
        Some(Mishap::WorkerKilledAfterRefund(order)) => {
            let mut run = setup.command(first).spawn().unwrap();
            shop.until_refunded(order).await;
            run.kill().await.unwrap();
            open_terminal(setup, case, again)
        }
        Some(Mishap::ServerKilledAfterRefund(order)) => {
            let session = open_terminal(setup, case, first);
            shop.until_refunded(order).await;
            shop.kill_orders();
            session
        }
        Some(Mishap::WorkerKilledWhileTheModelThinks) => panic!("no case combines this mishap with people"),
        None => open_terminal(setup, case, first),
    };
    let dialogue = dialogue(case);
    session.until(dialogue[0].0).await;
    session.types("\u{3}").await;
    session.ended().await;
    let mut session = open_terminal(setup, case, again);
    for (prompt, line) in dialogue {
        session.until(prompt).await;
        session.types(&line).await;
    }
    session.ended().await
}

/// Returns the prompts, and the text to type at each of them.
fn dialogue(case: &Case) -> Vec<(&'static str, String)> {
    let decision = case.decision.map(|Decision { verdict, reason }| {
        let word = match verdict {
            ApprovalVerdict::Approve => "yes",
            ApprovalVerdict::Deny => "no",
            ApprovalVerdict::Expired => panic!("nothing expires at a terminal"),
        };
        (DECISION_PROMPT, format!("{word} {reason}\n"))
    });
    let replies = case.replies.iter().map(|reply| (ANSWER_PROMPT, format!("{reply}\n")));
    decision.into_iter().chain(replies).collect()
}

/// Starts a command at a terminal. Decisions contain the name of the user, so the user is the decider of the suite.
fn open_terminal(setup: &Setup, case: &Case, args: &[&str]) -> TerminalSession {
    let quoted: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
    TerminalSession::start(setup, &quoted.join(" "), if case.decision.is_some() { DECIDER } else { "a person" })
}

/// Runs a Job, kills it after `until`, and resumes it.
async fn run_killed(
    setup: &Setup,
    (first, again): (&[&str], &[&str]),
    until: impl Future<Output = ()>,
) -> CommandOutput {
    let mut run = setup.command(first).spawn().unwrap();
    until.await;
    run.kill().await.unwrap();
    setup.release(THINKING).await;
    setup.bloomery(again).await
}

fn exit_code(status: &JobStatus) -> i32 {
    match status.phase.unwrap() {
        Phase::Succeeded => 0,
        Phase::Failed => 3,
        Phase::Refused => 4,
        Phase::Escalated => 5,
        _ => 7,
    }
}

fn yaml(object: &impl Serialize) -> String {
    serde_yaml::to_string(object).unwrap()
}

/// Returns limits in the form of `--limit`.
fn limit_args(limits: &Limits) -> Vec<String> {
    let Value::Object(limits) = serde_json::to_value(limits).unwrap() else { panic!("limits are an object") };
    limits.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}
