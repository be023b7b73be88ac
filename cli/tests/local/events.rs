//! `bloomery events`.

use super::resume::interrupt;
use super::setup::{CommandOutput, SAYS_HELLO, Setup};
use std::fs;

const RUN: [&str; 6] = ["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1"];

#[tokio::test]
async fn events_are_printed_as_text_and_as_json() {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.run(&RUN).await.assert(0, "Succeeded");
    let log = setup.log("greeter/jobs/k-1");
    let plain = setup.bloomery(&["events", "k-1"]).await;
    plain.assert(0, "conversation.opened goal: Greet");
    assert_eq!(plain.out.lines().count(), log.len());
    let json = setup.bloomery(&["events", "--json", "memory/greeter/jobs/k-1"]).await;
    assert_eq!(json.out.lines().collect::<Vec<_>>(), log);
    // The log of a Job that has ended is not followed.
    setup.bloomery(&["events", "--follow", "k-1"]).await.assert(0, "finished");
    setup.bloomery(&["events", "--skill", "greeter", "k-1"]).await.assert(0, "finished");
    for absent in [
        &["events", "k-2"][..],
        &["events", "--skill", "other", "k-1"],
        &["events", "./no/such"],
        &["events", "memory"],
    ] {
        assert_eq!(setup.bloomery(absent).await.code, 2, "{absent:?}");
    }
}

#[tokio::test]
async fn a_log_is_followed_until_its_job_has_ended() {
    let script = SAYS_HELLO.replace("{say: Hello.}]\n    fin", "{faults: [{hold: gate}], say: Hello.}]\n    fin");
    let setup = Setup::new(&script).await;
    let run = setup.start(&RUN);
    setup.wait_for_held(1).await;
    let follow = setup.command(&["events", "-f", "k-1"]).spawn().unwrap();
    setup.release("gate").await;
    let (run, follow) = tokio::join!(run.wait_with_output(), follow.wait_with_output());
    assert_eq!(run.unwrap().status.code(), Some(0));
    let followed = CommandOutput::new(follow.unwrap());
    followed.assert(0, "finished");
    assert_eq!(followed.out.lines().count(), setup.log("greeter/jobs/k-1").len());
}

/// A parked Job has no events until a user resumes it.
#[tokio::test]
async fn a_log_is_followed_until_its_job_is_parked() {
    let setup =
        Setup::new(&SAYS_HELLO.replace("{say: Hello.}]\n    fin", "{faults: [{hold: gate}], say: Hello.}]\n    fin"))
            .await;
    let run = setup.start(&RUN);
    setup.wait_for_held(1).await;
    let follow = setup.command(&["events", "-f", "k-1"]).spawn().unwrap();
    interrupt(&run);
    let (run, follow) = tokio::join!(run.wait_with_output(), follow.wait_with_output());
    assert_ne!(run.unwrap().status.code(), Some(0));
    CommandOutput::new(follow.unwrap()).assert(0, "parked");
    setup.bloomery(&["events", "-f", "k-1"]).await.assert(0, "parked");
}

#[tokio::test]
async fn a_broken_log_is_reported_and_cannot_be_resumed() {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.run(&RUN).await.assert(0, "Succeeded");
    let dir = setup.path("memory/greeter/jobs/k-1");
    let mut segments: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    segments.sort();
    let second = fs::read_to_string(&segments[1]).unwrap();
    fs::write(&segments[1], second.replacen("Greet", "Harm", 1)).unwrap();
    let events = setup.bloomery(&["events", "k-1"]).await;
    events.assert(1, "the log is broken at");
    assert!(events.err.contains("line ") && events.out.contains("epoch.started"), "{events:#?}");
    setup.run(&["--resume", "k-1"]).await.assert(1, "the log is broken at");
    fs::write(&segments[1], second).unwrap();
    fs::remove_file(&segments[0]).unwrap();
    setup.bloomery(&["events", "k-1"]).await.assert(1, "the file is missing");
}

/// Opening a named pipe would block the run.
#[tokio::test]
async fn a_named_pipe_in_place_of_the_trace_does_not_block_the_run() {
    let setup = Setup::new(SAYS_HELLO).await;
    fs::create_dir_all(setup.path("memory/greeter/logs")).unwrap();
    let pipe = setup.path("memory/greeter/logs/k-1.log");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let result = setup.run(&RUN).await;
    result.assert(0, "The trace in memory/greeter/logs cannot be written: `k-1.log` is not a regular file");
}
