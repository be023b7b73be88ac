//! `bloomery events`.

use super::resuming::interrupt;
use super::stand::{Ran, SAYS_HELLO, Stand};
use std::fs;

const RUN: [&str; 6] = ["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1"];

#[tokio::test]
async fn events_are_printed_for_people_and_for_programs() {
    let stand = Stand::new(SAYS_HELLO).await;
    stand.run(&RUN).await.assert(0, "Succeeded");
    let log = stand.log("greeter/jobs/k-1");
    let plain = stand.bloomery(&["events", "k-1"]).await;
    plain.assert(0, "conversation.opened goal: Greet");
    assert_eq!(plain.out.lines().count(), log.len());
    let json = stand.bloomery(&["events", "--json", "memory/greeter/jobs/k-1"]).await;
    assert_eq!(json.out.lines().collect::<Vec<_>>(), log);
    // One that has ended is not waited for.
    stand.bloomery(&["events", "--follow", "k-1"]).await.assert(0, "finished");
    stand.bloomery(&["events", "--skill", "greeter", "k-1"]).await.assert(0, "finished");
    for absent in [
        &["events", "k-2"][..],
        &["events", "--skill", "other", "k-1"],
        &["events", "./no/such"],
        &["events", "memory"],
    ] {
        assert_eq!(stand.bloomery(absent).await.code, 2, "{absent:?}");
    }
}

#[tokio::test]
async fn a_log_is_followed_until_its_job_has_ended() {
    let script = SAYS_HELLO.replace("{say: Hello.}]\n    fin", "{faults: [{hold: gate}], say: Hello.}]\n    fin");
    let stand = Stand::new(&script).await;
    let run = stand.start(&RUN);
    stand.until_held(1).await;
    let follow = stand.command(&["events", "-f", "k-1"]).spawn().unwrap();
    stand.release("gate").await;
    let (run, follow) = tokio::join!(run.wait_with_output(), follow.wait_with_output());
    assert_eq!(run.unwrap().status.code(), Some(0));
    let followed = Ran::of(follow.unwrap());
    followed.assert(0, "finished");
    assert_eq!(followed.out.lines().count(), stand.log("greeter/jobs/k-1").len());
}

/// Nothing comes before somebody goes on with it: who waits would wait for themselves.
#[tokio::test]
async fn a_log_is_followed_until_its_job_is_parked() {
    let stand =
        Stand::new(&SAYS_HELLO.replace("{say: Hello.}]\n    fin", "{faults: [{hold: gate}], say: Hello.}]\n    fin"))
            .await;
    let run = stand.start(&RUN);
    stand.until_held(1).await;
    let follow = stand.command(&["events", "-f", "k-1"]).spawn().unwrap();
    interrupt(&run);
    let (run, follow) = tokio::join!(run.wait_with_output(), follow.wait_with_output());
    assert_ne!(run.unwrap().status.code(), Some(0));
    Ran::of(follow.unwrap()).assert(0, "parked");
    stand.bloomery(&["events", "-f", "k-1"]).await.assert(0, "parked");
}

#[tokio::test]
async fn a_broken_log_is_told_with_its_line_and_not_continued() {
    let stand = Stand::new(SAYS_HELLO).await;
    stand.run(&RUN).await.assert(0, "Succeeded");
    let dir = stand.path("memory/greeter/jobs/k-1");
    let mut segments: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    segments.sort();
    let second = fs::read_to_string(&segments[1]).unwrap();
    fs::write(&segments[1], second.replacen("Greet", "Harm", 1)).unwrap();
    let events = stand.bloomery(&["events", "k-1"]).await;
    events.assert(1, "the log is broken at");
    assert!(events.err.contains("line ") && events.out.contains("epoch.started"), "{events:#?}");
    stand.run(&["--resume", "k-1"]).await.assert(1, "the log is broken at");
    fs::write(&segments[1], second).unwrap();
    fs::remove_file(&segments[0]).unwrap();
    stand.bloomery(&["events", "k-1"]).await.assert(1, "the file is missing");
}

/// A pipe in its place would keep the run waiting.
#[tokio::test]
async fn a_trace_that_is_no_file_is_none() {
    let stand = Stand::new(SAYS_HELLO).await;
    fs::create_dir_all(stand.path("memory/greeter/logs")).unwrap();
    let pipe = stand.path("memory/greeter/logs/k-1.log");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let ran = stand.run(&RUN).await;
    ran.assert(0, "The trace in the memory's logs cannot be written: `k-1.log` is no regular file");
}
