//! Tests of `bloomery get` on a memory.

use super::resume::{HOLDS, ended, interrupt};
use super::setup::{SAYS_HELLO, SKILL, Setup};
use std::fs;

const RUN: [&str; 6] = ["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1"];

#[tokio::test]
async fn jobs_are_listed_as_a_table_json_and_yaml() {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.bloomery(&["get"]).await.assert(2, "the memory ./memory cannot be used: No such file");
    fs::create_dir(setup.path("memory")).unwrap();
    setup.bloomery(&["get"]).await.assert(0, "there are no Jobs in memory");
    setup.run(&RUN).await.assert(0, "Succeeded");
    let listed = setup.bloomery(&["get", "--skill", "greeter"]).await;
    let table = "JOB   SKILL     PHASE       OUTCOME     TOOLS\nk-1   greeter   Succeeded   Succeeded   0\n";
    assert_eq!((listed.code, listed.out.as_str(), listed.err.as_str()), (0, table, ""));
    let json = setup.bloomery(&["get", "-o", "json"]).await;
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["kind"], "List");
    assert_eq!(json["items"][0]["status"]["outcome"]["code"], "Succeeded", "{json:#}");
    let one = setup.bloomery(&["get", "k-1", "-o", "json"]).await;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&one.out).unwrap(), json["items"][0]);
    setup.bloomery(&["get", "-o", "yaml"]).await.assert(0, "kind: List\nitems:\n- job: k-1\n");
    setup.bloomery(&["get", "k-1", "-o", "yaml"]).await.assert(0, "job: k-1\nskill: greeter\ngoal: Greet\nstatus:\n");
}

#[tokio::test]
async fn an_unknown_job_or_skill_is_reported() {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.run(&RUN).await.assert(0, "Succeeded");
    for (args, says) in [
        (&["get", "k-2"][..], "the memory ./memory has no Job k-2"),
        (&["get", "k-1", "--skill", "other"], "has no Job k-1 of the Skill other"),
        (&["get", "--skill", "greter"], "has no Skill greter. Did you mean \"greeter\"?"),
        (&["get", "memory/greeter/jobs/k-1"], "must be at most 128 letters"),
        (&["get", "--memory", "none", "k-1"], "the memory ./none has no Job k-1"),
    ] {
        setup.bloomery(args).await.assert(2, says);
    }
}

#[tokio::test]
async fn a_broken_log_does_not_hide_other_jobs() {
    let setup = Setup::new(SAYS_HELLO).await;
    for key in ["k-1", "k-2"] {
        setup.run(&["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", key]).await.assert(0, "Succeeded");
    }
    fs::create_dir(setup.path("memory/greeter/jobs/stray")).unwrap();
    let passed_over = setup.bloomery(&["get"]).await;
    passed_over.assert(0, "memory/greeter/jobs/stray is skipped");
    assert_eq!(passed_over.out.lines().count(), 3, "{passed_over:#?}");
    setup.bloomery(&["get", "stray"]).await.assert(2, "is not the log of a Job that ran on this machine");

    let segment = fs::read_dir(setup.path("memory/greeter/jobs/k-1")).unwrap().map(|entry| entry.unwrap().path());
    let segment = segment.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).min().unwrap();
    let text = fs::read_to_string(&segment).unwrap();
    fs::write(&segment, text.replacen("\"attempt\":1", "\"attempt\":2", 1)).unwrap();
    // The table shows a Job that has ended from its record.
    setup.bloomery(&["get"]).await.assert(0, "k-1   greeter   Succeeded   Succeeded   0\n");
    setup.bloomery(&["get", "-o", "json"]).await.assert(1, "memory/greeter/jobs/k-1: the log is broken at");
    fs::remove_file(setup.path("memory/greeter/jobs/k-1.json")).unwrap();
    let listed = setup.bloomery(&["get"]).await;
    listed.assert(1, "memory/greeter/jobs/k-1: the log is broken at");
    assert!(listed.out.contains("\nk-2 ") && !listed.out.contains("k-1"), "{listed:#?}");
    setup.bloomery(&["get", "k-1"]).await.assert(1, "the log is broken at");
}

#[tokio::test]
async fn a_job_without_a_log_is_shown_from_its_record() {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.run(&RUN).await.assert(0, "Succeeded");
    fs::remove_dir_all(setup.path("memory/greeter/jobs/k-1")).unwrap();
    setup.bloomery(&["get"]).await.assert(0, "k-1   greeter   Succeeded   Succeeded   0\n");
    setup.bloomery(&["get", "-o", "yaml"]).await.assert(0, "  status:\n    phase: Succeeded\n");
    let page = setup.bloomery(&["get", "k-1"]).await;
    page.assert(0, "Phase       Succeeded: ");
    page.assert(0, "File        memory/greeter/jobs/k-1.json\n");
}

#[tokio::test]
async fn an_unfinished_job_is_shown_with_the_command_that_resumes_it() {
    let setup = Setup::new(HOLDS).await;
    let run = setup.start(&RUN);
    setup.wait_for_held(1).await;
    let go_on = "Resume with: bloomery run --skill greeter --resume k-1";
    setup.bloomery(&["get", "k-1"]).await.assert(0, &format!("Unfinished  It may be running. {go_on}\n"));
    interrupt(&run);
    ended(run).await.assert(7, go_on);
    let parked = setup.bloomery(&["get", "k-1"]).await;
    parked.assert(0, &format!("Unfinished  Parked. {go_on}\n"));
    parked.assert(0, " events in memory/greeter/jobs/k-1\n");
}

#[tokio::test]
async fn a_held_call_is_shown_with_its_approver() {
    let script = "
conversations:
  - name: acts
    turns: [{calls: [{name: act}]}]
";
    let setup = Setup::new(script).await;
    let policy = "policy: {approvals: [{toolId: act, action: require_approval, approver: host}]}";
    setup.write("skill.yaml", &format!("{SKILL}  {policy}\n"));
    let mcp = ["--mcp-command", "sh", "-c", super::tools::SERVER, "sh", super::tools::ANSWERS];
    setup.run(&[&RUN[..], &mcp].concat()).await.assert(7, "a call waits for a decision");
    let page = setup.bloomery(&["get", "k-1"]).await;
    page.assert(0, "Waits for   host to approve a call of act: ");
    page.assert(0, "Unfinished  Parked: a call waits for a decision");
}

#[tokio::test]
async fn a_failed_gate_is_shown_with_its_reason_and_the_draft() {
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
    let setup = Setup::new(script).await;
    let spec = "engine: {finalizationGate: {maxRetries: 0}}\n  outputContract: {requiredFields: [order_id]}";
    setup.write("skill.yaml", &format!("{SKILL}  {spec}\n"));
    setup.run(&RUN).await.assert(5, "did not pass its gate");
    let page = setup.bloomery(&["get", "k-1"]).await;
    page.assert(0, "Gate        answer 1 did not pass");
    page.assert(0, "            GOAL_NOT_MET: no [2J refund\n");
    page.assert(0, "Draft       A draft.\n            amount: 49.9\n            order_id: A-17\n");
    assert!(!page.out.contains("Unfinished"), "{page:#?}");
}
