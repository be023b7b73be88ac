//! The summary of a Job: its answer, its cost, and how to resume it.

use crate::exit::Exit;
use crate::local::DEFAULT_MEMORY;
use crate::local::skill_directory::SkillDirectory;
use crate::text;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::report::ParkReason;
use bloomery_crds::v1alpha1::Usage;
use bloomery_engine::event::FullResult;
use bloomery_worker::driver;
use serde_json::Value;
use std::io::{self, Write};
use std::path::Path;

/// Returns the exit code of `bloomery run`.
pub fn exit_of(exit: driver::Exit, outcome: Option<&Outcome>) -> Exit {
    match exit {
        driver::Exit::Finished => outcome.map_or(Exit::Error, |outcome| Exit::of_phase(outcome.phase())),
        driver::Exit::Parked(_) => Exit::Parked,
        driver::Exit::Superseded => Exit::Superseded,
    }
}

/// Prints an answer: the text, then one line for each field of the output contract.
pub fn print_answer(out: &mut impl Write, result: &FullResult) -> io::Result<()> {
    let text = text::sanitized_lines(result.text.trim_end());
    if !text.is_empty() {
        writeln!(out, "{text}")?;
    }
    if !text.is_empty() && !result.fields.is_empty() {
        writeln!(out)?;
    }
    for (name, value) in &result.fields {
        writeln!(out, "{}", field(name, value))?;
    }
    out.flush()
}

/// Formats a field of an answer: a string without quotes, any other value as JSON.
pub fn field(name: &str, value: &Value) -> String {
    let value = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!("{}: {}", text::sanitized_lines(name), text::sanitized_lines(&value))
}

/// Describes how a Job ended. `message` is the message of the outcome.
pub fn outcome(code: OutcomeCode, message: &str, result: Option<&FullResult>) -> String {
    let draft_note =
        if result.is_some_and(|result| !result.verified) { " The answer above did not pass its gate." } else { "" };
    let message = text::sanitized_lines(message);
    format!("{code}: {message}{draft_note}")
}

/// Summarizes the usage of a Job.
pub fn usage(usage: &Usage) -> String {
    let calls = &usage.llm_calls;
    let model_requests = calls.intent + calls.selection + calls.plan + calls.finalization + calls.polish;
    format!(
        "{} to the model, {}, {}, {} s of work",
        counted(model_requests.into(), "request"),
        counted(usage.tool_calls.into(), "tool call"),
        counted(usage.tokens(), "token"),
        usage.seconds
    )
}

/// Formats a number with a noun in the singular or the plural: `1 token`, `2 tokens`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Describes why a Job is parked, and how to resume it.
pub fn parked(reason: ParkReason, memory: &Path, directory: &SkillDirectory, key: &str) -> String {
    let why = match reason {
        // A suspension does not occur here: only namespaces are suspended.
        ParkReason::Drain | ParkReason::Suspension => "Parked.",
        ParkReason::Children => "Parked: a child has not ended.",
        ParkReason::Approval => "Parked: a call waits for a decision, and there is no terminal to ask for it.",
        ParkReason::Reply => "Parked: a question waits for an answer, and there is no terminal to ask for it.",
    };
    format!("{why} {}", resume_command(memory, directory, key))
}

/// Returns the command that resumes a Job.
pub fn resume_command(memory: &Path, directory: &SkillDirectory, key: &str) -> String {
    let memory_option = if memory == Path::new(DEFAULT_MEMORY) {
        String::new()
    } else {
        format!(" --memory {}", text::shell_quoted(&memory.display().to_string()))
    };
    format!("Resume with: bloomery run{memory_option} --skill {} --resume {key}", directory.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(text: &str, fields: Value) -> FullResult {
        let Value::Object(fields) = fields else { panic!("no object") };
        FullResult { text: text.into(), fields, verified: true, polished: false }
    }

    fn printed(result: &FullResult) -> String {
        let mut out = Vec::new();
        print_answer(&mut out, result).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_answer_is_printed_with_its_fields_and_without_control_characters() {
        let both = result("Refunded\u{1b}[2J.\n\n", json!({"order_id": "A-17", "amounts": [1, 2]}));
        assert_eq!(printed(&both), "Refunded[2J.\n\namounts: [1,2]\norder_id: A-17\n");
        assert_eq!(printed(&result("\u{202e}Done", json!({"a\u{9b}": "\u{2066}b"}))), "Done\n\na: b\n");
        assert_eq!(printed(&result("Done", json!({}))), "Done\n");
        assert_eq!(printed(&result("", json!({"a": true}))), "a: true\n");
    }

    #[test]
    fn an_outcome_has_the_exit_code_of_its_phase_and_a_draft_is_marked() {
        let failed = Outcome::new(OutcomeCode::GateFailed, "The answer did not pass.");
        assert_eq!(exit_of(driver::Exit::Finished, Some(&failed)), Exit::Escalated);
        assert_eq!(exit_of(driver::Exit::Parked(ParkReason::Drain), None), Exit::Parked);
        assert_eq!(exit_of(driver::Exit::Superseded, None), Exit::Superseded);
        let draft = FullResult { verified: false, ..result("x", json!({})) };
        assert!(outcome(failed.code, &failed.message, Some(&draft)).contains("did not pass its gate"));
    }

    #[test]
    fn a_sum_of_tokens_that_overflows_is_the_maximum() {
        let usage = Usage { input_tokens: u64::MAX, output_tokens: 7, ..Usage::default() };
        assert!(self::usage(&usage).contains(&format!(" {} tokens", u64::MAX)));
        let once = Usage { input_tokens: 1, tool_calls: 1, ..Usage::default() };
        assert_eq!(self::usage(&once), "0 requests to the model, 1 tool call, 1 token, 0 s of work");
    }

    #[test]
    fn a_parked_job_has_the_command_that_resumes_it() {
        let directory = SkillDirectory::new(Path::new("a b"), "cs-tier-1");
        let line = parked(ParkReason::Drain, Path::new("a b"), &directory, "k-1");
        assert_eq!(line, "Parked. Resume with: bloomery run --memory 'a b' --skill cs-tier-1 --resume k-1");
    }
}
