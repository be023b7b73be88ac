//! A conversation that is played in memory: the engine alone.

use crate::script::{self, FINAL, STAGES};
use bloomery_crds::v1alpha1::Stage;
use bloomery_engine::catalogue::fix_catalogue;
use bloomery_engine::event::{Answer, CallId, RequestedCall};
use bloomery_engine::line::{Chain, EventTime};
use bloomery_engine::run::Run;
use bloomery_engine::tool::ListedTool;
use bloomery_engine::{Conversation, Event, Step, next};
use serde_json::Value;

/// A conversation, and the lines that it is folded from.
pub(crate) struct Player {
    pub(crate) conversation: Conversation,
    pub(crate) lines: Vec<String>,
    /// What the tools answer.
    result: String,
    /// The tools beside those of the script.
    pub(crate) listed: Vec<ListedTool>,
    /// What the model asks for in place of the script.
    pub(crate) asks: Option<Answer>,
    /// How many answers of the main loop are left, the last of which ends it.
    left: usize,
    chain: Chain,
    run: Run,
}

impl Player {
    /// Begins; tools answer with so many bytes.
    pub(crate) fn new(run: Run, result: usize) -> Self {
        let listed = crate::skill::TOOLS.map(|name| tool(name, crate::skill::schema()));
        let mut player = Self {
            conversation: Conversation::new(run.clone()),
            lines: Vec::new(),
            result: script::result(result),
            listed: listed.into(),
            asks: None,
            left: 0,
            chain: Chain::new(crate::SOURCE),
            run,
        };
        player.record(Event::EpochStarted { epoch: 1, attempt: 1 });
        player
    }

    /// Plays a whole run of so many answers.
    pub(crate) fn play_answers(&mut self, answers: usize) {
        self.left = answers;
        while self.step() {}
        assert_eq!(self.conversation.outcome().map(|outcome| outcome.code.to_string()).as_deref(), Some("Succeeded"));
    }

    /// Plays until an answer of the main loop has come, and nothing was done about it.
    pub(crate) fn play_to_answer(&mut self) {
        self.left = usize::MAX;
        while self.conversation.calls().is_empty() {
            assert!(self.step(), "the conversation has ended");
        }
    }

    /// Does what is next; false at the end.
    fn step(&mut self) -> bool {
        let events = match next(&self.conversation) {
            Step::Record(events) => events,
            Step::ListTools => vec![fix_catalogue(&self.run, self.listed.clone())],
            Step::CallModel(request) => {
                let (reserve, stage) = (request.reserve, request.stage);
                vec![Event::ModelRequested { reserve, stage }, Event::ModelAnswered { answer: self.answer(stage) }]
            }
            Step::RunReads(calls) => {
                let calls: Vec<CallId> = calls.iter().map(|call| call.id.clone()).collect();
                calls.into_iter().map(|call| Event::ToolCompleted { call, text: self.result.clone() }).collect()
            }
            Step::RunEffect(call) => {
                let call = call.id.clone();
                let completed = Event::ToolCompleted { call: call.clone(), text: self.result.clone() };
                vec![Event::ToolStarted { call }, completed]
            }
            Step::GatherContext | Step::Offload(_) | Step::AskPeople(_) | Step::Done(_) => return false,
        };
        for event in events {
            self.record(event);
        }
        true
    }

    /// Adds an event.
    pub(crate) fn record(&mut self, event: Event) {
        let stamp = EventTime { time: "2026-01-01T00:00:00.000Z".into(), elapsed_ms: 1 };
        let (line, entry) = self.chain.append(event, stamp).unwrap();
        self.conversation.apply(&entry);
        self.lines.push(line);
    }

    fn answer(&mut self, stage: Stage) -> Answer {
        match stage {
            Stage::Intent => says(STAGES[0]),
            Stage::Selection => says(r#"{"tools": []}"#),
            Stage::Finalization => says(STAGES[1]),
            Stage::Polish => says(STAGES[2]),
            Stage::Plan => {
                self.left -= 1;
                let answered = self.conversation.budget().answers() as usize;
                match (&self.asks, self.left) {
                    (Some(asks), _) => asks.clone(),
                    (None, 0) => says(FINAL),
                    (None, _) => {
                        let (name, arguments) = script::call(answered);
                        asks(script::asks(answered), &script::call_id(answered), name, &arguments)
                    }
                }
            }
        }
    }
}

/// A tool as a server lists it.
pub(crate) fn tool(name: &str, input_schema: Value) -> ListedTool {
    let (name, description) = (name.into(), "A tool of the shop".into());
    ListedTool { name, description, input_schema, ..ListedTool::default() }
}

/// An answer that asks for one call.
pub(crate) fn asks(message: Value, id: &str, name: &str, arguments: &Value) -> Answer {
    let call =
        RequestedCall { id: id.into(), name: name.into(), arguments: arguments.to_string(), secrets: Vec::new() };
    Answer { message, calls: vec![call], input_tokens: Some(100), output_tokens: Some(10), ..Answer::default() }
}

fn says(text: &str) -> Answer {
    Answer {
        message: script::says(text),
        text: text.into(),
        input_tokens: Some(100),
        output_tokens: Some(10),
        ..Answer::default()
    }
}
