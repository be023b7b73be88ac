//! `bloomery get` on a cluster: shows the named Job, or lists all Jobs.

use super::client::{self, Client};
use super::cluster_command::ClusterCommand;
use super::{page, state};
use crate::args::{GetArgs, ObjectOutput};
use crate::error::Error;
use crate::exit::Exit;
use crate::page::coloured;
use crate::{output, table, text};
use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::v1alpha1::Job;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::json;
use std::io::Write;

/// Shows the named Job, or lists all Jobs.
pub(super) async fn get(args: &GetArgs, command: &ClusterCommand<'_>) -> Result<Exit, Error> {
    let client = client::open(command).await?;
    let Some(name) = &args.key else { return list_jobs(&client, args).await };
    let job = client.job(name).await?;
    check_skill(&job, args.skill.as_deref())?;
    match args.output {
        Some(format) => output::print(&format_job(&job, format)?).map(|()| Exit::Success),
        None => {
            print_page(&page::render(&job, &client::decision_state(&client, &job).await, command, Timestamp::now()))
        }
    }
}

/// Lists the Jobs of the namespace, or of all namespaces.
async fn list_jobs(client: &Client, args: &GetArgs) -> Result<Exit, Error> {
    let mut jobs = client.jobs(args.all_namespaces).await?;
    jobs.retain(|job| args.skill.as_ref().is_none_or(|skill| job.spec.skill == *skill));
    if jobs.is_empty() {
        let place = if args.all_namespaces { "any namespace" } else { &client.cluster.namespace };
        let of_skill = args.skill.as_ref().map(|skill| format!(" of the Skill {skill}")).unwrap_or_default();
        text::report(&format!("there are no Jobs{of_skill} in {place}"));
    }
    let text = match args.output {
        Some(format) => format_list(&jobs.iter().map(list_item).collect::<Vec<_>>(), format)?,
        None if jobs.is_empty() => String::new(),
        None => table(&jobs, args.all_namespaces, Timestamp::now()),
    };
    output::print(&text).map(|()| Exit::Success)
}

/// Checks that a Job belongs to the selected Skill.
///
/// # Errors
/// If it belongs to another Skill.
pub(super) fn check_skill(job: &Job, skill: Option<&str>) -> Result<(), Error> {
    match skill {
        Some(skill) if job.spec.skill != skill => Err(Error::usage(format!(
            "the Job {} belongs to the Skill {}, not to {skill}",
            job.name_any(),
            job.spec.skill
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Prints a page, with colours at a terminal.
fn print_page(page: &str) -> Result<Exit, Error> {
    let mut out = anstream::stdout().lock();
    output::write(&mut out, &coloured(page))?;
    // A closed pipe is not an error.
    let _ = out.flush();
    Ok(Exit::Success)
}

/// Formats a Job for programs.
///
/// # Errors
/// If the Job cannot be serialized.
pub(super) fn format_job(job: &Job, format: ObjectOutput) -> Result<String, Error> {
    match format {
        ObjectOutput::Name => Ok(name_line(job)),
        ObjectOutput::Json => output::json(job),
        ObjectOutput::Yaml => output::yaml(job),
    }
}

/// Formats several objects for programs. Each object comes with the line that `kubectl get -o name` prints for it.
///
/// # Errors
/// If an object cannot be serialized.
pub(super) fn format_list(objects: &[(String, serde_json::Value)], format: ObjectOutput) -> Result<String, Error> {
    let items = || objects.iter().map(|(_, object)| object).collect::<Vec<_>>();
    let list = || json!({ "apiVersion": "v1", "kind": "List", "items": items() });
    match format {
        ObjectOutput::Name => Ok(objects.iter().map(|(name, _)| name.as_str()).collect()),
        ObjectOutput::Json => output::json(&list()),
        ObjectOutput::Yaml => output::yaml(&list()),
    }
}

/// Returns a Job as an object for [`format_list`].
pub(super) fn list_item(job: &Job) -> (String, serde_json::Value) {
    (name_line(job), json!(job))
}

/// Returns the line that `kubectl get -o name` prints.
fn name_line(job: &Job) -> String {
    format!("job.bloomery.dev/{}\n", job.name_any())
}

/// The columns of the table.
const COLUMNS: [&str; 9] = ["NAME", "SKILL", "PHASE", "OUTCOME", "STEPS", "TOOLS", "WHY", "WAITS FOR", "AGE"];

/// Formats the table of Jobs.
fn table(jobs: &[Job], with_namespace: bool, now: Timestamp) -> String {
    let row = |job: &Job| {
        let status = job.status.as_ref();
        let outcome = status.and_then(|status| status.outcome.as_ref());
        let count = |field: fn(&bloomery_crds::v1alpha1::Usage) -> u32| {
            status.and_then(|status| status.usage.as_ref()).map(|usage| field(usage).to_string()).unwrap_or_default()
        };
        [
            job.name_any(),
            text::sanitized_line(&job.spec.skill),
            state::phase(job).to_string(),
            outcome.map(|outcome| outcome.code.to_string()).unwrap_or_default(),
            count(|usage| usage.llm_calls.plan),
            count(|usage| usage.tool_calls),
            why(job),
            waits_for(job),
            page::age(job.metadata.creation_timestamp.as_ref().map(|Time(at)| *at), now),
        ]
    };
    if !with_namespace {
        return table::render(&COLUMNS, jobs.iter().map(row));
    }
    let [name, skill, phase, outcome, steps, tools, why, waits, age] = COLUMNS;
    let header = ["NAMESPACE", name, skill, phase, outcome, steps, tools, why, waits, age];
    let row_with_namespace = |job: &Job| {
        let [name, skill, phase, outcome, steps, tools, why, waits, age] = row(job);
        [job.namespace().unwrap_or_default(), name, skill, phase, outcome, steps, tools, why, waits, age]
    };
    table::render(&header, jobs.iter().map(row_with_namespace))
}

/// Returns the reason of the condition `Ready`, as the column of `kubectl get` does.
fn why(job: &Job) -> String {
    let conditions = job.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let ready = conditions::find(conditions, ConditionType::Ready);
    ready.map(|ready| text::sanitized_line(&ready.reason)).unwrap_or_default()
}

/// Lists the approvers and the questions that a Job waits for.
fn waits_for(job: &Job) -> String {
    let approvers =
        Some(text::sanitized_line(&state::approvers(job).join(","))).filter(|approvers| !approvers.is_empty());
    let questions = state::questions(job).iter().map(|question| text::sanitized_line(&question.id));
    approvers.into_iter().chain(questions).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_testkit::objects::jobs::{job, now, with_held_call, with_questions};

    #[test]
    fn the_table_shows_the_approvers_and_questions_that_jobs_wait_for() {
        let jobs = [job("new"), with_held_call(), with_questions()];
        insta::assert_snapshot!(table(&jobs, false, now()));
        assert!(table(&jobs, true, now()).starts_with("NAMESPACE   NAME "));
    }

    #[test]
    fn a_job_of_another_skill_is_refused() {
        assert!(
            check_skill(&with_held_call(), Some("cs-tier-1")).is_ok() && check_skill(&with_held_call(), None).is_ok()
        );
        assert!(
            check_skill(&with_held_call(), Some("cs-tier-2"))
                .unwrap_err()
                .message
                .contains("belongs to the Skill cs-tier-1")
        );
    }
}
