//! Builds the Job's part of the run document.

use crate::job::plan::Wait;
use crate::job::validate::{Continued, ValidAttempt};
use bloomery_crds::children::{ChildProgress, ChildState};
use bloomery_crds::conditions::Reason;
use bloomery_crds::run::{self, GivenDecision, GivenReply, JobPart, MAX_JOB_PART_BYTES, Sealed};

/// The maximum size of the replies in the Job's part, in bytes of JSON. The longest reply fits, even with every byte
/// escaped.
const MAX_REPLIES_BYTES: usize = 16 * 1024;

/// The maximum size of the decisions in the Job's part with their reasons, in bytes of JSON.
const MAX_DECISIONS_BYTES: usize = 16 * 1024;

/// The maximum size of the ends of children in the Job's part, in bytes of JSON.
const MAX_CHILDREN_BYTES: usize = 16 * 1024;

/// Builds and seals the Job's part. Refuses a part that is too large for a pod.
pub(super) fn build_job_part(attempt: &ValidAttempt) -> Result<Sealed, Wait> {
    let mut part = JobPart {
        version: run::VERSION,
        job: attempt.job.clone(),
        attempt: attempt.number,
        after_disruption: attempt.after_disruption,
        run_key: attempt.run_key.as_ref().unwrap_or(&attempt.job.uid).clone(),
        named_run_key: attempt.run_key.is_some(),
        revision: attempt.revision.digest.clone(),
        goal: attempt.goal.clone(),
        validates: attempt.validates,
        limits: attempt.limits,
        models: attempt.models.clone(),
        external_mcp: attempt.external_mcp.clone(),
        resources: attempt.bound.resources.clone(),
        log: attempt.log.clone(),
        approvals: without_long_reasons(&attempt.approvals),
        void_approvals: attempt.void_approvals.clone(),
        asked: attempt.asked.clone(),
        pins: attempt.pins.clone(),
        tenant_tools: attempt.tenant_tools.clone(),
        replies: replies_that_fit(attempt.replies.iter().cloned()),
        continues: attempt.continues.as_ref().map(Continued::for_worker),
        memory_scope: attempt.memory_scope.clone(),
        depth: attempt.depth,
        children: children_that_fit(&attempt.children),
        child_wait_seconds: attempt.bounded_child_wait(),
        report: Some(attempt.report.clone()),
    };
    let mut sealed = seal(&part)?;
    if sealed.text.len() > MAX_JOB_PART_BYTES && !part.children.is_empty() {
        part.children = part.children.into_iter().map(without_end).collect();
        sealed = seal(&part)?;
    }
    if sealed.text.len() > MAX_JOB_PART_BYTES {
        let message = format!(
            "the run document of this Job is {} bytes long, and the maximum is {MAX_JOB_PART_BYTES}: create another Job with a shorter goal or fewer bindings",
            sealed.text.len()
        );
        return Err(Wait::new(Reason::TooLarge, message));
    }
    Ok(sealed)
}

fn seal(part: &JobPart) -> Result<Sealed, Wait> {
    let unserializable = |error| Wait::new(Reason::Invalid, format!("the run document cannot be serialized: {error}"));
    run::seal(part).map_err(unserializable)
}

/// Returns a child as if it had not ended. The worker receives the end in the response to its next report.
fn without_end(child: ChildState) -> ChildState {
    ChildState { state: ChildProgress::Running, ..child }
}

/// Returns all decisions, without their reasons if they are larger than [`MAX_DECISIONS_BYTES`]: a worker needs each
/// decision, and people find the reasons in the Approvals.
fn without_long_reasons(decisions: &[GivenDecision]) -> Vec<GivenDecision> {
    let fits = serde_json::to_string(decisions).is_ok_and(|text| text.len() <= MAX_DECISIONS_BYTES);
    let reason = |given: &GivenDecision| given.reason.clone().filter(|_| fits);
    decisions.iter().map(|given| GivenDecision { reason: reason(given), ..given.clone() }).collect()
}

/// Returns the states of all children. The first ends are included, up to [`MAX_CHILDREN_BYTES`].
fn children_that_fit(children: &[ChildState]) -> Vec<ChildState> {
    let mut room = MAX_CHILDREN_BYTES;
    let mut fits = |child: &ChildState| {
        let bytes = serde_json::to_string(child).map_or(usize::MAX, |text| text.len());
        let rest = room.checked_sub(bytes);
        room = rest.unwrap_or(room);
        rest.is_some()
    };
    children.iter().cloned().map(|child| if fits(&child) { child } else { without_end(child) }).collect()
}

/// Returns the first replies, up to [`MAX_REPLIES_BYTES`]. The worker receives the others in the responses to its
/// reports.
fn replies_that_fit(replies: impl Iterator<Item = GivenReply>) -> Vec<GivenReply> {
    let mut total_bytes = 0_usize;
    let mut fits = |reply: &GivenReply| {
        let bytes = serde_json::to_string(reply).map_or(usize::MAX, |text| text.len());
        total_bytes = total_bytes.saturating_add(bytes);
        total_bytes <= MAX_REPLIES_BYTES
    };
    replies.take_while(|reply| fits(reply)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::valid_attempt;
    use bloomery_crds::outcome::OutcomeCode;
    use bloomery_crds::v1alpha1::{CoreNote, ToolPolicy, Usage};
    use rstest::rstest;

    #[test]
    fn the_part_holds_the_job_its_revision_its_models_and_its_resources() {
        let sealed = build_job_part(&valid_attempt()).unwrap();
        insta::assert_snapshot!(sealed.text);
        run::open_job_part(&sealed.text, &sealed.digest).unwrap();
    }

    #[test]
    fn a_named_run_key_is_the_key_of_the_part() {
        let mut attempt = valid_attempt();
        attempt.run_key = Some("nightly".into());
        if let Some(continued) = &mut attempt.continues {
            continued.run_key = Some("daily".into());
        }
        let sealed = build_job_part(&attempt).unwrap();
        let part = run::open_job_part(&sealed.text, &sealed.digest).unwrap();
        assert_eq!((part.run_key.as_str(), part.named_run_key), ("nightly", true));
        assert_eq!(part.continues.unwrap().run_key, "daily");
    }

    #[test]
    fn the_tool_policy_of_the_tenant_is_in_the_part() {
        let mut attempt = valid_attempt();
        attempt.tenant_tools = Some(ToolPolicy { allowed: None, blocked: vec!["send_*".to_owned()] });
        let sealed = build_job_part(&attempt).unwrap();
        assert_eq!(run::open_job_part(&sealed.text, &sealed.digest).unwrap().tenant_tools, attempt.tenant_tools);
    }

    #[rstest]
    #[case::configured(Some(60), Some(60))]
    #[case::longer_than_the_pod_has_room_for(Some(600), Some(180))]
    #[case::default(None, None)]
    fn the_wait_for_a_child_ends_before_the_deadline_of_the_pod(
        #[case] configured: Option<u32>,
        #[case] expected: Option<u32>,
    ) {
        let attempt = ValidAttempt { child_wait_seconds: configured, ..valid_attempt() };
        assert_eq!(attempt.deadline_seconds() - attempt.remaining_seconds, 300);
        let sealed = build_job_part(&attempt).unwrap();
        assert_eq!(run::open_job_part(&sealed.text, &sealed.digest).unwrap().child_wait_seconds, expected);
    }

    #[test]
    fn the_scope_of_the_job_in_the_memory_bank_is_in_the_part() {
        let mut attempt = valid_attempt();
        attempt.memory_scope = Some(vec![CoreNote::Progress]);
        let sealed = build_job_part(&attempt).unwrap();
        assert_eq!(run::open_job_part(&sealed.text, &sealed.digest).unwrap().memory_scope, attempt.memory_scope);
    }

    #[test]
    fn a_part_that_is_too_large_for_a_pod_is_refused() {
        let mut attempt = valid_attempt();
        attempt.report.ca = "x".repeat(MAX_JOB_PART_BYTES);
        assert_eq!(build_job_part(&attempt).unwrap_err().reason, Reason::TooLarge);
    }

    #[test]
    fn replies_are_limited_and_the_first_always_fits() {
        let reply = |nth| GivenReply { nth, question: Some("q-1".into()), text: "\u{1}".repeat(1024) };
        let fitting = replies_that_fit((1..=32).map(reply));
        assert_eq!(fitting.iter().map(|reply| reply.nth).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(replies_that_fit((1..=32).map(|nth| GivenReply { text: "A-17".into(), ..reply(nth) })).len(), 32);
        let mut attempt = valid_attempt();
        attempt.goal = "\"".repeat(8192);
        attempt.replies = fitting;
        build_job_part(&attempt).unwrap();
    }

    #[test]
    fn the_ends_of_children_are_limited_and_left_out_of_a_part_that_is_too_large() {
        let ended = |call: &str, text: usize| ChildState {
            call: call.into(),
            job: "refund-1".into(),
            state: ChildProgress::Ended {
                code: OutcomeCode::Succeeded,
                message: "it passed".into(),
                text: Some("x".repeat(text)),
                fields: serde_json::Map::new(),
                usage: Usage::default(),
            },
        };
        let children = [ended("c-1", 9000), ended("c-2", 9000), ended("c-3", 100)];
        let has_end = |child: &ChildState| child.state != ChildProgress::Running;
        assert_eq!(children_that_fit(&children).iter().map(has_end).collect::<Vec<_>>(), [true, false, true]);
        let mut attempt = valid_attempt();
        attempt.children = children.to_vec();
        attempt.goal = "x".repeat(MAX_JOB_PART_BYTES - 12_000);
        let sealed = build_job_part(&attempt).unwrap();
        let part = run::open_job_part(&sealed.text, &sealed.digest).unwrap();
        assert_eq!((part.children.len(), part.children.iter().any(has_end)), (3, false));
    }

    #[test]
    fn every_decision_fits_and_long_reasons_are_left_out() {
        let mut attempt = valid_attempt();
        let decision = |n: usize, reason: &str| GivenDecision {
            approver: format!("{n:0>64}"),
            by: "\"".repeat(256),
            reason: Some(reason.into()),
            ..valid_attempt().approvals[0].clone()
        };
        attempt.approvals = (0..9).map(|n| decision(n, "it is in order")).collect();
        assert_eq!(without_long_reasons(&attempt.approvals), attempt.approvals);
        attempt.approvals = (0..9).map(|n| decision(n, &"\u{1}".repeat(1024))).collect();
        let kept = without_long_reasons(&attempt.approvals);
        assert!(kept.len() == 9 && kept.iter().all(|given| given.reason.is_none()));
        build_job_part(&attempt).unwrap();
    }
}
