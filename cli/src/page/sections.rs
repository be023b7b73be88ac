//! Sections of pages about Jobs, on a cluster and on this machine.

pub use bloomery_embed::cluster::state::phase_and_outcome as phase;

use super::Page;
use crate::summary::field;
use crate::text::sanitized_line;
use bloomery_crds::v1alpha1::{Finalization, Gates, Verdict, WorkflowProgress};
use serde_json::{Map, Value};

impl Page {
    /// Adds the progress of the workflows.
    pub fn workflows(&mut self, workflows: &[WorkflowProgress]) {
        for workflow in workflows {
            let open =
                if workflow.open.is_empty() { String::new() } else { format!("; open: {}", workflow.open.join(", ")) };
            self.line("Workflow", &format!("{}: {} done{open}", workflow.name, workflow.done.len()));
        }
    }

    /// Adds a question with its numbered choices.
    pub fn question(&mut self, label: &str, text: &str, choices: &[String]) {
        self.line(label, text);
        for (choice, number) in choices.iter().zip(1..) {
            self.line("", &format!("  {number}  {}", sanitized_line(choice)));
        }
    }

    /// Adds an answer, and the fields of the output contract. An answer that is not verified is called a draft.
    pub fn result(&mut self, is_verified: bool, text: &str, fields: &Map<String, Value>) {
        self.line(if is_verified { "Answer" } else { "Draft" }, text);
        for (name, value) in fields {
            self.line("", &field(name, value));
        }
    }

    /// Adds the decisions of the gates.
    pub fn gates(&mut self, gates: &Gates) {
        let Gates { intent, pre_tool, finalization } = gates;
        if let Some(intent) = intent {
            let id = intent.id.as_deref().unwrap_or("no intent of the Skill matched");
            let entities: Vec<String> =
                intent.entities.iter().map(|(name, value)| format!(", {name} {value}")).collect();
            self.line("Intent", &format!("{id}{}", entities.concat()));
        }
        let counts = format!("{} allowed, {} denied, {} held", pre_tool.allowed, pre_tool.denied, pre_tool.held);
        self.line("Tool calls", &counts);
        for ruling in pre_tool.last.iter().filter(|ruling| ruling.verdict != Verdict::Allow) {
            let reason = ruling.reason.as_deref().unwrap_or("no reason recorded");
            self.line("", &format!("{} {}: {reason}", ruling.verdict, ruling.tool));
        }
        self.finalization(finalization);
    }

    /// Adds the verdicts of the finalization gate.
    fn finalization(&mut self, gate: &Finalization) {
        if gate.form_errors > 0 {
            self.line("Format", &format!("answers with an invalid format: {}", gate.form_errors));
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
