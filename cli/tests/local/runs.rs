//! Runs without interruptions.

use super::setup::{SAYS_HELLO, SKILL, Setup};
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
async fn the_answer_is_printed_and_the_log_and_record_are_stored() {
    let setup = Setup::new(ANSWERS_FIELDS).await;
    setup.write("skill.yaml", &format!("{SKILL}  outputContract: {{requiredFields: [order_id]}}\n"));
    let result = setup.run(&["--skill", "./skill.yaml", "--goal", "Refund A-17", "--run-key", "k-1"]).await;
    result.assert(0, "Succeeded");
    assert_eq!(result.out, "Refunded.\n\namount: 49.9\norder_id: A-17\n");
    assert!(!result.err.contains('\u{1b}'), "only a terminal gets colours: {result:#?}");
    let trace = setup.read("memory/greeter/logs/k-1.log");
    assert!(trace.lines().count() > 5 && trace.contains("goal: Refund A-17"), "{trace}");
    // stderr has a line about the start, one for the step, and two about the end.
    let lines: Vec<&str> = result.err.lines().collect();
    assert!(lines.len() == 4 && lines[0].starts_with("Job k-1 ") && lines[1] == "- an answer", "{result:#?}");
    let record: serde_json::Value = serde_json::from_str(&setup.read("memory/greeter/jobs/k-1.json")).unwrap();
    assert_eq!(record["outcome"]["code"], "Succeeded");
    assert!(setup.log("greeter/jobs/k-1").last().unwrap().contains("\"finished\""));
    assert_eq!(setup.read("memory/greeter/skill.yaml"), setup.read("skill.yaml"));
}

#[tokio::test]
async fn a_template_is_stored_on_first_use_and_can_be_edited() {
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
    let setup = Setup::new(script).await;
    fs::create_dir(setup.path("project")).unwrap();
    // An older request names no Skill, and a project path.
    let first = setup.run(&["--project-path", "project", "--goal", "Greet"]).await;
    first.assert(0, "memory/sw-dev-agent/skill.yaml was created from the template");
    assert_eq!(first.out, "Hello.\n");
    for name in ["jobs", "logs", "focus-cache"] {
        assert!(setup.path("memory/sw-dev-agent").join(name).is_dir(), "{name}");
    }
    let file = "memory/sw-dev-agent/skill.yaml";
    let edited = setup.read(file).replace("Look at the code", "Speak like a pirate. Look at the code");
    setup.write(file, &edited);
    let second = setup.run(&["--resource", "codebase=project:ro", "--goal", "Greet"]).await;
    second.assert(0, "Succeeded");
    assert_eq!((second.out.as_str(), setup.read(file)), ("Arr.\n", edited));
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
async fn the_exit_code_matches_the_phase(
    #[case] spec: &str,
    #[case] script: &str,
    #[case] args: &[&str],
    #[case] code: i32,
    #[case] says: &str,
) {
    let setup = Setup::new(&format!("conversations:\n  - name: it\n    {script}\n")).await;
    setup.write("skill.yaml", &format!("{SKILL}  {spec}\n"));
    setup.run(&[&["--skill", "./skill.yaml", "--goal", "Greet"], args].concat()).await.assert(code, says);
}

#[tokio::test]
async fn a_missing_record_is_written_when_the_job_is_shown_again() {
    let setup = Setup::new(SAYS_HELLO).await;
    let run = ["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1"];
    setup.run(&run).await.assert(0, "Succeeded");
    let record = setup.read("memory/greeter/jobs/k-1.json");
    let log = setup.log("greeter/jobs/k-1");
    for again in [&run[..], &["--resume", "k-1"]] {
        fs::remove_file(setup.path("memory/greeter/jobs/k-1.json")).unwrap();
        setup.run(again).await.assert(0, "Succeeded");
        assert_eq!(setup.read("memory/greeter/jobs/k-1.json"), record);
    }
    assert_eq!(setup.log("greeter/jobs/k-1"), log);
}

#[tokio::test]
async fn json_output_equals_the_log() {
    let setup = Setup::new(SAYS_HELLO).await;
    let result = setup.run(&["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1", "--json"]).await;
    result.assert(0, "");
    assert_eq!(result.out.lines().collect::<Vec<_>>(), setup.log("greeter/jobs/k-1"));
    assert_eq!(result.out, setup.read("memory/greeter/logs/k-1.log"));
    // The output is the same when the Job is shown again.
    for again in [
        &["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1", "--json"][..],
        &["--resume", "k-1", "--json"],
    ] {
        assert_eq!(setup.run(again).await.out, result.out);
    }
}

/// A model may report any usage.
#[tokio::test]
async fn any_number_of_tokens_can_be_reported() {
    let claims = format!("{{say: Hello., usage: {{promptTokens: {}, completionTokens: 7}}}}", u64::MAX);
    let setup = Setup::new(&SAYS_HELLO.replacen("{say: Hello.}", &claims, 1)).await;
    let result = setup.run(&["--skill", "./skill.yaml", "--goal", "Greet"]).await;
    result.assert(3, &format!(" {} tokens, ", u64::MAX));
}

#[tokio::test]
async fn a_job_that_has_ended_is_shown_again_and_not_run() {
    let setup = Setup::new(SAYS_HELLO).await;
    let args = ["--skill", "./skill.yaml", "--goal", "Greet", "--run-key", "k-1"];
    setup.run(&args).await.assert(0, "Succeeded");
    let log = setup.log("greeter/jobs/k-1");
    let again = setup.run(&args).await;
    again.assert(0, "Succeeded");
    assert_eq!((again.out.as_str(), setup.log("greeter/jobs/k-1")), ("Hello.\n", log.clone()));
    let resumed = setup.run(&["--resume", "k-1"]).await;
    assert_eq!((resumed.code, resumed.out.as_str(), setup.log("greeter/jobs/k-1")), (0, "Hello.\n", log));
    let other = ["--skill", "./skill.yaml", "--goal", "Something else", "--run-key", "k-1"];
    setup.run(&other).await.assert(2, "with other parameters");
}

#[tokio::test]
async fn a_key_from_the_environment_is_sent_only_to_its_provider_and_never_stored() {
    let setup = Setup::with_key(SAYS_HELLO, "sk-secret-1").await;
    let run = |args: &'static [&'static str]| {
        let mut command =
            setup.command(&[&["run", "--skill", "./skill.yaml", "--goal", "Greet", "--patience", "0"], args].concat());
        command.env("OPENAI_API_KEY", "sk-secret-1");
        command
    };
    let own = run(&[]).env("OPENAI_BASE_URL", setup.url()).output().await.unwrap();
    assert_eq!(own.status.code(), Some(0), "{}", String::from_utf8_lossy(&own.stderr));
    // A server that the command line names does not get the key from the environment.
    let url = setup.url();
    let foreign = run(&[]).args(["--model-url", &url]).output().await.unwrap();
    assert_eq!(foreign.status.code(), Some(3), "{}", String::from_utf8_lossy(&foreign.stderr));
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("key");
    fs::write(&file, "sk-secret-1\n").unwrap();
    let named = run(&[]).args(["--model-url", &url, "--api-key-file", file.to_str().unwrap()]).output().await.unwrap();
    assert_eq!(named.status.code(), Some(0), "{}", String::from_utf8_lossy(&named.stderr));
    let outputs = format!("{own:?}{foreign:?}{named:?}");
    assert!(!outputs.contains("sk-secret") && !setup.all_contents().contains("sk-secret"));
}

/// A secret in the goal is neither stored nor shown. The goal is compared without it.
#[tokio::test]
async fn a_secret_in_the_goal_is_redacted() {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.write("skill.yaml", &format!("{SKILL}  resources: [{{name: tok, type: credential}}]\n"));
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("tok");
    fs::write(&file, "hush-hush-1234\n").unwrap();
    let bound = format!("tok=@{}", file.display());
    let goal = "LEAK hush-hush-1234 now";
    let args = ["--skill", "./skill.yaml", "--goal", goal, "--resource", &bound, "--run-key", "k-1"];
    for _ in 0..2 {
        setup.run(&args).await.assert(0, "Succeeded");
    }
    assert!(!setup.all_contents().contains("hush-hush"));
    assert!(setup.read("memory/greeter/jobs/k-1/run.json").contains("LEAK [redacted: tok] now"));
    for shown in
        [&["get", "k-1"][..], &["get"], &["get", "k-1", "-o", "json"], &["get", "-o", "yaml"], &["events", "k-1"]]
    {
        let result = setup.bloomery(shown).await;
        assert!(result.code == 0 && !format!("{result:?}").contains("hush-hush"), "{shown:?}: {result:#?}");
    }
    setup.bloomery(&["get", "k-1"]).await.assert(0, "LEAK [redacted: tok] now");
    setup.run(&["--resume", "k-1"]).await.assert(0, "Succeeded");
}

#[tokio::test]
async fn models_can_be_read_from_a_file() {
    let setup = Setup::new(SAYS_HELLO).await;
    let model = |name: &str, url: &str| {
        format!(
            "apiVersion: bloomery.dev/v1alpha1\nkind: Model\nmetadata: {{name: {name}}}\nspec: {{provider: openai, model: m, baseUrl: \"{url}\"}}\n"
        )
    };
    setup.write("one.yaml", &model("any", &setup.url()));
    setup.write(
        "two.yaml",
        &format!("{}---\n{}", model("default", &setup.url()), model("other", "http://127.0.0.1:9/v1")),
    );
    setup.write("none.yaml", &format!("{}---\n{}", model("a", &setup.url()), model("b", &setup.url())));
    let run = async |file: &str| {
        setup.bloomery(&["run", "--skill", "./skill.yaml", "--goal", "Greet", "--model", file]).await
    };
    run("one.yaml").await.assert(0, "Succeeded");
    run("two.yaml").await.assert(0, "Succeeded");
    run("none.yaml").await.assert(2, "none.yaml has no Model default, which the Skill uses. It has a, b");
    run("absent.yaml").await.assert(2, "absent.yaml cannot be read");
    run("skill.yaml").await.assert(2, "skill.yaml has no Model");
}

#[tokio::test]
async fn a_follow_up_job_gets_the_goal_and_answer_of_the_job_before() {
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
    let setup = Setup::new(script).await;
    let run = async |goal: &str, more: &[&str]| {
        setup.run(&[&["--skill", "./skill.yaml", "--goal", goal], more].concat()).await
    };
    let early = run("And the other?", &["--continues", "k-1", "--run-key", "k-2"]).await;
    early.assert(2, "--continues k-1: the Skill greeter has no Job k-1 that has ended");
    assert!(!setup.path("memory/greeter/jobs/k-2").exists());
    run("Refund A-17", &["--run-key", "k-1"]).await.assert(0, "Succeeded");
    run("And the other?", &["--run-key", "k-2", "--continues", "k-1"]).await.assert(0, "Succeeded");
    run("Both?", &["--run-key", "k-3", "--continues", "k-2"]).await.assert(0, "Succeeded");
    // The Job that is continued is a parameter of the Job.
    run("Both?", &["--run-key", "k-3", "--continues", "k-1"]).await.assert(2, "with other parameters");
    setup.assert_no_violations().await;
}

/// The Job succeeds, but the reader of the output must know that it is incomplete.
#[tokio::test]
async fn a_failed_write_to_stdout_is_reported_and_a_closed_pipe_is_not() {
    let setup = Setup::new(SAYS_HELLO).await;
    let mut run = setup.run_command(&["--skill", "./skill.yaml", "--goal", "Greet", "--json", "--run-key", "k-1"]);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let result = super::resume::ended(run.stdout(full).spawn().unwrap()).await;
    result.assert(1, "stdout cannot be written: No space left on device");
    result.assert(1, "Succeeded");
    setup.bloomery(&["get", "k-1"]).await.assert(0, "Phase       Succeeded");

    let setup = Setup::new(SAYS_HELLO).await;
    let mut run = setup.run_command(&["--skill", "./skill.yaml", "--goal", "Greet", "--json", "--run-key", "k-1"]);
    let (ours, theirs) = std::io::pipe().unwrap();
    drop(ours);
    let run = run.stdout(theirs).spawn().unwrap();
    let result = super::resume::ended(run).await;
    result.assert(0, "Succeeded");
    assert!(!result.err.contains("cannot be written"), "{result:#?}");
}

#[tokio::test]
async fn a_quiet_run_prints_only_the_answer_or_the_failure() {
    let setup = Setup::new(SAYS_HELLO).await;
    let result = setup.run(&["--skill", "greeter", "--bootstrap", "--goal", "Greet", "--quiet"]).await;
    assert_eq!((result.code, result.out.as_str(), result.err.as_str()), (0, "Hello.\n", ""));
    let args =
        ["run", "--skill", "greeter", "--goal", "Greet", "--model-url", "http://127.0.0.1:9/v1", "--patience", "0"];
    let result = setup.bloomery(&[&args[..], &["--quiet"]].concat()).await;
    result.assert(3, "ModelUnavailable: ");
    assert_eq!(result.err.lines().count(), 1, "{result:#?}");
}

/// The address is that of a port that nobody listens on.
#[rstest]
#[case::of_the_model(&["--model-url", "http://127.0.0.1:9/v1"], "ModelUnavailable", "--model-url", "Waiting for the model")]
#[case::of_the_server(&["--mcp", "http://127.0.0.1:9/mcp"], "McpUnavailable", "--mcp", "Waiting for the MCP server")]
#[tokio::test]
async fn a_failure_is_described_once_with_the_option_that_was_typed(
    #[case] args: &[&str],
    #[case] code: &str,
    #[case] option: &str,
    #[case] waits: &str,
) {
    let setup = Setup::new(SAYS_HELLO).await;
    let url = setup.url();
    let model: &[&str] = if option == "--mcp" { &["--model-url", &url] } else { &[] };
    let run = ["run", "--skill", "./skill.yaml", "--goal", "Greet", "--patience", "2"];
    let result = setup.bloomery(&[&run[..], model, args].concat()).await;
    result.assert(3, code);
    assert_eq!(result.err.matches("Connection refused").count(), 1, "{result:#?}");
    assert!(result.err.contains(&format!(" is that of {option}.")), "{result:#?}");
    assert_eq!(result.err.matches(waits).count(), 1, "{result:#?}");
    for foreign in ["baseUrl", "mcpServer", "WARN"] {
        assert!(!result.err.contains(foreign), "{foreign}: {result:#?}");
    }
}

#[tokio::test]
async fn an_option_after_the_command_of_the_server_is_named() {
    let setup = Setup::new(SAYS_HELLO).await;
    let result = setup.run(&["--goal", "Greet", "--mcp-command", "cat", "--skill", "./skill.yaml"]).await;
    result.assert(2, "--skill is an argument of the program here");
    result.assert(2, "codebase: the Skill requires this filesystem");
    // The program may have an option of that name.
    let run = ["--skill", "./skill.yaml", "--goal", "Greet", "--mcp-command", "false", "--limit", "3"];
    setup.run(&run).await.assert(3, "--limit is an argument of the program here");
    let result = setup.run(&[&run[..], &[";"]].concat()).await;
    assert!(result.code == 3 && !result.err.contains("--limit"), "{result:#?}");
    let swallowed = ["--skill", "./skill.yaml", "--mcp-command", "cat", "--goal", "Greet"];
    setup.run(&swallowed).await.assert(2, "write --goal before --mcp-command");
    setup.run(&["--skill", "./skill.yaml", "--mcp-command", "cat"]).await.assert(2, "--goal is missing");
}

#[tokio::test]
async fn a_skill_without_its_server_says_that_it_runs_without_tools() {
    let setup = Setup::new(SAYS_HELLO).await;
    let run = ["--skill", "cs-tier-1", "--goal", "Greet", "--run-key", "k-1"];
    let note = "the Skill cs-tier-1 runs without its tools track_order, delete_customer";
    setup.run(&run).await.assert(0, note);
    setup.write("shop.yaml", &format!("{SKILL}  tools: [{{name: track}}]\n").replace("greeter", "shop"));
    let result = setup.run(&["--skill", "./shop.yaml", "--goal", "Greet"]).await;
    result.assert(0, "name one with --mcp URL");
    assert!(!result.err.contains("run `bloomery lint`"), "{result:#?}");
}
