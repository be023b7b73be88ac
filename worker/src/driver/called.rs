//! What is recorded of calls that are over: what was told of each meanwhile, its outcome, and tools that have changed.

use super::heard::Heard;
use super::results;
use crate::focus::FocusCache;
use bloomery_engine::event::{CallId, ToolProgress};
use bloomery_engine::tool::ListedTool;
use bloomery_engine::{Conversation, Event};
use bloomery_journal::files::Files;
use serde_json::Value;
use std::fmt::Write;

/// A call that is over.
#[derive(Debug)]
pub struct Called {
    /// [`Event::ToolCompleted`], [`Event::ToolFailed`] or [`Event::ToolIndeterminate`].
    pub outcome: Event,
    /// The structured output, where there is one. The outcome's text holds it too.
    pub structured: Option<Value>,
    /// What of the answer is no text. The outcome's text names the digest of each.
    pub media: Vec<Vec<u8>>,
    /// What its server told of it while it was under way, as far as that is not recorded.
    pub told: Vec<ToolProgress>,
    /// The tools, where they were listed for it.
    pub listed: Option<Vec<ListedTool>>,
}

impl From<Event> for Called {
    fn from(outcome: Event) -> Self {
        Self { outcome, structured: None, media: Vec::new(), told: Vec::new(), listed: None }
    }
}

impl Called {
    /// With what was told of it and is not recorded.
    pub(super) fn with_rest(mut self, heard: &Heard) -> Self {
        if let Some(call) = call_of(&self.outcome) {
            self.told.extend(heard.rest(call));
        }
        self
    }
}

/// The events of calls that came together, as they are recorded, in the order of the calls.
pub(super) fn recorded(
    mut calls: Vec<Called>,
    conversation: &Conversation,
    focus: &FocusCache,
    files: &impl Files,
) -> Vec<Event> {
    keep_media(&mut calls, focus, files);
    // The last list is the latest.
    let drift = calls.iter().rev().find_map(|called| conversation.compare_tools(called.listed.as_ref()?));
    let events = calls.into_iter().flat_map(|called| of_call(called, conversation)).collect();
    let mut events = results::kept(events, focus, files);
    events.extend(drift);
    events
}

fn of_call(called: Called, conversation: &Conversation) -> Vec<Event> {
    let Called { outcome, structured, told, .. } = called;
    let Some(call) = call_of(&outcome).cloned() else { return vec![outcome] };
    let mut events: Vec<Event> =
        told.into_iter().map(|told| Event::ToolProgressed { call: call.clone(), progress: told }).collect();
    events.push(match outcome {
        Event::ToolCompleted { call, text } => match conversation.output_error(&call, structured.as_ref()) {
            Some(fault) => Event::ToolCompleted { text: unfit(&fault, &text), call },
            None => Event::ToolCompleted { text, call },
        },
        other => other,
    });
    events
}

/// The answer of a call whose output is not what its server promises. The call has happened, and its server has answered
/// it: were it told as failed, the model would ask for a second one.
fn unfit(fault: &str, text: &str) -> String {
    format!(
        "[The call has happened. What it returned does not fit the schema that the server lists, so do not rely on it: \
         {fault}]\n{text}"
    )
}

/// Keeps what is no text; what cannot be kept is told where its digest stands.
fn keep_media(calls: &mut [Called], focus: &FocusCache, files: &impl Files) {
    let media: Vec<&Vec<u8>> = calls.iter().flat_map(|called| &called.media).collect();
    let mut kept = focus.keep(files, &media).into_iter();
    for called in calls {
        let lost = kept.by_ref().take(called.media.len()).filter(Result::is_err).count();
        if let (Event::ToolCompleted { text, .. } | Event::ToolFailed { text, .. }, 1..) = (&mut called.outcome, lost) {
            tracing::error!("{lost} parts of a result cannot be kept in the focus cache");
            // Writing to a text cannot fail.
            let _ = write!(text, "\n[{lost} of the parts above could not be kept, and cannot be read]");
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
    use crate::fixture;
    use crate::focus::BUDGET;
    use bloomery_crds::Digest;
    use bloomery_crds::v1alpha1::Stage;
    use bloomery_engine::catalogue::fix_catalogue;
    use bloomery_engine::event::{Answer, RequestedCall};
    use bloomery_engine::line::{Chain, EventTime};
    use bloomery_journal::files::Disk;
    use serde_json::json;

    fn listed() -> Vec<ListedTool> {
        let schema = json!({"type": "object", "required": ["total"], "properties": {"total": {"type": "number"}}});
        let tool =
            ListedTool { name: "lookup".into(), input_schema: json!({"type": "object"}), ..ListedTool::default() };
        vec![ListedTool { output_schema: Some(schema), ..tool }]
    }

    /// A conversation that has asked for one call, of a tool whose server promises a total.
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

    fn record(called: Called, conversation: &Conversation) -> Vec<Event> {
        let memory = tempfile::tempdir().unwrap();
        recorded(vec![called], conversation, &FocusCache::new(memory.path(), "uid-1", BUDGET), &Disk)
    }

    #[test]
    fn output_that_fits_stands_and_other_output_has_happened_all_the_same() {
        let (conversation, call) = asked();
        let with = |structured| Called { structured, ..Called::from(completed(&call, "3")) };
        assert_eq!(record(with(Some(json!({"total": 3}))), &conversation), [completed(&call, "3")]);
        for (output, why) in [(Some(json!({"total": "3"})), "/total: "), (None, "there is none")] {
            let events = record(with(output), &conversation);
            let [Event::ToolCompleted { text, .. }] = events.as_slice() else { panic!("{events:?}") };
            assert!(text.starts_with("[The call has happened. What it returned does not fit the schema"), "{text}");
            assert!(text.contains(why) && text.ends_with("]\n3"), "{text}");
        }
        let failed = Event::ToolFailed { call, text: "no such order".into() };
        assert_eq!(record(Called::from(failed.clone()), &conversation), [failed]);
    }

    #[test]
    fn what_was_told_comes_before_the_outcome_and_what_changed_after_it() {
        let (conversation, call) = asked();
        let told = ToolProgress { progress: Some(0.5), ..ToolProgress::default() };
        let mut changed = listed();
        changed[0].description = "Another".into();
        let outcome = Event::ToolFailed { call: call.clone(), text: "not sent".into() };
        let called = Called { told: vec![told.clone()], listed: Some(changed), ..Called::from(outcome.clone()) };
        let drifted =
            Event::CatalogueDrifted { changed: vec!["lookup".into()], missing: Vec::new(), added: Vec::new() };
        assert_eq!(record(called, &conversation), [Event::ToolProgressed { call, progress: told }, outcome, drifted]);
    }

    #[test]
    fn media_are_kept_before_their_digests_are_recorded() {
        let (conversation, call) = asked();
        let called = || Called {
            structured: Some(json!({"total": 1})),
            media: vec![b"\xff\xd8".to_vec()],
            ..Called::from(completed(&call, "[image]"))
        };
        let memory = tempfile::tempdir().unwrap();
        let focus = FocusCache::new(memory.path(), "uid-1", BUDGET);
        assert_eq!(recorded(vec![called()], &conversation, &focus, &Disk), [completed(&call, "[image]")]);
        assert_eq!(focus.get(&Disk, &Digest::of_bytes(b"\xff\xd8")).as_deref(), Some(&b"\xff\xd8"[..]));

        let absent = FocusCache::new(&memory.path().join("absent"), "uid-1", BUDGET);
        let note = "[image]\n[1 of the parts above could not be kept, and cannot be read]";
        assert_eq!(recorded(vec![called()], &conversation, &absent, &Disk), [completed(&call, note)]);
    }
}
