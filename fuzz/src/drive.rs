//! A driver that performs the steps of a conversation that need neither a model nor a person.

use crate::{listed, run};
use bloomery_crds::{Digest, canonical};
use bloomery_engine::catalogue::fix_catalogue;
use bloomery_engine::event::{Answer, Arguments, Event};
use bloomery_engine::line::{Chain, EventTime};
use bloomery_engine::offload::{self, Offload};
use bloomery_engine::projection::project;
use bloomery_engine::{Conversation, Step, next};

/// The Job that all logs belong to.
const SOURCE: &str = "/namespaces/acme/skilljobs/refund/run-1";

/// The maximum number of steps between two answers of the model.
const MAX_STEPS: usize = 64;

/// A conversation and its log, and a second conversation that replays the log.
pub struct Driven {
    conversation: Conversation,
    chain: Chain,
    replayed: Conversation,
    replay: Chain,
}

impl Default for Driven {
    fn default() -> Self {
        Self {
            conversation: Conversation::new(run()),
            chain: Chain::new(SOURCE),
            replayed: Conversation::new(run()),
            replay: Chain::new(SOURCE),
        }
    }
}

impl Driven {
    /// Returns the log's hash chain.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Returns the conversation.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Appends an event to the log, and applies it. Panics if the written line is read as another event.
    pub fn record(&mut self, event: Event, stamp: EventTime) {
        let (line, entry) = self.chain.append(event, stamp).expect("an event can be written");
        let read = self.replay.read(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(read, entry, "a written line is read as another event");
        self.conversation.apply(&entry);
        self.replayed.apply(&read);
    }

    /// Performs steps, with a fixed result for each tool call, until a step needs a model, a person or a file system.
    pub fn advance(&mut self) {
        for _ in 0..MAX_STEPS {
            let events = match next(&self.conversation) {
                Step::Record(events) => events,
                Step::ListTools => vec![fix_catalogue(&run(), listed())],
                Step::RunEffect(call) => {
                    let call = call.id.clone();
                    let text = "ok".to_owned();
                    vec![Event::ToolStarted { call: call.clone() }, Event::ToolCompleted { call, text }]
                }
                Step::RunReads(calls) => {
                    let done = |id| Event::ToolCompleted { call: id, text: "ok".to_owned() };
                    calls.iter().map(|call| done(call.id.clone())).collect()
                }
                Step::Offload(results) => results.into_iter().map(offload_result).collect(),
                Step::GatherContext
                | Step::CallModel(_)
                | Step::Reserve(_)
                | Step::GiveBack { .. }
                | Step::InvokeSkill(_)
                | Step::AwaitChild(_)
                | Step::AskPeople(_)
                | Step::Done(_) => break,
            };
            for event in events {
                assert_canonical(&event);
                self.record(event, stamp());
            }
        }
        self.assert_replay_is_equal();
    }

    /// Returns a conversation whose next step is its first request to a model.
    pub fn opened() -> Self {
        let mut driven = Self::default();
        driven.record(Event::EpochStarted { epoch: 1, attempt: 1, after_disruption: false }, stamp());
        driven.advance();
        driven
    }

    /// If the next step is a request to the model, answers it and performs the steps after it. Otherwise does nothing.
    pub fn answer(&mut self, answer: Answer) {
        let requested = match next(&self.conversation) {
            Step::CallModel(request) => Event::ModelRequested { reserve: request.reserve, stage: request.stage },
            _ => return,
        };
        self.record(requested, stamp());
        self.record(Event::ModelAnswered { answer }, stamp());
        self.advance();
    }

    /// Checks that the replay leads to the same status.
    fn assert_replay_is_equal(&self) {
        assert_eq!(self.status(), self.status_of(&self.replayed), "a replay ends in another state");
    }

    /// Returns the projection into the Job's status, as JSON.
    pub fn status(&self) -> String {
        self.status_of(&self.conversation)
    }

    fn status_of(&self, conversation: &Conversation) -> String {
        serde_json::to_string(&project(conversation, self.chain.position("log"))).expect("a status can be written")
    }
}

/// Checks that requested arguments are canonical and have the right digest.
fn assert_canonical(event: &Event) {
    if let Event::ToolRequested { arguments: Arguments::Canonical(arguments), .. } = event {
        let value = canonical::parse(arguments.text()).expect("canonical arguments can be read");
        assert_eq!(canonical::to_string(&value), arguments.text());
        assert_eq!(&Digest::of_value(&value), arguments.digest());
    }
}

fn offload_result(result: Offload<'_>) -> Event {
    let handle = Digest::of_bytes(result.text.as_bytes());
    let excerpt = offload::excerpt(result.text, &handle);
    Event::ResultOffloaded { call: result.call.clone(), handle, bytes: result.text.len() as u64, excerpt }
}

fn stamp() -> EventTime {
    EventTime { time: "2026-01-01T00:00:00Z".to_owned(), elapsed_ms: 10 }
}
