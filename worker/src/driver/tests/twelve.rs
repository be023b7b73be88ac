//! What must be so of the run of twelve answers, however often it was disturbed.

use super::*;
use crate::fixture::twelve_steps::{ANSWERS, EFFECTS};
use crate::log::files::Files;
use bloomery_crds::v1alpha1::Verdict;
use bloomery_engine::event::CallId;
use bloomery_engine::line::{Chain, Entry};
use std::collections::BTreeMap;

/// Reads lines as a log, which checks that they are one.
pub(super) fn parse(lines: &[String]) -> Vec<Entry> {
    let mut chain = Chain::new(crate::fixture::SOURCE);
    lines.iter().map(|line| chain.read(line).unwrap()).collect()
}

/// What a conversation must say whatever happened on the way: without epochs, and what is repeated because of them.
pub(super) fn acts(log: &[Entry]) -> Vec<String> {
    let repeated = ["epoch.started", "model.requested", "tool.started", "tool.indeterminate", "finished", "parked"];
    let told = log.iter().filter(|entry| !repeated.contains(&entry.event.name()));
    // Calls are named by the place of their answer in the log, which epochs move.
    told.map(|entry| match &entry.event {
        Event::ToolRequested { tool, arguments, .. } => format!("{tool} {arguments:?}"),
        Event::ModelAnswered { answer } => answer.message.to_string(),
        other => other.name().to_owned(),
    })
    .collect()
}

/// The tool of the effect that a log ends within.
pub(super) fn ends_within(log: &[Entry]) -> Option<String> {
    let Some(Event::ToolStarted { call }) = log.last().map(|entry| &entry.event) else { return None };
    Some(tool_of(log, call))
}

pub(super) fn tool_of(log: &[Entry], id: &CallId) -> String {
    let asked = |entry: &Entry| match &entry.event {
        Event::ToolRequested { call, tool, .. } if call == id => Some(tool.clone()),
        _ => None,
    };
    log.iter().find_map(asked).unwrap()
}

/// How often the model has answered.
pub(super) fn answers(log: &[Entry]) -> usize {
    log.iter().filter(|entry| matches!(entry.event, Event::ModelAnswered { .. })).count()
}

/// Whoever watches an effect sees that it was allowed and begun, and that this cannot be lost any more.
pub(super) fn assert_allowed(log: &[Entry], id: &CallId) {
    let allowed = log.iter().position(
        |entry| matches!(&entry.event, Event::ToolRuled { call, verdict: Verdict::Allow, .. } if call == id),
    );
    let begun = log.iter().rposition(|entry| matches!(&entry.event, Event::ToolStarted { call } if call == id));
    assert!(allowed.is_some() && begun > allowed, "{id} is sent, and the log has {allowed:?}, {begun:?}");
}

/// What was printed was acknowledged: it stands in the log, each line in its place.
pub(super) fn assert_kept(printed: &str, lines: &[String]) {
    for line in printed.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let place = usize::try_from(value["seq"].as_u64().unwrap()).unwrap() - 1;
        assert_eq!(lines.get(place).map(String::as_str), Some(line), "an acknowledged event was lost");
    }
}

/// The whole of it: no effect twice but what may be, the same outcome and the same acts as without a crash.
pub(super) fn assert_sound(stand: &Stand, files: &impl Files, undisturbed: &[Entry]) {
    let lines = stand.lines(files);
    let log = parse(&lines);
    assert_kept(&stand.printed.text(), &lines);
    let mut times = BTreeMap::new();
    for (tool, key) in stand.shop.effects() {
        *times.entry((tool, key)).or_insert(0_usize) += 1;
    }
    for ((tool, key), times) in &times {
        assert!(*times == 1 || tool == "notify", "{tool} happened {times} times: {key}");
    }
    let Some(Event::Finished { outcome, .. }) = log.iter().map(|entry| &entry.event).find(|event| event.name() == "finished")
    else {
        panic!("it has no end")
    };
    let acts = acts(&log);
    if outcome.code == OutcomeCode::ToolIndeterminate {
        let lost = log.iter().rev().find_map(|entry| match &entry.event {
            Event::ToolIndeterminate { call, .. } => Some(tool_of(&log, call)),
            _ => None,
        });
        assert_eq!(lost.as_deref(), Some("refund"), "only what may not be repeated is left to a person");
        let told = acts.iter().filter(|act| *act != "tool.skipped").count();
        assert_eq!(acts[..told], self::acts(undisturbed)[..told]);
        return;
    }
    assert_eq!(outcome.code, OutcomeCode::Succeeded, "{}", outcome.message);
    assert_eq!(acts, self::acts(undisturbed));
    assert_eq!((times.len(), answers(&log)), (EFFECTS, ANSWERS));
}
