//! The format of the log. `every-event.jsonl` has a line for every event and for every variant in an event. If a renamed field
//! or variant would make existing logs unreadable, a test here fails.
//!
//! Never change a line of the file. Append lines for new events and variants: the failed test prints them. If an event is
//! written differently from now on, append its new form too, and move the old line to another file that the tests only read.

mod events;

use super::super::{Chain, Entry, EventTime};
use super::{read, source};
use crate::conversation::Conversation;
use crate::event::{
    Arguments, ContextKind, Directive, Event, FinalizationRuling, ModelFailure, PolishOutcome, QuestionSubject,
    SelectedBy,
};
use crate::fixture::run;
use crate::next::next;
use crate::projection::project;
use crate::tool::ToolSource;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::report::ParkReason;
use bloomery_crds::v1alpha1::{
    FinalizationCode, GateReason, OutOfDomainAction, ResourceType, Stage, SuggestedAction, Verdict,
};
use rstest::rstest;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use strum::VariantNames;

const LOG: &str = include_str!("every-event.jsonl");

#[test]
fn each_line_is_read_as_its_event_and_written_unchanged() {
    let (mut reader, mut writer) = (Chain::new(source(LOG)), Chain::new(source(LOG)));
    let mut lines = LOG.split_inclusive('\n');
    let mut missing = String::new();
    for (seq, event) in (1..).zip(events::all()) {
        let stamp = EventTime { time: "2026-01-01T00:00:00.123Z".into(), elapsed_ms: seq };
        let (written, entry): (String, Entry) = writer.append(event, stamp).unwrap();
        match lines.next() {
            Some(line) => {
                assert_eq!(reader.read(line.trim_end()), Ok(entry));
                assert_eq!(line, written + "\n");
            }
            None => missing += &(written + "\n"),
        }
    }
    assert!(missing.is_empty(), "every-event.jsonl lacks at its end:\n{missing}");
    assert_eq!(lines.next(), None, "a line without an event in `events::all`");
}

#[test]
fn every_event_has_a_line() {
    let names: BTreeSet<String> = read(LOG).1.iter().map(|entry| entry.event.name().to_owned()).collect();
    assert_eq!(names, variants::<Event>(&json!({"type": "", "data": {}})));
}

#[test]
fn the_name_of_an_event_is_its_type_in_the_log() {
    for (line, entry) in LOG.lines().zip(read(LOG).1) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["type"], entry.event.name());
    }
}

#[rstest]
#[case::stage(variants::<Stage>(&json!("")), "model.requested/stage")]
#[case::model_failure(variants::<ModelFailure>(&json!("")), "model.failed/kind")]
#[case::arguments(variants::<Arguments>(&json!("")), "tool.requested/arguments")]
#[case::verdict(variants::<Verdict>(&json!("")), "tool.ruled/verdict")]
#[case::layer(variants::<GateReason>(&json!("")), "tool.ruled/reasons/*/layer")]
#[case::resource(variants::<ResourceType>(&json!("")), "resources.bound/resources/*/type")]
#[case::context(variants::<ContextKind>(&json!("")), "context.gathered/parts/*/kind")]
#[case::ruling(variants::<FinalizationRuling>(&json!("")), "gate.ruled/ruling")]
#[case::fault(variants::<FinalizationCode>(&json!("")), "gate.ruled/ruling/*/reasons/*/code")]
#[case::action(variants::<SuggestedAction>(&json!("")), "gate.ruled/ruling/*/suggestedAction")]
#[case::polish(variants::<PolishOutcome>(&json!("")), "reply.polished/polish")]
#[case::about(variants::<QuestionSubject>(&json!("")), "user.asked/about")]
#[case::park(ParkReason::VARIANTS.iter().map(ToString::to_string).collect(), "parked/reason")]
#[case::directive(variants::<Directive>(&json!("")), "directive.received/directive")]
#[case::selector(variants::<SelectedBy>(&json!("")), "tools.selected/by")]
#[case::out_of_domain(variants::<OutOfDomainAction>(&json!("")), "finished/outcome/action")]
fn every_variant_is_written(#[case] variants: BTreeSet<String>, #[case] path: &str) {
    assert_eq!(written(path), variants);
}

/// `server` is not written, because it is the default.
#[test]
fn the_source_of_a_tool_is_written_unless_it_is_the_server() {
    let mut sources = variants::<ToolSource>(&json!(""));
    assert!(sources.remove("server"));
    assert_eq!(written("catalogue.fixed/tools/*/source"), sources);
}

/// `LogTampered` is not written, because nothing is added to such a log.
#[test]
fn every_outcome_of_a_log_is_written() {
    let mut codes = variants::<OutcomeCode>(&json!(""));
    assert!(codes.remove("LogTampered"));
    assert_eq!(written("finished/outcome/code"), codes);
}

#[test]
fn events_in_an_arbitrary_order_fold() {
    let (chain, entries) = read(LOG);
    let mut conversation = Conversation::new(run());
    for entry in &entries {
        conversation.apply(entry);
        let _ = next(&conversation);
    }
    assert_eq!(project(&conversation, chain.position("p")).log.events, entries.len() as u64);
}

/// Returns the variants of an enum: serde lists them in the error about `refused`, a value with an unknown variant.
fn variants<T: DeserializeOwned>(refused: &Value) -> BTreeSet<String> {
    let Err(error) = T::deserialize(refused) else { panic!("{refused} is accepted") };
    let error = error.to_string();
    let (_, names) = error.split_once("expected").unwrap();
    let names: BTreeSet<String> = names.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    assert!(names.len() > 1, "{error}");
    names
}

/// Returns the variants that the lines of one event have at a path in their data. `*` stands for every item.
fn written(path: &str) -> BTreeSet<String> {
    let (name, path) = path.split_once('/').unwrap();
    let lines = LOG.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let data = lines.filter(|line| line["type"] == name).map(|line| line["data"].clone());
    let values = path.split('/').fold(data.collect(), |values: Vec<Value>, step| {
        values.into_iter().flat_map(|value| parts(value, step)).collect()
    });
    values.into_iter().map(variant).collect()
}

fn parts(value: Value, step: &str) -> Vec<Value> {
    match (value, step) {
        (Value::Array(items), "*") => items,
        (Value::Object(fields), "*") => fields.into_iter().map(|(_, value)| value).collect(),
        (Value::Object(mut fields), name) => fields.remove(name).into_iter().collect(),
        (_, _) => Vec::new(),
    }
}

fn variant(value: Value) -> String {
    match value {
        Value::String(name) => name,
        Value::Object(fields) => fields.into_iter().next().unwrap().0,
        other => panic!("{other} is no variant"),
    }
}
