//! An event as one line for people.

use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::Verdict;
use bloomery_engine::Event;
use bloomery_engine::event::{Answer, Arguments, CallId, FinalRuling, RulingReason};
use bloomery_engine::line::Entry;
use bloomery_engine::tool::CatalogueTool;
use std::collections::BTreeMap;

/// Which tool each call is of.
type Tools = BTreeMap<CallId, String>;

/// The longest gist of an event, in bytes.
const GIST: usize = 400;

/// Time, seq, name and the gist.
pub(super) fn line(entry: &Entry, tools: &Tools) -> String {
    let gist = bounded(&plain(&gist(&entry.event, tools)), GIST);
    format!("{} {:>4} {:<19} {gist}", entry.stamp.time, entry.seq, entry.event.name()).trim_end().to_owned() + "\n"
}

/// One line without control characters: what models and servers say must not steer a terminal.
fn plain(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

fn gist(event: &Event, tools: &Tools) -> String {
    let named = |call: &CallId| match tools.get(call) {
        Some(tool) => format!("{call} {tool}"),
        None => call.to_string(),
    };
    match event {
        Event::EpochStarted { epoch, attempt } => format!("epoch {epoch}, attempt {attempt}"),
        Event::CatalogueFixed { tools } => catalogue(tools),
        Event::ConversationOpened { goal, .. } => format!("goal: {goal}"),
        Event::ModelRequested { reserve } => format!("{reserve} tokens reserved"),
        Event::ModelAnswered { answer } => answered(answer),
        Event::ModelFailed { message, .. } => message.clone(),
        Event::ToolRequested { call, arguments, .. } => match arguments {
            Arguments::Canonical { text, .. } => format!("{} {text}", named(call)),
            Arguments::Malformed { reason } => format!("{}: {reason}", named(call)),
        },
        Event::ToolRuled { call, verdict, reasons } => format!("{}: {}", named(call), ruled(*verdict, reasons)),
        Event::ToolSkipped { call, because } => format!("{} because of {}", named(call), named(because)),
        Event::ToolStarted { call } => named(call),
        Event::ToolCompleted { call, text }
        | Event::ToolFailed { call, text }
        | Event::ToolIndeterminate { call, text } => format!("{}: {text}", named(call)),
        Event::GateRuled { ruling } => final_ruling(ruling),
        Event::LimitHit { code, message } => format!("{code}: {message}"),
        Event::Parked { reason } => reason.to_string(),
        Event::Finished { outcome, .. } => format!("{}: {}", outcome.code, outcome.message),
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

fn final_ruling(ruling: &FinalRuling) -> String {
    let (what, attempt) = match ruling {
        FinalRuling::NoNewEvidence => return "no new evidence since the failed attempt".to_owned(),
        FinalRuling::FormError(attempt) => ("form error", attempt),
        FinalRuling::Attempt(attempt) if attempt.passed => return "passed".to_owned(),
        FinalRuling::Attempt(attempt) => ("failed", attempt),
    };
    let reasons: Vec<String> =
        attempt.reasons.iter().map(|reason| format!("{}: {}", reason.code, reason.detail)).collect();
    format!("{what}: {}", reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_engine::line::Stamp;

    fn printed(event: Event) -> String {
        let stamp = Stamp { time: "2026-01-02T03:04:05.678Z".into(), elapsed_ms: 5 };
        line(&Entry { seq: 17, stamp, event }, &Tools::from([(CallId::new(14, 0), "check".into())]))
    }

    #[test]
    fn a_line_says_when_what_and_the_gist() {
        let completed = Event::ToolCompleted { call: CallId::new(14, 0), text: "{\"eligible\": true}".into() };
        assert_eq!(
            printed(completed),
            "2026-01-02T03:04:05.678Z   17 tool.completed      14-0 check: {\"eligible\": true}\n"
        );
        assert_eq!(
            printed(Event::ToolStarted { call: CallId::new(14, 0) }),
            "2026-01-02T03:04:05.678Z   17 tool.started        14-0 check\n"
        );
    }

    #[test]
    fn what_a_server_says_stays_one_line_and_steers_no_terminal() {
        let text = format!("a\nb\u{1b}[2J\u{9b}c\r{}", "x".repeat(5000));
        let line = printed(Event::ToolFailed { call: CallId::new(1, 0), text });
        assert_eq!(line.matches('\n').count(), 1);
        assert!(!line.trim_end().contains(char::is_control), "{line:?}");
        assert!(line.len() < GIST + 100);
    }
}
