//! The memory bank: what one Job notes, the next one begins with.

use super::stand::{SKILL, Stand};

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
async fn what_one_job_notes_the_next_begins_with() {
    let stand = Stand::new(NOTES).await;
    stand.write("writer.yaml", &format!("{SKILL}  memory: {{bank: write}}\n"));
    stand.run(&["--skill", "./writer.yaml", "--goal", "Note it", "--run-key", "k-1"]).await.assert(0, "Noted.");
    assert_eq!(stand.read("memory/greeter/memory-bank/activeContext.md"), "Ada likes mornings.");
    assert!(stand.read("memory/greeter/memory-bank/.ledger/00000000000000000001.json").contains("\"runKey\":\"k-1\""));
    // The Skill that says nothing of it reads what is there.
    stand.run(&["--skill", "./skill.yaml", "--goal", "Greet Ada", "--run-key", "k-2"]).await.assert(0, "Good morning.");
    let log = stand.log("greeter/jobs/k-2").join("\n");
    assert!(
        log.contains("\"kind\":\"memoryBank\",\"of\":\"activeContext.md\",\"text\":\"Ada likes mornings.\""),
        "{log}"
    );
}

#[tokio::test]
async fn a_bank_that_is_off_is_not_looked_at_and_what_is_no_use_of_it_is_refused() {
    let stand = Stand::new(NOTES).await;
    stand.write("off.yaml", &format!("{SKILL}  memory: {{bank: 'off'}}\n"));
    stand.write("memory/greeter/memory-bank/activeContext.md", "Ada likes mornings.");
    let ran = stand.run(&["--skill", "./off.yaml", "--goal", "Greet Ada"]).await;
    assert!(!ran.err.contains("memory_bank"), "{ran:#?}");
    stand.write("odd.yaml", &format!("{SKILL}  memory: {{bank: sometimes}}\n"));
    stand.run(&["--skill", "./odd.yaml", "--goal", "Greet Ada"]).await.assert(2, "bank");
}
