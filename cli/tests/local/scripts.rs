//! The scripts of a Skill, which run on this machine only with `--allow-scripts`.

use super::setup::{CommandOutput, SAYS_HELLO, SKILL, Setup};
use super::tools::{ANSWERS, SERVER};
use rstest::rstest;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use tokio::process::Command;

const SCRIPTS: &str = "  scripts: {image: busybox, files: {check.sh: 'exit 0'}, timeout: 9s}\n";

const FEATURE: &str =
    "  features: [{name: checks, testScenario: Check, expectedResult: It is checked, ext: {script: check.sh}}]\n";

const CALLS: &str = "
conversations:
  - name: checks
    turns: [{calls: [{name: script_check}]}, {expect: {lastToolResultContains: done}, say: Done.}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Done.}]
";

const RUN: [&str; 6] = ["--skill", "./skill.yaml", "--goal", "Check", "--run-key", "k-1"];

#[tokio::test]
async fn without_the_flag_a_skill_runs_without_its_scripts() {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.write("skill.yaml", &format!("{SKILL}{SCRIPTS}"));
    let result = setup.run(&RUN).await;
    result.assert(
        0,
        "the Skill greeter runs without its scripts script_check: --allow-scripts runs them on this machine",
    );
}

/// Installs a copy of `bloomery` beside a program that runs scripts, which is a server with a tool for each. Here, it stores its arguments
/// and a copy of the script.
fn install(setup: &Setup) -> Command {
    install_with(setup, ANSWERS)
}

/// Installs the same with this answer to each call.
fn install_with(setup: &Setup, answer: &str) -> Command {
    let tool = r#"{"name":"script_check","inputSchema":{"type":"object"}}"#;
    let keeps = "here=$(dirname \"$0\")\necho \"$@\" >\"$here/args\"\ncp \"${2#--dir=}/check.sh\" \"$here/copied\"";
    let bridge = format!("#!/bin/sh\n{keeps}\nact=$(cat <<'END'\n{answer}\nEND\n)\nset -- \"$act\" '{tool}'\n{SERVER}");
    setup.write("bin/bloomery-bridge", &bridge);
    fs::set_permissions(setup.path("bin/bloomery-bridge"), fs::Permissions::from_mode(0o755)).unwrap();
    let (built, program) = (env!("CARGO_BIN_EXE_bloomery"), setup.path("bin/bloomery"));
    // The directory may be on another file system.
    fs::hard_link(built, &program).or_else(|_| fs::copy(built, &program).map(|_| ())).unwrap();
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).current_dir(setup.dir.path()).env_clear().env("PATH", std::env::var("PATH").unwrap());
    command
}

#[tokio::test]
async fn with_the_flag_the_program_beside_bloomery_runs_them() {
    let setup = Setup::new(CALLS).await;
    setup.write("skill.yaml", &format!("{SKILL}{SCRIPTS}"));
    let url = setup.url();
    let mut command = install(&setup);
    command.args(["run", "--model", "scripted", "--model-url", &url, "--patience", "5", "--allow-scripts"]).args(RUN);
    let result = CommandOutput::new(command.output().await.unwrap());
    result.assert(0, "");
    assert_eq!((result.out.as_str(), setup.read("bin/copied").as_str()), ("Done.\n", "exit 0"));
    let args = setup.read("bin/args");
    assert!(args.starts_with("scripts --dir=") && args.ends_with("--timeout-seconds=9\n"), "{args}");
    let dir = args.split_once("--dir=").unwrap().1.split(' ').next().unwrap();
    assert!(!Path::new(dir).exists(), "the files are removed");
    setup.assert_no_violations().await;
}

/// A validation may call the script of the feature, although it may have an effect.
#[rstest]
#[case::without_the_flag(&[], 1, "greeter/checks: Its script check.sh does not run: --allow-scripts")]
#[case::with_the_flag(&["--allow-scripts"], 0, "1 feature: 1 passed")]
#[tokio::test]
async fn the_script_of_a_feature_is_tested_only_with_the_flag(
    #[case] flag: &[&str],
    #[case] code: i32,
    #[case] says: &str,
) {
    let setup = Setup::new(CALLS).await;
    setup.write("skill.yaml", &format!("{SKILL}{SCRIPTS}{FEATURE}"));
    let url = setup.url();
    let mut command = install(&setup);
    command.args(["validate", "skill.yaml", "--model", "scripted", "--model-url", &url, "--patience", "5"]).args(flag);
    let result = CommandOutput::new(command.output().await.unwrap());
    result.assert(code, says);
    assert_eq!(setup.path("bin/args").exists(), code == 0, "{result:#?}");
    setup.assert_no_violations().await;
}

/// The answer of a script that ends with exit code 3.
const EXITS_WITH_3: &str = r#"answer '{"content":[{"type":"text","text":"{\"exitCode\":3,\"stderr\":\"\",\"stdout\":\"\"}"}],"isError":true}'"#;

/// The model that judges accepts the answer of both.
#[rstest]
#[case::another_exit_code("{calls: [{name: script_check}]}, ", "The script check.sh ended with exit code 3.")]
#[case::never_called("", "The script check.sh was not called.")]
#[tokio::test]
async fn a_feature_fails_without_exit_code_0_of_its_script(#[case] call: &str, #[case] reason: &str) {
    let turns = format!("turns: [{call}{{say: Done.}}]");
    let script = format!(
        "conversations:\n  - name: checks\n    {turns}\n    finalization: [{{json: {{passed: true, reasons: []}}}}]\n"
    );
    let setup = Setup::new(&script).await;
    setup.write("skill.yaml", &format!("{SKILL}{SCRIPTS}{FEATURE}"));
    let url = setup.url();
    let mut command = install_with(&setup, EXITS_WITH_3);
    command.args(["validate", "skill.yaml", "--model", "scripted", "--model-url", &url, "--patience", "5"]);
    let result = CommandOutput::new(command.arg("--allow-scripts").output().await.unwrap());
    result.assert(1, "1 feature: 1 failed");
    result.assert(1, &format!("greeter/checks: {reason}"));
    setup.assert_no_violations().await;
}
