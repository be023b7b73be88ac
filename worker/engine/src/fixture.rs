//! The fixture of tests: a Skill, and a [`World`] that plays the model, the tools and people for a conversation.

pub(crate) mod attended;
pub(crate) mod checks;
pub(crate) mod seed;
pub(crate) mod staged;

use crate::catalogue::{fix_catalogue, unpinned_tools};
use crate::conversation::Conversation;
use crate::decisions::Decisions;
use crate::event::{Answer, ContextPart, Event, RequestedCall};
use crate::line::{Chain, EventTime};
use crate::next::next;
use crate::offload::{self, Offload};
use crate::people::{HumanRequest, Statement};
use crate::rules::limits::Ledger;
use crate::run::Run;
use crate::stages::calls::child;
use crate::step::Step;
use crate::tool::ListedTool;
use bloomery_crds::Digest;
use bloomery_crds::children::{ChildProgress, ChildRequest, ChildState, VisibleSkill};
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::report::ParkReason;
use bloomery_crds::v1alpha1::{SkillSpec, Stage};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Returns a small Skill of a support desk, without a judging model and a polisher. [`seed::skill`] returns a complete one.
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
        "engine": {"finalizationGate": {"enabled": false}, "replyPolisher": {"enabled": false}},
    }))
    .unwrap()
}

/// Returns the inputs of a Job of [`skill`], without people.
pub(crate) fn run() -> Run {
    Run {
        run_key: "0123-run".into(),
        job: None,
        skill_name: "cs-tier-1".into(),
        skill: skill(),
        revision: Digest::of_bytes(b"revision"),
        goal: "Refund order A-17, it arrived broken".into(),
        limits: EffectiveLimits::DEFAULT,
        resources: Vec::new(),
        context_window: 128_000,
        continues: None,
        pins: None,
        tenant_tools: Vec::new(),
        allowed_effects: None,
        people: false,
        decisions: Decisions::Log,
        depth: 1,
        can_have_children: false,
        has_notes: false,
        max_output: 4_096,
    }
}

/// Returns an open conversation.
pub(crate) fn opened() -> Conversation {
    let mut world = World::new(run(), Vec::new(), |_, _| Reply::Completed("ok"));
    world.play(4);
    world.conversation
}

/// Returns the tools that the server lists.
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
            ..ListedTool::default()
        })
        .collect()
}

/// Returns an answer with calls.
pub(crate) fn asks(calls: &[(&str, Value)]) -> Answer {
    let calls: Vec<RequestedCall> = calls
        .iter()
        .enumerate()
        .map(|(i, (name, arguments))| RequestedCall {
            id: format!("call_{i}"),
            name: (*name).into(),
            arguments: arguments.to_string(),
            secrets: Vec::new(),
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

/// Returns an answer without calls.
pub(crate) fn says(text: &str) -> Answer {
    Answer {
        message: json!({"role": "assistant", "content": text}),
        text: text.into(),
        input_tokens: Some(100),
        output_tokens: Some(10),
        ..Answer::default()
    }
}

/// Returns an answer that fulfils the output contract.
pub(crate) fn good_answer() -> Answer {
    says("Refunded.\n```json\n{\"order_id\": \"A-17\", \"status\": \"refunded\"}\n```")
}

/// Returns the reply to a call of a tool. `times` counts the calls of the tool with effect, this one included.
pub(crate) type Tools = fn(tool: &str, times: u32) -> Reply;

/// Returns the first statement of people about the open requests, or nothing if nobody answers.
pub(crate) type People = fn(&[HumanRequest<'_>]) -> Option<Statement>;

/// The reply of a server to a call.
pub(crate) enum Reply {
    Completed(&'static str),
    Failed(&'static str),
    Lost,
}

/// A conversation, its log, and scripted replacements of the model, the tools and people.
pub(crate) struct World {
    pub(crate) conversation: Conversation,
    pub(crate) log: Vec<String>,
    /// Each call with effect that reached the server: the tool, and the key of the call.
    pub(crate) effects: Vec<(String, Digest)>,
    /// The number of requests to the model in the main loop.
    pub(crate) asked: u32,
    chain: Chain,
    pub(crate) answers: Vec<Answer>,
    /// The answers to the requests of each stage outside the main loop, in order. The last one repeats. Without an entry, the
    /// stage gets an answer with which the Job continues.
    pub(crate) stages: BTreeMap<Stage, Vec<&'static str>>,
    tools: Tools,
    /// The statements of people. By default, nobody answers.
    pub(crate) people: People,
    /// The tools that the server lists.
    pub(crate) listed: Vec<ListedTool>,
    /// The context that the worker gathers.
    pub(crate) gathered: Vec<ContextPart>,
    /// The ledger of the Skill's limits, or the reason why it cannot be used.
    pub(crate) ledger: Result<Ledger, &'static str>,
    /// The Skills that the Job may invoke.
    pub(crate) skills: Vec<VisibleSkill>,
    /// The end of the child that a request names. By default, no child ends.
    pub(crate) child: fn(&ChildRequest) -> ChildProgress,
    /// The time of the ledger, in seconds.
    pub(crate) now: u64,
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
            stages: BTreeMap::new(),
            tools,
            people: |_| None,
            listed: listed(),
            gathered: Vec::new(),
            ledger: Ok(Ledger::default()),
            skills: Vec::new(),
            child: |_| ChildProgress::Running,
            now: 0,
            run,
        };
        world.record(Event::EpochStarted { epoch: 1, attempt: 1, after_disruption: false });
        world
    }

    /// Appends an event to the log and applies it.
    pub(crate) fn record(&mut self, event: Event) {
        let stamp = EventTime { time: "2026-01-01T00:00:00Z".into(), elapsed_ms: 10 };
        let (line, entry) = self.chain.append(event, stamp).unwrap();
        self.conversation.apply(&entry);
        self.log.push(line);
    }

    /// Runs until the log has `events` lines, or until no step is left.
    pub(crate) fn play(&mut self, events: usize) -> &mut Self {
        while self.log.len() < events {
            if !self.step() {
                break;
            }
        }
        self
    }

    /// Runs until no step is left, or until people do not answer.
    pub(crate) fn play_out(&mut self) -> &mut Self {
        self.play(10_000)
    }

    pub(crate) fn play_until(&mut self, is_reached: fn(&Conversation) -> bool) -> &mut Self {
        while !is_reached(&self.conversation) && self.step() {}
        self
    }

    /// Performs the next step. Returns whether there may be another one.
    fn step(&mut self) -> bool {
        let events = match next(&self.conversation) {
            Step::Done(_) => return false,
            Step::Record(events) => events,
            Step::ListTools => {
                let unpinned = unpinned_tools(&self.run, &self.listed);
                std::iter::once(fix_catalogue(&self.run, self.listed.clone())).chain(unpinned).collect()
            }
            Step::GatherContext => vec![Event::ContextGathered { parts: self.gathered.clone() }],
            Step::CallModel(request) => {
                let (reserve, stage) = (request.reserve, request.stage);
                let answer = self.answer(stage);
                self.asked += u32::from(stage == Stage::Plan);
                vec![Event::ModelRequested { reserve, stage }, Event::ModelAnswered { answer }]
            }
            Step::Offload(results) => results.iter().map(offloaded).collect(),
            Step::AskPeople(requests) => {
                let Some(statement) = (self.people)(&requests) else {
                    self.record(Event::Parked { reason: ParkReason::Approval });
                    return false;
                };
                vec![statement.into()]
            }
            Step::RunReads(calls) => {
                let calls: Vec<_> = calls.iter().map(|call| (call.id.clone(), call.tool.to_owned())).collect();
                calls.into_iter().map(|(id, tool)| self.outcome(id, &tool)).collect()
            }
            Step::Reserve(reservation) => {
                let (answer, changed) = match &self.ledger {
                    Ok(ledger) => reservation.decide(ledger, self.now),
                    Err(fault) => (reservation.failed((*fault).to_owned()), None),
                };
                let events = vec![Event::LimitsReserved { call: reservation.call.clone(), answer }];
                self.ledger = changed.map_or_else(|| self.ledger.clone(), Ok);
                events
            }
            Step::GiveBack { call, key } => {
                let events = vec![Event::LimitsReturned { call: call.clone(), fault: None }];
                self.ledger = self.ledger.clone().map(|ledger| ledger.without(&key).unwrap_or(ledger));
                events
            }
            Step::InvokeSkill(call) => self.conversation.start_child(call, &self.skills, format!("child-of-{call}")),
            Step::AwaitChild(request) => {
                let Some(event) = self.end_of_child(request) else {
                    self.record(Event::Parked { reason: ParkReason::Children });
                    return false;
                };
                vec![event]
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

    /// Returns the event of the end of a child, if it has ended.
    fn end_of_child(&self, request: ChildRequest) -> Option<Event> {
        let (state, job) = ((self.child)(&request), format!("child-of-{}", request.call));
        child::event_of(ChildState { call: request.call, job, state })
    }

    /// Returns the next scripted answer. The position in the script is a count of the log, so a resumed worker gets the same
    /// answers.
    fn answer(&self, stage: Stage) -> Answer {
        let budget = self.conversation.budget();
        let position = match stage {
            Stage::Plan => return self.answers.get(budget.answers() as usize).cloned().unwrap_or_else(good_answer),
            Stage::Intent => budget.requests().intent,
            Stage::Selection => budget.requests().selection,
            Stage::Finalization => budget.requests().finalization,
            Stage::Polish => budget.requests().polish,
        };
        // A lost request counts too, so the script may be at its end.
        let scripted =
            self.stages.get(&stage).and_then(|answers| answers.get(position as usize).or_else(|| answers.last()));
        says(scripted.copied().unwrap_or(match stage {
            Stage::Finalization => r#"{"passed": true, "score": 0.9, "reasons": [], "missing_fields": []}"#,
            Stage::Selection => r#"{"tools": []}"#,
            Stage::Plan | Stage::Intent | Stage::Polish => "Refunded.",
        }))
    }

    /// Returns the event with the result of a call.
    fn outcome(&self, call: crate::event::CallId, tool: &str) -> Event {
        let times = u32::try_from(self.effects.iter().filter(|(name, _)| name == tool).count()).unwrap();
        match (self.tools)(tool, times) {
            Reply::Completed(text) => Event::ToolCompleted { call, text: text.into() },
            Reply::Failed(text) => Event::ToolFailed { call, text: text.into() },
            Reply::Lost => Event::ToolIndeterminate { call, text: "the connection was cut".into() },
        }
    }

    /// Returns another worker that takes over from the first `events` lines of this log.
    pub(crate) fn resumed_from(&self, events: usize) -> Self {
        self.resumed(events, self.run.clone())
    }

    /// Returns another worker that takes over the whole log, with other inputs.
    pub(crate) fn resumed_with(&self, run: Run) -> Self {
        self.resumed(self.log.len(), run)
    }

    fn resumed(&self, events: usize, run: Run) -> Self {
        let mut world = Self {
            conversation: Conversation::new(run.clone()),
            log: self.log[..events].to_vec(),
            effects: Vec::new(),
            asked: 0,
            chain: Chain::new("/test"),
            answers: self.answers.clone(),
            stages: self.stages.clone(),
            tools: self.tools,
            people: self.people,
            listed: self.listed.clone(),
            gathered: self.gathered.clone(),
            ledger: self.ledger.clone(),
            skills: self.skills.clone(),
            child: self.child,
            now: self.now,
            run,
        };
        for line in self.log.iter().take(events) {
            let entry = world.chain.read(line).unwrap();
            world.conversation.apply(&entry);
        }
        let epoch = world.conversation.epoch() + 1;
        world.record(Event::EpochStarted { epoch, attempt: 2, after_disruption: false });
        world
    }

    /// Returns the names of all events in the log.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let mut chain = Chain::new("/test");
        self.log.iter().map(|line| chain.read(line).unwrap().event.name()).collect()
    }
}

/// Returns the event of an offloaded result.
fn offloaded(result: &Offload<'_>) -> Event {
    let handle = Digest::of_bytes(result.text.as_bytes());
    let excerpt = offload::short_excerpt(result.text, &handle);
    offload::offloaded(result.call.clone(), result.text, excerpt, handle)
}
