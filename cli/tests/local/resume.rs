//! Runs that are stopped and resumed.

use super::setup::{CommandOutput, SAYS_HELLO, Setup};
use rstest::rstest;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

/// A script whose only answer is held until a test releases it.
pub const HOLDS: &str = "
conversations:
  - name: held
    turns: [{faults: [{hold: gate}], say: Hello.}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Hello.}]
";

const RUN: [&str; 6] = ["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1"];

/// Sends ^C to a process.
pub fn interrupt(child: &Child) {
    signal(child, "INT");
}

/// Sends a signal to a process.
pub fn signal(child: &Child, name: &str) {
    let id = child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
}

/// Waits for the end of a process.
pub async fn ended(child: Child) -> CommandOutput {
    CommandOutput::new(child.wait_with_output().await.unwrap())
}

#[tokio::test]
async fn an_interrupted_run_is_parked_and_resumed() {
    let setup = Setup::new(HOLDS).await;
    let child = setup.start(&RUN);
    setup.wait_for_held(1).await;
    interrupt(&child);
    let parked = ended(child).await;
    parked.assert(7, "Resume with: bloomery run --skill greeter --resume k-1");
    let before = setup.log("greeter/jobs/k-1");
    assert!(before.last().unwrap().contains("\"parked\""), "{before:#?}");

    // The Job is resumed with the Skill with which it was started.
    setup.write("memory/greeter/skill.yaml", "this: is no Skill any more");
    setup.release("gate").await;
    let resumed = setup.run(&["--resume", "k-1"]).await;
    resumed.assert(0, "Succeeded");
    assert_eq!(resumed.out, "Hello.\n");
    let after = setup.log("greeter/jobs/k-1");
    assert_eq!(after[..before.len()], before);
    assert!(after[before.len()].contains("\"epoch\":2,\"attempt\":2"), "{}", after[before.len()]);
}

/// A system that shuts down sends TERM. A terminal that is closed sends HUP.
#[rstest]
#[case("TERM")]
#[case("HUP")]
#[tokio::test]
async fn a_terminated_run_is_parked_and_resumed(#[case] name: &str) {
    let setup = Setup::new(HOLDS).await;
    let child = setup.start(&RUN);
    setup.wait_for_held(1).await;
    signal(&child, name);
    ended(child).await.assert(7, "Resume with: bloomery run --skill greeter --resume k-1");
    setup.release("gate").await;
    setup.run(&["--resume", "k-1"]).await.assert(0, "Succeeded");
}

#[tokio::test]
async fn a_second_interrupt_stops_at_once_and_the_job_can_be_resumed() {
    let setup = Setup::new(
        "
conversations:
  - name: held
    turns: [{calls: [{name: act}]}, {say: Hello.}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Hello.}]
",
    )
    .await;
    // The call does not end. It is idempotent, so it may be repeated.
    setup.write("skill.yaml", &format!("{}  tools: [{{name: act, idempotent: true}}]\n", super::setup::SKILL));
    let server = super::tools::SERVER;
    let mcp = ["--mcp-command", "sh", "-c", server, "sh", ": >called; sleep 600"];
    let mut child = setup.start(&[&RUN[..], &mcp].concat());
    let mut output = BufReader::new(child.stderr.take().unwrap()).lines();
    setup.wait_for_file("called").await;
    interrupt(&child);
    // A second signal before the first one is handled would not count.
    while !output.next_line().await.unwrap().unwrap().starts_with("The Job is parked after") {}
    interrupt(&child);
    let ended = child.wait().await.unwrap();
    let last = output.next_line().await.unwrap().unwrap();
    assert!(ended.code() == Some(130) && last.contains("--resume k-1"), "{ended:?}: {last}");

    let again = ["--resume", "k-1", "--mcp-command", "sh", "-c", server, "sh", super::tools::ANSWERS];
    setup.run(&again).await.assert(0, "Succeeded");
}

/// A script with an answer that is larger than the buffer of a pipe.
fn long_answer_script() -> String {
    let much = "much ".repeat(20_000);
    format!(
        "
conversations:
  - name: much
    turns: [{{say: {much}}}]
    finalization: [{{json: {{passed: true, reasons: []}}}}]
    polish: [{{say: {much}}}]
"
    )
}

/// Waits until the log of the Job `k-1` is finished.
async fn until_finished(setup: &Setup) {
    setup.wait_for_file("memory/greeter/jobs/k-1/00000000000000000001.jsonl").await;
    let finished = async {
        while !setup.log("greeter/jobs/k-1").last().is_some_and(|line| line.contains("\"finished\"")) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(super::setup::TIMEOUT, finished).await.expect("the Job does not finish");
}

/// `bloomery run --json ... | (sleep 60; cat)`
#[tokio::test]
async fn a_slow_reader_does_not_delay_the_job_and_gets_all_events() {
    let setup = Setup::new(&long_answer_script()).await;
    let child = setup.start(&[&RUN[..], &["--json"]].concat());
    until_finished(&setup).await;
    let result = ended(child).await;
    result.assert(0, "Succeeded");
    assert!(result.out.len() > 256 * 1024, "{}", result.out.len());
    assert_eq!(result.out.lines().collect::<Vec<_>>(), setup.log("greeter/jobs/k-1"));
}

#[rstest]
#[case("INT")]
#[case("TERM")]
#[tokio::test]
async fn a_second_signal_stops_at_once_even_if_nobody_reads(#[case] name: &str) {
    let setup = Setup::new(&long_answer_script()).await;
    let mut child = setup.start(&[&RUN[..], &["--json"]].concat());
    until_finished(&setup).await;
    let mut output = BufReader::new(child.stderr.take().unwrap()).lines();
    signal(&child, name);
    while !output.next_line().await.unwrap().unwrap().starts_with("The Job is parked after") {}
    assert!(child.try_wait().unwrap().is_none());
    signal(&child, name);
    let ended =
        tokio::time::timeout(super::setup::TIMEOUT, child.wait()).await.expect("the process does not end").unwrap();
    let last = output.next_line().await.unwrap().unwrap();
    assert!(ended.code() == Some(130) && last.starts_with("Stopped at once. Resume with"), "{ended:?}: {last}");
}

#[tokio::test]
async fn only_one_of_two_processes_continues_a_job() {
    let setup = Setup::new(HOLDS).await;
    let first = setup.start(&RUN);
    setup.wait_for_held(1).await;
    setup.run(&RUN).await.assert(2, "it may be running");
    let second = setup.start(&["--resume", "k-1"]);
    setup.wait_for_held(2).await;
    setup.release("gate").await;
    let (first, second) = tokio::join!(ended(first), ended(second));
    first.assert(8, "Another process has taken over the Job");
    second.assert(0, "Succeeded");
    let log = setup.log("greeter/jobs/k-1");
    let finished = log.iter().filter(|line| line.contains("\"finished\"")).count();
    assert_eq!(finished, 1, "{log:#?}");
}

/// Without this check, the missing files would end the Job.
#[tokio::test]
async fn a_job_is_not_resumed_without_its_bound_files() {
    let setup = Setup::new(HOLDS).await;
    setup.write("project/a", "");
    let child = setup.start(&["--goal", "Greet", "--resource", "codebase=project", "--run-key", "k-1"]);
    setup.wait_for_held(1).await;
    interrupt(&child);
    ended(child).await.assert(7, "Parked");
    setup.release("gate").await;
    std::fs::rename(setup.path("project"), setup.path("moved")).unwrap();
    let before = setup.log("sw-dev-agent/jobs/k-1");
    setup.run(&["--resume", "k-1"]).await.assert(2, "Restore it, then resume the Job.");
    assert_eq!(setup.log("sw-dev-agent/jobs/k-1"), before);
    std::fs::rename(setup.path("moved"), setup.path("project")).unwrap();
    setup.run(&["--resume", "k-1"]).await.assert(0, "Succeeded");
    // A Job that has ended needs no files.
    std::fs::remove_dir_all(setup.path("project")).unwrap();
    setup.run(&["--resume", "k-1"]).await.assert(0, "Succeeded");
}

#[tokio::test]
async fn a_job_that_cannot_be_resumed_is_reported() {
    let setup = Setup::new(HOLDS).await;
    setup.run(&["--resume", "k-1"]).await.assert(2, "the memory ./memory has no Job k-1");
    setup.write("memory/greeter/jobs/k-1/x", "");
    setup.run(&["--resume", "k-1"]).await.assert(2, "is not the log of a Job that ran on this machine");
    for file in ["./skill.yaml", "skills.yaml#other", "-"] {
        let refused = setup.run(&["--resume", "k-1", "--skill", file]).await;
        refused.assert(2, &format!("--skill {file}: a resumed Job uses the Skill with which it was started"));
    }
    setup.write("memory/older/jobs/k-2.json", r#"{"goal": "x"}"#);
    setup.run(&["--resume", "k-2"]).await.assert(2, "the Job k-2 of the Skill older has no log");
    setup.write("memory/other/jobs/k-1/x", "");
    setup.run(&["--resume", "k-1"]).await.assert(2, "several Skills have a Job k-1");
}

/// A user can put any file into the memory.
#[tokio::test]
async fn a_run_document_is_a_regular_file_of_bounded_size() {
    let setup = Setup::new(HOLDS).await;
    setup.write("memory/greeter/jobs/k-1/x", "");
    let kept = setup.path("memory/greeter/jobs/k-1/run.json");
    for (made, says) in
        [("mkfifo", "it is not a regular file"), ("truncate -s 20M", "it is larger than 16777216 bytes")]
    {
        let _ = std::fs::remove_file(&kept);
        let made = std::process::Command::new("sh").args(["-c", &format!("{made} {}", kept.display())]).status();
        assert!(made.unwrap().success());
        for args in [&["run", "--resume", "k-1"][..], &["get", "k-1"], &["get"]] {
            let result = tokio::time::timeout(super::setup::TIMEOUT, setup.bloomery(args)).await.expect(says);
            result.assert(1, says);
        }
    }
}

/// Only the path of a secret is compared, not its value.
#[tokio::test]
async fn a_job_with_a_rotated_secret_is_the_same_job() {
    let setup = Setup::new(super::setup::SAYS_HELLO).await;
    setup.write("skill.yaml", &format!("{}  resources: [{{name: tok, type: credential}}]\n", super::setup::SKILL));
    for value in ["one-secret-value", "another-secret"] {
        setup.write("token", value);
        let result = setup.run(&[&RUN[..], &["--resource", "tok=@token"]].concat()).await;
        result.assert(0, "Succeeded");
    }
}

/// A new Job needs a new uid, because servers may remember the calls of the deleted Job.
#[tokio::test]
async fn a_key_can_be_used_again_after_its_job_was_deleted() {
    let setup = Setup::new(SAYS_HELLO).await;
    let run = ["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1"];
    setup.run(&run).await.assert(0, "Succeeded");
    // The uid identifies the calls of a Job for tools and model servers.
    let uid = |setup: &Setup| {
        let log = setup.log("greeter/jobs/k-1").join("");
        let uid = log.split("\"runKey\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        assert!(setup.read("memory/greeter/jobs/k-1/run.json").contains(&format!("\"uid\": \"{uid}\"")), "{uid}");
        uid
    };
    let before = uid(&setup);
    // The same Job is shown again.
    setup.run(&run).await.assert(0, "Succeeded");
    assert_eq!(uid(&setup), before);
    std::fs::remove_dir_all(setup.path("memory")).unwrap();
    setup.run(&[&run[..3], &["Greet Ada"], &run[4..]].concat()).await.assert(0, "Succeeded");
    assert_ne!(uid(&setup), before);
}
