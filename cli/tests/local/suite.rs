//! The suite of conversations, held without a cluster. The stories of e2e hold the same cases on one.

use super::people::Seat;
use super::resuming::ended;
use super::stand::{Ran, Stand};
use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::{ApprovalVerdict, JobStatus, Limits, Model, Skill};
use bloomery_testkit::script::script_text;
use bloomery_testkit::shop::Shop;
use bloomery_testkit::suite::{Case, CaseRecord, DECIDER, Decision, FOLDER, LEDGER, Mishap, SKILL, THINKING};
use serde::Serialize;
use serde_json::Value;
use std::fs;

/// What a terminal shows that waits for an answer, and for a decision.
const PROMPT: &str = "Your answer";
const DECIDE: &str = "Approve it";

bloomery_testkit::suite!(held);

async fn held(name: &str, case: Case) {
    let stand = Stand::new(&script_text(&case.conversations)).await;
    let mut shop = Shop::start(None).await;
    fs::create_dir(stand.path("folder")).unwrap();
    stand.write("skill.yaml", &yaml(&Skill::new(SKILL, case.skill.clone())));
    let origin = stand.model.url();
    let models = case.models_at(&origin).map(|(name, spec)| yaml(&Model::new(name, spec)));
    stand.write("models.yaml", &models.collect::<Vec<_>>().join("---\n"));

    let mut record = CaseRecord::default();
    for (at, goal) in case.goals.iter().enumerate() {
        let key = format!("job-{at}");
        let mishap = case.mishap.filter(|_| at == 0);
        let ran = ran(&stand, &mut shop, &case, (&key, goal, mishap)).await;
        let seen = stand.bloomery(&["get", &key, "-o", "json"]).await;
        let seen: Value = serde_json::from_str(&seen.out).unwrap_or_else(|error| panic!("{error}: {ran:#?} {seen:#?}"));
        let status: JobStatus = serde_json::from_value(seen["status"].clone()).unwrap();
        assert_eq!(ran.code, exit_code(&status), "{ran:#?}");
        let answer = status.result.as_ref().map(|result| result.text.as_str()).unwrap_or_default();
        // A terminal shows what else was said, too.
        assert!(ran.out.starts_with(answer) || case.needs_people(), "{ran:#?}");
        record.add(status, &stand.bloomery(&["events", &key]).await.out);
    }
    stand.was_asked_without_fault().await;
    record.assert_expected(name, &shop.summary().await);
}

/// Runs a Job, and lets happen to it what the case says.
async fn ran(stand: &Stand, shop: &mut Shop, case: &Case, (key, goal, mishap): (&str, &str, Option<Mishap>)) -> Ran {
    let mcp = shop.mcp_url();
    let mut reached = vec!["run", "--model", "models.yaml"];
    if case.has_orders {
        reached.extend(["--mcp", &mcp]);
    }
    let mut first = [&reached[..], &["--skill", "./skill.yaml", "--run-key", key, "--goal", goal]].concat();
    let again = [&reached[..], &["--resume", key]].concat();
    let resources = [(FOLDER, format!("{FOLDER}=folder")), (LEDGER, format!("{LEDGER}={}", shop.ledger.url()))];
    for (_, bound) in resources.iter().filter(|(name, _)| case.binds(name)) {
        first.extend(["--resource", bound]);
    }
    let limits: Vec<String> = case.limits.iter().flat_map(named).collect();
    first.extend(limits.iter().flat_map(|limit| ["--limit", limit.as_str()]));
    if case.needs_people() {
        return attended(stand, shop, (&first, &again), case, mishap).await;
    }
    match mishap {
        None => stand.bloomery(&first).await,
        Some(Mishap::ServerKilledAfterRefund(order)) => {
            let run = stand.command(&first).spawn().unwrap();
            shop.until_refunded(order).await;
            shop.kill_orders();
            ended(run).await
        }
        Some(Mishap::WorkerKilledAfterRefund(order)) => {
            killed(stand, (&first, &again), shop.until_refunded(order)).await
        }
        Some(Mishap::WorkerKilledWhileTheModelThinks) => killed(stand, (&first, &again), stand.until_held(1)).await,
    }
}

/// Runs a Job at a terminal: whoever sits there leaves it at its first question, and answers when they come back.
async fn attended(
    stand: &Stand,
    shop: &mut Shop,
    (first, again): (&[&str], &[&str]),
    case: &Case,
    mishap: Option<Mishap>,
) -> Ran {
    let mut seat = match mishap {
        Some(Mishap::WorkerKilledAfterRefund(order)) => {
            let mut run = stand.command(first).spawn().unwrap();
            shop.until_refunded(order).await;
            run.kill().await.unwrap();
            seat(stand, case, again)
        }
        Some(Mishap::ServerKilledAfterRefund(order)) => {
            let seat = seat(stand, case, first);
            shop.until_refunded(order).await;
            shop.kill_orders();
            seat
        }
        Some(Mishap::WorkerKilledWhileTheModelThinks) => panic!("it asks nothing then"),
        None => seat(stand, case, first),
    };
    let typed = typed(case);
    seat.until(typed[0].0).await;
    seat.types("\u{3}").await;
    seat.ended().await;
    let mut seat = self::seat(stand, case, again);
    for (prompt, line) in typed {
        seat.until(prompt).await;
        seat.types(&line).await;
    }
    seat.ended().await
}

/// What is typed at which prompt.
fn typed(case: &Case) -> Vec<(&'static str, String)> {
    let decision = case.decision.map(|Decision { verdict, reason }| {
        let word = match verdict {
            ApprovalVerdict::Approve => "yes",
            ApprovalVerdict::Deny => "no",
            ApprovalVerdict::Expired => panic!("nothing expires at a terminal"),
        };
        (DECIDE, format!("{word} {reason}\n"))
    });
    let replies = case.replies.iter().map(|reply| (PROMPT, format!("{reply}\n")));
    decision.into_iter().chain(replies).collect()
}

/// A terminal. Who answers in the spec of a Job is not named, and so nor is who sits there; who decides is.
fn seat(stand: &Stand, case: &Case, args: &[&str]) -> Seat {
    let quoted: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
    Seat::of(stand, &quoted.join(" "), if case.decision.is_some() { DECIDER } else { "a person" })
}

/// Runs a Job that is killed when it has come so far, and goes on with it.
async fn killed(stand: &Stand, (first, again): (&[&str], &[&str]), until: impl Future<Output = ()>) -> Ran {
    let mut run = stand.command(first).spawn().unwrap();
    until.await;
    run.kill().await.unwrap();
    stand.release(THINKING).await;
    stand.bloomery(again).await
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

fn named(limits: &Limits) -> Vec<String> {
    let Value::Object(limits) = serde_json::to_value(limits).unwrap() else { panic!("limits are an object") };
    limits.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}
