//! Runs the client scenarios of the MCP conformance suite. This test binary is the client that the suite starts.

use crate::server::{install, node};
use crate::tests::Job;
use bloomery_mcp::CallOutcome;
use serde_json::Value;
use std::env;
use std::fs;
use std::process::{Command, Output};
use std::time::Duration;

/// The scenarios that must pass.
const SCENARIOS: [&str; 3] = ["initialize", "tools_call", "sse-retry"];

/// The scenarios that need what the client does not offer, each with the reason.
const NOT_OFFERED: [(&str, &str); 1] = [(
    "elicitation-sep1034-client-defaults",
    "a server asks a user for input; the client declines, because only the gates of the engine ask people",
)];

/// The prefix of the scenarios of OAuth. The client sends no credentials.
const OAUTH: &str = "auth/";

/// The variable in which the suite passes the scenario.
const SCENARIO: &str = "MCP_CONFORMANCE_SCENARIO";

/// The time limit of a call. A server that asks a user waits for longer.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// The check of the time before a stream is resumed.
const TIMING: &str = "client-sse-retry-timing";

fn suite(arguments: &[&str]) -> Output {
    let script = install().join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    Command::new(node()).arg(script).args(arguments).output().unwrap()
}

/// Runs a scenario, and returns its checks that did not succeed.
fn failed_checks(scenario: &str) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    // The suite appends the URL of its server.
    let client =
        format!("{} --ignored --exact conformance::the_client_of_a_scenario", env::current_exe().unwrap().display());
    let output = dir.path().display().to_string();
    let run = suite(&["client", "--command", &client, "--scenario", scenario, "--output-dir", &output]);
    let results: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(results.len(), 1, "{scenario}: {}", String::from_utf8_lossy(&run.stderr));
    let checks = fs::read(results[0].as_ref().unwrap().path().join("checks.json")).unwrap();
    let checks: Vec<Value> = serde_json::from_slice(&checks).unwrap();
    assert!(checks.iter().any(|check| check["status"] == "SUCCESS" || check["status"] == "FAILURE"), "{checks:?}");
    checks.iter().filter(|check| is_failed(check)).map(Value::to_string).collect()
}

/// Returns whether a check failed. On a busy machine, the client resumes a stream late, which the specification allows.
fn is_failed(check: &Value) -> bool {
    let is_late = check["id"] == TIMING && check["details"]["tooEarly"] == false;
    (check["status"] == "FAILURE" || check["status"] == "WARNING") && !is_late
}

#[test]
fn the_client_passes_the_conformance_suite() {
    for scenario in SCENARIOS {
        assert_eq!(failed_checks(scenario), Vec::<String>::new(), "{scenario}");
    }
}

/// A scenario that the client passes, or that is new in the suite, belongs into a list above.
#[test]
fn every_scenario_passes_or_needs_what_the_client_does_not_offer() {
    let listed = suite(&["list", "--client"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    let names = listed.lines().filter_map(|line| line.trim().strip_prefix("- ")?.split(' ').next());
    let mut names: Vec<_> = names.filter(|name| !name.starts_with(OAUTH)).collect();
    names.sort_unstable();
    let mut known: Vec<_> = SCENARIOS.into_iter().chain(NOT_OFFERED.map(|(name, _)| name)).collect();
    known.sort_unstable();
    assert_eq!(names, known, "{listed}");
    for (scenario, reason) in NOT_OFFERED {
        assert!(!failed_checks(scenario).is_empty(), "{scenario} passes, although {reason}");
    }
}

/// Lists the tools of a scenario's server, and calls each.
#[tokio::test]
#[ignore = "the conformance suite starts it, with the URL of a server as the last argument"]
async fn the_client_of_a_scenario() {
    let url = env::args().next_back().unwrap();
    let arguments = if env::var(SCENARIO).unwrap() == "tools_call" { r#"{"a":2,"b":3}"# } else { "{}" };
    let job = Job::at(url).await;
    for name in job.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>() {
        let CallOutcome::Completed { .. } = job.call(&name, arguments, TIME_LIMIT).await.outcome else {
            panic!("{name} was not completed");
        };
    }
    job.client.close().await;
}
