//! A Skill that works on a directory that contains the memory (`docs/explanation/design.md`, section 8).

use super::setup::Setup;
use std::fs;

const CODER: &str = "apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {name: coder}
spec:
  problem: {statement: Change code}
  resources: [{name: codebase, type: filesystem, required: true}]
  context: {projectStructure: true, recentChanges: true}
";

/// The skill directory is a link to a directory within the bound one.
#[tokio::test]
async fn a_linked_skill_directory_belongs_to_the_memory() {
    let script = "
conversations:
  - name: looks there
    turns:
      - calls: [{name: write_file, arguments: {path: linked/other/skill.yaml, content: mine}}]
      - calls: [{name: read_file, arguments: {path: linked/jobs/mark}}]
        expect: {lastToolResultContains: it is in the memory of Jobs}
      - say: Done.
        expect: {lastToolResultContains: it is in the memory of Jobs}
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Done.}]
";
    let setup = Setup::new(script).await;
    setup.write("skill.yaml", &CODER.replace("  context: {projectStructure: true, recentChanges: true}\n", ""));
    for (dir, link, to) in [
        ("linked/other/jobs", "memory/other", "../linked/other"),
        ("linked/jobs", "memory/third/jobs", "../../linked/jobs"),
    ] {
        setup.write(&format!("{dir}/mark"), "");
        fs::create_dir_all(setup.path(link).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(to, setup.path(link)).unwrap();
    }
    let run = |bound| ["--skill", "skill.yaml", "--goal", "Change code", "--resource", bound];
    for bound in ["codebase=linked/other", "codebase=linked/other/jobs", "codebase=linked/jobs"] {
        setup.run(&run(bound)).await.assert(2, "an agent must not reach its own log");
    }
    setup.run(&run("codebase=.")).await.assert(0, "Succeeded");
    assert!(!setup.path("linked/other/skill.yaml").exists());
}

/// A script that tries to reach its own log with all file tools.
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
async fn an_agent_cannot_reach_its_own_log_in_a_bound_directory() {
    let setup = Setup::new(LOOKS_AROUND).await;
    setup.write("skill.yaml", CODER);
    setup.write("src/main.rs", "fn main() {}\n");
    let run = ["--skill", "skill.yaml", "--goal", "Change code", "--resource", "codebase=.", "--run-key", "k-1"];
    setup.run(&run).await.assert(0, "Succeeded");
    assert_eq!(setup.read("memory/coder/skill.yaml"), CODER);
    assert_eq!(setup.read("notes/new.md"), "mine");
}

#[tokio::test]
async fn a_path_in_the_memory_cannot_be_bound() {
    let setup = Setup::new(LOOKS_AROUND).await;
    setup.write("skill.yaml", CODER);
    fs::create_dir(setup.path("src")).unwrap();
    fs::create_dir_all(setup.path("memory/coder/jobs")).unwrap();
    std::os::unix::fs::symlink("../memory/coder", setup.path("src/link")).unwrap();
    for within in ["memory", "memory/coder/jobs", "src/link", "src/../memory"] {
        let resource = format!("codebase={within}");
        let run = ["--skill", "skill.yaml", "--goal", "Change code", "--resource", &resource];
        setup.run(&run).await.assert(2, "an agent must not reach its own log");
    }
}
