//! Logs of earlier versions stay readable and keep their meaning (`docs/explanation/engine.md`, section 1).
//!
//! The files are in `older/`. `every-event.jsonl` has a line for every event. Each other file contains the segments of one Job of
//! `make demo`, as a worker of an earlier version wrote them.

mod every_event;

use super::{Chain, Entry, SCHEMA_VERSION};
use crate::conversation::Conversation;
use crate::fixture::run;
use crate::next::next;
use crate::projection::project;
use crate::step::Step;
use bloomery_crds::outcome::OutcomeCode;
use rstest::rstest;
use serde_json::Value;

fn source(log: &str) -> String {
    let first: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert!(first["schemaversion"].as_u64().unwrap() <= u64::from(SCHEMA_VERSION));
    first["source"].as_str().unwrap().to_owned()
}

fn read(log: &str) -> (Chain, Vec<Entry>) {
    let mut chain = Chain::new(source(log));
    let entries = log.lines().map(|line| chain.read(line).unwrap()).collect();
    (chain, entries)
}

#[rstest]
#[case::before_the_stages(include_str!("older/before-the-stages.jsonl"))]
fn a_log_of_an_earlier_version_leads_to_the_same_end(#[case] log: &str) {
    let (chain, entries) = read(log);
    let mut conversation = Conversation::new(run());
    for entry in &entries {
        assert!(!matches!(next(&conversation), Step::Done(_)), "it ends before event {}", entry.seq);
        conversation.apply(entry);
    }
    assert!(matches!(next(&conversation), Step::Done(_)));
    let status = project(&conversation, chain.position("jobs/x"));
    assert_eq!(status.outcome.unwrap().code, OutcomeCode::Succeeded);
    let result = status.result.unwrap();
    assert_eq!(result.text, "I am sorry that your order arrived broken. 49.90 EUR are on their way back to you.");
    assert_eq!(result.fields["status"], "refunded");
    let requests = entries.iter().filter(|entry| entry.event.name() == "model.requested").count();
    assert_eq!(status.usage.llm_calls.plan as usize, requests);
    assert_eq!(status.gates.finalization.attempts.len(), 1);
}
