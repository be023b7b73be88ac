//! The page of a Job of the memory: its goal, the decisions of the gates, and its state.

use super::item::{Item, LoggedJob};
use super::record::RecordedJob;
use crate::page::{Page, phase};
use crate::summary::usage;

/// Formats the page of a Job.
pub(super) fn render(item: &Item) -> String {
    match item {
        Item::Logged(logged) => render_logged(logged),
        Item::Recorded(recorded) => render_recorded(recorded),
    }
}

fn render_recorded(recorded: &RecordedJob) -> String {
    let RecordedJob { job, skill, goal, status, is_unmigrated, file } = recorded;
    let mut page = Page::default();
    // The directory of a job that was not migrated is no skill directory.
    page.line("Job", &if *is_unmigrated { job.clone() } else { format!("{job} of the Skill {skill}") });
    page.line("Goal", goal);
    if let Some(status) = status {
        page.line("Phase", &phase(status.phase, Some(&status.outcome)));
        page.line("Spent", &usage(&status.usage));
    } else {
        let next_step = if *is_unmigrated {
            "the Job is from an older memory. `bloomery migrate` shows its new place."
        } else {
            "the Job is from an older memory, and cannot be resumed."
        };
        page.line("Phase", &format!("{}: {next_step}", recorded.migration_state()));
    }
    page.line("File", &file.display().to_string());
    if let Some(result) = status.as_ref().and_then(|status| status.result.as_ref()) {
        page.result(result.verified, &result.text, &result.fields);
    }
    page.text()
}

fn render_logged(logged: &LoggedJob) -> String {
    let LoggedJob { job, skill, goal, status, local } = logged;
    let mut page = Page::default();
    page.line("Job", &format!("{job} of the Skill {skill}"));
    page.line("Goal", goal);
    page.line("Phase", &phase(status.phase, status.outcome.as_ref()));
    page.gates(&status.gates);
    page.workflows(&status.workflows);
    if let Some(call) = status.waiting_for.as_ref().and_then(|waiting| waiting.call.as_ref()) {
        page.line(
            "Waits for",
            &format!("{} to approve a call of {}: {}", call.approvers.join(" and "), call.tool, call.reason),
        );
    }
    for question in &local.questions {
        page.question("Question", &question.text, &question.choices);
    }
    for remark in &status.remarks {
        page.line("Remark", remark);
    }
    page.line("Spent", &usage(&status.usage));
    page.line("Log", &format!("{} events in {}", status.log.events, local.log.display()));
    if let Some(result) = &status.result {
        page.result(result.verified, &result.text, &result.fields);
    }
    if let Some(unfinished) = &local.unfinished {
        page.line("Unfinished", unfinished);
    }
    page.text()
}
