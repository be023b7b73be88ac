//! A Job as a person wants to see it: what was asked, what each gate decided, what came of it.

use super::kept::{Kept, OLDER};
use super::{Item, Seen};
use crate::page::Page;
use crate::run::ending::{field, spent};
use bloomery_crds::outcome::{Outcome, Phase};
use bloomery_crds::v1alpha1::{Finalization, Gates, Verdict};
use serde_json::{Map, Value};

/// The page of a Job.
pub(super) fn of(item: &Item) -> String {
    match item {
        Item::Seen(seen) => of_log(seen),
        Item::Kept(kept) => of_file(kept),
    }
}

fn of_file(Kept { job, skill, goal, status, file }: &Kept) -> String {
    let mut page = Page::default();
    page.line("Job", &format!("{job} of the Skill {skill}"));
    page.line("Goal", goal);
    match status {
        Some(status) => {
            page.line("Phase", &phase(status.phase, Some(&status.outcome)));
            page.line("Spent", &spent(&status.usage));
        }
        None => page.line("Phase", &format!("{OLDER}: it is of an older memory, and does not go on.")),
    }
    page.line("File", &file.display().to_string());
    if let Some(result) = status.as_ref().and_then(|status| status.result.as_ref()) {
        page.result(result.verified, &result.text, &result.fields);
    }
    page.text()
}

fn of_log(seen: &Seen) -> String {
    let Seen { job, skill, goal, status, here } = seen;
    let mut page = Page::default();
    page.line("Job", &format!("{job} of the Skill {skill}"));
    page.line("Goal", goal);
    page.line("Phase", &phase(status.phase, status.outcome.as_ref()));
    page.gates(&status.gates);
    for workflow in &status.workflows {
        let open =
            if workflow.open.is_empty() { String::new() } else { format!("; open: {}", workflow.open.join(", ")) };
        page.line("Workflow", &format!("{}: {} done{open}", workflow.name, workflow.done.len()));
    }
    if let Some(call) = status.waiting_for.as_ref().and_then(|waiting| waiting.call.as_ref()) {
        page.line(
            "Waits for",
            &format!("{} to let {} be called: {}", call.approvers.join(" and "), call.tool, call.reason),
        );
    }
    for question in &here.questions {
        page.line("Question", &question.text);
        for (choice, number) in question.choices.iter().zip(1..) {
            page.line("", &format!("  {number}  {choice}"));
        }
    }
    for remark in &status.remarks {
        page.line("Remark", remark);
    }
    page.line("Spent", &spent(&status.usage));
    page.line("Log", &format!("{} events in {}", status.log.events, here.log.display()));
    if let Some(result) = &status.result {
        page.result(result.verified, &result.text, &result.fields);
    }
    if let Some(on) = &here.on {
        page.line("Unfinished", on);
    }
    page.text()
}

fn phase(phase: Phase, outcome: Option<&Outcome>) -> String {
    let phase = phase.to_string();
    let Some(Outcome { code, message, .. }) = outcome else { return phase };
    let code = code.to_string();
    if code == phase { format!("{phase}: {message}") } else { format!("{phase}, {code}: {message}") }
}

impl Page {
    fn result(&mut self, is_verified: bool, text: &str, fields: &Map<String, Value>) {
        self.line(if is_verified { "Answer" } else { "Draft" }, text);
        for (name, value) in fields {
            self.line("", &field(name, value));
        }
    }

    fn gates(&mut self, gates: &Gates) {
        let Gates { intent, pre_tool, finalization } = gates;
        if let Some(intent) = intent {
            let id = intent.id.as_deref().unwrap_or("none of the Skill's");
            let entities: Vec<String> =
                intent.entities.iter().map(|(name, value)| format!(", {name} {value}")).collect();
            self.line("Intent", &format!("{id}{}", entities.concat()));
        }
        let counts = format!("{} allowed, {} denied, {} held", pre_tool.allowed, pre_tool.denied, pre_tool.held);
        self.line("Tool calls", &counts);
        for ruling in pre_tool.last.iter().filter(|ruling| ruling.verdict != Verdict::Allow) {
            let reason = ruling.reason.as_deref().unwrap_or("no reason was kept");
            self.line("", &format!("{} {}: {reason}", ruling.verdict, ruling.tool));
        }
        self.finalization(finalization);
    }

    fn finalization(&mut self, gate: &Finalization) {
        if gate.form_errors > 0 {
            self.line("Form", &format!("sent back {} times", gate.form_errors));
        }
        for (at, attempt) in gate.attempts.iter().enumerate() {
            let verdict = if attempt.passed { "passed" } else { "did not pass" };
            let score = attempt.score.map(|score| format!(", score {score}")).unwrap_or_default();
            self.line("Gate", &format!("answer {} {verdict}{score}", at + 1));
            for reason in &attempt.reasons {
                self.line("", &format!("{}: {}", reason.code, reason.detail));
            }
        }
    }
}
