//! A Skill that works on a folder, and the memory within it (`docs/explanation/design.md`, section 8).

use super::stand::Stand;
use std::fs;

const CODER: &str = "apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {name: coder}
spec:
  problem: {statement: Change code}
  resources: [{name: codebase, type: filesystem, required: true}]
  context: {projectStructure: true, recentChanges: true}
";

/// A Skill whose slag is elsewhere: within what is bound.
#[tokio::test]
async fn a_slag_that_is_a_link_is_memory_too() {
    let script = "
conversations:
  - name: looks there
    turns:
      - calls: [{name: write_file, arguments: {path: slags/other/skill.yaml, content: mine}}]
      - calls: [{name: read_file, arguments: {path: slags/jobs/mark}}]
        expect: {lastToolResultContains: it is in the memory of Jobs}
      - say: Done.
        expect: {lastToolResultContains: it is in the memory of Jobs}
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Done.}]
";
    let stand = Stand::new(script).await;
    stand.write("skill.yaml", &CODER.replace("  context: {projectStructure: true, recentChanges: true}\n", ""));
    for (dir, link, to) in [
        ("slags/other/jobs", "memory/other", "../slags/other"),
        ("slags/jobs", "memory/third/jobs", "../../slags/jobs"),
    ] {
        stand.write(&format!("{dir}/mark"), "");
        fs::create_dir_all(stand.path(link).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(to, stand.path(link)).unwrap();
    }
    let run = |bound| ["--skill", "skill.yaml", "--goal", "Change code", "--resource", bound];
    for bound in ["codebase=slags/other", "codebase=slags/other/jobs", "codebase=slags/jobs"] {
        stand.run(&run(bound)).await.assert(2, "an agent must not reach its own log");
    }
    stand.run(&run("codebase=.")).await.assert(0, "Succeeded");
    assert!(!stand.path("slags/other/skill.yaml").exists());
}

/// Looks for its own log by all file tools, and then does its work.
const LOOKS_AROUND: &str = "
conversations:
  - name: looks around
    turns:
      - calls: [{name: list_files, arguments: {depth: 8}}]
        expect: {systemContains: main.rs, noMessageContains: [run.json, memory/]}
      - calls: [{name: search_files, arguments: {pattern: 'Change code'}}]
        expect: {lastToolResultContains: main.rs, noMessageContains: [run.json, memory/]}
      - calls: [{name: read_file, arguments: {path: memory/coder/jobs/k-1/run.json}}]
        expect: {lastToolResultContains: 'skill.yaml', noMessageContains: [run.json]}
      - calls: [{name: write_file, arguments: {path: memory/coder/skill.yaml, content: mine}}]
        expect: {lastToolResultContains: it is in the memory of Jobs}
      - calls: [{name: write_file, arguments: {path: notes/new.md, content: mine, createDirectories: true}}]
        expect: {lastToolResultContains: it is in the memory of Jobs}
      - say: Done.
        expect: {lastToolResultContains: a new file of 4 bytes}
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Done.}]
";

#[tokio::test]
async fn the_example_of_the_design_runs_and_its_agent_does_not_reach_its_own_log() {
    let stand = Stand::new(LOOKS_AROUND).await;
    stand.write("skill.yaml", CODER);
    stand.write("src/main.rs", "fn main() {}\n");
    let run = ["--skill", "skill.yaml", "--goal", "Change code", "--resource", "codebase=.", "--run-key", "k-1"];
    stand.run(&run).await.assert(0, "Succeeded");
    assert_eq!(stand.read("memory/coder/skill.yaml"), CODER);
    assert_eq!(stand.read("notes/new.md"), "mine");
}

#[tokio::test]
async fn what_is_in_the_memory_is_not_bound() {
    let stand = Stand::new(LOOKS_AROUND).await;
    stand.write("skill.yaml", CODER);
    fs::create_dir(stand.path("src")).unwrap();
    fs::create_dir_all(stand.path("memory/coder/jobs")).unwrap();
    std::os::unix::fs::symlink("../memory/coder", stand.path("src/link")).unwrap();
    for within in ["memory", "memory/coder/jobs", "src/link", "src/../memory"] {
        let resource = format!("codebase={within}");
        let run = ["--skill", "skill.yaml", "--goal", "Change code", "--resource", &resource];
        stand.run(&run).await.assert(2, "an agent must not reach its own log");
    }
}
