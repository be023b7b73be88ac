//! Runs from their beginning to their end.

use super::stand::{SAYS_HELLO, SKILL, Stand};
use rstest::rstest;
use std::fs;

const ANSWERS_FIELDS: &str = r#"
conversations:
  - name: refund
    match: {goal: A-17}
    turns:
      - say: |
          Refunded.

          ```json
          {"order_id": "A-17", "amount": 49.9}
          ```
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Refunded.}]
"#;

#[tokio::test]
async fn the_answer_goes_to_stdout_and_what_became_of_it_to_the_memory() {
    let stand = Stand::new(ANSWERS_FIELDS).await;
    stand.write("skill.yaml", &format!("{SKILL}  outputContract: {{requiredFields: [order_id]}}\n"));
    let ran = stand.run(&["--skill", "./skill.yaml", "--goal", "Refund A-17", "--run-key", "k-1"]).await;
    ran.assert(0, "Succeeded");
    assert_eq!(ran.out, "Refunded.\n\namount: 49.9\norder_id: A-17\n");
    assert!(ran.err.contains("conversation.opened") && ran.err.contains("goal: Refund A-17"), "{ran:#?}");
    assert!(!ran.err.contains('\u{1b}'), "nobody looks on: {ran:#?}");
    // Nothing else is on the screen but how the run began and ended.
    let trace = stand.read("memory/greeter/logs/k-1.log");
    assert!(trace.lines().count() > 5 && ran.err.contains(&trace), "{trace}");
    let record: serde_json::Value = serde_json::from_str(&stand.read("memory/greeter/jobs/k-1.json")).unwrap();
    assert_eq!(record["outcome"]["code"], "Succeeded");
    assert!(stand.log("greeter/jobs/k-1").last().unwrap().contains("\"finished\""));
    assert_eq!(stand.read("memory/greeter/skill.yaml"), stand.read("skill.yaml"));
}

#[tokio::test]
async fn the_template_is_there_on_first_use_and_a_hand_that_edits_it_is_obeyed() {
    let script = "
conversations:
  - name: edited
    match: {system: Speak like a pirate}
    turns: [{say: Arr.}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Arr.}]
  - name: as shipped
    turns: [{say: Hello., expect: {systemContains: \"You're working on the codebase at /\"}}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Hello.}]
";
    let stand = Stand::new(script).await;
    fs::create_dir(stand.path("project")).unwrap();
    // As the seeds' older requests do: no Skill, and a project path.
    let first = stand.run(&["--project-path", "project", "--goal", "Greet"]).await;
    first.assert(0, "memory/sw-dev-agent/skill.yaml is the Skill from now on");
    assert_eq!(first.out, "Hello.\n");
    for name in ["jobs", "logs", "focus-cache"] {
        assert!(stand.path("memory/sw-dev-agent").join(name).is_dir(), "{name}");
    }
    let file = "memory/sw-dev-agent/skill.yaml";
    let edited = stand.read(file).replace("Look at the code", "Speak like a pirate. Look at the code");
    stand.write(file, &edited);
    let second = stand.run(&["--resource", "codebase=project:ro", "--goal", "Greet"]).await;
    second.assert(0, "Succeeded");
    assert_eq!((second.out.as_str(), stand.read(file)), ("Arr.\n", edited));
}

#[rstest]
#[case::refused(
    "intents: {supported: [{id: greet}], outOfDomain: {action: refuse, message: Only greetings}}",
    "intent: [{json: {intent: null}}]",
    &[], 4, "OutOfDomain"
)]
#[case::failed("version: 1", "turns: [{say: 'I think.'}]\n    finalization: [{json: {passed: false, reasons: [{code: GOAL_NOT_MET, detail: x}], suggested_action: TOOL_CALL}}]", &["--limit", "steps=1"], 3, "StepLimit")]
#[case::escalated(
    "engine: {finalizationGate: {maxRetries: 0}}",
    "turns: [{say: A draft.}]\n    finalization: [{json: {passed: false, reasons: [{code: GOAL_NOT_MET, detail: x}]}}]",
    &[], 5, "did not pass its gate"
)]
#[tokio::test]
async fn the_exit_code_says_how_it_ended(
    #[case] spec: &str,
    #[case] script: &str,
    #[case] args: &[&str],
    #[case] code: i32,
    #[case] says: &str,
) {
    let stand = Stand::new(&format!("conversations:\n  - name: it\n    {script}\n")).await;
    stand.write("skill.yaml", &format!("{SKILL}  {spec}\n"));
    stand.run(&[&["--skill", "./skill.yaml", "--goal", "Greet"], args].concat()).await.assert(code, says);
}

#[tokio::test]
async fn a_record_that_could_not_be_written_is_written_when_the_job_is_told_again() {
    let stand = Stand::new(SAYS_HELLO).await;
    let run = ["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1"];
    stand.run(&run).await.assert(0, "Succeeded");
    let record = stand.read("memory/greeter/jobs/k-1.json");
    let log = stand.log("greeter/jobs/k-1");
    for again in [&run[..], &["--resume", "k-1"]] {
        fs::remove_file(stand.path("memory/greeter/jobs/k-1.json")).unwrap();
        stand.run(again).await.assert(0, "Succeeded");
        assert_eq!(stand.read("memory/greeter/jobs/k-1.json"), record);
    }
    assert_eq!(stand.log("greeter/jobs/k-1"), log);
}

#[tokio::test]
async fn json_is_the_log_and_nothing_else() {
    let stand = Stand::new(SAYS_HELLO).await;
    let ran = stand.run(&["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1", "--json"]).await;
    ran.assert(0, "");
    assert_eq!(ran.out.lines().collect::<Vec<_>>(), stand.log("greeter/jobs/k-1"));
    assert_eq!(ran.out, stand.read("memory/greeter/logs/k-1.log"));
    // Told again, it is the same.
    for again in [
        &["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1", "--json"][..],
        &["--resume", "k-1", "--json"],
    ] {
        assert_eq!(stand.run(again).await.out, ran.out);
    }
}

/// What a model says of itself is no reason to fall over.
#[tokio::test]
async fn a_model_may_claim_any_number_of_tokens() {
    let claims = format!("{{say: Hello., usage: {{promptTokens: {}, completionTokens: 7}}}}", u64::MAX);
    let stand = Stand::new(&SAYS_HELLO.replacen("{say: Hello.}", &claims, 1)).await;
    let ran = stand.run(&["--skill", "./skill.yaml", "--goal", "Greet"]).await;
    ran.assert(3, &format!(" {} tokens, ", u64::MAX));
}

#[tokio::test]
async fn a_key_that_has_ended_is_told_again_and_nothing_is_run() {
    let stand = Stand::new(SAYS_HELLO).await;
    let args = ["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1"];
    stand.run(&args).await.assert(0, "Succeeded");
    let log = stand.log("greeter/jobs/k-1");
    let again = stand.run(&args).await;
    again.assert(0, "Succeeded");
    assert_eq!((again.out.as_str(), stand.log("greeter/jobs/k-1")), ("Hello.\n", log.clone()));
    let resumed = stand.run(&["--resume", "k-1"]).await;
    assert_eq!((resumed.code, resumed.out.as_str(), stand.log("greeter/jobs/k-1")), (0, "Hello.\n", log));
    let other = ["--skill", "./skill.yaml", "--goal", "Something else", "--run-key", "k-1"];
    stand.run(&other).await.assert(2, "with other parameters");
}

#[tokio::test]
async fn a_key_out_of_the_environment_goes_to_its_provider_only_and_is_written_nowhere() {
    let stand = Stand::with_key(SAYS_HELLO, "sk-secret-1").await;
    let run = |args: &'static [&'static str]| {
        let mut command =
            stand.command(&[&["run", "--skill", "./skill.yaml", "--goal", "Greet", "--patience", "0"], args].concat());
        command.env("OPENAI_API_KEY", "sk-secret-1");
        command
    };
    let own = run(&[]).env("OPENAI_BASE_URL", stand.url()).output().await.unwrap();
    assert_eq!(own.status.code(), Some(0), "{}", String::from_utf8_lossy(&own.stderr));
    // Named on the command line, the same server is anybody's.
    let url = stand.url();
    let foreign = run(&[]).args(["--model-url", &url]).output().await.unwrap();
    assert_eq!(foreign.status.code(), Some(3), "{}", String::from_utf8_lossy(&foreign.stderr));
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("key");
    fs::write(&file, "sk-secret-1\n").unwrap();
    let named = run(&[]).args(["--model-url", &url, "--api-key-file", file.to_str().unwrap()]).output().await.unwrap();
    assert_eq!(named.status.code(), Some(0), "{}", String::from_utf8_lossy(&named.stderr));
    let said = format!("{own:?}{foreign:?}{named:?}");
    assert!(!said.contains("sk-secret") && !stand.everything().contains("sk-secret"));
}

/// Somebody writes the secret into the goal: it is kept and shown nowhere, and the Job is the same when it is asked again.
#[tokio::test]
async fn a_secret_in_the_goal_is_kept_nowhere() {
    let stand = Stand::new(SAYS_HELLO).await;
    stand.write("skill.yaml", &format!("{SKILL}  resources: [{{name: tok, type: credential}}]\n"));
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("tok");
    fs::write(&file, "hush-hush-1234\n").unwrap();
    let bound = format!("tok=@{}", file.display());
    let goal = "LEAK hush-hush-1234 now";
    let args = ["--skill", "./skill.yaml", "--goal", goal, "--resource", &bound, "--run-key", "k-1"];
    for _ in 0..2 {
        stand.run(&args).await.assert(0, "Succeeded");
    }
    assert!(!stand.everything().contains("hush-hush"));
    assert!(stand.read("memory/greeter/jobs/k-1/run.json").contains("LEAK [redacted: tok] now"));
    for shown in
        [&["get", "k-1"][..], &["get"], &["get", "k-1", "-o", "json"], &["get", "-o", "yaml"], &["events", "k-1"]]
    {
        let ran = stand.bloomery(shown).await;
        assert!(ran.code == 0 && !format!("{ran:?}").contains("hush-hush"), "{shown:?}: {ran:#?}");
    }
    stand.bloomery(&["get", "k-1"]).await.assert(0, "LEAK [redacted: tok] now");
    stand.run(&["--resume", "k-1"]).await.assert(0, "Succeeded");
}

#[tokio::test]
async fn models_stand_in_a_file_too() {
    let stand = Stand::new(SAYS_HELLO).await;
    let model = |name: &str, url: &str| {
        format!(
            "apiVersion: bloomery.dev/v1alpha1\nkind: Model\nmetadata: {{name: {name}}}\nspec: {{provider: openai, model: m, baseUrl: \"{url}\"}}\n"
        )
    };
    stand.write("one.yaml", &model("any", &stand.url()));
    stand.write(
        "two.yaml",
        &format!("{}---\n{}", model("default", &stand.url()), model("other", "http://127.0.0.1:9/v1")),
    );
    stand.write("none.yaml", &format!("{}---\n{}", model("a", &stand.url()), model("b", &stand.url())));
    let run = async |file: &str| {
        stand.bloomery(&["run", "--skill", "./skill.yaml", "--goal", "Greet", "--model", file]).await
    };
    run("one.yaml").await.assert(0, "Succeeded");
    run("two.yaml").await.assert(0, "Succeeded");
    run("none.yaml").await.assert(2, "none.yaml has no Model default, which the Skill names, but a, b");
    run("absent.yaml").await.assert(2, "absent.yaml cannot be read");
    run("skill.yaml").await.assert(2, "skill.yaml has no Model");
}

#[tokio::test]
async fn a_follow_up_is_told_what_was_asked_and_answered_before() {
    let script = "
conversations:
  - name: first
    match: {goal: Refund A-17}
    turns: [{say: A-17 is refunded.}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: A-17 is refunded.}]
  - name: second
    match: {goal: And the other}
    turns: [{say: 'A-18, too.', expect: {systemContains: A-17 is refunded}}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: 'A-18, too.'}]
  - name: third
    match: {goal: Both}
    turns: [{say: 'Both.', expect: {systemContains: Refund A-17}}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: 'Both.'}]
";
    let stand = Stand::new(script).await;
    let run = async |goal: &str, more: &[&str]| {
        stand.run(&[&["--skill", "./skill.yaml", "--goal", goal], more].concat()).await
    };
    let early = run("And the other?", &["--continues", "k-1", "--run-key", "k-2"]).await;
    early.assert(2, "--continues k-1: the Skill greeter has no Job k-1 that has ended");
    assert!(!stand.path("memory/greeter/jobs/k-2").exists());
    run("Refund A-17", &["--run-key", "k-1"]).await.assert(0, "Succeeded");
    run("And the other?", &["--run-key", "k-2", "--continues", "k-1"]).await.assert(0, "Succeeded");
    run("Both?", &["--run-key", "k-3", "--continues", "k-2"]).await.assert(0, "Succeeded");
    // The same key with another one before is another Job.
    run("Both?", &["--run-key", "k-3", "--continues", "k-1"]).await.assert(2, "with other parameters");
    stand.was_asked_without_fault().await;
}

/// The Job is done all the same; but whoever reads its log has to know that it is not all there.
#[tokio::test]
async fn that_the_log_could_not_be_printed_is_said_and_a_reader_who_has_gone_is_no_fault() {
    let stand = Stand::new(SAYS_HELLO).await;
    let mut run = stand.run_command(&["--skill", "./skill.yaml", "--goal", "Greet", "--json", "--run-key", "k-1"]);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ran = super::resuming::ended(run.stdout(full).spawn().unwrap()).await;
    ran.assert(1, "stdout cannot be written: No space left on device");
    ran.assert(1, "Succeeded");
    stand.bloomery(&["get", "k-1"]).await.assert(0, "Phase       Succeeded");

    let stand = Stand::new(SAYS_HELLO).await;
    let mut run = stand.run_command(&["--skill", "./skill.yaml", "--goal", "Greet", "--json", "--run-key", "k-1"]);
    let (ours, theirs) = std::io::pipe().unwrap();
    drop(ours);
    let run = run.stdout(theirs).spawn().unwrap();
    let ran = super::resuming::ended(run).await;
    ran.assert(0, "Succeeded");
    assert!(!ran.err.contains("cannot be written"), "{ran:#?}");
}
