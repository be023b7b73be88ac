//! Runs that are stopped, and go on.

use super::stand::{Ran, SAYS_HELLO, Stand};
use rstest::rstest;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

pub const HOLDS: &str = "
conversations:
  - name: held
    turns: [{faults: [{hold: gate}], say: Hello.}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Hello.}]
";

const RUN: [&str; 6] = ["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1"];

pub fn interrupt(child: &Child) {
    signal(child, "INT");
}

fn signal(child: &Child, name: &str) {
    let id = child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
}

pub async fn ended(child: Child) -> Ran {
    Ran::of(child.wait_with_output().await.unwrap())
}

#[tokio::test]
async fn an_interrupted_run_parks_and_says_how_it_goes_on_and_goes_on() {
    let stand = Stand::new(HOLDS).await;
    let child = stand.start(&RUN);
    stand.until_held(1).await;
    interrupt(&child);
    let parked = ended(child).await;
    parked.assert(7, "Resume with: bloomery run --skill greeter --resume k-1");
    let before = stand.log("greeter/jobs/k-1");
    assert!(before.last().unwrap().contains("\"parked\""), "{before:#?}");

    // The Skill that the Job goes on with is the one that it began with.
    stand.write("memory/greeter/skill.yaml", "this: is no Skill any more");
    stand.release("gate").await;
    let resumed = stand.run(&["--resume", "k-1"]).await;
    resumed.assert(0, "Succeeded");
    assert_eq!(resumed.out, "Hello.\n");
    let after = stand.log("greeter/jobs/k-1");
    assert_eq!(after[..before.len()], before);
    assert!(after[before.len()].contains("\"epoch\":2,\"attempt\":2"), "{}", after[before.len()]);
}

/// As a system says it that shuts down, or a terminal that is closed.
#[rstest]
#[case("TERM")]
#[case("HUP")]
#[tokio::test]
async fn a_run_that_is_told_to_end_parks_too(#[case] name: &str) {
    let stand = Stand::new(HOLDS).await;
    let child = stand.start(&RUN);
    stand.until_held(1).await;
    signal(&child, name);
    ended(child).await.assert(7, "Resume with: bloomery run --skill greeter --resume k-1");
    stand.release("gate").await;
    stand.run(&["--resume", "k-1"]).await.assert(0, "Succeeded");
}

#[tokio::test]
async fn a_second_interrupt_ends_at_once_and_the_job_goes_on_all_the_same() {
    let stand = Stand::new(
        "
conversations:
  - name: held
    turns: [{calls: [{name: act}]}, {say: Hello.}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Hello.}]
",
    )
    .await;
    // The call does not end, and may be made again.
    stand.write("skill.yaml", &format!("{}  tools: [{{name: act, idempotent: true}}]\n", super::stand::SKILL));
    let server = super::tools::SERVER;
    let mcp = ["--mcp-command", "sh", "-c", server, "sh", ": >called; sleep 600"];
    let mut child = stand.start(&[&RUN[..], &mcp].concat());
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    stand.until_there_is("called").await;
    interrupt(&child);
    // Until the first is heard, the second is not another.
    while !said.next_line().await.unwrap().unwrap().starts_with("Parking") {}
    interrupt(&child);
    let ended = child.wait().await.unwrap();
    let last = said.next_line().await.unwrap().unwrap();
    assert!(ended.code() == Some(130) && last.contains("--resume k-1"), "{ended:?}: {last}");

    let again = ["--resume", "k-1", "--mcp-command", "sh", "-c", server, "sh", super::tools::ANSWERS];
    stand.run(&again).await.assert(0, "Succeeded");
}

/// More than a pipe holds.
fn says_much() -> String {
    let much = "much ".repeat(40_000);
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

async fn until_finished(stand: &Stand) {
    stand.until_there_is("memory/greeter/jobs/k-1/00000000000000000001.jsonl").await;
    let finished = async {
        while !stand.log("greeter/jobs/k-1").last().is_some_and(|line| line.contains("\"finished\"")) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(super::stand::PATIENCE, finished).await.expect("the Job does not finish");
}

/// `bloomery run --json ... | (sleep 60; cat)`
#[tokio::test]
async fn a_reader_who_pauses_keeps_no_job_waiting_and_gets_all_of_it() {
    let stand = Stand::new(&says_much()).await;
    let child = stand.start(&[&RUN[..], &["--json"]].concat());
    until_finished(&stand).await;
    let ran = ended(child).await;
    ran.assert(0, "Succeeded");
    assert!(ran.out.len() > 256 * 1024, "{}", ran.out.len());
    assert_eq!(ran.out.lines().collect::<Vec<_>>(), stand.log("greeter/jobs/k-1"));
}

#[rstest]
#[case("INT")]
#[case("TERM")]
#[tokio::test]
async fn a_second_signal_ends_at_once_where_nobody_reads(#[case] name: &str) {
    let stand = Stand::new(&says_much()).await;
    let mut child = stand.start(&[&RUN[..], &["--json"]].concat());
    until_finished(&stand).await;
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    signal(&child, name);
    while !said.next_line().await.unwrap().unwrap().starts_with("Parking") {}
    assert!(child.try_wait().unwrap().is_none());
    signal(&child, name);
    let ended = tokio::time::timeout(super::stand::PATIENCE, child.wait()).await.expect("it goes on").unwrap();
    let last = said.next_line().await.unwrap().unwrap();
    assert!(ended.code() == Some(130) && last.starts_with("Stopped at once. Resume with"), "{ended:?}: {last}");
}

#[tokio::test]
async fn of_two_that_go_on_at_once_one_is_fenced() {
    let stand = Stand::new(HOLDS).await;
    let first = stand.start(&RUN);
    stand.until_held(1).await;
    stand.run(&RUN).await.assert(2, "it may be running");
    let second = stand.start(&["--resume", "k-1"]);
    stand.until_held(2).await;
    stand.release("gate").await;
    let (first, second) = tokio::join!(ended(first), ended(second));
    first.assert(8, "Another process has taken over the Job");
    second.assert(0, "Succeeded");
    let log = stand.log("greeter/jobs/k-1");
    let finished = log.iter().filter(|line| line.contains("\"finished\"")).count();
    assert_eq!(finished, 1, "{log:#?}");
}

/// It would end the Job otherwise.
#[tokio::test]
async fn what_was_bound_and_is_gone_is_asked_for_before_the_job_goes_on() {
    let stand = Stand::new(HOLDS).await;
    stand.write("project/a", "");
    let child = stand.start(&["--goal", "Greet", "--resource", "codebase=project", "--run-key", "k-1"]);
    stand.until_held(1).await;
    interrupt(&child);
    ended(child).await.assert(7, "Parked");
    stand.release("gate").await;
    std::fs::rename(stand.path("project"), stand.path("moved")).unwrap();
    let before = stand.log("sw-dev-agent/jobs/k-1");
    stand.run(&["--resume", "k-1"]).await.assert(2, "Restore it, then resume the Job.");
    assert_eq!(stand.log("sw-dev-agent/jobs/k-1"), before);
    std::fs::rename(stand.path("moved"), stand.path("project")).unwrap();
    stand.run(&["--resume", "k-1"]).await.assert(0, "Succeeded");
    // One that has ended needs nothing any more.
    std::fs::remove_dir_all(stand.path("project")).unwrap();
    stand.run(&["--resume", "k-1"]).await.assert(0, "Succeeded");
}

#[tokio::test]
async fn what_cannot_go_on_is_told() {
    let stand = Stand::new(HOLDS).await;
    stand.run(&["--resume", "k-1"]).await.assert(2, "the memory memory has no Job k-1");
    stand.write("memory/greeter/jobs/k-1/x", "");
    stand.run(&["--resume", "k-1"]).await.assert(2, "is not the log of a Job that ran on this machine");
    for file in ["./skill.yaml", "skills.yaml#other", "-"] {
        let refused = stand.run(&["--resume", "k-1", "--skill", file]).await;
        refused.assert(2, &format!("--skill {file}: a Job is resumed with the Skill that it was started with"));
    }
    stand.write("memory/older/jobs/k-2.json", r#"{"goal": "x"}"#);
    stand.run(&["--resume", "k-2"]).await.assert(2, "the Job k-2 of the Skill older has no log");
    stand.write("memory/other/jobs/k-1/x", "");
    stand.run(&["--resume", "k-1"]).await.assert(2, "several Skills have a Job k-1");
}

/// A record may be anything: the memory is a directory of a person.
#[tokio::test]
async fn what_a_job_was_begun_with_is_a_file_of_bounded_size() {
    let stand = Stand::new(HOLDS).await;
    stand.write("memory/greeter/jobs/k-1/x", "");
    let kept = stand.path("memory/greeter/jobs/k-1/run.json");
    for (made, says) in [("mkfifo", "it is no regular file"), ("truncate -s 20M", "it is larger than 16777216 bytes")] {
        let _ = std::fs::remove_file(&kept);
        let made = std::process::Command::new("sh").args(["-c", &format!("{made} {}", kept.display())]).status();
        assert!(made.unwrap().success());
        for args in [&["run", "--resume", "k-1"][..], &["get", "k-1"], &["get"]] {
            let ran = tokio::time::timeout(super::stand::PATIENCE, stand.bloomery(args)).await.expect(says);
            ran.assert(1, says);
        }
    }
}

/// What is compared is where a secret is, and not what it is.
#[tokio::test]
async fn a_job_whose_secret_was_rotated_is_the_same_job() {
    let stand = Stand::new(super::stand::SAYS_HELLO).await;
    stand.write("skill.yaml", &format!("{}  resources: [{{name: tok, type: credential}}]\n", super::stand::SKILL));
    for value in ["one-secret-value", "another-secret"] {
        stand.write("token", value);
        let ran = stand.run(&[&RUN[..], &["--resource", "tok=@token"]].concat()).await;
        ran.assert(0, "Succeeded");
    }
}

/// Whoever begins anew has lost the memory, and not what a server has seen of the Job that was in it.
#[tokio::test]
async fn a_key_may_be_taken_again_once_its_job_is_gone_and_means_another_job() {
    let stand = Stand::new(SAYS_HELLO).await;
    let run = ["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1"];
    stand.run(&run).await.assert(0, "Succeeded");
    // What calls of tools are kept apart by, and what model servers are told.
    let uid = |stand: &Stand| {
        let log = stand.log("greeter/jobs/k-1").join("");
        let uid = log.split("\"runKey\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        assert!(stand.read("memory/greeter/jobs/k-1/run.json").contains(&format!("\"uid\": \"{uid}\"")), "{uid}");
        uid
    };
    let before = uid(&stand);
    // The same Job is told again.
    stand.run(&run).await.assert(0, "Succeeded");
    assert_eq!(uid(&stand), before);
    std::fs::remove_dir_all(stand.path("memory")).unwrap();
    stand.run(&[&run[..3], &["Greet Ada"], &run[4..]].concat()).await.assert(0, "Succeeded");
    assert_ne!(uid(&stand), before);
}
