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
