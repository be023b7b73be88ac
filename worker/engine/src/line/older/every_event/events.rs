//! The event of each line of `every-event.jsonl`. Every optional field is present in one event and absent in another.

use crate::amount::Amount;
use crate::event::{
    Answer, Arguments, CallId, ChildEnd, ContextKind, ContextPart, Decision, Directive, Event, FinalizationRuling,
    FullResult, LimitUse, ModelFailure, PolishOutcome, QuestionId, QuestionSubject, RequestedCall, ReservationAnswer,
    ResourceSummary, RulingReason, SelectedBy, ToolProgress, UserQuestion,
};
use crate::tool::{CatalogueTool, ToolSource};
use bloomery_crds::Digest;
use bloomery_crds::canonical::CanonicalJson;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::report::ParkReason;
use bloomery_crds::tool_pins::ToolChange;
use bloomery_crds::v1alpha1::{
    ChildrenUsage, DetectedIntent, FeatureResult, FinalizationAttempt, FinalizationCode, FinalizationReason,
    GateReason, HeldCall, Limits, LlmCalls, ModelProvider, OutOfDomainAction, ResourceType, Stage, SuggestedAction,
    ToolPolicy, Usage, Verdict,
};
use serde_json::{Map, Value, json};

pub(super) fn all() -> Vec<Event> {
    [
        opening(),
        intents(),
        model(),
        requested(),
        ruled(),
        call_outcomes(),
        finalization(),
        limits_and_parks(),
        finished(),
        tool_selections(),
        people(),
        secret(),
        context(),
        tool_changes(),
        other_models(),
        endpoints(),
        notes(),
        earlier_conversation(),
        directives(),
        skill_deletion(),
        disruption(),
        invalid_policy(),
        limits_over_calls(),
        attachment(),
        stricter_inputs(),
        unpinned(),
        tenant_tools(),
        validation(),
        children(),
    ]
    .concat()
}

fn opening() -> Vec<Event> {
    let tool = CatalogueTool {
        name: "orders.refund".into(),
        alias: "orders_refund-0a1b2c3d".into(),
        description: "Gives the money back.".into(),
        input_schema: json!({"type": "object", "properties": {"amount": {"type": "number", "maximum": 0.1}}}),
        output_schema: None,
        digest: Digest::of_bytes(b"refund"),
        source: ToolSource::Server,
        read_only: false,
        idempotent: true,
        visible: true,
    };
    let without_description = CatalogueTool {
        name: "focus_read".into(),
        alias: "focus_read".into(),
        description: String::new(),
        digest: Digest::of_bytes(b"focus"),
        source: ToolSource::Core,
        read_only: true,
        visible: false,
        ..tool.clone()
    };
    let resource = |name: &str, kind, rendering: Option<&str>| ResourceSummary {
        name: name.into(),
        kind,
        rendering: rendering.map(str::to_owned),
    };
    vec![
        Event::EpochStarted { epoch: 1, attempt: 2, after_disruption: false },
        Event::CatalogueFixed { tools: vec![tool, without_description] },
        Event::ResourcesBound {
            resources: vec![
                resource("code", ResourceType::Filesystem, Some("/resources/code")),
                resource("shop", ResourceType::ApiEndpoint, Some("https://shop.example")),
                resource("orders", ResourceType::ConnectionString, None),
                resource("token", ResourceType::Credential, None),
            ],
        },
        Event::ResourcesBound { resources: Vec::new() },
        Event::ConversationOpened {
            run_key: "u-1".into(),
            revision: Digest::of_bytes(b"revision"),
            system: "You are a \"Support Agent\".\n\n# Problem\nHelp – whatever it takes.".into(),
            goal: "Refund A-17\u{2028}it arrived broken 💔".into(),
            limits: EffectiveLimits { steps: 1, tool_calls: 2, tokens: u64::MAX, duration_seconds: 4 },
        },
    ]
}

fn intents() -> Vec<Event> {
    let detected = DetectedIntent {
        id: Some("intent_refund".into()),
        entities: object(json!({"order_id": "A-17", "amount": 49.9})),
        out_of_domain: false,
    };
    let without_entities = DetectedIntent { entities: Map::new(), ..detected.clone() };
    let out_of_domain = DetectedIntent { out_of_domain: true, ..DetectedIntent::default() };
    vec![
        Event::IntentDetected { intent: detected, missing: Vec::new() },
        Event::IntentDetected { intent: without_entities, missing: vec!["order_id".into()] },
        Event::IntentDetected { intent: out_of_domain, missing: Vec::new() },
    ]
}

fn model() -> Vec<Event> {
    let requested = |reserve, stage| Event::ModelRequested { reserve, stage };
    let failed = |kind, message: &str| Event::ModelFailed { kind, message: message.into() };
    let with_text = Answer {
        message: json!({"role": "assistant", "content": "Done.", "refusal": null}),
        text: "Done.".into(),
        calls: Vec::new(),
        input_tokens: Some(100),
        output_tokens: Some(10),
        ..Answer::default()
    };
    let with_call = Answer {
        text: String::new(),
        calls: vec![RequestedCall {
            id: "call_0".into(),
            name: "orders_refund".into(),
            arguments: "{\"amount\":1}".into(),
            secrets: Vec::new(),
        }],
        input_tokens: None,
        output_tokens: None,
        cut: true,
        ..with_text.clone()
    };
    vec![
        requested(4_000, Stage::Intent),
        requested(5_000, Stage::Plan),
        requested(6_000, Stage::Finalization),
        requested(0, Stage::Polish),
        Event::ModelAnswered { answer: with_text },
        Event::ModelAnswered { answer: with_call },
        failed(ModelFailure::Unreadable, "no JSON"),
        failed(ModelFailure::Unavailable, "503"),
        failed(ModelFailure::InvalidAnswer, "the field \"intent\" is missing"),
    ]
}

fn other_models() -> Vec<Event> {
    let answer = Answer {
        message: json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}]}),
        provider: ModelProvider::Anthropic,
        model: Some("fast".into()),
        input_tokens: Some(100),
        cached_tokens: Some(90),
        ..Answer::default()
    };
    let message = "The conversation is longer than the model takes.".into();
    vec![Event::ModelAnswered { answer }, Event::ModelFailed { kind: ModelFailure::TooLong, message }]
}

fn requested() -> Vec<Event> {
    let order =
        CanonicalJson::new(json!({"order": 9_007_199_254_740_993_u64, "amount": 49.9, "notes": ["é", null, true]}));
    vec![
        Event::ToolRequested {
            call: CallId::new(11, 0),
            tool: "orders_refund".into(),
            arguments: Arguments::Canonical(order),
        },
        Event::ToolRequested {
            call: call(),
            tool: "orders_refund".into(),
            arguments: Arguments::Malformed { reason: "the key \"order\" appears twice in one object".into() },
        },
    ]
}

fn ruled() -> Vec<Event> {
    let held = |layer, approver: Option<&str>| RulingReason {
        layer,
        detail: format!("{layer} holds it"),
        approver: approver.map(str::to_owned),
        rule: None,
    };
    let denied =
        |layer: GateReason| RulingReason { layer, detail: format!("{layer} denies it"), approver: None, rule: None };
    let ruled = |verdict, reasons| Event::ToolRuled { call: call(), verdict, reasons };
    let held_call = HeldCall {
        id: "11-1".into(),
        tool: "orders.refund".into(),
        digest: Digest::of_bytes(b"arguments"),
        approvers: vec!["default".into(), "supervisor".into()],
        reason: "amount > 500".into(),
    };
    vec![
        ruled(Verdict::Allow, Vec::new()),
        ruled(
            Verdict::Hold,
            vec![held(GateReason::ToolPolicy, Some("default")), held(GateReason::Approval, Some("supervisor"))],
        ),
        ruled(
            Verdict::Deny,
            vec![
                denied(GateReason::Catalogue),
                denied(GateReason::Policy),
                denied(GateReason::Guardrail),
                denied(GateReason::Workflow),
                denied(GateReason::Schema),
                denied(GateReason::Limit),
            ],
        ),
        Event::ToolHeld { held: held_call.clone() },
        Event::ToolHeld { held: HeldCall { approvers: Vec::new(), ..held_call } },
    ]
}

fn call_outcomes() -> Vec<Event> {
    vec![
        Event::ToolSkipped { call: call(), because: CallId::new(11, 0) },
        Event::ToolStarted { call: call() },
        Event::ToolCompleted { call: call(), text: "{\"status\":\"refunded\"}".into() },
        Event::ToolFailed { call: call(), text: "no such order".into() },
        Event::ToolIndeterminate { call: call(), text: "the connection was cut".into() },
        Event::ResultOffloaded {
            call: call(),
            handle: Digest::of_bytes(b"whole"),
            bytes: 1_048_576,
            excerpt: "first lines\n[...]\nlast lines".into(),
        },
        Event::SubgoalDone { step: "sg_Refund Processing_2".into(), evidence: 28, not_applicable: false },
        Event::SubgoalDone { step: "sg_Refund Processing_3".into(), evidence: 28, not_applicable: true },
    ]
}

fn finalization() -> Vec<Event> {
    let attempt = |code: FinalizationCode, action| FinalizationAttempt {
        passed: false,
        score: None,
        reasons: vec![FinalizationReason { code, detail: format!("it says {code}") }],
        missing_fields: Vec::new(),
        suggested_action: Some(action),
    };
    let ruled = |ruling| Event::GateRuled { ruling };
    let incomplete = FinalizationAttempt {
        missing_fields: vec!["status".into(), "next_steps".into()],
        ..attempt(FinalizationCode::MissingRequiredField, SuggestedAction::Rewrite)
    };
    let unreadable = attempt(FinalizationCode::OutputIncomplete, SuggestedAction::Rewrite);
    let unmet = attempt(FinalizationCode::GoalNotMet, SuggestedAction::ToolCall);
    let violating = attempt(FinalizationCode::GuardrailViolated, SuggestedAction::Escalate);
    let rude = attempt(FinalizationCode::ToneMismatch, SuggestedAction::ClarifyUser);
    let good = FinalizationAttempt { passed: true, score: Some(0.1), ..FinalizationAttempt::default() };
    vec![
        ruled(FinalizationRuling::FormError(unreadable)),
        ruled(FinalizationRuling::FormError(incomplete)),
        ruled(FinalizationRuling::Attempt(FinalizationAttempt { score: Some(0.0), ..unmet })),
        ruled(FinalizationRuling::Attempt(violating)),
        ruled(FinalizationRuling::Attempt(rude)),
        ruled(FinalizationRuling::NoNewEvidence),
        ruled(FinalizationRuling::Skipped),
        ruled(FinalizationRuling::Attempt(good)),
        Event::ReplyPolished { polish: PolishOutcome::Polished("All is well, dear customer!".into()) },
        Event::ReplyPolished { polish: PolishOutcome::Kept("the number 50 is lost".into()) },
    ]
}

fn limits_and_parks() -> Vec<Event> {
    let limit = |code: OutcomeCode| Event::LimitHit { code, message: format!("{code} is spent") };
    vec![
        limit(OutcomeCode::StepLimit),
        limit(OutcomeCode::ToolCallLimit),
        limit(OutcomeCode::TokenLimit),
        limit(OutcomeCode::DurationLimit),
        Event::Parked { reason: ParkReason::Drain },
        Event::Parked { reason: ParkReason::Approval },
    ]
}

fn finished() -> Vec<Event> {
    let finished = |outcome, result| Event::Finished { outcome, result };
    let answer = FullResult {
        text: "50 EUR are on their way.".into(),
        fields: object(json!({"order_id": "A-17", "amount": 50.0, "items": [1, -2]})),
        verified: true,
        polished: true,
    };
    let draft = FullResult { text: "Three.".into(), ..FullResult::default() };
    let failed = |code: OutcomeCode| finished(Outcome::new(code, format!("It ended with {code}.")), None);
    let out_of_domain =
        |action| finished(Outcome::out_of_domain(action, "I can only help with orders and refunds"), None);
    vec![
        finished(Outcome::new(OutcomeCode::Succeeded, "The answer passed every gate."), Some(answer)),
        finished(Outcome::new(OutcomeCode::GateFailed, "No answer passed."), Some(draft)),
        failed(OutcomeCode::StepLimit),
        failed(OutcomeCode::ToolCallLimit),
        failed(OutcomeCode::TokenLimit),
        failed(OutcomeCode::DurationLimit),
        failed(OutcomeCode::Stuck),
        failed(OutcomeCode::CrashLoop),
        failed(OutcomeCode::McpUnavailable),
        failed(OutcomeCode::ModelUnavailable),
        failed(OutcomeCode::SkillDeleted),
        failed(OutcomeCode::ToolIndeterminate),
        failed(OutcomeCode::UserNeeded),
        out_of_domain(OutOfDomainAction::Redirect),
        out_of_domain(OutOfDomainAction::Refuse),
        out_of_domain(OutOfDomainAction::Escalate),
    ]
}

fn tool_selections() -> Vec<Event> {
    let selected = |by| Event::ToolsSelected { tools: vec!["orders_refund-0a1b2c3d".into()], total: 200, by };
    vec![
        Event::ModelRequested { reserve: 0, stage: Stage::Selection },
        selected(SelectedBy::Model),
        selected(SelectedBy::Memory),
        Event::ToolsSelected { tools: Vec::new(), total: 3, by: SelectedBy::Order },
    ]
}

fn people() -> Vec<Event> {
    let digest = Digest::of_bytes(b"arguments");
    let jane = || "jane@acme.io".to_owned();
    let question = |n, text: &str, choices: &[&str]| UserQuestion {
        id: QuestionId::new(n),
        text: text.into(),
        choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
    };
    let asked = |question, about| Event::UserAsked { question, about };
    let decision = |reason: Option<&str>| Decision {
        approver: "supervisor".into(),
        by: jane(),
        reason: reason.map(str::to_owned),
    };
    let approved = |reason| Event::ToolApproved { call: call(), digest: digest.clone(), decision: decision(reason) };
    let denied = |reason| Event::ToolDenied { call: call(), decision: decision(reason) };
    vec![
        approved(Some("It did arrive broken")),
        approved(None),
        denied(Some("It did not")),
        denied(None),
        asked(question(1, "Which order?", &["A-17", "B-4"]), QuestionSubject::Call(CallId::new(11, 0))),
        asked(question(2, "What is order_id (string)?", &[]), QuestionSubject::Entity("order_id".into())),
        asked(question(3, "What address?", &[]), QuestionSubject::Draft),
        asked(
            question(4, "Did it happen?", &["happened", "did not happen", "stop"]),
            QuestionSubject::LostCall(call()),
        ),
        Event::UserReplied { question: QuestionId::new(1), text: "A-17".into(), by: jane(), nth: None },
        Event::UserMessage { text: "Hurry\nup".into(), by: jane(), nth: None },
        Event::Parked { reason: ParkReason::Reply },
    ]
}

fn secret() -> Vec<Event> {
    let asked = RequestedCall {
        id: "call_1".into(),
        name: "orders_refund".into(),
        arguments: "{\"note\":\"[redacted: token]\"}".into(),
        secrets: vec!["token".into()],
    };
    let answer = Answer { message: json!({"role": "assistant"}), calls: vec![asked], ..Answer::default() };
    let denied =
        RulingReason { layer: GateReason::Secret, detail: "the value of token".into(), approver: None, rule: None };
    vec![
        Event::ModelAnswered { answer },
        Event::ToolRuled { call: call(), verdict: Verdict::Deny, reasons: vec![denied] },
    ]
}

fn context() -> Vec<Event> {
    let structure = ContextPart {
        kind: ContextKind::ProjectStructure,
        source: "code".into(),
        text: "src/\nsrc/main.rs  13 bytes\n[2 entries; the end]".into(),
        fault: None,
    };
    let changes = ContextPart {
        kind: ContextKind::RecentChanges,
        text: String::new(),
        fault: Some("There is no resource `code`; nothing was done.".into()),
        ..structure.clone()
    };
    vec![Event::ContextGathered { parts: vec![structure, changes] }]
}

/// The progress and the drift of a server's tools.
fn tool_changes() -> Vec<Event> {
    let progressed = |progress| Event::ToolProgressed { call: call(), progress };
    let tool = CatalogueTool {
        name: "orders.find".into(),
        alias: "orders_find-0a1b2c3d".into(),
        description: String::new(),
        input_schema: json!({"type": "object"}),
        output_schema: Some(json!({"type": "object", "required": ["id"]})),
        digest: Digest::of_bytes(b"find"),
        source: ToolSource::Server,
        read_only: true,
        idempotent: false,
        visible: true,
    };
    let drifted = |changed: &[&str], missing: &[&str], added: &[&str]| {
        let [changed, missing, added] =
            [changed, missing, added].map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        Event::CatalogueDrifted { changed, missing, added }
    };
    vec![
        Event::CatalogueFixed { tools: vec![tool] },
        progressed(ToolProgress {
            progress: Some(1.0),
            total: Some(3.5),
            level: None,
            message: Some("picking".into()),
        }),
        progressed(ToolProgress { progress: Some(0.1), ..ToolProgress::default() }),
        progressed(ToolProgress {
            level: Some("warning".into()),
            message: Some("stock is low".into()),
            ..ToolProgress::default()
        }),
        drifted(&["orders.refund"], &["orders.note"], &["orders.pay"]),
        drifted(&["orders.find"], &[], &[]),
        drifted(&[], &["orders.find"], &[]),
    ]
}

fn unpinned() -> Vec<Event> {
    let change = ToolChange { tool: "orders.find".into(), change: "its description changed".into() };
    vec![Event::CatalogueUnpinned { tools: vec![change] }]
}

fn endpoints() -> Vec<Event> {
    let detail = "the Skill's rules for `shop` allow no DELETE of /orders/7; they allow GET /orders/*".into();
    let denied = RulingReason { layer: GateReason::Endpoint, detail, approver: None, rule: None };
    vec![Event::ToolRuled { call: call(), verdict: Verdict::Deny, reasons: vec![denied] }]
}

fn call() -> CallId {
    CallId::new(11, 1)
}

fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

/// The notes of other Jobs.
fn notes() -> Vec<Event> {
    let note = ContextPart {
        kind: ContextKind::MemoryBank,
        source: "activeContext.md".into(),
        text: "Orders of 2025 are in the archive.\n".into(),
        fault: None,
    };
    let broken = ContextPart {
        source: "progress.md".into(),
        text: String::new(),
        fault: Some("progress.md is a directory, no note.".into()),
        ..note.clone()
    };
    vec![Event::ContextGathered { parts: vec![note, broken] }]
}

/// The earlier conversation of a follow-up.
fn earlier_conversation() -> Vec<Event> {
    let earlier = ContextPart {
        kind: ContextKind::Earlier,
        source: "refund-0".into(),
        text: "The person asked:\nRefund A-17\n".into(),
        fault: None,
    };
    vec![Event::ContextGathered { parts: vec![earlier] }]
}

/// The deletion of the Skill.
fn skill_deletion() -> Vec<Event> {
    vec![Event::DirectiveReceived { directive: Directive::SkillDeleted }]
}

/// An epoch after a disrupted attempt.
fn disruption() -> Vec<Event> {
    vec![Event::EpochStarted { epoch: 2, attempt: 3, after_disruption: true }]
}

/// A Job that names its run key.
fn attachment() -> Vec<Event> {
    vec![Event::JobAttached { job: "01234567-89ab-cdef-0123-456789abcdef".into() }]
}

/// The end of a Job whose rules do not fit its tools.
fn invalid_policy() -> Vec<Event> {
    let message = "Rules of the Skill do not fit its tools.";
    vec![Event::Finished { outcome: Outcome::new(OutcomeCode::PolicyInvalid, message), result: None }]
}

/// The reservation of a call in the ledger of the Skill, its return, and a limit that holds a call.
fn limits_over_calls() -> Vec<Event> {
    let used = |units: u64| LimitUse { limit: 1, used: Amount::of_number(&units.into()).unwrap() };
    let answer = ReservationAnswer { reserved: true, forced: false, used: vec![used(800)], fault: None };
    let failed = ReservationAnswer {
        reserved: false,
        forced: true,
        used: Vec::new(),
        fault: Some("the memory is read-only".into()),
    };
    let held = RulingReason {
        layer: GateReason::Approval,
        detail: "amount in 24h: 800 before, 1300 with this call, at most 1000".into(),
        approver: Some("finance".into()),
        rule: Some("policy.limits[1]".into()),
    };
    vec![
        Event::LimitsReserved { call: call(), answer },
        Event::LimitsReserved { call: call(), answer: failed.clone() },
        Event::ToolRuled { call: call(), verdict: Verdict::Hold, reasons: vec![held] },
        Event::LimitsReturned { call: call(), fault: None },
        Event::LimitsReturned { call: call(), fault: failed.fault },
    ]
}

/// A tool policy of the tenant that was changed.
fn tenant_tools() -> Vec<Event> {
    let (allowed, blocked) = (Some(vec!["send_*".into()]), vec!["send_money".into()]);
    vec![
        Event::ToolsRestricted { policy: ToolPolicy { allowed, blocked } },
        Event::ToolsRestricted { policy: ToolPolicy { allowed: Some(Vec::new()), blocked: Vec::new() } },
    ]
}

/// The tests of two features, and the end of their Job.
fn validation() -> Vec<Event> {
    let llm_calls = LlmCalls { plan: 2, ..LlmCalls::default() };
    let usage = Usage { llm_calls, input_tokens: 90, output_tokens: 10, ..Usage::default() };
    let passed =
        FeatureResult { name: "refuses".into(), passed: true, score: None, reason: None, tokens: 100, seconds: 3 };
    let failed = FeatureResult {
        name: "greets".into(),
        passed: false,
        score: Some(0.25),
        reason: Some("GateFailed: nobody was greeted".into()),
        ..passed.clone()
    };
    let outcome = Outcome::new(OutcomeCode::FeatureFailed, "1 of 2 features failed: greets.");
    vec![
        Event::FeatureTested { result: failed, usage: usage.clone() },
        Event::FeatureTested { result: passed, usage },
        Event::Finished { outcome, result: None },
    ]
}

/// Children of the Job.
fn children() -> Vec<Event> {
    let duration = Some("1m30s".parse().unwrap());
    let limits = Limits { steps: Some(1), tool_calls: Some(2), tokens: Some(3), duration };
    let start =
        |limits| Event::ChildStarted { call: call(), job: "refund-0a1b2c3d".into(), skill: "billing".into(), limits };
    let usage = |children| Usage { input_tokens: 7, tool_calls: 1, children, ..Usage::default() };
    let of_children = ChildrenUsage { steps: 1, tool_calls: 2, tokens: 3, seconds: 4 };
    let fields = serde_json::from_value(json!({"status": "refunded"})).unwrap();
    let end = |text, fields, usage| ChildEnd {
        code: OutcomeCode::Succeeded,
        message: "The answer passed every gate.".into(),
        text,
        fields,
        usage,
    };
    vec![
        Event::Parked { reason: ParkReason::Children },
        start(limits),
        start(Limits::default()),
        Event::ChildCompleted { call: call(), end: end(Some("Refunded.".into()), fields, usage(Some(of_children))) },
        Event::ChildCompleted { call: call(), end: end(None, Map::new(), usage(None)) },
    ]
}

/// Limits that were lowered in the spec of the Job, and tools that a later revision of the Skill blocks.
fn stricter_inputs() -> Vec<Event> {
    let duration = Some("1m30s".parse().unwrap());
    let all = Limits { steps: Some(1), tool_calls: Some(2), tokens: Some(3), duration };
    vec![
        Event::LimitsLowered { limits: Limits { steps: Some(7), ..Limits::default() } },
        Event::LimitsLowered { limits: all },
        Event::ToolsBlocked { tools: vec!["send_*".into(), "process_refund".into()] },
    ]
}

/// The directives of the operator, and their effects.
fn directives() -> Vec<Event> {
    vec![
        Event::DirectiveReceived { directive: Directive::Park },
        Event::Parked { reason: ParkReason::Suspension },
        Event::DirectiveReceived { directive: Directive::Cancel },
        Event::Finished { outcome: Outcome::new(OutcomeCode::Cancelled, "The Job was cancelled."), result: None },
    ]
}
