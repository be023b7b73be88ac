//! Every template that the chart ships for the requirement documents is run, with its tools and without an MCP server.

use super::setup::{SAYS_HELLO, Setup};
use super::tools::{ANSWERS, SERVER};
use rstest::rstest;
use std::fs;

/// Returns the script of a conversation that makes these calls, given as the `calls` and the `expect` of each turn.
fn script(turns: &[(&str, &str)]) -> String {
    let turn = |(expect, calls): &(&str, &str)| format!("      - {{expect: {expect}, calls: [{calls}]}}");
    let turns = turns.iter().map(turn).collect::<Vec<_>>().join("\n");
    format!(
        "conversations:\n  - name: it\n    turns:\n{turns}\n      - {{expect: {{lastToolResultContains: done}}, say: Done.}}\n    \
         finalization: [{{json: {{passed: true, reasons: []}}}}]\n    polish: [{{say: Done.}}]\n"
    )
}

/// Returns the tools of a server as JSON, given as names and the names of their arguments.
fn tools(named: &[(&str, &[&str])]) -> String {
    let tool = |(name, arguments): &(&str, &[&str])| {
        let kind = |argument: &&str| if *argument == "replicas" { "integer" } else { "string" };
        let properties: Vec<String> =
            arguments.iter().map(|argument| format!(r#""{argument}":{{"type":"{}"}}"#, kind(argument))).collect();
        let schema = format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(","));
        format!(r#"{{"name":"{name}","description":"x","inputSchema":{schema}}}"#)
    };
    named.iter().map(tool).collect::<Vec<_>>().join(",")
}

/// The tools of the templates' own servers: those that their rules name.
const SHOP: &[(&str, &[&str])] = &[("track_order", &["order_id"]), ("delete_customer", &["id"])];
const PLATFORM: &[(&str, &[&str])] = &[
    ("get_status", &["service"]),
    ("list_services", &[]),
    ("restart_service", &["service"]),
    ("scale_service", &["service", "replicas"]),
    ("deploy", &["service"]),
    ("rollback", &["service"]),
    ("delete_service", &["service"]),
];
const WAREHOUSE: &[(&str, &[&str])] =
    &[("list_tables", &[]), ("describe_table", &["table"]), ("run_query", &["query"]), ("export_data", &["table"])];

/// The rules of each template let the calls of an ordinary task pass without a person, and hide the blocked tools.
#[rstest]
#[case::sw_dev_agent("sw-dev-agent", "Explain done.txt", &[], &[("{}", "{name: read_file, arguments: {path: done.txt}}")])]
#[case::sw_dev_senior("sw-dev-senior", "Explain done.txt", &[], &[("{}", "{name: read_file, arguments: {path: done.txt}}")])]
#[case::cs_tier_1("cs-tier-1", "Where is A-17?", SHOP, &[
    ("{toolsOffered: [track_order], toolsNotOffered: [delete_customer]}", "{name: track_order, arguments: {order_id: A-17}}"),
])]
#[case::devops_tier_1("devops-tier-1", "checkout is down", PLATFORM, &[
    ("{toolsOffered: [deploy], toolsNotOffered: [delete_service]}", "{name: get_status, arguments: {service: checkout}}"),
    ("{}", "{name: restart_service, arguments: {service: checkout}}"),
    ("{}", "{name: scale_service, arguments: {service: checkout, replicas: 3}}"),
])]
#[case::data_analyst("data-analyst", "How many orders are there?", WAREHOUSE, &[
    ("{toolsOffered: [export_data], toolsNotOffered: [write_file]}", "{name: describe_table, arguments: {table: orders}}"),
    ("{}", "{name: run_query, arguments: {query: 'SELECT count(*) FROM orders;'}}"),
])]
#[tokio::test]
async fn every_template_does_its_work(
    #[case] skill: &str,
    #[case] goal: &str,
    #[case] server: &[(&str, &[&str])],
    #[case] turns: &[(&str, &str)],
) {
    let setup = Setup::new(&script(turns)).await;
    setup.write("project/done.txt", "done\n");
    let mut run = vec!["--skill", skill, "--goal", goal];
    let resource = match skill {
        "devops-tier-1" => "runbooks=project:ro",
        "data-analyst" => "data=project:ro",
        _ => "codebase=project:ro",
    };
    let tools = tools(server);
    if skill != "cs-tier-1" {
        run.extend(["--resource", resource]);
    }
    if !server.is_empty() {
        run.extend(["--mcp-command", "sh", "-c", SERVER, "sh", ANSWERS, &tools]);
    }
    setup.run(&run).await.assert(0, "Succeeded");
    setup.assert_no_violations().await;
}

/// The calls that a template holds for a person. Nobody can be asked here, so the Job ends without them.
#[rstest]
#[case::a_second_restart("devops-tier-1", "Restart checkout", PLATFORM, &["restart_service, arguments: {service: checkout}", "restart_service, arguments: {service: checkout}"], "restarted the service before")]
#[case::another_service("devops-tier-1", "Restart checkout", PLATFORM, &["restart_service, arguments: {service: billing}"], "does not name this service")]
#[case::a_rollback("devops-tier-1", "Look at checkout", PLATFORM, &["rollback, arguments: {service: checkout}"], "rollback")]
#[case::a_write("data-analyst", "Count orders", WAREHOUSE, &["run_query, arguments: {query: delete from orders}"], "not one query that only reads")]
#[case::a_second_statement("data-analyst", "Count orders", WAREHOUSE, &["run_query, arguments: {query: select 1; drop table orders}"], "not one query that only reads")]
#[tokio::test]
async fn a_risky_call_of_a_template_is_held(
    #[case] skill: &str,
    #[case] goal: &str,
    #[case] server: &[(&str, &[&str])],
    #[case] calls: &[&str],
    #[case] reason: &str,
) {
    let turns: Vec<(&str, String)> = calls.iter().map(|call| ("{}", format!("{{name: {call}}}"))).collect();
    let turns: Vec<(&str, &str)> = turns.iter().map(|(expect, calls)| (*expect, calls.as_str())).collect();
    let setup = Setup::new(&script(&turns)).await;
    let tools = tools(server);
    let server = ["--mcp-command", "sh", "-c", SERVER, "sh", ANSWERS, &tools];
    let run = ["--skill", skill, "--goal", goal, "--run-key", "k-1"];
    setup.run(&[&run[..], &server].concat()).await;
    let log = setup.log(&format!("{skill}/jobs/k-1"));
    let held = log.iter().find(|line| line.contains("\"tool.held\"")).unwrap_or_else(|| panic!("{log:#?}"));
    assert!(held.contains(reason), "{held}");
}

/// A Skill that a Job on a cluster has just created from its template has no MCP server.
#[rstest]
#[tokio::test]
async fn every_template_runs_without_a_server(
    #[values("sw-dev-agent", "sw-dev-senior", "cs-tier-1", "devops-tier-1", "data-analyst")] skill: &str,
) {
    let setup = Setup::new(SAYS_HELLO).await;
    fs::create_dir(setup.path("project")).unwrap();
    let codebase = if skill.starts_with("sw-dev") { &["--resource", "codebase=project"][..] } else { &[] };
    setup.run(&[&["--skill", skill, "--goal", "Greet"], codebase].concat()).await.assert(0, "Succeeded");
}
