//! A Skill, and a world that plays the model and the tools, for tests.

use super::{Conversation, fix_catalogue};
use crate::event::{Answer, AskedCall, Event};
use crate::line::{Chain, Stamp};
use crate::run::Run;
use crate::step::{Step, next};
use crate::tool::ListedTool;
use bloomery_crds::Digest;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::v1alpha1::SkillSpec;
use serde_json::{Value, json};

/// A Skill of the support desk, as seed 002 has it.
pub(crate) fn skill() -> SkillSpec {
    serde_json::from_value(json!({
        "displayName": "CS: Tier 1",
        "problem": {
            "statement": "Help customers track orders and process refunds",
            "goals": ["Reduce response time", "Increase satisfaction"],
        },
        "role": {"name": "Support Agent", "persona": "Friendly and empathetic customer support specialist"},
        "tools": [
            {"name": "verify_identity", "readOnly": true},
            {"name": "check_eligibility", "readOnly": true},
            {"name": "process_refund"},
            {"name": "note", "idempotent": true},
        ],
        "policy": {"tools": {"blocked": ["delete_customer"]}},
        "outputContract": {"requiredFields": ["order_id", "status"]},
    }))
    .unwrap()
}

pub(crate) fn run() -> Run {
    Run {
        run_key: "0123-run".into(),
        skill_name: "cs-tier-1".into(),
        skill: skill(),
        revision: Digest::of_bytes(b"revision"),
        goal: "Refund order A-17, it arrived broken".into(),
        limits: EffectiveLimits::DEFAULT,
    }
}

pub(crate) fn listed() -> Vec<ListedTool> {
    ["verify_identity", "check_eligibility", "process_refund", "note", "delete_customer"]
        .into_iter()
        .map(|name| ListedTool {
            name: name.into(),
            description: format!("The tool {name}"),
            input_schema: json!({
                "type": "object", "required": ["order_id"], "additionalProperties": false,
                "properties": {"order_id": {"type": "string"}, "amount": {"type": "number"}},
            }),
            read_only_hint: None,
        })
        .collect()
}

/// An answer that asks for tools.
pub(crate) fn asks(calls: &[(&str, Value)]) -> Answer {
    let calls: Vec<AskedCall> = calls
        .iter()
        .enumerate()
        .map(|(i, (name, arguments))| AskedCall {
            id: format!("call_{i}"),
            name: (*name).into(),
            arguments: arguments.to_string(),
        })
        .collect();
    Answer {
        message: json!({"role": "assistant", "tool_calls": calls.iter().map(|c| &c.name).collect::<Vec<_>>()}),
        calls,
        input_tokens: Some(100),
        output_tokens: Some(10),
        ..Answer::default()
    }
}

/// An answer in words.
pub(crate) fn says(text: &str) -> Answer {
    Answer {
        message: json!({"role": "assistant", "content": text}),
        text: text.into(),
        input_tokens: Some(100),
        output_tokens: Some(10),
        ..Answer::default()
    }
}

/// An answer that meets the contract.
pub(crate) fn good_answer() -> Answer {
    says("Refunded.\n```json\n{\"order_id\": \"A-17\", \"status\": \"refunded\"}\n```")
}

/// What the world does with a call that is made.
pub(crate) type Tools = fn(tool: &str, times: u32) -> Reply;

/// What comes back of a call.
pub(crate) enum Reply {
    Completed(&'static str),
    Failed(&'static str),
    Lost,
}

/// A conversation, the log that it is folded from, and the world that it acts on.
pub(crate) struct World {
    pub(crate) conversation: Conversation,
    pub(crate) log: Vec<String>,
    /// Each call that reached the server: tool and call key.
    pub(crate) effects: Vec<(String, Digest)>,
    pub(crate) asked: u32,
    chain: Chain,
    answers: Vec<Answer>,
    tools: Tools,
    run: Run,
}

impl World {
    pub(crate) fn new(run: Run, answers: Vec<Answer>, tools: Tools) -> Self {
        let mut world = Self {
            conversation: Conversation::new(run.clone()),
            log: Vec::new(),
            effects: Vec::new(),
            asked: 0,
            chain: Chain::new("/test"),
            answers,
            tools,
            run,
        };
        world.record(Event::EpochStarted { epoch: 1, attempt: 1 });
        world
    }

    pub(crate) fn record(&mut self, event: Event) {
        let stamp = Stamp { time: "2026-01-01T00:00:00Z".into(), elapsed_ms: 10 };
        let (line, entry) = self.chain.append(event, stamp).unwrap();
        self.conversation.apply(&entry);
        self.log.push(line);
    }

    /// Runs to the end, or to the first `events` lines of the log.
    pub(crate) fn play(&mut self, events: usize) -> &mut Self {
        while self.log.len() < events {
            if !self.step() {
                break;
            }
        }
        self
    }

    pub(crate) fn play_out(&mut self) -> &mut Self {
        self.play(10_000)
    }

    fn step(&mut self) -> bool {
        let events = match next(&self.conversation) {
            Step::Done(_) => return false,
            Step::Record(events) => events,
            Step::ListTools => vec![fix_catalogue(&self.run, listed())],
            Step::CallModel(request) => {
                let reserve = request.reserve;
                // The script's position is in the history, so a resumed worker gets the same answer.
                let position = self.conversation.budget().answers() as usize;
                let answer = self.answers.get(position).cloned().unwrap_or_else(good_answer);
                self.asked += 1;
                vec![Event::ModelRequested { reserve }, Event::ModelAnswered { answer }]
            }
            Step::RunReads(calls) => {
                let calls: Vec<_> = calls.iter().map(|call| (call.id.clone(), call.tool.to_owned())).collect();
                calls.into_iter().map(|(id, tool)| self.outcome(id, &tool)).collect()
            }
            Step::RunEffect(call) => {
                let (id, tool, key) = (call.id.clone(), call.tool.to_owned(), call.key.clone());
                self.record(Event::ToolStarted { call: id.clone() });
                self.effects.push((tool.clone(), key));
                vec![self.outcome(id, &tool)]
            }
        };
        for event in events {
            self.record(event);
        }
        true
    }

    fn outcome(&self, call: crate::event::CallId, tool: &str) -> Event {
        let times = u32::try_from(self.effects.iter().filter(|(name, _)| name == tool).count()).unwrap();
        match (self.tools)(tool, times) {
            Reply::Completed(text) => Event::ToolCompleted { call, text: text.into() },
            Reply::Failed(text) => Event::ToolFailed { call, text: text.into() },
            Reply::Lost => Event::ToolIndeterminate { call, text: "the connection was cut".into() },
        }
    }

    /// Another worker takes over from the first `events` lines of this log.
    pub(crate) fn resumed_from(&self, events: usize) -> Self {
        let mut world = Self {
            conversation: Conversation::new(self.run.clone()),
            log: self.log[..events].to_vec(),
            effects: Vec::new(),
            asked: 0,
            chain: Chain::new("/test"),
            answers: self.answers.clone(),
            tools: self.tools,
            run: self.run.clone(),
        };
        for line in self.log.iter().take(events) {
            let entry = world.chain.read(line).unwrap();
            world.conversation.apply(&entry);
        }
        let epoch = world.conversation.epoch() + 1;
        world.record(Event::EpochStarted { epoch, attempt: 2 });
        world
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        let mut chain = Chain::new("/test");
        self.log.iter().map(|line| chain.read(line).unwrap().event.name()).collect()
    }
}
