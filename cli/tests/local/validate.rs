//! `bloomery validate`: the tests of features, and their results.

use super::setup::{CommandOutput, Setup};
use super::tools::{ANSWERS, SERVER};
use rstest::rstest;
use std::fs;

/// A Skill with a feature that passes, one that fails, an optional one, and one that another Skill implements.
const GREETER: &str = "apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {name: greeter}
spec:
  problem: {statement: Greet people}
  skills: [lister]
  engine: {finalizationGate: {enabled: false, maxRetries: 0}}
  features:
    - {name: greets, testScenario: 'When Ada comes, then greet her', expectedResult: Ada is greeted by name}
    - {name: refuses, testScenario: 'When Bob comes, then refuse', expectedResult: Bob is refused}
    - {name: formal, optional: true, testScenario: 'When the Queen comes, then bow', expectedResult: The greeting is formal}
    - {name: lists, testScenario: 'When asked, then list', expectedResult: A list, ext: {subskill: lister}}
";

/// The Skill that implements a feature of the other one.
const LISTER: &str = "apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {name: lister}
spec: {problem: {statement: List people}}
";

/// The judging model sees the expected result, and nothing polishes the answer.
const ANSWERS_OF_GREETER: &str = "
conversations:
  - name: greets
    match: {goal: 'Ada comes'}
    turns: [{say: 'Hello, Ada.'}]
    finalization: [{json: {passed: true, score: 0.9, reasons: []}, expect: {systemContains: Ada is greeted by name}}]
  - name: refuses
    match: {goal: 'Bob comes'}
    turns: [{say: 'Hello, Bob.'}]
    finalization: [{json: {passed: false, score: 0.1, reasons: [{code: GOAL_NOT_MET, detail: Bob was greeted}]}}]
  - name: formal
    match: {goal: 'the Queen comes'}
    turns: [{say: 'Your Majesty.'}]
    finalization: [{json: {passed: true, score: 1.0, reasons: []}, expect: {systemContains: The greeting is formal}}]
";

async fn greeter() -> Setup {
    with_greeter(ANSWERS_OF_GREETER).await
}

async fn with_greeter(script: &str) -> Setup {
    let setup = Setup::new(script).await;
    setup.write("skills/greeter.yaml", GREETER);
    setup.write("skills/lister.yaml", LISTER);
    setup.write("skills/notes.txt", "no manifest");
    fs::create_dir(setup.path("tmp")).unwrap();
    setup
}

/// Runs `bloomery validate` against the scripted model.
async fn validate(setup: &Setup, args: &[&str]) -> CommandOutput {
    let (url, tmp) = (setup.url(), setup.path("tmp"));
    let model = ["--model", "scripted", "--model-url", &url, "--patience", "5"];
    let paths = args.iter().take_while(|arg| !arg.starts_with("--"));
    let options = args.iter().skip_while(|arg| !arg.starts_with("--"));
    let all: Vec<&str> = ["validate"].iter().chain(paths).chain(&model).chain(options).copied().collect();
    CommandOutput::new(setup.command(&all).env("TMPDIR", tmp).output().await.unwrap())
}

/// Returns the first four columns of the table.
fn rows(result: &CommandOutput) -> Vec<String> {
    let table = result.out.lines().take_while(|line| !line.is_empty()).skip(1);
    table.map(|line| line.split_whitespace().take(4).collect::<Vec<_>>().join(" ")).collect()
}

#[tokio::test]
async fn each_feature_is_tested_and_its_result_is_reported() {
    let setup = greeter().await;
    let result = validate(&setup, &["skills", "--junit", "results.xml"]).await;
    result.assert(1, "4 features: 2 passed, 1 failed, 1 delegated");
    let expected = [
        "greeter greets passed 0.90",
        "greeter refuses failed 0.10",
        "greeter formal passed 1.00",
        "greeter lists delegated -",
    ];
    assert_eq!(rows(&result), expected, "{result:#?}");
    assert!(result.out.contains("greeter/refuses: GateFailed: "), "{result:#?}");
    assert!(result.out.contains("Bob was greeted"), "{result:#?}");
    assert!(result.out.contains("greeter/lists is tested by the Skill lister.\n"), "{result:#?}");
    assert!(result.err.contains("failed: greeter/refuses ("), "{result:#?}");
    let junit = setup.read("results.xml");
    assert!(junit.contains("<testsuite name=\"greeter\" tests=\"4\" failures=\"1\" skipped=\"1\" "), "{junit}");
    assert!(junit.contains("Bob was greeted"), "{junit}");
    assert_eq!(fs::read_dir(setup.path("tmp")).unwrap().count(), 0, "the memories of the conversations are removed");
    assert!(!setup.path("memory").exists());
    setup.assert_no_violations().await;
}

/// Returns a `skill.json` with these features.
fn skill_json(features: &str) -> String {
    format!(r#"{{"goal": "Greet people", "acceptance_criteria": ["Be kind"], "features": [{features}]}}"#)
}

/// A repository of skills: a skill with a subskill and a script.
fn write_repository(setup: &Setup) {
    let greets = r#"{"name": "greets", "test_scenario": "When Ada comes, then greet her", "expected_result": "Ada is greeted by name"}"#;
    let bows = r#"{"name": "bows", "test_scenario": "When the Queen comes, then bow", "expected_result": "The greeting is formal"}"#;
    let lists =
        r#"{"name": "lists", "test_scenario": "List", "expected_result": "A list", "ext": {"subskill": "formal"}}"#;
    let runs =
        r#"{"name": "runs", "test_scenario": "Run", "expected_result": "It runs", "ext": {"script": "script.sh"}}"#;
    setup.write("shop/skills/hello/skill.json", &skill_json(&[greets, lists, runs].join(",")));
    setup.write("shop/skills/hello/script.sh", "exit 0\n");
    setup.write("shop/skills/hello/formal/skill.json", &skill_json(bows));
}

#[tokio::test]
async fn the_skills_of_a_repository_are_tested_without_an_import() {
    let setup = greeter().await;
    write_repository(&setup);
    let result = validate(&setup, &["shop"]).await;
    result.assert(1, "4 features: 2 passed, 1 failed, 1 delegated");
    let expected =
        ["hello greets passed 0.90", "hello lists delegated -", "hello runs failed -", "hello-formal bows passed 1.00"];
    assert_eq!(rows(&result), expected, "{result:#?}");
    result.assert(1, "hello/runs: Its script script.sh does not run: --allow-scripts");
    setup.assert_no_violations().await;

    setup.write("shop/skills/hello/skill.json", &skill_json(r#"{"name": "greets"}"#));
    let result = validate(&setup, &["shop"]).await;
    result.assert(2, "shop/skills/hello/skill.json:1:");
    result.assert(2, "nothing was run");
}

#[rstest]
#[case::of_a_skill_that_was_not_read(
    &["skills/greeter.yaml"], 1, "greeter lists failed -", "greeter/lists: The Skill lister of ext.subskill is not among"
)]
#[case::of_a_skill_that_is_not_selected(
    &["skills", "--skill", "greeter"], 0, "greeter lists delegated -", "is tested by the Skill lister."
)]
#[tokio::test]
async fn a_delegated_feature_needs_its_skill(
    #[case] args: &[&str],
    #[case] code: i32,
    #[case] row: &str,
    #[case] says: &str,
) {
    let setup = greeter().await;
    let result = validate(&setup, &[args, &["--feature", "lists"][..]].concat()).await;
    result.assert(code, says);
    assert_eq!(rows(&result), [row], "{result:#?}");
}

#[tokio::test]
async fn one_feature_can_be_selected_and_its_log_kept() {
    let setup = greeter().await;
    let select = ["skills", "--skill", "greeter", "--feature", "greets"];
    let result = validate(&setup, &[&select[..], &["--keep", "kept", "--runs", "2"]].concat()).await;
    result.assert(0, "1 feature: 1 passed");
    assert_eq!(rows(&result), ["greeter greets passed 2/2"], "{result:#?}");
    let logs: Vec<&str> =
        result.out.lines().filter_map(|line| line.strip_prefix("greeter/greets: bloomery events ")).collect();
    let [first, second] = logs[..] else { panic!("{result:#?}") };
    assert_ne!(first, second, "each test has its own memory");
    setup.bloomery(&["events", first]).await.assert(0, "goal: When Ada comes");
}

#[tokio::test]
async fn a_feature_is_tested_as_often_as_its_skill_says() {
    let setup = greeter().await;
    let skill = GREETER.replace("engine: {", "engine: {validation: {runs: 3, passRate: 0.5}, ");
    setup.write("skills/greeter.yaml", &skill);
    let result = validate(&setup, &["skills", "--feature", "greets"]).await;
    assert_eq!(rows(&result), ["greeter greets passed 3/3"], "{result:#?}");
    let result = validate(&setup, &["skills", "--feature", "greets", "--runs", "1"]).await;
    assert_eq!(rows(&result), ["greeter greets passed 0.90"], "the option wins: {result:#?}");
}

#[tokio::test]
async fn too_few_passed_tests_fail_a_feature() {
    let setup = greeter().await;
    let args = ["skills", "--feature", "refuses", "--runs", "2", "--pass-rate", "0.5"];
    let result = validate(&setup, &args).await;
    result.assert(1, "1 feature: 1 failed");
    assert_eq!(rows(&result), ["greeter refuses failed 0/2"], "{result:#?}");
}

/// The policy of the tool allows its calls, and a validation denies them all the same.
#[rstest]
#[case::denied("denied", &["look"])]
#[case::allowed("allowed", &["act"])]
#[case::allowed_by_a_prefix("prefix", &["act"])]
#[tokio::test]
async fn a_tool_with_an_effect_is_called_only_if_the_feature_allows_it(#[case] feature: &str, #[case] called: &[&str]) {
    let script = "
conversations:
  - name: denied
    match: {goal: Nothing is allowed}
    turns:
      - calls: [{name: look}]
      - {expect: {lastToolResultContains: done}, calls: [{name: act}]}
      - {expect: {lastToolResultContains: 'features[].allow'}, say: I may not act.}
    finalization: [{json: {passed: true, score: 1.0, reasons: []}}]
  - name: allowed
    match: {goal: Acting is allowed}
    turns: [{calls: [{name: act}]}, {expect: {lastToolResultContains: done}, say: Done.}]
    finalization: [{json: {passed: true, score: 1.0, reasons: []}}]
";
    let skill = "apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {name: actor}
spec:
  problem: {statement: Act}
  tools: [{name: act, policy: {allowed: always}}, {name: look, readOnly: true}]
  features:
    - {name: denied, testScenario: Nothing is allowed, expectedResult: Nothing was done}
    - {name: allowed, testScenario: Acting is allowed, expectedResult: It was done, allow: [act]}
    - {name: prefix, testScenario: Acting is allowed, expectedResult: It was done, allow: ['a*']}
";
    let setup = with_greeter(script).await;
    setup.write("actor.yaml", skill);
    let tool = |name: &str| format!(r#"{{"name":"{name}","description":"x","inputSchema":{{"type":"object"}}}}"#);
    let tools = format!("{},{}", tool("act"), tool("look"));
    let call = format!("printf '%s\\n' \"$line\" >>calls; {ANSWERS}");
    let mcp = ["--mcp-command", "sh", "-c", SERVER, "sh", &call, &tools];
    let result = validate(&setup, &[&["actor.yaml", "--feature", feature][..], &mcp].concat()).await;
    result.assert(0, "1 feature: 1 passed");
    let calls = setup.read("calls");
    let names: Vec<&str> =
        ["act", "look"].into_iter().filter(|name| calls.contains(&format!("\"name\":\"{name}\""))).collect();
    assert_eq!(names, called, "{calls}");
    setup.assert_no_violations().await;
}

#[rstest]
#[case::an_unknown_skill(&["skills", "--skill", "greter"], "--skill greter: there is no such Skill. There is greeter, lister. Did you mean")]
#[case::an_unknown_feature(&["skills", "--feature", "greet"], "--feature greet: there is no such feature")]
#[case::no_features(&["skill.yaml"], "there is nothing to validate")]
#[case::no_such_file(&["absent.yaml"], "absent.yaml cannot be read")]
#[case::an_unknown_resource(&["skills", "--resource", "code=."], "--resource code: no Skill that is validated declares")]
#[case::a_skill_twice(&["skills", "skills/greeter.yaml"], "there is another Skill of the name greeter")]
#[case::an_invalid_skill(&["broken.yaml"], "nothing was run")]
#[case::a_report_that_cannot_be_written(&["skills", "--junit", "absent/x.xml"], "--junit: absent/x.xml cannot be written")]
#[tokio::test]
async fn bad_input_is_refused_before_a_model_is_asked(#[case] args: &[&str], #[case] says: &str) {
    let setup = greeter().await;
    setup.write("broken.yaml", &GREETER.replace("expectedResult: Bob is refused", "expectedResult: ''"));
    let result = validate(&setup, args).await;
    result.assert(2, says);
    assert_eq!(fs::read_dir(setup.path("tmp")).unwrap().count(), 0, "{result:#?}");
}
