//! Jobs that invoke other Skills, which run in the same process.

use super::setup::Setup;
use std::fs;

/// Returns a file with two Skills. The first one may invoke the second one.
fn skills(billing: &str) -> String {
    format!(
        "apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {{name: front-desk}}
spec:
  problem: {{statement: Answer customers}}
  skills: [billing]
---
apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {{name: billing}}
spec:
  problem: {{statement: Count bills}}
{billing}"
    )
}

const RUN: [&str; 6] = ["--skill", "./skills.yaml#front-desk", "--goal", "Serve Ada", "--run-key", "k-1"];

/// Returns the script of a parent, and of a child with these turns.
fn script(child: &str) -> String {
    format!(
        "
conversations:
  - name: parent
    match: {{goal: Serve Ada}}
    turns:
      - expect: {{toolsOffered: [use_skill]}}
        calls: [{{name: use_skill, arguments: {{action: list}}}}]
      - expect: {{lastToolResultContains: 'billing: Count bills'}}
        calls: [{{name: use_skill, arguments: {{action: invoke, name: bill, goal: Count them}}}}]
      - expect: {{lastToolResultContains: Three bills.}}
        say: Served.
    finalization: [{{json: {{passed: true, reasons: []}}}}]
    polish: [{{say: Served.}}]
  - name: child
    match: {{goal: Count them}}
    turns: [{child}]
    finalization: [{{json: {{passed: true, reasons: []}}}}]
    polish: [{{say: Three bills.}}]
"
    )
}

/// Returns the keys of the Jobs of `billing` that have a log.
fn children(setup: &Setup) -> Vec<String> {
    let entries = fs::read_dir(setup.path("memory/billing/jobs")).unwrap().map(Result::unwrap);
    let logs = entries.filter(|entry| entry.path().is_dir());
    logs.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

fn count(setup: &Setup, event: &str) -> usize {
    let named = format!("\"type\":\"{event}\"");
    setup.log("front-desk/jobs/k-1").iter().filter(|line| line.contains(&named)).count()
}

#[tokio::test]
async fn a_child_runs_in_its_own_directory_and_its_answer_is_the_result_of_the_call() {
    let setup = Setup::new(&script("{expect: {toolsNotOffered: [use_skill]}, say: Three bills.}")).await;
    setup.write("skills.yaml", &skills(""));
    setup.run(&RUN).await.assert(0, "Served.");
    setup.assert_no_violations().await;
    let children = children(&setup);
    let [child] = children.as_slice() else { panic!("{children:?}") };
    let log = setup.log(&format!("billing/jobs/{child}")).join("\n");
    assert!(log.contains("\"type\":\"finished\"") && log.contains("Three bills."), "{log}");
    assert_eq!((count(&setup, "child.started"), count(&setup, "child.completed")), (1, 1));
    setup.bloomery(&["get", child.as_str()]).await.assert(0, "Succeeded");
}

#[tokio::test]
async fn a_child_that_waits_for_a_person_parks_its_parent_and_is_not_started_again() {
    let held = "{calls: [{name: memory_write, arguments: {file: progress.md, content: x, expect: none}}]}";
    let setup = Setup::new(&script(held)).await;
    let policy = "  memory: {bank: write}\n  policy: {approvals: [{toolId: memory_write, action: require_approval}]}\n";
    setup.write("skills.yaml", &skills(policy));
    setup.run(&RUN).await.assert(7, "Parked: a child has not ended.");
    setup.run(&["--resume", "k-1"]).await.assert(7, "Parked: a child has not ended.");
    assert_eq!((children(&setup).len(), count(&setup, "child.started"), count(&setup, "tool.started")), (1, 1, 1));
    assert_eq!(count(&setup, "child.completed"), 0);
    setup.assert_no_violations().await;
}

#[tokio::test]
async fn a_child_that_has_begun_and_cannot_go_on_parks_its_parent_and_is_not_refused() {
    let held = "{calls: [{name: memory_write, arguments: {file: progress.md, content: x, expect: none}}]}";
    let setup = Setup::new(&script(held)).await;
    let policy = "  memory: {bank: write}\n  policy: {approvals: [{toolId: memory_write, action: require_approval}]}\n";
    setup.write("skills.yaml", &skills(policy));
    setup.run(&RUN).await.assert(7, "Parked: a child has not ended.");
    setup.write(&format!("memory/billing/jobs/{}/run.json", children(&setup)[0]), "{}");
    let resumed = setup.run(&["--resume", "k-1"]).await;
    resumed.assert(7, "Parked: a child has not ended.");
    resumed.assert(7, "run.json cannot be used");
    assert_eq!(count(&setup, "tool.failed"), 0);
    setup.assert_no_violations().await;
}

#[tokio::test]
async fn a_large_answer_of_a_child_is_shortened_for_its_parent() {
    let answer = format!("Three bills. {}", "x".repeat(9_000));
    let setup = Setup::new(&script(&format!("{{say: {answer}}}"))).await;
    setup.write("skills.yaml", &skills("  engine: {replyPolisher: {enabled: false}}\n"));
    setup.run(&RUN).await.assert(0, "Served.");
    setup.assert_no_violations().await;
    let log = setup.log("front-desk/jobs/k-1");
    let end = log.iter().find(|line| line.contains("\"type\":\"child.completed\"")).unwrap();
    assert!(end.contains("Three bills. xxx") && end.len() < 6_000, "{end}");
    let log = setup.log(&format!("billing/jobs/{}", children(&setup)[0]));
    assert!(log.iter().any(|line| line.contains(&answer)), "the log of the child has all of it");
}

#[tokio::test]
async fn a_child_without_an_end_reaches_its_limit_and_its_parent_goes_on() {
    let read = |note: &str| format!("{{calls: [{{name: memory_read, arguments: {{file: {note}.md}}}}]}}");
    let turns = ["progress", "techContext", "activeContext"].map(read).join(", ");
    let script = script(&turns).replace("lastToolResultContains: Three bills.", "lastToolResultContains: StepLimit");
    let setup = Setup::new(&script).await;
    setup.write("skills.yaml", &skills("  memory: {bank: write}\n  engine: {limits: {steps: 2}}\n"));
    setup.run(&RUN).await.assert(0, "Served.");
    setup.assert_no_violations().await;
    assert_eq!((count(&setup, "child.started"), count(&setup, "child.completed")), (1, 1));
}
