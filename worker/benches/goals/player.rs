//! Plays a conversation in memory, with only the engine.

use crate::script::{self, FINAL, STAGES};
use bloomery_crds::v1alpha1::Stage;
use bloomery_engine::catalogue::fix_catalogue;
use bloomery_engine::event::{Answer, CallId, RequestedCall};
use bloomery_engine::line::{Chain, EventTime};
use bloomery_engine::run::Run;
use bloomery_engine::tool::ListedTool;
use bloomery_engine::{Conversation, Event, Step, next};
use serde_json::Value;

/// A conversation and the lines of its log.
pub(crate) struct Player {
    pub(crate) conversation: Conversation,
    pub(crate) lines: Vec<String>,
    /// The answer of every tool.
    result: String,
    /// The tools that the server lists.
    pub(crate) listed: Vec<ListedTool>,
    /// The answer of the main loop, in place of the script.
    pub(crate) fixed_answer: Option<Answer>,
    /// The number of remaining answers of the main loop. The last one ends it.
    left: usize,
    chain: Chain,
    run: Run,
}

impl Player {
    /// Starts a conversation. `result` is the length of a tool's answer, in bytes.
    pub(crate) fn new(run: Run, result: usize) -> Self {
        let listed = crate::skill::TOOLS.map(|name| tool(name, crate::skill::schema()));
        let mut player = Self {
            conversation: Conversation::new(run.clone()),
            lines: Vec::new(),
            result: script::result(result),
            listed: listed.into(),
            fixed_answer: None,
            left: 0,
            chain: Chain::new(crate::SOURCE),
            run,
        };
        player.record(Event::EpochStarted { epoch: 1, attempt: 1, after_disruption: false });
        player
    }

    /// Plays a whole run with this number of answers.
    pub(crate) fn play_answers(&mut self, answers: usize) {
        self.left = answers;
        while self.step() {}
        assert_eq!(self.conversation.outcome().map(|outcome| outcome.code.to_string()).as_deref(), Some("Succeeded"));
    }

    /// Plays until the first answer of the main loop, before its calls are requested.
    pub(crate) fn play_to_answer(&mut self) {
        self.left = usize::MAX;
        while self.conversation.calls().is_empty() {
            assert!(self.step(), "the conversation ended");
        }
    }

    /// Performs the next step. Returns whether there was one.
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
            Step::GatherContext
            | Step::Reserve(_)
            | Step::GiveBack { .. }
            | Step::Offload(_)
            | Step::InvokeSkill(_)
            | Step::AwaitChild(_)
            | Step::AskPeople(_)
            | Step::Done(_) => return false,
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
            Stage::Intent => text_answer(STAGES[0]),
            Stage::Selection => text_answer(r#"{"tools": []}"#),
            Stage::Finalization => text_answer(STAGES[1]),
            Stage::Polish => text_answer(STAGES[2]),
            Stage::Plan => {
                self.left -= 1;
                let answered = self.conversation.budget().answers() as usize;
                match (&self.fixed_answer, self.left) {
                    (Some(answer), _) => answer.clone(),
                    (None, 0) => text_answer(FINAL),
                    (None, _) => {
                        let (name, arguments) = script::call(answered);
                        call_answer(script::call_message(answered), &script::call_id(answered), name, &arguments)
                    }
                }
            }
        }
    }
}

/// Returns a tool as a server lists it.
pub(crate) fn tool(name: &str, input_schema: Value) -> ListedTool {
    let (name, description) = (name.into(), "A tool of the shop".into());
    ListedTool { name, description, input_schema, ..ListedTool::default() }
}

/// Returns an answer with one call.
pub(crate) fn call_answer(message: Value, id: &str, name: &str, arguments: &Value) -> Answer {
    let call =
        RequestedCall { id: id.into(), name: name.into(), arguments: arguments.to_string(), secrets: Vec::new() };
    Answer { message, calls: vec![call], input_tokens: Some(100), output_tokens: Some(10), ..Answer::default() }
}

fn text_answer(text: &str) -> Answer {
    Answer {
        message: script::text_message(text),
        text: text.into(),
        input_tokens: Some(100),
        output_tokens: Some(10),
        ..Answer::default()
    }
}
