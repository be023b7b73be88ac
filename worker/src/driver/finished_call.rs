//! Converts finished calls to events: progress that is not recorded yet, the outcome, and tools that have changed.

use super::progress_buffer::ProgressBuffer;
use super::results;
use crate::focus::FocusCache;
use bloomery_engine::event::{CallId, ToolProgress};
use bloomery_engine::tool::ListedTool;
use bloomery_engine::{Conversation, Event};
use bloomery_journal::files::Files;
use serde_json::Value;
use std::fmt::Write;

/// A finished call.
#[derive(Debug)]
pub struct FinishedCall {
    /// [`Event::ToolCompleted`], [`Event::ToolFailed`] or [`Event::ToolIndeterminate`].
    pub outcome: Event,
    /// The structured output. The outcome's text has it, too.
    pub structured: Option<Value>,
    /// Whether the answer was too large to be read. The outcome's text says so, and there is no output to check.
    pub is_unread: bool,
    /// The parts of the answer that are not text. The outcome's text has the digest of each.
    pub media: Vec<Vec<u8>>,
    /// The progress that is not recorded yet.
    pub progress: Vec<ToolProgress>,
    /// The tools, if the call listed them.
    pub listed: Option<Vec<ListedTool>>,
}

impl From<Event> for FinishedCall {
    fn from(outcome: Event) -> Self {
        Self { outcome, structured: None, is_unread: false, media: Vec::new(), progress: Vec::new(), listed: None }
    }
}

impl FinishedCall {
    /// Adds the progress that is still in the buffer.
    pub(super) fn with_unrecorded(mut self, buffer: &ProgressBuffer) -> Self {
        if let Some(call) = call_of(&self.outcome) {
            self.progress.extend(buffer.take_call(call));
        }
        self
    }
}

/// Returns the events that record calls, in the order of the calls. Stores media and large answers in the focus cache first.
pub(super) fn events_of_calls(
    mut calls: Vec<FinishedCall>,
    conversation: &Conversation,
    focus: &FocusCache,
    files: &impl Files,
) -> Vec<Event> {
    store_media(&mut calls, focus, files);
    // The list of the last call is the latest.
    let drift = calls.iter().rev().find_map(|call| conversation.compare_tools(call.listed.as_ref()?));
    let events = calls.into_iter().flat_map(|call| events_of_call(call, conversation)).collect();
    let mut events = results::store_large(events, focus, files);
    events.extend(drift);
    events
}

fn events_of_call(finished: FinishedCall, conversation: &Conversation) -> Vec<Event> {
    let FinishedCall { outcome, structured, is_unread, progress, .. } = finished;
    let Some(call) = call_of(&outcome).cloned() else { return vec![outcome] };
    let mut events: Vec<Event> =
        progress.into_iter().map(|progress| Event::ToolProgressed { call: call.clone(), progress }).collect();
    events.push(match outcome {
        Event::ToolCompleted { call, text } if !is_unread => {
            match conversation.output_error(&call, structured.as_ref()) {
                Some(error) => Event::ToolCompleted { text: with_schema_error(&error, &text), call },
                None => Event::ToolCompleted { text, call },
            }
        }
        other => other,
    });
    events
}

/// Returns the answer of a call whose output does not fit the server's schema. The call is not recorded as failed, because the model
/// would repeat it.
fn with_schema_error(error: &str, text: &str) -> String {
    format!(
        "[The call succeeded, but its output does not fit the schema that the server lists, so do not rely on it: \
         {error}]\n{text}"
    )
}

/// Stores media in the focus cache. Adds the number of parts that could not be stored to the outcome's text.
fn store_media(calls: &mut [FinishedCall], focus: &FocusCache, files: &impl Files) {
    let media: Vec<&Vec<u8>> = calls.iter().flat_map(|call| &call.media).collect();
    let mut kept = focus.keep(files, &media).into_iter();
    for call in calls {
        let lost = kept.by_ref().take(call.media.len()).filter(Result::is_err).count();
        if let (Event::ToolCompleted { text, .. } | Event::ToolFailed { text, .. }, 1..) = (&mut call.outcome, lost) {
            tracing::error!("{lost} parts of a result cannot be stored in the focus cache");
            // Writing to a text cannot fail.
            let _ = write!(text, "\n[{lost} of the parts above could not be stored, so they cannot be read]");
        }
    }
}

fn call_of(outcome: &Event) -> Option<&CallId> {
    match outcome {
        Event::ToolCompleted { call, .. } | Event::ToolFailed { call, .. } | Event::ToolIndeterminate { call, .. } => {
            Some(call)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::focus::DEFAULT_BUDGET_BYTES;
    use bloomery_crds::Digest;
    use bloomery_crds::v1alpha1::Stage;
    use bloomery_engine::catalogue::fix_catalogue;
    use bloomery_engine::event::{Answer, RequestedCall};
    use bloomery_engine::line::{Chain, EventTime};
    use bloomery_journal::files::Disk;
    use bloomery_journal::fixture;
    use serde_json::json;

    fn listed() -> Vec<ListedTool> {
        let schema = json!({"type": "object", "required": ["total"], "properties": {"total": {"type": "number"}}});
        let tool =
            ListedTool { name: "lookup".into(), input_schema: json!({"type": "object"}), ..ListedTool::default() };
        vec![ListedTool { output_schema: Some(schema), ..tool }]
    }

    /// Returns a conversation with one requested call of a tool, and the call. The tool's output schema requires a total.
    fn asked() -> (Conversation, CallId) {
        let run = fixture::run();
        let call = RequestedCall { id: "c".into(), name: "lookup".into(), arguments: "{}".into(), secrets: Vec::new() };
        let answer = Answer { message: json!({"role": "assistant"}), calls: vec![call], ..Answer::default() };
        let events = [
            Event::EpochStarted { epoch: 1, attempt: 1 },
            fix_catalogue(&run, listed()),
            Event::ModelRequested { reserve: 1, stage: Stage::Plan },
            Event::ModelAnswered { answer },
        ];
        let (mut conversation, mut chain) = (Conversation::new(run), Chain::new(fixture::SOURCE));
        for event in events {
            let stamp = EventTime { time: "2026-01-01T00:00:00.000Z".into(), elapsed_ms: 1 };
            conversation.apply(&chain.append(event, stamp).unwrap().1);
        }
        let call = conversation.calls()[0].id.clone();
        (conversation, call)
    }

    fn completed(call: &CallId, text: &str) -> Event {
        Event::ToolCompleted { call: call.clone(), text: text.into() }
    }

    fn record(called: FinishedCall, conversation: &Conversation) -> Vec<Event> {
        let memory = tempfile::tempdir().unwrap();
        events_of_calls(
            vec![called],
            conversation,
            &FocusCache::new(memory.path(), "uid-1", DEFAULT_BUDGET_BYTES),
            &Disk,
        )
    }

    #[test]
    fn output_that_does_not_fit_its_schema_completes_the_call_with_a_note() {
        let (conversation, call) = asked();
        let with = |structured| FinishedCall { structured, ..FinishedCall::from(completed(&call, "3")) };
        assert_eq!(record(with(Some(json!({"total": 3}))), &conversation), [completed(&call, "3")]);
        for (output, why) in [(Some(json!({"total": "3"})), "/total: "), (None, "there is none")] {
            let events = record(with(output), &conversation);
            let [Event::ToolCompleted { text, .. }] = events.as_slice() else { panic!("{events:?}") };
            assert!(text.starts_with("[The call succeeded, but its output does not fit the schema"), "{text}");
            assert!(text.contains(why) && text.ends_with("]\n3"), "{text}");
        }
        let unread =
            FinishedCall { is_unread: true, ..FinishedCall::from(completed(&call, "[The call has happened.]")) };
        assert_eq!(record(unread, &conversation), [completed(&call, "[The call has happened.]")]);
        let failed = Event::ToolFailed { call, text: "no such order".into() };
        assert_eq!(record(FinishedCall::from(failed.clone()), &conversation), [failed]);
    }

    #[test]
    fn progress_comes_before_the_outcome_and_changed_tools_after_it() {
        let (conversation, call) = asked();
        let report = ToolProgress { progress: Some(0.5), ..ToolProgress::default() };
        let mut changed = listed();
        changed[0].description = "Another".into();
        let outcome = Event::ToolFailed { call: call.clone(), text: "not sent".into() };
        let called = FinishedCall {
            progress: vec![report.clone()],
            listed: Some(changed),
            ..FinishedCall::from(outcome.clone())
        };
        let drifted =
            Event::CatalogueDrifted { changed: vec!["lookup".into()], missing: Vec::new(), added: Vec::new() };
        assert_eq!(record(called, &conversation), [Event::ToolProgressed { call, progress: report }, outcome, drifted]);
    }

    #[test]
    fn media_are_stored_before_the_events_with_their_digests_are_returned() {
        let (conversation, call) = asked();
        let called = || FinishedCall {
            structured: Some(json!({"total": 1})),
            media: vec![b"\xff\xd8".to_vec()],
            ..FinishedCall::from(completed(&call, "[image]"))
        };
        let memory = tempfile::tempdir().unwrap();
        let focus = FocusCache::new(memory.path(), "uid-1", DEFAULT_BUDGET_BYTES);
        assert_eq!(events_of_calls(vec![called()], &conversation, &focus, &Disk), [completed(&call, "[image]")]);
        assert_eq!(focus.get(&Disk, &Digest::of_bytes(b"\xff\xd8")).as_deref(), Some(&b"\xff\xd8"[..]));

        let absent = FocusCache::new(&memory.path().join("absent"), "uid-1", DEFAULT_BUDGET_BYTES);
        let note = "[image]\n[1 of the parts above could not be stored, so they cannot be read]";
        assert_eq!(events_of_calls(vec![called()], &conversation, &absent, &Disk), [completed(&call, note)]);
    }
}
