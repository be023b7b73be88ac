//! `bloomery get`.

use super::resuming::{HOLDS, ended, interrupt};
use super::stand::{SAYS_HELLO, SKILL, Stand};
use std::fs;

const RUN: [&str; 6] = ["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1"];

#[tokio::test]
async fn jobs_are_listed_for_people_and_for_programs() {
    let stand = Stand::new(SAYS_HELLO).await;
    stand.bloomery(&["get"]).await.assert(2, "the memory cannot be used: memory: No such file");
    fs::create_dir(stand.path("memory")).unwrap();
    stand.bloomery(&["get"]).await.assert(0, "there are no Jobs in memory");
    stand.run(&RUN).await.assert(0, "Succeeded");
    let listed = stand.bloomery(&["get", "--skill", "greeter"]).await;
    let table = "JOB   SKILL     PHASE       OUTCOME     TOOLS\nk-1   greeter   Succeeded   Succeeded   0\n";
    assert_eq!((listed.code, listed.out.as_str(), listed.err.as_str()), (0, table, ""));
    let json = stand.bloomery(&["get", "-o", "json"]).await;
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["kind"], "List");
    assert_eq!(json["items"][0]["status"]["outcome"]["code"], "Succeeded", "{json:#}");
    let one = stand.bloomery(&["get", "k-1", "-o", "json"]).await;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&one.out).unwrap(), json["items"][0]);
    stand.bloomery(&["get", "-o", "yaml"]).await.assert(0, "kind: List\nitems:\n- job: k-1\n");
    stand.bloomery(&["get", "k-1", "-o", "yaml"]).await.assert(0, "job: k-1\nskill: greeter\ngoal: Greet\nstatus:\n");
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let stand = Stand::new(SAYS_HELLO).await;
    stand.run(&RUN).await.assert(0, "Succeeded");
    for (args, says) in [
        (&["get", "k-2"][..], "the memory memory has no Job k-2"),
        (&["get", "k-1", "--skill", "other"], "has no Job k-1 of the Skill other"),
        (&["get", "--skill", "greter"], "has no Skill greter. Did you mean \"greeter\"?"),
        (&["get", "memory/greeter/jobs/k-1"], "must be at most 128 letters"),
        (&["get", "--memory", "none", "k-1"], "the memory none has no Job k-1"),
    ] {
        stand.bloomery(args).await.assert(2, says);
    }
}

#[tokio::test]
async fn a_log_that_is_broken_hides_no_other_and_what_is_no_log_is_passed_over() {
    let stand = Stand::new(SAYS_HELLO).await;
    for key in ["k-1", "k-2"] {
        stand.run(&["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", key]).await.assert(0, "Succeeded");
    }
    fs::create_dir(stand.path("memory/greeter/jobs/stray")).unwrap();
    let passed_over = stand.bloomery(&["get"]).await;
    passed_over.assert(0, "memory/greeter/jobs/stray is skipped");
    assert_eq!(passed_over.out.lines().count(), 3, "{passed_over:#?}");
    stand.bloomery(&["get", "stray"]).await.assert(2, "is not the log of a Job that ran on this machine");

    let segment = fs::read_dir(stand.path("memory/greeter/jobs/k-1")).unwrap().map(|entry| entry.unwrap().path());
    let segment = segment.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).min().unwrap();
    let text = fs::read_to_string(&segment).unwrap();
    fs::write(&segment, text.replacen("\"attempt\":1", "\"attempt\":2", 1)).unwrap();
    // Of a Job that has ended, the list tells what its record says.
    stand.bloomery(&["get"]).await.assert(0, "k-1   greeter   Succeeded   Succeeded   0\n");
    stand.bloomery(&["get", "-o", "json"]).await.assert(1, "memory/greeter/jobs/k-1: the log is broken at");
    fs::remove_file(stand.path("memory/greeter/jobs/k-1.json")).unwrap();
    let listed = stand.bloomery(&["get"]).await;
    listed.assert(1, "memory/greeter/jobs/k-1: the log is broken at");
    assert!(listed.out.contains("\nk-2 ") && !listed.out.contains("k-1"), "{listed:#?}");
    stand.bloomery(&["get", "k-1"]).await.assert(1, "the log is broken at");
}

#[tokio::test]
async fn a_job_whose_log_is_gone_is_told_by_its_record() {
    let stand = Stand::new(SAYS_HELLO).await;
    stand.run(&RUN).await.assert(0, "Succeeded");
    fs::remove_dir_all(stand.path("memory/greeter/jobs/k-1")).unwrap();
    stand.bloomery(&["get"]).await.assert(0, "k-1   greeter   Succeeded   Succeeded   0\n");
    stand.bloomery(&["get", "-o", "yaml"]).await.assert(0, "  status:\n    phase: Succeeded\n");
    let page = stand.bloomery(&["get", "k-1"]).await;
    page.assert(0, "Phase       Succeeded: ");
    page.assert(0, "File        memory/greeter/jobs/k-1.json\n");
}

#[tokio::test]
async fn a_job_that_has_not_ended_says_how_it_goes_on() {
    let stand = Stand::new(HOLDS).await;
    let run = stand.start(&RUN);
    stand.until_held(1).await;
    let go_on = "Resume with: bloomery run --skill greeter --resume k-1";
    stand.bloomery(&["get", "k-1"]).await.assert(0, &format!("Unfinished  It may be running. {go_on}\n"));
    interrupt(&run);
    ended(run).await.assert(7, go_on);
    let parked = stand.bloomery(&["get", "k-1"]).await;
    parked.assert(0, &format!("Unfinished  Parked. {go_on}\n"));
    parked.assert(0, " events in memory/greeter/jobs/k-1\n");
}

#[tokio::test]
async fn a_held_call_says_for_whom_it_waits() {
    let script = "
conversations:
  - name: acts
    turns: [{calls: [{name: act}]}]
";
    let stand = Stand::new(script).await;
    let policy = "policy: {approvals: [{toolId: act, action: require_approval, approver: host}]}";
    stand.write("skill.yaml", &format!("{SKILL}  {policy}\n"));
    let mcp = ["--mcp-command", "sh", "-c", super::tools::SERVER, "sh", super::tools::ANSWERS];
    stand.run(&[&RUN[..], &mcp].concat()).await.assert(7, "a call waits for a decision");
    let page = stand.bloomery(&["get", "k-1"]).await;
    page.assert(0, "Waits for   host to let act be called: ");
    page.assert(0, "Unfinished  Parked: a call waits for a decision");
}

#[tokio::test]
async fn a_gate_that_did_not_pass_says_why_and_fields_are_shown_as_the_answer_shows_them() {
    let script = r#"
conversations:
  - name: drafts
    turns:
      - say: |
          A draft.

          ```json
          {"order_id": "A-17", "amount": 49.9}
          ```
    finalization: [{json: {passed: false, reasons: [{code: GOAL_NOT_MET, detail: "no \e[2J refund"}]}}]
"#;
    let stand = Stand::new(script).await;
    let spec = "engine: {finalizationGate: {maxRetries: 0}}\n  outputContract: {requiredFields: [order_id]}";
    stand.write("skill.yaml", &format!("{SKILL}  {spec}\n"));
    stand.run(&RUN).await.assert(5, "did not pass its gate");
    let page = stand.bloomery(&["get", "k-1"]).await;
    page.assert(0, "Gate        answer 1 did not pass");
    page.assert(0, "            GOAL_NOT_MET: no [2J refund\n");
    page.assert(0, "Draft       A draft.\n            amount: 49.9\n            order_id: A-17\n");
    assert!(!page.out.contains("Unfinished"), "{page:#?}");
}
