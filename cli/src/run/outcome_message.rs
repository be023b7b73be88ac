//! The message about the outcome of a Job, for people who have typed a command line.

use super::local_run::LocalRun;
use crate::args::{ModelArgs, RunArgs};
use crate::local::run_document::RunDocument;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_embed::run::model;
use bloomery_engine::event::RAISE_LIMIT;
use bloomery_worker::driver::REPAIR_SERVER;

/// Returns the message of an outcome. A remedy names the option of the command line that it is about. Lines of a program that are on the
/// screen already are not repeated.
pub fn outcome_message(outcome: &Outcome, run: &LocalRun<'_>) -> String {
    let LocalRun { args, job, screen } = *run;
    let mut message = screen.without_printed_lines(&outcome.message);
    if let Some(limit) = lowered_limit(outcome.code, &job.document) {
        message = message.replace(RAISE_LIMIT, &format!("Raise --limit {limit}"));
    }
    let is_program = job.document.program.is_some();
    if is_program && outcome.code == OutcomeCode::McpUnavailable {
        message = message.replace(REPAIR_SERVER, "Repair the MCP server, or correct its command");
    }
    match unavailable_hint(outcome.code, args, is_program) {
        Some(hint) => format!("{message} {hint}"),
        None => message,
    }
}

/// Returns the name of the reached limit, if the command line has lowered it below that of the Skill.
fn lowered_limit(code: OutcomeCode, document: &RunDocument) -> Option<&'static str> {
    let limits = &document.part.limits;
    let of_skill = EffectiveLimits::resolve(document.revision.spec.limits(), None);
    let (name, is_lowered) = match code {
        OutcomeCode::StepLimit => ("steps", limits.steps < of_skill.steps),
        OutcomeCode::ToolCallLimit => ("toolCalls", limits.tool_calls < of_skill.tool_calls),
        OutcomeCode::TokenLimit => ("tokens", limits.tokens < of_skill.tokens),
        OutcomeCode::DurationLimit => ("duration", limits.duration_seconds < of_skill.duration_seconds),
        _ => return None,
    };
    is_lowered.then_some(name)
}

/// Returns the option that named a server that did not answer.
fn unavailable_hint(code: OutcomeCode, args: &RunArgs, is_program: bool) -> Option<&'static str> {
    let ModelArgs { model, model_url, .. } = &args.model;
    match code {
        OutcomeCode::ModelUnavailable if model_url.is_some() => {
            Some("The address of the model is that of --model-url.")
        }
        OutcomeCode::ModelUnavailable if model.as_deref().is_some_and(model::is_file) => {
            Some("The address of the model is in the file of --model.")
        }
        OutcomeCode::McpUnavailable if args.mcp.url.is_some() => {
            Some("The address of the MCP server is that of --mcp.")
        }
        OutcomeCode::McpUnavailable if is_program => Some("The MCP server is the program of --mcp-command."),
        OutcomeCode::McpUnavailable => {
            Some("The address of the MCP server is mcp_server of the Skill; --mcp replaces it.")
        }
        _ => None,
    }
}
