//! A conversation whose every next step is taken, as far as that needs nobody else.

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

/// How many steps are taken without anything from outside.
const MAX_STEPS: usize = 64;

/// A conversation, its log, and a second conversation that is folded from that log as it is read again.
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
    /// Where the log ends.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The conversation so far.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Takes over an event: what is written of it is read as the same.
    pub fn record(&mut self, event: Event, stamp: EventTime) {
        let (line, entry) = self.chain.append(event, stamp).expect("an event can be written");
        let read = self.replay.read(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(read, entry, "what was written is read as something else");
        self.conversation.apply(&entry);
        self.replayed.apply(&read);
    }

    /// Takes every step that is for the engine alone, and plays the tools; returns where something else is needed.
    pub fn go_on(&mut self) {
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
                Step::Offload(results) => results.into_iter().map(put_aside).collect(),
                Step::GatherContext | Step::CallModel(_) | Step::AskPeople(_) | Step::Done(_) => break,
            };
            for event in events {
                is_canonical(&event);
                self.record(event, at());
            }
        }
        self.check();
    }

    /// Goes on to the first request to a model.
    pub fn opened() -> Self {
        let mut driven = Self::default();
        driven.record(Event::EpochStarted { epoch: 1, attempt: 1 }, at());
        driven.go_on();
        driven
    }

    /// Answers the request to a model that comes next, if one does.
    pub fn answer(&mut self, answer: Answer) {
        let asked = match next(&self.conversation) {
            Step::CallModel(request) => Event::ModelRequested { reserve: request.reserve, stage: request.stage },
            _ => return,
        };
        self.record(asked, at());
        self.record(Event::ModelAnswered { answer }, at());
        self.go_on();
    }

    /// A replay ends in the same state, as far as anybody outside can tell.
    fn check(&self) {
        assert_eq!(self.status(), self.shown(&self.replayed), "a replay ends in another state");
    }

    /// What stands in the Job's status.
    pub fn status(&self) -> String {
        self.shown(&self.conversation)
    }

    fn shown(&self, conversation: &Conversation) -> String {
        serde_json::to_string(&project(conversation, self.chain.position("log"))).expect("a status can be written")
    }
}

/// What is ruled on and sent is canonical, and its digest is of that.
fn is_canonical(event: &Event) {
    if let Event::ToolRequested { arguments: Arguments::Canonical(arguments), .. } = event {
        let value = canonical::parse(arguments.text()).expect("canonical arguments can be read");
        assert_eq!(canonical::to_string(&value), arguments.text());
        assert_eq!(&Digest::of_value(&value), arguments.digest());
    }
}

fn put_aside(result: Offload<'_>) -> Event {
    let handle = Digest::of_bytes(result.text.as_bytes());
    let excerpt = offload::excerpt(result.text, &handle);
    Event::ResultOffloaded { call: result.call.clone(), handle, bytes: result.text.len() as u64, excerpt }
}

fn at() -> EventTime {
    EventTime { time: "2026-01-01T00:00:00Z".to_owned(), elapsed_ms: 10 }
}
