//! Formats an event as one line for people.

use bloomery_crds::text::{alters_display, bounded};
use bloomery_crds::v1alpha1::{DetectedIntent, FeatureResult, Limits, Stage, ToolPolicy, Verdict, whole_seconds};
use bloomery_engine::Event;
use bloomery_engine::event::{
    Answer, Arguments, CallId, ContextPart, Decision, Directive, FinalizationRuling, PolishOutcome, ResourceSummary,
    RulingReason, ToolProgress, UserQuestion,
};
use bloomery_engine::line::Entry;
use bloomery_engine::tool::CatalogueTool;
use serde_json::Value;
use std::collections::BTreeMap;

/// The tool of each call.
type Tools = BTreeMap<CallId, String>;

/// The longest gist of an event, in bytes.
const MAX_GIST_BYTES: usize = 400;

/// Returns the line of an event: time, sequence number, name and gist.
pub(super) fn line(entry: &Entry, tools: &Tools) -> String {
    let gist = bounded(&plain(&gist(&entry.event, tools), MAX_GIST_BYTES), MAX_GIST_BYTES);
    format!("{} {:>4} {:<19} {gist}", entry.stamp.time, entry.seq, entry.event.name()).trim_end().to_owned() + "\n"
}

/// Returns the name and the gist of the event of a line. Returns `None` for a line that is not about an event.
pub fn event_of_line(line: &str) -> Option<(&str, &str)> {
    let (_time, rest) = line.split_once(' ')?;
    let (seq, rest) = rest.trim_start().split_once(' ')?;
    let (name, gist) = rest.split_once(' ').unwrap_or((rest, ""));
    (!seq.is_empty() && seq.bytes().all(|byte| byte.is_ascii_digit())).then(|| (name, gist.trim_start()))
}

/// Returns a text as one line without control characters, which texts of models and servers could use to control a terminal. The line
/// ends soon after `max_bytes`.
fn plain(text: &str, max_bytes: usize) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || alters_display(c)).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > max_bytes {
            break;
        }
    }
    line
}

fn gist(event: &Event, tools: &Tools) -> String {
    match event {
        Event::EpochStarted { epoch, attempt, after_disruption: false } => format!("epoch {epoch}, attempt {attempt}"),
        Event::EpochStarted { epoch, attempt, after_disruption: true } => {
            format!("epoch {epoch}, attempt {attempt}, after a disruption")
        }
        Event::JobAttached { job } => format!("Job {job}"),
        Event::CatalogueFixed { tools } => catalogue(tools),
        Event::ResourcesBound { resources } => resources_bound(resources),
        Event::ContextGathered { parts } => context_gathered(parts),
        Event::IntentDetected { intent, missing } => intent_detected(intent, missing),
        Event::ConversationOpened { goal, .. } => format!("goal: {goal}"),
        Event::ModelRequested { reserve, stage: Stage::Plan } => format!("{reserve} tokens reserved"),
        Event::ModelRequested { reserve, stage } => format!("for {}, {reserve} tokens reserved", purpose(*stage)),
        Event::ModelAnswered { answer } => answered(answer),
        Event::ModelFailed { message, .. } => message.clone(),
        Event::ToolRequested { .. }
        | Event::ToolRuled { .. }
        | Event::ToolHeld { .. }
        | Event::LimitsReserved { .. }
        | Event::LimitsReturned { .. }
        | Event::ToolSkipped { .. }
        | Event::ToolStarted { .. }
        | Event::ToolCompleted { .. }
        | Event::ToolFailed { .. }
        | Event::ToolIndeterminate { .. }
        | Event::ChildStarted { .. }
        | Event::ChildCompleted { .. }
        | Event::ToolProgressed { .. }
        | Event::ResultOffloaded { .. } => call_gist(event, tools),
        Event::CatalogueDrifted { changed, missing, added } => drifted(changed, missing, added),
        Event::CatalogueUnpinned { tools } => tools.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        Event::SubgoalDone { step, evidence, not_applicable } => {
            let state = if *not_applicable { "does not apply" } else { "is done" };
            format!("{step} {state}, as event {evidence} shows")
        }
        Event::ToolApproved { call, decision, .. } | Event::ToolDenied { call, decision } => {
            decided(call, decision, tools)
        }
        Event::UserAsked { question, .. } => asked(question),
        Event::UserReplied { question, text, by, nth: _ } => format!("{question} by {by}: {text}"),
        Event::UserMessage { text, by, nth: _ } => format!("{by}: {text}"),
        Event::GateRuled { ruling } => final_ruling(ruling),
        Event::ReplyPolished { polish: PolishOutcome::Polished(text) } => text.clone(),
        Event::ReplyPolished { polish: PolishOutcome::Kept(why) } => format!("the answer is not changed: {why}"),
        Event::ToolsSelected { tools, total, by } => {
            format!("{} of {total} tools, by {by}: {}", tools.len(), tools.join(", "))
        }
        Event::LimitsLowered { limits } => limits_lowered(limits),
        Event::ToolsBlocked { tools } => tools.join(", "),
        Event::ToolsRestricted { policy } => tools_restricted(policy),
        Event::FeatureTested { result, .. } => feature_tested(result),
        Event::LimitHit { code, message } => format!("{code}: {message}"),
        Event::DirectiveReceived { directive: Directive::Cancel } => "the Job is cancelled".to_owned(),
        Event::DirectiveReceived { directive: Directive::Park } => "the namespace is suspended".to_owned(),
        Event::DirectiveReceived { directive: Directive::SkillDeleted } => "the Skill is deleted".to_owned(),
        Event::Parked { reason } => reason.to_string(),
        Event::Finished { outcome, .. } => format!("{}: {}", outcome.code, outcome.message),
    }
}

/// Returns the gist of an event of a call.
fn call_gist(event: &Event, tools: &Tools) -> String {
    let named = |call| named(call, tools);
    match event {
        Event::ToolRequested { call, arguments: Arguments::Canonical(arguments), .. } => {
            format!("{} {}", named(call), arguments.text())
        }
        Event::ToolRequested { call, arguments: Arguments::Malformed { reason }, .. } => {
            format!("{}: {reason}", named(call))
        }
        Event::ToolRuled { call, verdict, reasons } => format!("{}: {}", named(call), ruled(*verdict, reasons)),
        Event::ToolHeld { held } => {
            format!("{} {}, for {} to decide: {}", held.id, held.tool, held.approvers.join(" and "), held.reason)
        }
        Event::LimitsReserved { call, answer } => match &answer.fault {
            Some(fault) => format!("{}: {fault}", named(call)),
            None if answer.reserved => named(call),
            None => format!("{} is beyond a limit", named(call)),
        },
        Event::LimitsReturned { call, fault } => match fault {
            Some(fault) => format!("{} still counts: {fault}", named(call)),
            None => named(call),
        },
        Event::ToolSkipped { call, because } => format!("{} because of {}", named(call), named(because)),
        Event::ToolStarted { call } => named(call),
        Event::ToolCompleted { call, text }
        | Event::ToolFailed { call, text }
        | Event::ToolIndeterminate { call, text } => format!("{}: {text}", named(call)),
        Event::ChildStarted { call, job, skill, limits: _ } => format!("{}: the Job {job} of {skill}", named(call)),
        Event::ChildCompleted { call, end } => format!("{}: {}: {}", named(call), end.code, end.message),
        Event::ResultOffloaded { call, handle, bytes, .. } => {
            format!("{}: {bytes} bytes are in the focus cache as {handle}", named(call))
        }
        Event::ToolProgressed { call, progress: report } => format!("{}: {}", named(call), progress(report)),
        // Not an event of a call.
        _ => String::new(),
    }
}

fn named(call: &CallId, tools: &Tools) -> String {
    match tools.get(call) {
        Some(tool) => format!("{call} {tool}"),
        None => call.to_string(),
    }
}

fn feature_tested(result: &FeatureResult) -> String {
    let why = result.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{} {}{why}", result.name, if result.passed { "passed" } else { "failed" })
}

fn decided(call: &CallId, decision: &Decision, tools: &Tools) -> String {
    let why = decision.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{} for {} by {}{why}", named(call, tools), decision.approver, decision.by)
}

fn asked(question: &UserQuestion) -> String {
    let choices =
        if question.choices.is_empty() { String::new() } else { format!(" [{}]", question.choices.join(" | ")) };
    format!("{} {}{choices}", question.id, question.text)
}

fn context_gathered(parts: &[ContextPart]) -> String {
    let part = |part: &ContextPart| match &part.fault {
        None => format!("{} of {}, {} bytes", part.kind.name(), part.source, part.text.len()),
        Some(fault) => format!("{} of {} failed: {fault}", part.kind.name(), part.source),
    };
    parts.iter().map(part).collect::<Vec<_>>().join("; ")
}

fn progress(report: &ToolProgress) -> String {
    let ToolProgress { progress, total, level, message } = report;
    let amount = match (progress, total) {
        (Some(progress), Some(total)) => Some(format!("{progress} of {total}")),
        (Some(progress), None) => Some(progress.to_string()),
        (None, _) => None,
    };
    let parts: Vec<&str> = [amount.as_deref(), level.as_deref(), message.as_deref()].into_iter().flatten().collect();
    parts.join(", ")
}

fn drifted(changed: &[String], missing: &[String], added: &[String]) -> String {
    let lists = [("changed", changed), ("missing", missing), ("new and not offered", added)];
    let nonempty = lists.into_iter().filter(|(_, tools)| !tools.is_empty());
    nonempty.map(|(what, tools)| format!("{what}: {}", tools.join(", "))).collect::<Vec<_>>().join("; ")
}

fn resources_bound(resources: &[ResourceSummary]) -> String {
    let named = |resource: &ResourceSummary| match &resource.rendering {
        Some(rendering) => format!("{} ({}): {rendering}", resource.name, resource.kind),
        None => format!("{} ({})", resource.name, resource.kind),
    };
    let named: Vec<String> = resources.iter().map(named).collect();
    if named.is_empty() { "none".to_owned() } else { named.join(", ") }
}

fn intent_detected(intent: &DetectedIntent, missing: &[String]) -> String {
    let Some(id) = intent.id.as_deref() else { return "out of domain: none of the Skill's intents".to_owned() };
    let entities = Value::Object(intent.entities.clone());
    let missing = if missing.is_empty() { String::new() } else { format!(", without {}", missing.join(", ")) };
    format!("{id} {entities}{missing}")
}

fn purpose(stage: Stage) -> &'static str {
    match stage {
        Stage::Intent => "the intent",
        Stage::Selection => "a selection of tools",
        Stage::Plan => "the next step",
        Stage::Finalization => "a ruling on the answer",
        Stage::Polish => "the polished answer",
    }
}

fn catalogue(tools: &[CatalogueTool]) -> String {
    let names: Vec<&str> = tools.iter().filter(|tool| tool.visible).map(|tool| tool.name.as_str()).collect();
    format!("{} tools, visible: {}", tools.len(), if names.is_empty() { "none".to_owned() } else { names.join(", ") })
}

fn answered(answer: &Answer) -> String {
    let calls: Vec<&str> = answer.calls.iter().map(|call| call.name.as_str()).collect();
    let calls = if calls.is_empty() { String::new() } else { format!("calls {} ", calls.join(", ")) };
    let cut = if answer.cut { "(cut off) " } else { "" };
    format!("{cut}{calls}{}", answer.text)
}

fn ruled(verdict: Verdict, reasons: &[RulingReason]) -> String {
    let reasons: Vec<String> = reasons.iter().map(|reason| format!("{}: {}", reason.layer, reason.detail)).collect();
    format!("{verdict} {}", reasons.join("; "))
}

fn limits_lowered(limits: &Limits) -> String {
    let Limits { steps, tool_calls, tokens, duration } = limits;
    let seconds = duration.as_ref().map(whole_seconds);
    let limits = [
        ("steps", steps.map(u64::from), ""),
        ("toolCalls", tool_calls.map(u64::from), ""),
        ("tokens", *tokens, ""),
        ("duration", seconds, " s"),
    ];
    let set = limits.into_iter().filter_map(|(name, limit, unit)| Some(format!("{name} at most {}{unit}", limit?)));
    set.collect::<Vec<_>>().join(", ")
}

fn tools_restricted(policy: &ToolPolicy) -> String {
    let listed = |what: &str, names: &[String]| format!("{what}: {}", names.join(", "));
    let allowed = policy.allowed.iter().map(|names| listed("allowed", names));
    let blocked = (!policy.blocked.is_empty()).then(|| listed("blocked", &policy.blocked));
    allowed.chain(blocked).collect::<Vec<_>>().join("; ")
}

fn final_ruling(ruling: &FinalizationRuling) -> String {
    let (what, attempt) = match ruling {
        FinalizationRuling::Skipped => return "skipped, as the Skill says".to_owned(),
        FinalizationRuling::NoNewEvidence => return "failed: no new evidence since the last ruling".to_owned(),
        FinalizationRuling::FormError(attempt) => ("form error", attempt),
        FinalizationRuling::Attempt(attempt) if attempt.passed => {
            let score = attempt.score.map(|score| format!(", score {score}")).unwrap_or_default();
            return format!("passed{score}");
        }
        FinalizationRuling::Attempt(attempt) => ("failed", attempt),
    };
    let reasons: Vec<String> =
        attempt.reasons.iter().map(|reason| format!("{}: {}", reason.code, reason.detail)).collect();
    format!("{what}: {}", reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::Digest;
    use bloomery_crds::v1alpha1::{HeldCall, ResourceType};
    use bloomery_engine::event::{QuestionId, QuestionSubject};
    use bloomery_engine::line::EventTime;

    fn printed(event: Event) -> String {
        let stamp = EventTime { time: "2026-01-02T03:04:05.678Z".into(), elapsed_ms: 5 };
        line(&Entry { seq: 17, stamp, event }, &Tools::from([(CallId::new(14, 0), "check".into())]))
    }

    #[test]
    fn a_line_has_the_time_the_event_and_its_gist() {
        let completed = Event::ToolCompleted { call: CallId::new(14, 0), text: "{\"eligible\": true}".into() };
        assert_eq!(
            printed(completed),
            "2026-01-02T03:04:05.678Z   17 tool.completed      14-0 check: {\"eligible\": true}\n"
        );
        let epoch = printed(Event::EpochStarted { epoch: 1, attempt: 1, after_disruption: false });
        assert_eq!(event_of_line(epoch.trim_end()), Some(("epoch.started", "epoch 1, attempt 1")));
        assert_eq!(event_of_line(" WARN the model is slow"), None);
        assert_eq!(
            printed(Event::ToolStarted { call: CallId::new(14, 0) }),
            "2026-01-02T03:04:05.678Z   17 tool.started        14-0 check\n"
        );
    }

    #[test]
    fn events_of_gates_and_people_have_a_gist() {
        let gist = |event: Event| printed(event).split_once("17 ").unwrap().1.trim_end().to_owned();
        let intent = DetectedIntent {
            id: Some("refund".into()),
            entities: serde_json::from_str("{\"order_id\": \"A-17\"}").unwrap(),
            out_of_domain: false,
        };
        let detected = Event::IntentDetected { intent, missing: vec!["amount".into()] };
        assert_eq!(gist(detected), "intent.detected     refund {\"order_id\":\"A-17\"}, without amount");
        let outside = DetectedIntent { out_of_domain: true, ..DetectedIntent::default() };
        let detected = Event::IntentDetected { intent: outside, missing: Vec::new() };
        assert_eq!(gist(detected), "intent.detected     out of domain: none of the Skill's intents");
        let held = HeldCall {
            id: "14-0".into(),
            tool: "refund".into(),
            digest: Digest::of_bytes(b""),
            approvers: vec!["supervisor".into(), "finance".into()],
            reason: "amount > 500".into(),
        };
        assert_eq!(
            gist(Event::ToolHeld { held }),
            "tool.held           14-0 refund, for supervisor and finance to decide: amount > 500"
        );
        let decision = Decision { approver: "finance".into(), by: "jane".into(), reason: Some("broken".into()) };
        let (call, digest) = (CallId::new(14, 0), Digest::of_bytes(b""));
        assert_eq!(
            gist(Event::ToolApproved { call: call.clone(), digest, decision: decision.clone() }),
            "tool.approved       14-0 check for finance by jane: broken"
        );
        let decision = Decision { reason: None, ..decision };
        assert_eq!(gist(Event::ToolDenied { call, decision }), "tool.denied         14-0 check for finance by jane");
        let (id, choices) = (QuestionId::new(1), vec!["A-17".into(), "B-4".into()]);
        let question = UserQuestion { id: id.clone(), text: "Which?".into(), choices };
        let asked = Event::UserAsked { question, about: QuestionSubject::Draft };
        assert_eq!(gist(asked), "user.asked          q-1 Which? [A-17 | B-4]");
        let (text, by) = ("B-4".to_owned(), "jane".to_owned());
        let replied = Event::UserReplied { question: id, text: text.clone(), by: by.clone(), nth: None };
        assert_eq!(gist(replied), "user.replied        q-1 by jane: B-4");
        assert_eq!(gist(Event::UserMessage { text, by, nth: None }), "user.message        jane: B-4");
        let codebase = ResourceSummary {
            name: "src".into(),
            kind: ResourceType::Filesystem,
            rendering: Some("/resources/src".into()),
        };
        let token = ResourceSummary { name: "token".into(), kind: ResourceType::Credential, rendering: None };
        assert_eq!(
            gist(Event::ResourcesBound { resources: vec![codebase, token] }),
            "resources.bound     src (filesystem): /resources/src, token (credential)"
        );
        let done = Event::SubgoalDone { step: "greet".into(), evidence: 9, not_applicable: true };
        assert_eq!(gist(done), "subgoal.done        greet does not apply, as event 9 shows");
        let limits = Limits { steps: Some(3), duration: Some("90s".parse().unwrap()), ..Limits::default() };
        let lowered = Event::LimitsLowered { limits };
        assert_eq!(gist(lowered), "limits.lowered      steps at most 3, duration at most 90 s");
        let kept = Event::ReplyPolished { polish: PolishOutcome::Kept("the number 5 is lost".into()) };
        assert_eq!(gist(kept), "reply.polished      the answer is not changed: the number 5 is lost");
    }

    #[test]
    fn texts_of_servers_are_one_line_without_control_characters() {
        let text = format!("a\nb\u{1b}[2J\u{9b}c\r\u{202e}{}", "x".repeat(5000));
        let line = printed(Event::ToolFailed { call: CallId::new(1, 0), text });
        assert_eq!(line.matches('\n').count(), 1);
        assert!(!line.trim_end().contains(alters_display), "{line:?}");
        assert!(line.len() < MAX_GIST_BYTES + 100);
    }
}
