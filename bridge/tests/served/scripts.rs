//! The scripts of a Skill: the bridge serves itself as their MCP server.

use crate::bridge::{Bridge, Job};
use bloomery_mcp::CallOutcome;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A time in which a process that was killed has ended.
const PLENTY: Duration = Duration::from_secs(20);

/// Serves these files as scripts. The first directory is theirs, and the other one is where they run.
fn serve(files: &[(&str, &str)], flags: &[&str]) -> (TempDir, TempDir, Bridge) {
    let (dir, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let [own, home] =
        [("--dir", &dir), ("--work-dir", &work)].map(|(flag, dir)| format!("{flag}={}", dir.path().display()));
    let mut server = vec![env!("CARGO_BIN_EXE_bloomery-bridge").to_owned(), "scripts".to_owned(), own, home];
    server.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let bridge = Bridge::start(&[], &server);
    (dir, work, bridge)
}

/// Calls a script, and returns its structured result.
async fn completed(job: &Job, tool: &str, arguments: &Value) -> Value {
    match job.call_with(tool, &arguments.to_string()).await.0 {
        CallOutcome::Completed { structured: Some(structured), .. } => structured,
        other => panic!("{tool}: {other:?}"),
    }
}

/// Calls a script that fails, and returns the text for the model.
async fn failed(job: &Job, tool: &str) -> String {
    match job.call(tool).await.0 {
        CallOutcome::Failed { text, .. } => text,
        other => panic!("{tool}: {other:?}"),
    }
}

#[tokio::test]
async fn a_script_gets_its_arguments_and_input_and_its_output_is_json() {
    let check = "# Shows what it gets.\nprintf '{\"first\":\"%s\",\"count\":%s,\"input\":%s}' \"$1\" $# \"$(cat)\"\n";
    let (_dir, work, bridge) =
        serve(&[("check.sh", check), ("where.sh", "pwd; cat; echo note >&2"), ("no.md", "")], &[]);
    let job = Job::at(bridge.url()).await;
    let names: Vec<&str> = job.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["script_check", "script_no", "script_where"]);
    assert_eq!(job.tools[0].description, "Shows what it gets.");
    let arguments = json!({"args": ["a; echo $HOME", "b"], "stdin": {"n": [1, "x"]}});
    let stdout = json!({"first": "a; echo $HOME", "count": 2, "input": {"n": [1, "x"]}});
    let expected = json!({"exitCode": 0, "stdout": stdout, "stderr": ""});
    assert_eq!(completed(&job, "script_check", &arguments).await, expected);
    // The input without a value ends at once.
    let expected = json!({"exitCode": 0, "stdout": format!("{}\n", work.path().display()), "stderr": "note\n"});
    assert_eq!(completed(&job, "script_where", &json!({})).await, expected);
}

#[tokio::test]
async fn a_failed_or_crashed_script_is_an_error_with_its_exit_code_and_the_next_one_runs() {
    let files = [
        ("three.sh", "echo found; echo why >&2; exit 3"),
        ("crash.sh", "kill -9 $$"),
        ("program", "not executable"),
        ("well.sh", "echo well"),
    ];
    let (_dir, _work, bridge) = serve(&files, &[]);
    let job = Job::at(bridge.url()).await;
    let text = failed(&job, "script_three").await;
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(shown, json!({"exitCode": 3, "stdout": "found\n", "stderr": "why\n"}));
    assert!(failed(&job, "script_crash").await.contains("\"exitCode\":137"));
    assert!(failed(&job, "script_program").await.contains("the script program cannot be started with"));
    assert_eq!(completed(&job, "script_well", &json!({})).await["stdout"], "well\n");
    let (refused, _) = job.call_with("script_well", r#"{"args": ["a", 1]}"#).await;
    let CallOutcome::Failed { text, .. } = refused else { panic!("{refused:?}") };
    assert!(text.contains("args: an item is not a text: 1"), "{text}");
}

#[tokio::test]
async fn a_script_that_takes_too_long_is_killed_with_the_processes_that_it_started() {
    let files = [
        ("slow.sh", "sleep 600 & echo $! >pid; echo begun; sleep 600"),
        ("leaves.sh", "sleep 600 & echo $! >pid; echo done"),
    ];
    let (_dir, work, bridge) = serve(&files, &["--timeout-seconds=1"]);
    let job = Job::at(bridge.url()).await;
    let text = failed(&job, "script_slow").await;
    assert!(text.contains("begun") && text.contains("was killed after its time limit of 1 s"), "{text}");
    await_end_of(&work);
    let began = Instant::now();
    assert_eq!(completed(&job, "script_leaves", &json!({})).await["stdout"], "done\n");
    await_end_of(&work);
    assert!(began.elapsed() < Duration::from_mins(5), "no call waits for a process that its script left behind");
}

/// Waits until the process whose id is in the file `pid` has ended.
fn await_end_of(work: &TempDir) {
    let pid = std::fs::read_to_string(work.path().join("pid")).unwrap();
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    let began = Instant::now();
    // The machine may not remove a process that has ended.
    while !state().is_empty() && !state().contains(") Z ") {
        assert!(began.elapsed() < PLENTY, "the process {pid} runs on: {}", state());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[tokio::test]
async fn output_beyond_the_limit_is_cut_with_a_note() {
    let files = [("much.sh", "head -c 300000 /dev/zero | tr '\\0' x; echo end >&2")];
    let (_dir, _work, bridge) = serve(&files, &["--max-output=1000"]);
    let job = Job::at(bridge.url()).await;
    let result = completed(&job, "script_much", &json!({})).await;
    assert_eq!(result["stdout"], format!("{}\n[cut: 299000 more bytes are left out]", "x".repeat(1000)));
    assert_eq!(result["stderr"], "end\n");
}

#[tokio::test]
async fn a_script_sees_no_variable_of_the_bridge() {
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "the bridge of this test has other variables");
    let (_dir, work, bridge) = serve(&[("env.sh", "env")], &[]);
    let job = Job::at(bridge.url()).await;
    let result = completed(&job, "script_env", &json!({})).await;
    let lines: Vec<&str> = result["stdout"].as_str().unwrap().lines().collect();
    let names: BTreeSet<&str> = lines.iter().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    // The others are those of shells.
    let known = BTreeSet::from(["PATH", "HOME", "LANG", "PWD", "OLDPWD", "SHLVL", "_"]);
    assert!(names.is_subset(&known) && names.contains("PATH"), "{names:?}");
    assert!(lines.contains(&format!("HOME={}", work.path().display()).as_str()), "{lines:?}");
}
