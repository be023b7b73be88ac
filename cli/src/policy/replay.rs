//! Replays the calls of a case through the engine. The engine decides as in a run: only the model, the tools and people are scripted.

use super::evidence::Evidence;
use super::inputs;
use super::test_file::{Case, CaseVerdict, TestedCall};
use super::untested;
use bloomery_crds::Digest;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::{DetectedIntent, GateReason, Stage, Verdict};
use bloomery_embed::run::skill::LoadedSkill;
use bloomery_engine::catalogue::fix_catalogue;
use bloomery_engine::event::{Answer, CallId, Decision, RequestedCall, RulingReason};
use bloomery_engine::line::{Chain, EventTime};
use bloomery_engine::offload::{MAX_INLINE_BYTES, excerpt, offloaded};
use bloomery_engine::people::{HumanRequest, Statement};
use bloomery_engine::rules::limits::Ledger;
use bloomery_engine::stages::selection;
use bloomery_engine::step::ToolCall;
use bloomery_engine::tool::ListedTool;
use bloomery_engine::{Conversation, Event, Step, next};
use serde::Serialize;
use serde_json::{Value, json};

/// The name of the people in a case.
const PERSON: &str = "policy-test";

/// The ruling on one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRuling {
    /// The name of the case.
    pub case: String,
    /// The position of the call in the case, from 1.
    pub call: usize,
    /// The tool.
    pub tool: String,
    /// The first verdict on the call. None if the Job had ended before. A call of `subgoal_done` that closes no step counts as denied.
    pub verdict: Option<CaseVerdict>,
    /// The expected verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<CaseVerdict>,
    /// The reasons of the verdict, or the outcome of the Job that had ended.
    pub reasons: Vec<String>,
    /// Whether the verdict and the reasons are as expected.
    pub passed: bool,
}

/// Replays a case. `listed` are the tools of the server; by default those that the Skill declares.
///
/// # Errors
/// If the case or the Skill cannot be used.
pub fn replay(case: &Case, skill: &LoadedSkill, listed: Option<&[ListedTool]>) -> Result<Vec<CallRuling>, String> {
    let run = inputs::run_of(case, skill)?;
    let tools = inputs::tools(&skill.spec, listed);
    let mut replay = Replay {
        conversation: Conversation::new(run),
        chain: Chain::new("/policy-test"),
        case,
        tools,
        asked: 0,
        replied: 0,
        evidence: Evidence::default(),
        ledger: Ledger::default(),
        rulings: Vec::new(),
    };
    replay.record(Event::EpochStarted { epoch: 1, attempt: 1, after_disruption: false })?;
    while replay.step()? {}
    if let Some(outcome) = replay.conversation.outcome().filter(|outcome| outcome.code == OutcomeCode::PolicyInvalid) {
        let hint =
            if listed.is_some() { "" } else { " If the server has other tools than the Skill declares, add --tools." };
        return Err(format!("{}{hint}", outcome.message));
    }
    Ok(replay.rulings())
}

/// A conversation whose model, tools and people are those of a case.
struct Replay<'a> {
    conversation: Conversation,
    chain: Chain,
    case: &'a Case,
    tools: Vec<ListedTool>,
    /// The number of calls that the model has requested.
    asked: usize,
    /// The number of calls whose messages of people are recorded.
    replied: usize,
    /// The results that close steps of workflows.
    evidence: Evidence,
    /// The ledger of the Skill's limits. It begins empty.
    ledger: Ledger,
    /// The first ruling on each call.
    rulings: Vec<(CallId, Verdict, Vec<RulingReason>)>,
}

impl Replay<'_> {
    fn record(&mut self, event: Event) -> Result<(), String> {
        if let Event::ToolRuled { call, verdict, reasons } = &event
            && self.rulings.iter().all(|(ruled, ..)| ruled != call)
        {
            self.rulings.push((call.clone(), *verdict, reasons.clone()));
        }
        let stamp = EventTime { time: "1970-01-01T00:00:00Z".to_owned(), elapsed_ms: 0 };
        let (_, entry) = self.chain.append(event, stamp).map_err(|error| error.to_string())?;
        self.evidence.record(self.asked, &entry);
        self.conversation.apply(&entry);
        Ok(())
    }

    /// Takes the refusal of a call that the gate has allowed and that the engine answers itself, such as a call of `subgoal_done`.
    fn refuse(&mut self, event: &Event) {
        let Event::ToolFailed { call, text } = event else { return };
        let detail = self.current().map_or_else(|| text.clone(), |tested| self.evidence.refusal_of(tested, text));
        let Some((_, verdict, reasons)) = self.rulings.iter_mut().find(|(ruled, ..)| ruled == call) else { return };
        *verdict = Verdict::Deny;
        reasons.push(RulingReason { layer: GateReason::Workflow, detail, approver: None, rule: None });
    }

    /// Performs the next step. Returns whether there is another one.
    fn step(&mut self) -> Result<bool, String> {
        let events = match next(&self.conversation) {
            Step::Done(_) | Step::AwaitChild(_) => return Ok(false),
            Step::Record(events) => {
                for event in &events {
                    self.refuse(event);
                }
                events
            }
            Step::ListTools => vec![fix_catalogue(self.conversation.run(), self.tools.clone())],
            Step::GatherContext => vec![Event::ContextGathered { parts: Vec::new() }],
            Step::CallModel(request) => match self.answer(request.stage) {
                Some(events) => events,
                None => return Ok(false),
            },
            Step::Reserve(reservation) => {
                let (answer, changed) = reservation.decide(&self.ledger, 0);
                let event = Event::LimitsReserved { call: reservation.call.clone(), answer };
                self.replace_ledger(changed);
                vec![event]
            }
            Step::GiveBack { call, key } => {
                let event = Event::LimitsReturned { call: call.clone(), fault: None };
                self.replace_ledger(self.ledger.without(&key));
                vec![event]
            }
            Step::RunReads(calls) => calls.iter().map(|call| self.outcome(call.id)).collect(),
            Step::RunEffect(ToolCall { id: call, .. }) | Step::InvokeSkill(call) => {
                vec![Event::ToolStarted { call: call.clone() }, self.outcome(call)]
            }
            Step::AskPeople(requests) => match requests.first() {
                Some(request) => vec![self.statement(request).into()],
                None => return Ok(false),
            },
            Step::Offload(_) => return Err("its results are too large".to_owned()),
        };
        if events.is_empty() {
            return Ok(false);
        }
        events.into_iter().try_for_each(|event| self.record(event))?;
        self.replied = self.replied.max(self.asked);
        Ok(true)
    }

    /// Replaces the ledger by its next state, if it changes.
    fn replace_ledger(&mut self, next: Option<Ledger>) {
        if let Some(next) = next {
            self.ledger = next;
        }
    }

    /// Returns the answer of the model: the next call, after the messages of people. `None` if there is no other call.
    fn answer(&mut self, stage: Stage) -> Option<Vec<Event>> {
        match stage {
            Stage::Intent => {
                let intent = DetectedIntent { id: self.case.intent.clone(), ..DetectedIntent::default() };
                return Some(vec![Event::IntentDetected { intent, missing: Vec::new() }]);
            }
            Stage::Selection => return selection::from_cache(&self.conversation, Vec::new()).map(|event| vec![event]),
            Stage::Plan => {}
            Stage::Finalization | Stage::Polish => return None,
        }
        let call = self.case.calls.get(self.asked)?;
        if self.replied == self.asked && !call.replies.is_empty() {
            self.replied += 1;
            let message = |text: &String| Statement::Message { text: text.clone(), by: PERSON.to_owned(), nth: None };
            return Some(call.replies.iter().map(|text| message(text).into()).collect());
        }
        self.asked += 1;
        let visible = self.conversation.visible_tools();
        let alias = visible.iter().find(|tool| tool.name == call.tool).map_or(&call.tool, |tool| &tool.alias);
        let requested = RequestedCall {
            id: format!("call_{}", self.asked),
            name: alias.clone(),
            arguments: self.evidence.arguments_of(call),
            secrets: Vec::new(),
        };
        let message =
            json!({"role": "assistant", "tool_calls": [{"id": requested.id, "function": {"name": requested.name}}]});
        let answer = Answer {
            message,
            calls: vec![requested],
            input_tokens: Some(0),
            output_tokens: Some(0),
            ..Answer::default()
        };
        Some(vec![Event::ModelRequested { reserve: 0, stage }, Event::ModelAnswered { answer }])
    }

    /// Returns the call of the case that is under way.
    fn current(&self) -> Option<&TestedCall> {
        self.case.calls.get(self.asked.checked_sub(1)?)
    }

    /// Returns the scripted result of the call that is under way. A large one is offloaded as in a run, so no condition reads it.
    fn outcome(&self, id: &CallId) -> Event {
        let call = id.clone();
        if let Some(text) = self.current().and_then(|call| call.failed.clone()) {
            return Event::ToolFailed { call, text };
        }
        let text = self.result();
        if text.len() <= MAX_INLINE_BYTES {
            return Event::ToolCompleted { call, text };
        }
        let handle = Digest::of_bytes(text.as_bytes());
        let seen = excerpt(&text, &handle);
        offloaded(call, &text, seen, handle)
    }

    fn result(&self) -> String {
        match self.current().and_then(|call| call.result.as_ref()) {
            None => "ok".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        }
    }

    /// Returns the statement of people about a request: the decision or the answer of the case.
    fn statement(&self, request: &HumanRequest<'_>) -> Statement {
        match request {
            HumanRequest::Approval(request) => {
                let approver = request.approvers.first().copied().unwrap_or_default().to_owned();
                let decision = Decision { approver, by: PERSON.to_owned(), reason: None };
                let is_approved = self.current().is_some_and(|call| call.approve);
                if is_approved { request.approve(decision) } else { request.deny(decision) }
            }
            HumanRequest::Question(open) => {
                let text = open.question.choices.first().cloned().unwrap_or_else(|| self.result());
                Statement::Reply { question: open.question.id.clone(), text, by: PERSON.to_owned(), nth: None }
            }
        }
    }

    /// Returns the ruling on each call of the case. The calls after the end of the Job have none.
    fn rulings(&self) -> Vec<CallRuling> {
        let ended = self.conversation.outcome().map(|outcome| format!("the Job had ended: {}", outcome.message));
        let calls = self.case.calls.iter().enumerate();
        calls
            .map(|(at, call)| {
                let ruled = self.rulings.get(at);
                let of_rules = ruled.map(|(_, _, reasons)| reasons.as_slice()).unwrap_or_default();
                let verdict = ruled.map(|(_, verdict, _)| CaseVerdict::from(*verdict));
                let fault = untested::fault(call, &self.conversation.run().skill, &self.tools, of_rules);
                let details = of_rules.iter().map(|reason| reason.detail.clone());
                let of_end = ended.clone().filter(|_| ruled.is_none());
                let reasons: Vec<String> = details.chain(of_end).chain(fault.clone()).collect();
                let has_verdict = call.expect.is_none_or(|expected| verdict == Some(expected));
                let has_reason =
                    call.reason.as_ref().is_none_or(|text| reasons.iter().any(|reason| reason.contains(text)));
                CallRuling {
                    case: self.case.name.clone(),
                    call: at + 1,
                    tool: call.tool.clone(),
                    verdict,
                    expected: call.expect,
                    passed: has_verdict && has_reason && verdict.is_some() && fault.is_none(),
                    reasons,
                }
            })
            .collect()
    }
}

impl From<Verdict> for CaseVerdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Allow => Self::Allow,
            Verdict::Hold => Self::Hold,
            Verdict::Deny => Self::Deny,
        }
    }
}
