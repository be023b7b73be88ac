//! The page of a Job on a cluster: its goal, the decisions of the gates, the decisions and answers that it waits for, and the
//! commands that give them.

use super::cluster_command::ClusterCommand;
use super::state::{self, DecisionState};
use crate::page::{Page, phase};
use crate::summary;
use crate::text::escaped;
use bloomery_crds::conditions::{ConditionType, Reason};
use bloomery_crds::v1alpha1::{ChildJob, Gates, Job, JobStatus, LlmCalls, WaitingFor};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;

/// Formats the page of a Job.
pub(super) fn render(job: &Job, decision: &DecisionState, command: &ClusterCommand<'_>, now: Timestamp) -> String {
    let mut page = Page::default();
    let no_status = JobStatus::default();
    let status = job.status.as_ref().unwrap_or(&no_status);
    let name = job.name_any();
    page.line("Job", &format!("{name} in {}", job.namespace().unwrap_or_default()));
    let revision = status.skill_revision.as_ref().map(|revision| format!(", revision {}", revision.name));
    page.line("Skill", &format!("{}{}", job.spec.skill, revision.unwrap_or_default()));
    page.line("Goal", &job.spec.goal);
    if let Some(continued) = &job.spec.continues {
        page.line("Continues", continued);
    }
    if let Some(parent) = &job.spec.parent {
        page.line("Parent", &format!("{}, which invoked this Job with the call {}", parent.name, parent.call));
    }
    for child in &status.children {
        page.line("Child", &describe_child(child));
    }
    page.line("Phase", &phase(state::phase(job), status.outcome.as_ref()));
    page.line("Since", &describe_since(job, status, now));
    if job.spec.cancel == Some(true) && !state::has_ended(job) {
        page.line("Cancel", "requested: the Job ends soon");
    }
    for condition in notable_conditions(status) {
        page.line("Condition", &format!("{}: {}", condition.reason, condition.message));
    }
    if let Some(gates) = status.gates.as_deref().filter(|gates| **gates != Gates::default()) {
        page.gates(gates);
    }
    add_model_requests(&mut page, status);
    page.workflows(&status.workflows);
    if let Some(waiting) = &status.waiting_for {
        add_waits(&mut page, job, waiting, decision, command);
    }
    add_replies(&mut page, job, status);
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

/// Describes a Job that this one has invoked, or why it was not created.
fn describe_child(child: &ChildJob) -> String {
    let ChildJob { call, skill, name, phase, refused, .. } = child;
    match (name, refused) {
        (Some(name), _) => format!("{name} of the Skill {skill}: {}", phase.unwrap_or_default()),
        (None, Some(why)) => format!("of the Skill {skill} for {call} was not created: {}", escaped(why)),
        (None, None) => format!("of the Skill {skill} for {call} is not created yet"),
    }
}

/// Describes the latest of these times: the end of the Job, the start of its wait for people, its start, its creation.
fn describe_since(job: &Job, status: &JobStatus, now: Timestamp) -> String {
    let at = |time: Option<&Time>| time.map(|Time(timestamp)| *timestamp);
    let ended = at(status.completion_time.as_ref());
    let waits = status
        .waiting_for
        .as_ref()
        .and_then(|waiting| at(waiting.since.as_ref()))
        .filter(|_| state::waits_for_people(job));
    let started = at(status.start_time.as_ref());
    let created = at(job.metadata.creation_timestamp.as_ref());
    let ago = |word: &str, time: Timestamp| format!("{word} {time}, {} ago", age(Some(time), now));
    match (ended, waits, started, created) {
        (Some(ended), _, Some(started), _) => format!("{}; it took {}", ago("ended", ended), age(Some(started), ended)),
        (Some(ended), _, None, _) => ago("ended", ended),
        (None, Some(waits), _, _) => ago("waiting since", waits),
        (None, None, Some(started), _) => ago("started", started),
        (None, None, None, Some(created)) => ago("created", created),
        (None, None, None, None) => "unknown".to_owned(),
    }
}

/// Formats an age as kubectl does, such as `119s` or `2m`.
pub(super) fn age(then: Option<Timestamp>, now: Timestamp) -> String {
    let Some(then) = then else { return String::new() };
    let passed = now.duration_since(then).max(SignedDuration::ZERO);
    match (passed.as_secs(), passed.as_mins(), passed.as_hours()) {
        (seconds, _, _) if seconds < 120 => format!("{seconds}s"),
        (_, minutes, _) if minutes < 120 => format!("{minutes}m"),
        (_, _, hours) if hours < 48 => format!("{hours}h"),
        (_, _, hours) => format!("{}d", hours / 24),
    }
}

/// Returns the conditions that the page shows. A condition that is true, or that repeats another line of the page, is omitted.
fn notable_conditions(status: &JobStatus) -> Vec<&Condition> {
    let is = |condition: &Condition, kind: ConditionType| condition.type_ == <&str>::from(kind);
    let has_reason = |condition: &Condition, reason: Reason| condition.reason == <&str>::from(&reason);
    let is_notable = |condition: &&Condition| {
        if condition.status == "True" {
            return false;
        }
        // `Ready` has the same reason and message as these.
        if is(condition, ConditionType::Reconciling) || is(condition, ConditionType::Stalled) {
            return false;
        }
        if is(condition, ConditionType::Ready) {
            // A running Job is expected not to be ready. The outcome of a Job that has ended has a line of its own.
            let is_running = has_reason(condition, Reason::Running) || has_reason(condition, Reason::Finalizing);
            return !is_running && !status.is_terminal();
        }
        // After a wait for people, the condition is notable only if the call was not made.
        !is(condition, ConditionType::AwaitingPeople) || has_reason(condition, Reason::NotBegun)
    };
    status.conditions.iter().filter(is_notable).collect()
}

/// Adds the held call and the questions that the Job waits for, with the commands that decide and answer. Texts of a model are
/// escaped or indented, so that they cannot imitate these lines.
fn add_waits(page: &mut Page, job: &Job, waiting: &WaitingFor, decision: &DecisionState, command: &ClusterCommand<'_>) {
    if let Some(call) = &waiting.call {
        let approvers = state::approvers(job).join(" and ");
        page.line(
            "Waits for",
            &format!("{} to approve a call of {}: {}", escaped(&approvers), escaped(&call.tool), escaped(&call.reason)),
        );
    }
    if let Some(note) = decision.note() {
        page.line("", &note);
    }
    for approval in decision.open() {
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

/// Adds the number of requests to the model in each stage.
fn add_model_requests(page: &mut Page, status: &JobStatus) {
    let Some(calls) = status.usage.as_ref().map(|usage| &usage.llm_calls) else { return };
    let LlmCalls { intent, selection, plan, finalization, polish } = calls;
    let stages = [
        ("intent", intent),
        ("selection", selection),
        ("plan", plan),
        ("finalization", finalization),
        ("polish", polish),
    ];
    let used = stages.iter().filter(|(_, calls)| **calls > 0);
    let used: Vec<String> = used.map(|(stage, calls)| format!("{stage} {calls}")).collect();
    if !used.is_empty() {
        page.line("Requests", &used.join(", "));
    }
}

/// Adds the numbers of sent and received replies.
fn add_replies(page: &mut Page, job: &Job, status: &JobStatus) {
    let (sent, received) = (job.spec.replies.len(), status.replies_heard.unwrap_or_default());
    if sent > 0 {
        page.line("Replies", &format!("{sent} sent, {received} received"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{ClusterArgs, Invocation};
    use bloomery_crds::names;
    use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
    use bloomery_crds::v1alpha1::ParentJob;
    use bloomery_testkit::objects::jobs::{ended, job, now, with_held_call, with_questions};
    use rstest::rstest;

    fn page(job: &Job) -> String {
        let decision = match (state::not_requested_reason(job), state::approvals(job)) {
            (Some(reason), _) => DecisionState::NotRequested(reason.to_owned()),
            (None, []) => DecisionState::NoCall,
            (None, open) => DecisionState::Open(open.to_vec()),
        };
        render(job, &decision, &ClusterCommand::new(Invocation::KubectlPlugin, &ClusterArgs::default()), now())
    }

    #[test]
    fn a_held_call_is_shown_with_the_commands_that_decide() {
        insta::assert_snapshot!(page(&with_held_call()));
    }

    #[test]
    fn only_approvers_with_an_open_approval_are_waited_for() {
        let mut job = with_held_call();
        if let Some(waiting) = job.status.as_mut().and_then(|status| status.waiting_for.as_mut()) {
            waiting.approvals = vec![names::approval("refund", "uid-1", "c-7", "finance")];
        }
        assert!(page(&job).contains("Waits for   finance to approve a call of process_refund"), "{}", page(&job));
    }

    #[test]
    fn the_end_of_a_wait_is_shown_only_if_the_call_was_not_made() {
        let is_shown = |reason: &str| {
            let mut job = with_held_call();
            if let Some(status) = &mut job.status {
                let mut past = status.conditions[0].clone();
                (past.type_, past.reason) = ("AwaitingPeople".to_owned(), reason.to_owned());
                status.conditions = vec![past];
            }
            page(&job).contains(&format!("Condition   {reason}"))
        };
        assert!(!is_shown("Resumed") && !is_shown("Ended") && is_shown("NotBegun"));
    }

    #[test]
    fn the_page_says_why_nobody_can_decide() {
        let mut job = with_held_call();
        if let Some(status) = &mut job.status {
            for condition in &mut status.conditions {
                condition.reason = "ApprovalPolicyMissing".to_owned();
                condition.message = "the binding is not as it was shipped".to_owned();
            }
        }
        let text = page(&job);
        assert!(text.contains("No decision is requested: the binding is not as it was shipped"), "{text}");
        assert!(!text.contains("Decided, but") && !text.contains("Approve "), "{text}");
        let text = render(
            &with_held_call(),
            &DecisionState::Expired,
            &ClusterCommand::new(Invocation::KubectlPlugin, &ClusterArgs::default()),
            now(),
        );
        assert!(text.contains("Expired, but") && !text.contains("Approve "), "{text}");
    }

    #[test]
    fn questions_are_shown_with_the_commands_that_answer() {
        insta::assert_snapshot!(page(&with_questions()));
    }

    #[test]
    fn a_job_that_has_ended_is_shown_with_its_outcome() {
        insta::assert_snapshot!(page(&ended(&Outcome::new(OutcomeCode::Succeeded, "The answer passed every gate."))));
    }

    #[test]
    fn a_job_without_a_status_has_a_page() {
        insta::assert_snapshot!(page(&job("new")));
    }

    #[test]
    fn a_job_names_its_parent_and_its_children() {
        let mut job = with_held_call();
        let call = || "c-4".to_owned();
        job.spec.parent = Some(ParentJob { name: "audit".into(), uid: "uid-0".into(), call: call() });
        let child = |name: Option<&str>, refused: Option<&str>| ChildJob {
            call: call(),
            skill: "reviewer".into(),
            name: name.map(Into::into),
            phase: name.map(|_| Phase::AwaitingReply),
            refused: refused.map(Into::into),
            ..ChildJob::default()
        };
        if let Some(status) = &mut job.status {
            status.children = vec![child(Some("refund-1a"), None), child(None, Some("no\u{1b}")), child(None, None)];
        }
        let text = page(&job);
        for line in [
            "audit, which invoked this Job with the call c-4",
            "refund-1a of the Skill reviewer: AwaitingReply",
            "of the Skill reviewer for c-4 was not created: no",
            "of the Skill reviewer for c-4 is not created yet",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn the_reason_of_a_running_job_is_not_shown() {
        let is_shown = |reason: &str| {
            let mut job = with_held_call();
            if let Some(status) = &mut job.status {
                status.conditions[0].reason = reason.to_owned();
            }
            page(&job).contains(&format!("Condition   {reason}"))
        };
        assert!(!is_shown("Running") && !is_shown("Finalizing") && is_shown("Unschedulable"));
    }

    #[test]
    fn no_text_controls_the_terminal() {
        let mut job = with_questions();
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
    fn an_age_has_the_format_of_kubectl(#[case] seconds: i64, #[case] expected: &str) {
        assert_eq!(age(Some(now() - SignedDuration::from_secs(seconds)), now()), expected);
    }
}
