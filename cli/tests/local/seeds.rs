//! The example Skills of the older runtime in `skills/tests/seeds`, unchanged. A quoted title in a comment is a section of the
//! requirements that the test covers.

use super::setup::{CommandOutput, SAYS_HELLO, Setup};
use super::tools::{ANSWERS, SERVER};
use bloomery_testkit::orders;
use rstest::rstest;
use std::fs;
use std::path::Path;

#[tokio::test]
async fn every_example_skill_runs_unchanged() {
    let setup = Setup::new(SAYS_HELLO).await;
    let orders = orders::start("127.0.0.1:0".parse().unwrap(), orders::Options::default()).await.unwrap();
    let url = format!("{}/mcp", orders.url());
    fs::create_dir(setup.path("project")).unwrap();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../skills/tests/seeds");
    let mut run = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with("000-") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let bound: &[&str] = if text.contains("codebase") { &["--resource", "codebase=project"] } else { &[] };
        let memory = format!("memory-of-{run}");
        let args = ["--skill", file.to_str().unwrap(), "--goal", "Greet", "--mcp", &url, "--memory", &memory];
        setup.run(&[&args, bound].concat()).await.assert(0, "Succeeded");
        run += 1;
    }
    assert_eq!(run, 7);
}

/// "Example: Job Request".
#[tokio::test]
async fn the_example_job_request_can_be_run() {
    let setup = Setup::new(SAYS_HELLO).await;
    fs::create_dir_all(setup.path("myapp/tests")).unwrap();
    let result = setup
        .run(&[
            "--goal",
            "Implement user authentication with JWT",
            "--skill",
            "sw-dev-senior",
            "--resource",
            "codebase=myapp",
            "--resource",
            "tests=myapp/tests",
            "--resource",
            "ci_api=https://ci.company.com/api",
            "--run-key",
            "k-1",
        ])
        .await;
    result.assert(0, "Succeeded");
    let opened =
        setup.log("sw-dev-senior/jobs/k-1").into_iter().find(|line| line.contains("conversation.opened")).unwrap();
    assert!(opened.contains("/myapp") && opened.contains("Its tests are at"), "{opened}");
}

/// "Tool Merging Rules": a Job has the core tools and those of its server. If both have a tool of the same name, the server's is
/// used. `policy.tools` filters the tools.
#[tokio::test]
async fn a_job_has_the_core_tools_and_those_of_its_server_within_the_policy() {
    let script = "
conversations:
  - name: merged
    turns:
      - expect: {toolsOffered: [read_file, list_files, check_order_status], toolsNotOffered: [delete_customer, search_files, other]}
        calls: [{name: read_file, arguments: {}}]
      - {expect: {lastToolResultContains: done}, say: Done.}
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Done.}]
";
    let setup = Setup::new(script).await;
    fs::create_dir(setup.path("project")).unwrap();
    setup.write(
        "shop.yaml",
        "id: shop\nresources: [{name: codebase, type: filesystem}]\npolicy:\n  tools:\n    \
         allowed: [check_order_status, read_file, delete_customer]\n    blocked: [delete_customer, search_files]\n",
    );
    let tool = |name: &str| format!(r#"{{"name":"{name}","description":"x","inputSchema":{{"type":"object"}}}}"#);
    let tools = ["read_file", "check_order_status", "delete_customer", "other"].map(tool).join(",");
    let run = ["--skill", "./shop.yaml", "--goal", "Look", "--resource", "codebase=project"];
    let server = ["--mcp-command", "sh", "-c", SERVER, "sh", ANSWERS, &tools];
    setup.run(&[&run[..], &server].concat()).await.assert(0, "Succeeded");
}

/// "Parallel skills within a tenant": each has its own jobs, logs and cache.
#[tokio::test]
async fn skills_of_one_memory_run_in_parallel() {
    let setup =
        Setup::new(&SAYS_HELLO.replace("{say: Hello.}]\n    fin", "{faults: [{hold: gate}], say: Hello.}]\n    fin"))
            .await;
    let one = setup.start(&["--skill", "one", "--bootstrap", "--goal", "Greet", "--run-key", "job-1"]);
    let other = setup.start(&["--skill", "other", "--bootstrap", "--goal", "Greet", "--run-key", "job-2"]);
    setup.wait_for_held(2).await;
    setup.release("gate").await;
    for child in [one, other] {
        CommandOutput::new(child.wait_with_output().await.unwrap()).assert(0, "Succeeded");
    }
    let there = |file: &str| setup.path("memory").join(file).exists();
    for (skill, key, other) in [("one", "job-1", "job-2"), ("other", "job-2", "job-1")] {
        assert!(there(&format!("{skill}/skill.yaml")) && there(&format!("{skill}/focus-cache")));
        assert!(there(&format!("{skill}/jobs/{key}.json")) && there(&format!("{skill}/logs/{key}.log")));
        assert!(!there(&format!("{skill}/jobs/{other}.json")) && !there(&format!("{skill}/logs/{other}.log")));
    }
}

/// "Bootstrap Validation": all errors of the bindings are reported at once, and the Job is not started.
#[tokio::test]
async fn bindings_are_checked_before_the_start() {
    let setup = Setup::new(SAYS_HELLO).await;
    let bound = ["--resource", "tests=/no/such", "--resource", "ci_api=ftp://x", "--resource", "docs=."];
    let result = setup.run(&[&["--skill", "sw-dev-senior", "--goal", "Greet"], &bound[..]].concat()).await;
    result.assert(2, "codebase: the Skill requires this filesystem");
    for fault in ["tests: the path /no/such cannot be used: No such file", "ci_api: ", "docs: the Skill declares no"] {
        assert!(result.err.contains(fault), "{fault}: {result:#?}");
    }
    assert!(!setup.path("memory").exists());
}

/// "Custom skill (user-created in /memory/): loads directly, no template needed".
#[tokio::test]
async fn a_skill_that_a_user_put_into_the_memory_runs() {
    let setup = Setup::new(SAYS_HELLO).await;
    let skill = "id: data-analyst\nname: Data Analyst\nrole: {persona: Careful.}\n";
    setup.write("memory/data-analyst/skill.yaml", skill);
    setup.run(&["--skill", "data-analyst", "--goal", "Greet"]).await.assert(0, "Succeeded");
    assert_eq!(setup.read("memory/data-analyst/skill.yaml"), skill);
}

/// `context` of "SW Dev: Senior Engineer", in the example Skill and in the template.
#[rstest]
#[case::of_the_example(concat!(env!("CARGO_MANIFEST_DIR"), "/../skills/tests/seeds/000-sw-dev-senior.yaml"))]
#[case::of_the_template("sw-dev-senior")]
#[case::of_the_default_template("sw-dev-agent")]
#[tokio::test]
async fn the_first_prompt_contains_the_project_structure(#[case] skill: &str) {
    let script = "
conversations:
  - name: knows
    turns: [{expect: {systemContains: \"src/main.rs  13 bytes\"}, say: Hello.}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Hello.}]
";
    let setup = Setup::new(script).await;
    setup.write("project/src/main.rs", "fn main() {}\n");
    setup.write("project/.git/HEAD", "ref: refs/heads/login\n");
    let run = ["--skill", skill, "--goal", "Greet", "--resource", "codebase=project", "--run-key", "k-1"];
    let server = ["--mcp-command", "sh", "-c", SERVER, "sh", ANSWERS];
    setup.run(&[&run[..], &server].concat()).await.assert(0, "Succeeded");
    let name = if skill.contains("agent") { "sw-dev-agent" } else { "sw-dev-senior" };
    let log = setup.log(&format!("{name}/jobs/k-1"));
    let gathered = log.iter().find(|line| line.contains("context.gathered")).unwrap();
    assert!(gathered.contains("src/main.rs") && gathered.contains("git, on login"), "{gathered}");
}

/// "Job Request with Resource Binding" and "System Prompt Injection": the first example Skill, with its persona template. An
/// optional resource is in the prompt only if it is bound. A secret is never in the prompt.
#[rstest]
#[case::all_bound(&["--resource", "docs=myproject/docs", "--resource", "database=@database"], true)]
#[case::only_required_bound(&[], false)]
#[tokio::test]
async fn only_bound_resources_are_in_the_prompt(#[case] more: &[&str], #[case] has_docs: bool) {
    let setup = Setup::new(SAYS_HELLO).await;
    setup.write("myproject/docs/index.md", "# Docs\n");
    setup.write("database", "postgres://me:hunter2hunter2@localhost/db\n");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../skills/tests/seeds");
    let example = |name: &str| fs::read_to_string(examples.join(name)).unwrap();
    let skill = example("000-sw-dev-tier-1.yaml");
    let skill =
        skill.replace("role:\n  persona: \"Senior software developer...\"\n", &example("000-persona-template.yaml"));
    assert!(skill.contains("{{#if resources.docs}}"), "{skill}");
    setup.write("sw-dev-tier-1.yaml", &skill);
    let goal = "Fix the authentication bug in user service";
    let run = ["--skill", "sw-dev-tier-1.yaml", "--goal", goal, "--resource", "codebase=myproject", "--run-key", "k-1"];
    let server = ["--mcp-command", "sh", "-c", SERVER, "sh", ANSWERS];
    let result = setup.run(&[&run[..], more, &server].concat()).await;
    result.assert(0, "Succeeded");
    let log = setup.log("sw-dev-tier-1/jobs/k-1").join("\n");
    assert!(log.contains("You are a senior software developer working on the codebase at /"), "{log}");
    assert_eq!(log.contains("Documentation is available at /"), has_docs, "{log}");
    fs::remove_file(setup.path("database")).unwrap();
    assert!(!format!("{result:?}{}", setup.all_contents()).contains("hunter2"));
}
