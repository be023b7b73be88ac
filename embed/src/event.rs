//! The events of a Job, as clients see them.

use bloomery_crds::outcome::Phase;
use bloomery_engine::Event;
use bloomery_engine::event::{Answer, ContextPart, FullResult, PolishOutcome};
use bloomery_engine::line::Entry;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// The first parts of the names that events keep.
const OWN_PREFIXES: [&str; 3] = ["conversation.", "tool.", "user."];

/// The first parts of the names of events about what the tenant gives to the Job: tools, resources and policy. They belong to the project.
/// All other events belong to the conversation.
const PROJECT_PREFIXES: [&str; 4] = ["catalogue.", "resources.", "tools.blocked", "tools.restricted"];

/// An event of a Job, as clients see it: an event of CloudEvents. It has the number and the time of the event in the log, but no text that the
/// finalization gate has not passed, and no prompt.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobEvent {
    /// The version of CloudEvents.
    #[schemars(with = "String")]
    specversion: &'static str,
    /// The number of the event, as text.
    id: String,
    /// The Job, as in its log.
    source: String,
    /// The time.
    time: String,
    /// The number of the event, from 1 without gaps.
    pub seq: u64,
    /// The name: `tool.*`, `user.*`, `project.*` or `conversation.*`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The data, which depends on the name.
    pub data: Value,
    /// Whether it is the last event of the Job.
    #[serde(skip)]
    pub is_last: bool,
    /// The event as JSON, without the fields that are skipped.
    #[serde(skip)]
    json: Box<str>,
}

impl JobEvent {
    /// Returns what clients see of an event in the log of `source`.
    ///
    /// # Errors
    /// If the event cannot be written as JSON.
    pub fn new(source: &str, entry: &Entry) -> Result<Self, serde_json::Error> {
        let mut event = Self {
            specversion: "1.0",
            id: entry.seq.to_string(),
            source: source.to_owned(),
            time: entry.stamp.time.clone(),
            seq: entry.seq,
            kind: shown_name(entry.event.name()),
            data: shown_data(&entry.event)?,
            is_last: matches!(entry.event, Event::Finished { .. }),
            json: Box::default(),
        };
        event.json = serde_json::to_string(&event)?.into_boxed_str();
        Ok(event)
    }

    /// Returns the event as JSON. It is written once for all clients.
    pub fn json(&self) -> &str {
        &self.json
    }
}

/// Returns the name by which clients know an event.
fn shown_name(name: &str) -> String {
    let begins_with = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if begins_with(&OWN_PREFIXES) {
        name.to_owned()
    } else if begins_with(&PROJECT_PREFIXES) {
        format!("project.{name}")
    } else {
        format!("conversation.{name}")
    }
}

/// Returns the part of an event that clients see.
fn shown_data(event: &Event) -> Result<Value, serde_json::Error> {
    Ok(match event {
        // The text and the message are drafts.
        Event::ModelAnswered { answer } => {
            let Answer { model, calls, input_tokens, cached_tokens, output_tokens, cut, .. } = answer;
            let tools: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
            json!({
                "model": model, "tools": tools, "inputTokens": input_tokens, "cachedTokens": cached_tokens,
                "outputTokens": output_tokens, "cut": cut,
            })
        }
        Event::ReplyPolished { polish } => json!({"polished": matches!(polish, PolishOutcome::Polished(_))}),
        Event::Finished { outcome, result } => {
            json!({"outcome": outcome, "result": passed(outcome.phase(), result.as_ref())})
        }
        // The prompts are in the projection for diagnosis.
        Event::ConversationOpened { run_key, revision, system: _, goal, limits } => {
            json!({"runKey": run_key, "revision": revision, "goal": goal, "limits": limits})
        }
        Event::ContextGathered { parts } => json!({"parts": parts.iter().map(shown_part).collect::<Vec<_>>()}),
        Event::CatalogueFixed { tools } => {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            json!({"tools": names})
        }
        other => unchanged_data(other)?,
    })
}

/// Returns the data of an event that clients see as it is in the log. The match is exhaustive, so that a new event reaches clients only
/// after a decision about its data.
fn unchanged_data(event: &Event) -> Result<Value, serde_json::Error> {
    match event {
        Event::ModelAnswered { .. }
        | Event::ReplyPolished { .. }
        | Event::Finished { .. }
        | Event::ConversationOpened { .. }
        | Event::ContextGathered { .. }
        | Event::CatalogueFixed { .. } => Ok(Value::Null),
        Event::EpochStarted { .. }
        | Event::JobAttached { .. }
        | Event::ResourcesBound { .. }
        | Event::ToolsSelected { .. }
        | Event::IntentDetected { .. }
        | Event::ModelRequested { .. }
        | Event::ModelFailed { .. }
        | Event::ToolRequested { .. }
        | Event::ToolRuled { .. }
        | Event::LimitsLowered { .. }
        | Event::ToolsBlocked { .. }
        | Event::ToolsRestricted { .. }
        | Event::LimitsReserved { .. }
        | Event::LimitsReturned { .. }
        | Event::ToolHeld { .. }
        | Event::ToolApproved { .. }
        | Event::ToolDenied { .. }
        | Event::ToolSkipped { .. }
        | Event::ToolStarted { .. }
        | Event::ToolCompleted { .. }
        | Event::ToolFailed { .. }
        | Event::ToolIndeterminate { .. }
        | Event::ChildStarted { .. }
        | Event::ChildCompleted { .. }
        | Event::ToolProgressed { .. }
        | Event::CatalogueDrifted { .. }
        | Event::CatalogueUnpinned { .. }
        | Event::ResultOffloaded { .. }
        | Event::SubgoalDone { .. }
        | Event::UserAsked { .. }
        | Event::UserReplied { .. }
        | Event::UserMessage { .. }
        | Event::GateRuled { .. }
        | Event::FeatureTested { .. }
        | Event::LimitHit { .. }
        | Event::DirectiveReceived { .. }
        | Event::Parked { .. } => {
            let mut written = serde_json::to_value(event)?;
            Ok(written.get_mut("data").map(Value::take).unwrap_or_default())
        }
    }
}

/// Returns the result of a Job that has succeeded. The result of any other Job is a draft.
fn passed(phase: Phase, result: Option<&FullResult>) -> Option<&FullResult> {
    result.filter(|_| phase == Phase::Succeeded)
}

/// Returns a part of the context without its text.
fn shown_part(part: &ContextPart) -> Value {
    let ContextPart { kind, source, text, fault } = part;
    json!({"kind": kind, "of": source, "bytes": text.len(), "fault": fault})
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::outcome::{Outcome, OutcomeCode};
    use bloomery_engine::event::{CallId, ContextKind, RequestedCall};
    use bloomery_engine::line::EventTime;
    use rstest::rstest;

    const DRAFT: &str = "a text that no gate has passed";

    fn shown(event: Event) -> JobEvent {
        let stamp = EventTime { time: "2026-01-01T00:00:00Z".into(), elapsed_ms: 1 };
        JobEvent::new("/namespaces/local/skilljobs/k/k", &Entry { seq: 7, stamp, event }).unwrap()
    }

    fn finished(code: OutcomeCode) -> Event {
        let result = FullResult { text: DRAFT.into(), ..FullResult::default() };
        Event::Finished { outcome: Outcome::new(code, "It ended."), result: Some(result) }
    }

    #[test]
    fn an_event_is_a_cloud_event_with_its_number_in_the_log() {
        let event = shown(Event::ToolStarted { call: CallId::new(6, 0) });
        let expected = json!({
            "specversion": "1.0", "id": "7", "source": "/namespaces/local/skilljobs/k/k", "time": "2026-01-01T00:00:00Z",
            "seq": 7, "type": "tool.started", "data": {"call": "6-0"},
        });
        assert_eq!(serde_json::to_value(&event).unwrap(), expected);
        assert!(!event.is_last);
    }

    #[rstest]
    #[case::of_a_tool(Event::ToolStarted { call: CallId::new(6, 0) }, "tool.started")]
    #[case::of_a_person(Event::UserMessage { text: "hi".into(), by: "ada".into(), nth: None }, "user.message")]
    #[case::of_a_model(Event::ModelAnswered { answer: Answer::default() }, "conversation.model.answered")]
    #[case::the_end(finished(OutcomeCode::Succeeded), "conversation.finished")]
    #[case::of_the_project(Event::CatalogueFixed { tools: Vec::new() }, "project.catalogue.fixed")]
    fn a_name_says_whether_it_is_about_a_tool_a_person_the_project_or_the_conversation(
        #[case] event: Event,
        #[case] name: &str,
    ) {
        assert_eq!(shown(event).kind, name);
    }

    #[rstest]
    #[case::an_answer(Event::ModelAnswered {
        answer: Answer { message: json!({"content": DRAFT}), text: DRAFT.into(), ..Answer::default() },
    })]
    #[case::arguments(Event::ModelAnswered {
        answer: Answer {
            calls: vec![RequestedCall { id: "c".into(), name: "t".into(), arguments: DRAFT.into(), secrets: Vec::new() }],
            ..Answer::default()
        },
    })]
    #[case::a_polished_answer(Event::ReplyPolished { polish: PolishOutcome::Polished(DRAFT.into()) })]
    #[case::the_draft_of_an_escalated_job(finished(OutcomeCode::UserNeeded))]
    #[case::context(Event::ContextGathered {
        parts: vec![ContextPart {
            kind: ContextKind::MemoryBank,
            source: "notes".into(),
            text: DRAFT.into(),
            fault: None,
        }],
    })]
    fn a_client_sees_no_draft_and_no_prompt(#[case] event: Event) {
        let text = serde_json::to_string(&shown(event)).unwrap();
        assert!(!text.contains(DRAFT), "{text}");
    }

    #[test]
    fn a_client_sees_the_answer_that_has_passed_and_then_no_more() {
        let event = shown(finished(OutcomeCode::Succeeded));
        assert_eq!(event.data.pointer("/result/text"), Some(&json!(DRAFT)));
        assert!(event.is_last);
    }
}
