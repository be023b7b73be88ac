//! The memory bank: a Job reads the notes of earlier Jobs of its Skill.

use super::setup::{SKILL, Setup};

const NOTES: &str = "
conversations:
  - name: writes
    match: {goal: Note it}
    turns:
      - expect: {toolsOffered: [memory_read, memory_write]}
        calls: [{name: memory_write, arguments: {file: activeContext.md, content: Ada likes mornings., expect: none}}]
      - expect: {lastToolResultContains: 'Wrote activeContext.md: a new note'}
        say: Noted.
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Noted.}]
  - name: reads
    match: {goal: Greet Ada}
    turns: [{expect: {systemContains: Ada likes mornings., toolsNotOffered: [memory_write]}, say: Good morning.}]
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Good morning.}]
";

#[tokio::test]
async fn a_job_reads_the_notes_of_an_earlier_job() {
    let setup = Setup::new(NOTES).await;
    setup.write("writer.yaml", &format!("{SKILL}  memory: {{bank: write}}\n"));
    setup.run(&["--skill", "./writer.yaml", "--goal", "Note it", "--run-key", "k-1"]).await.assert(0, "Noted.");
    assert_eq!(setup.read("memory/greeter/memory-bank/activeContext.md"), "Ada likes mornings.");
    assert!(setup.read("memory/greeter/memory-bank/.ledger/00000000000000000001.json").contains("\"runKey\":\"k-1\""));
    // A Skill without `memory` reads the bank.
    setup.run(&["--skill", "./skill.yaml", "--goal", "Greet Ada", "--run-key", "k-2"]).await.assert(0, "Good morning.");
    let log = setup.log("greeter/jobs/k-2").join("\n");
    assert!(
        log.contains("\"kind\":\"memoryBank\",\"of\":\"activeContext.md\",\"text\":\"Ada likes mornings.\""),
        "{log}"
    );
}

#[tokio::test]
async fn a_bank_that_is_off_is_not_read_and_an_invalid_mode_is_refused() {
    let setup = Setup::new(NOTES).await;
    setup.write("off.yaml", &format!("{SKILL}  memory: {{bank: 'off'}}\n"));
    setup.write("memory/greeter/memory-bank/activeContext.md", "Ada likes mornings.");
    let result = setup.run(&["--skill", "./off.yaml", "--goal", "Greet Ada"]).await;
    assert!(!result.err.contains("memory_bank"), "{result:#?}");
    setup.write("odd.yaml", &format!("{SKILL}  memory: {{bank: sometimes}}\n"));
    setup.run(&["--skill", "./odd.yaml", "--goal", "Greet Ada"]).await.assert(2, "bank");
}

const DESCRIBED: &str = "
conversations:
  - name: knows
    match: {goal: Greet Ada}
    turns:
      - expect: {systemContains: Ada is a person., noMessageContains: [Nothing is done.], toolsOffered: [skill_doc, apply_feature]}
        calls: [{name: apply_feature, arguments: {feature: formal}}]
      - expect: {lastToolResultContains: 'Expected: The last name is used.'}
        calls: [{name: skill_doc, arguments: {section: '#Names/family'}}]
      - expect: {lastToolResultContains: Use the last name.}
        say: Good morning, Ms Lovelace.
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: 'Good morning, Ms Lovelace.'}]
";

const TEXTS: &str = "  goal: Nobody is ignored
  features:
    - {name: greet, testScenario: Given a person, expectedResult: A greeting}
    - {name: formal, testScenario: Given a stranger, expectedResult: The last name is used, optional: true, ext: {skillMdRef: '#names'}}
  docs: |
    # Names
    Ask for them.
    ## Family
    Use the last name.
  memory:
    notes: {projectbrief: Ada is a person., progress: Nothing is done., details/ada: Born in 1815.}
    scope: [projectbrief, progress]
";

#[tokio::test]
async fn a_job_begins_with_the_notes_of_its_skill_and_reads_its_texts() {
    let setup = Setup::new(DESCRIBED).await;
    setup.write("described.yaml", &format!("{SKILL}{TEXTS}"));
    let run = ["--skill", "./described.yaml", "--goal", "Greet Ada", "--run-key", "k-1"];
    let beyond = setup.run(&[&run[..], &["--memory-scope", "projectbrief,techContext"]].concat()).await;
    beyond
        .assert(2, "--memory-scope: memory.scope of the Skill has only projectbrief, progress: leave techContext out.");
    setup.run(&[&run[..], &["--memory-scope", "notes"]].concat()).await.assert(2, "must be one of projectbrief, ");
    let narrowed = setup.run(&[&run[..], &["--memory-scope", "projectbrief"]].concat()).await;
    narrowed.assert(0, "Good morning, Ms Lovelace.");
    setup.assert_no_violations().await;
    let notes = ["projectbrief.md", "progress.md", "details/ada.md"];
    let contents = notes.map(|note| setup.read(&format!("memory/greeter/memory-bank/{note}")));
    assert_eq!(contents, ["Ada is a person.", "Nothing is done.", "Born in 1815."]);
    // The scope is a parameter of the Job.
    setup.run(&run).await.assert(2, "already has a Job k-1 with other parameters");
}
