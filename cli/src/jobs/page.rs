//! The page of a Job on a cluster: its goal, the decisions of the gates, what it waits for and how to answer.

use super::cluster_command::ClusterCommand;
use super::state::{self, DecisionState};
use crate::page::{Page, phase};
use crate::summary;
use crate::text::escaped;
use bloomery_crds::conditions::{ConditionType, Reason};
use bloomery_crds::v1alpha1::{Gates, Job, JobStatus, LlmCalls, WaitingFor};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;

/// Formats the page of a Job.
pub(super) fn render(job: &Job, deciding: &DecisionState, command: &ClusterCommand<'_>, now: Timestamp) -> String {
    let mut page = Page::default();
    let none = JobStatus::default();
    let status = job.status.as_ref().unwrap_or(&none);
    let name = job.name_any();
    page.line("Job", &format!("{name} in {}", job.namespace().unwrap_or_default()));
    let revision = status.skill_revision.as_ref().map(|revision| format!(", revision {}", revision.name));
    page.line("Skill", &format!("{}{}", job.spec.skill, revision.unwrap_or_default()));
    page.line("Goal", &job.spec.goal);
    if let Some(continued) = &job.spec.continues {
        page.line("Continues", continued);
    }
    page.line("Phase", &phase(state::phase(job), status.outcome.as_ref()));
    page.line("Since", &since(job, status, now));
    if job.spec.cancel == Some(true) && !state::has_ended(job) {
        page.line("Cancel", "requested: the Job ends soon");
    }
    for condition in notable_conditions(status) {
        page.line("Condition", &format!("{}: {}", condition.reason, condition.message));
    }
    if let Some(gates) = status.gates.as_ref().filter(|gates| **gates != Gates::default()) {
        page.gates(gates);
    }
    stages(&mut page, status);
    page.workflows(&status.workflows);
    if let Some(waiting) = &status.waiting_for {
        waits_for(&mut page, job, waiting, deciding, command);
    }
    replies(&mut page, job, status);
    if let Some(usage) = &status.usage {
        page.line("Spent", &summary::usage(usage));
    }
    if let Some(attempt) = &status.attempt {
        page.line("Pod", &format!("{}, attempt {}", attempt.pod, attempt.number));
    }
    if let Some(log) = &status.log {
        page.line(
            "Log",
            &format!("{} events in {}; {}", log.events, log.path, command.line(&format!("events {name}"))),
        );
    }
    if let Some(result) = &status.result {
        page.result(result.verified, &result.text, &result.fields);
    }
    page.text()
}

/// Describes when it was created, started and ended.
fn since(job: &Job, status: &JobStatus, now: Timestamp) -> String {
    let at = |time: Option<&Time>| time.map(|Time(at)| *at);
    let ended = at(status.completion_time.as_ref());
    let waits = status
        .waiting_for
        .as_ref()
        .and_then(|waiting| at(waiting.since.as_ref()))
        .filter(|_| state::waits_for_people(job));
    let begun = at(status.start_time.as_ref());
    let made = at(job.metadata.creation_timestamp.as_ref());
    let ago = |word: &str, at: Timestamp| format!("{word} {at}, {} ago", age(Some(at), now));
    match (ended, waits, begun, made) {
        (Some(ended), _, Some(begun), _) => format!("{}; it took {}", ago("ended", ended), age(Some(begun), ended)),
        (Some(ended), _, None, _) => ago("ended", ended),
        (None, Some(waits), _, _) => ago("waiting since", waits),
        (None, None, Some(begun), _) => ago("begun", begun),
        (None, None, None, Some(made)) => ago("made", made),
        (None, None, None, None) => "unknown".to_owned(),
    }
}

/// Formats an age, as kubectl does.
pub(super) fn age(then: Option<Timestamp>, now: Timestamp) -> String {
    let Some(then) = then else { return String::new() };
    let passed = now.duration_since(then).max(SignedDuration::ZERO);
    match (passed.as_secs(), passed.as_mins(), passed.as_hours()) {
        (seconds, ..120, _) if seconds < 120 => format!("{seconds}s"),
        (_, minutes, _) if minutes < 120 => format!("{minutes}m"),
        (_, _, hours) if hours < 48 => format!("{hours}h"),
        (_, _, hours) => format!("{}d", hours / 24),
    }
}

/// Returns the conditions that a person should know. After the end of a Job the outcome replaces them, and a running Job is
/// expected not to be ready.
fn notable_conditions(status: &JobStatus) -> Vec<&Condition> {
    let is = |condition: &Condition, kind: ConditionType| condition.type_ == <&str>::from(kind);
    let is_news = |condition: &&Condition| {
        // `Ready` repeats these.
        let is_twin = is(condition, ConditionType::Reconciling) || is(condition, ConditionType::Stalled);
        let is_as_usual =
            [Reason::Running, Reason::Finalizing].iter().any(|usual| condition.reason == <&str>::from(usual));
        // Only the result of waiting for people matters.
        let is_past =
            is(condition, ConditionType::AwaitingPeople) && condition.reason != <&str>::from(&Reason::NotBegun);
        let is_told =
            is_twin || is_past || (is(condition, ConditionType::Ready) && (is_as_usual || status.is_terminal()));
        condition.status != "True" && !is_told
    };
    status.conditions.iter().filter(is_news).collect()
}

/// Adds what the Job waits for, with the commands that answer. The labels are reserved, so that no text of a model imitates them.
fn waits_for(page: &mut Page, job: &Job, waiting: &WaitingFor, deciding: &DecisionState, command: &ClusterCommand<'_>) {
    if let Some(call) = &waiting.call {
        let approvers = state::approvers(job).join(" and ");
        page.line(
            "Waits for",
            &format!("{} to let {} be called: {}", escaped(&approvers), escaped(&call.tool), escaped(&call.reason)),
        );
    }
    if let Some(note) = deciding.note() {
        page.line("", &note);
    }
    for approval in deciding.open() {
        page.line("Approve", &command.line(&format!("approve {approval}")));
        page.line("Deny", &command.line(&format!("deny {approval}")));
    }
    for question in &waiting.questions {
        page.question("Waits for", &format!("an answer to {}: {}", question.id, question.text), &question.choices);
        if let Some(refused) = &question.refused {
            page.line("", &format!("The last answer was not accepted: {refused}"));
        }
        match super::compose_reply::pending_answer(job, &question.id) {
            Some(reply) => page.line("", &format!("Answered, but not received yet: {}", reply.text)),
            None => page.line("Reply", &state::answer_command(job, question, command)),
        }
    }
}

/// Adds the number of requests to the model by stage.
fn stages(page: &mut Page, status: &JobStatus) {
    let Some(calls) = status.usage.as_ref().map(|usage| &usage.llm_calls) else { return };
    let LlmCalls { intent, selection, plan, finalization, polish } = calls;
    let stages = [
        ("intent", intent),
        ("selection", selection),
        ("plan", plan),
        ("finalization", finalization),
        ("polish", polish),
    ];
    let asked = stages.iter().filter(|(_, calls)| **calls > 0).map(|(stage, calls)| format!("{stage} {calls}"));
    let asked: Vec<String> = asked.collect();
    if !asked.is_empty() {
        page.line("Stages", &asked.join(", "));
    }
}

fn replies(page: &mut Page, job: &Job, status: &JobStatus) {
    let (given, heard) = (job.spec.replies.len(), status.replies_heard.unwrap_or_default());
    if given > 0 {
        page.line("Replies", &format!("{given} sent, {heard} received"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{ClusterArgs, Invocation};
    use crate::jobs::fixtures::{asks, ended, holds, job, now};
    use bloomery_crds::names;
    use bloomery_crds::outcome::{Outcome, OutcomeCode};
    use rstest::rstest;

    fn page(job: &Job) -> String {
        let deciding = match (state::not_asked_reason(job), state::approvals(job)) {
            (Some(why), _) => DecisionState::NotAsked(why.to_owned()),
            (None, []) => DecisionState::NoCall,
            (None, open) => DecisionState::Open(open.to_vec()),
        };
        render(job, &deciding, &ClusterCommand::new(Invocation::KubectlPlugin, &ClusterArgs::default()), now())
    }

    #[test]
    fn a_held_call_has_the_commands_that_decide() {
        insta::assert_snapshot!(page(&holds()));
    }

    #[test]
    fn who_has_decided_is_waited_for_no_more() {
        let mut job = holds();
        if let Some(waiting) = job.status.as_mut().and_then(|status| status.waiting_for.as_mut()) {
            waiting.approvals = vec![names::approval("refund", "uid-1", "c-7", "finance")];
        }
        assert!(page(&job).contains("Waits for   finance to let process_refund be called"), "{}", page(&job));
    }

    #[test]
    fn that_nobody_is_waited_for_is_said_where_a_call_came_to_nothing() {
        let told = |reason: &str| {
            let mut job = holds();
            if let Some(status) = &mut job.status {
                let mut past = status.conditions[0].clone();
                (past.type_, past.reason) = ("AwaitingPeople".to_owned(), reason.to_owned());
                status.conditions = vec![past];
            }
            page(&job).contains(&format!("Condition   {reason}"))
        };
        assert!(!told("Resumed") && !told("Ended") && told("NotBegun"));
    }

    #[test]
    fn that_nobody_can_decide_is_said_and_why() {
        let mut job = holds();
        if let Some(status) = &mut job.status {
            for condition in &mut status.conditions {
                condition.reason = "ApprovalPolicyMissing".to_owned();
                condition.message = "the binding is not as it was shipped".to_owned();
            }
        }
        let told = page(&job);
        assert!(told.contains("No decision is requested: the binding is not as it was shipped"), "{told}");
        assert!(!told.contains("Decided, but") && !told.contains("Approve "), "{told}");
        let told = render(
            &holds(),
            &DecisionState::Expired,
            &ClusterCommand::new(Invocation::KubectlPlugin, &ClusterArgs::default()),
            now(),
        );
        assert!(told.contains("Expired, but") && !told.contains("Approve "), "{told}");
    }

    #[test]
    fn questions_have_the_commands_that_answer() {
        insta::assert_snapshot!(page(&asks()));
    }

    #[test]
    fn a_job_that_has_ended_says_how() {
        insta::assert_snapshot!(page(&ended(&Outcome::new(OutcomeCode::Succeeded, "The answer passed every gate."))));
    }

    #[test]
    fn a_job_of_which_nobody_has_said_anything_has_a_page() {
        insta::assert_snapshot!(page(&job("new")));
    }

    #[test]
    fn a_job_at_work_is_as_it_should_be() {
        let told = |reason: &str| {
            let mut job = holds();
            if let Some(status) = &mut job.status {
                status.conditions[0].reason = reason.to_owned();
            }
            page(&job).contains(&format!("Condition   {reason}"))
        };
        assert!(!told("Running") && !told("Finalizing") && told("Unschedulable"));
    }

    #[test]
    fn nothing_steers_the_terminal() {
        let mut job = asks();
        job.spec.goal = "Refund\u{1b}[2J".to_owned();
        if let Some(waiting) = job.status.as_mut().and_then(|status| status.waiting_for.as_mut()) {
            waiting.questions[0].text = "Which?\u{1b}]0;x\u{7}\u{202e}".to_owned();
            waiting.questions[0].choices = vec!["a\u{9b}".to_owned()];
        }
        assert!(!page(&job).contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{9b}']));
    }

    #[rstest]
    #[case::seconds(119, "119s")]
    #[case::minutes(120, "2m")]
    #[case::hours(7200, "2h")]
    #[case::days(172_800, "2d")]
    #[case::a_clock_that_is_behind(-5, "0s")]
    fn an_age_is_as_kubectl_has_it(#[case] seconds: i64, #[case] expected: &str) {
        assert_eq!(age(Some(now() - SignedDuration::from_secs(seconds)), now()), expected);
    }
}
