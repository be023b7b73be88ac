//! Merges the requests for children into the record of a Job: pure.

use bloomery_crds::children::{ChildRequest, MAX_CHILDREN};
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{ChildJob, Limits, RequestedChild, whole_seconds};

/// Returns the record of the children after a report. The report has the requests for all children whose ends the conversation lacks, so the
/// others are settled. The request of a settled child that is not created yet is dropped.
pub(super) fn merged(current: &[ChildJob], requests: &[ChildRequest]) -> Vec<ChildJob> {
    let requested_for = |call: &str| requests.iter().find(|request| request.call == call);
    let known = current.iter().map(|child| match requested_for(&child.call) {
        None => ChildJob { settled: true, request: None, ..child.clone() },
        // A child with a phase has existed.
        Some(request) if child.name.is_none() => {
            ChildJob { phase: child.phase, ..requested(request, child.refused.clone()) }
        }
        Some(_) => ChildJob { settled: false, ..child.clone() },
    });
    let mut children: Vec<ChildJob> = known.collect();
    for request in requests {
        let is_known = children.iter().any(|child| child.call == request.call);
        if !is_known && children.len() < MAX_CHILDREN {
            children.push(requested(request, None));
        }
    }
    children
}

/// Returns the record of a child that is not created.
fn requested(request: &ChildRequest, refused: Option<String>) -> ChildJob {
    let ChildRequest { call, digest: _, skill, goal, resources, limits } = request;
    let refused = refused.or_else(|| fault(request));
    let wanted = || RequestedChild { goal: goal.clone(), resources: resources.clone(), limits: limits.clone() };
    let request = if refused.is_none() { Some(wanted()) } else { None };
    ChildJob { call: call.clone(), skill: skill.clone(), refused, request, ..ChildJob::default() }
}

/// Describes why no Job can be created from a request; none if one can.
fn fault(request: &ChildRequest) -> Option<String> {
    let ChildRequest { call: _, digest: _, skill, goal, resources: _, limits } = request;
    let Limits { steps, tool_calls, tokens, duration } = limits;
    let seconds = duration.as_ref().map(whole_seconds);
    let is_zero = [steps.map(u64::from), tool_calls.map(u64::from), *tokens, seconds].contains(&Some(0));
    if !names::is_name(skill) {
        Some("name: it cannot be the name of a Skill".to_owned())
    } else if goal.trim().is_empty() {
        Some("goal: it must not be blank".to_owned())
    } else if goal.len() > RequestedChild::MAX_GOAL_BYTES {
        Some(format!("goal: {} bytes exceed the maximum of {}", goal.len(), RequestedChild::MAX_GOAL_BYTES))
    } else if is_zero {
        Some("limits: the Job has no budget left for another one".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::Digest;
    use bloomery_crds::outcome::Phase;
    use rstest::rstest;

    fn request(call: &str) -> ChildRequest {
        ChildRequest {
            call: call.into(),
            digest: Digest::of_bytes(call.as_bytes()),
            skill: "reviewer".into(),
            goal: "Review it".into(),
            resources: vec!["docs".into()],
            limits: Limits { steps: Some(3), ..Limits::default() },
        }
    }

    #[test]
    fn a_request_is_recorded_once_and_keeps_its_child() {
        let recorded = merged(&[], &[request("c-1"), request("c-2")]);
        let wanted = recorded[0].request.as_ref().unwrap();
        assert_eq!((recorded.len(), wanted.goal.as_str(), wanted.limits.steps), (2, "Review it", Some(3)));
        assert_eq!(merged(&recorded, &[request("c-1"), request("c-2")]), recorded);
        let created =
            ChildJob { name: Some("n".into()), phase: Some(Phase::Pending), request: None, ..recorded[0].clone() };
        assert_eq!(merged(std::slice::from_ref(&created), &[request("c-1")]), std::slice::from_ref(&created));
        // The child was deleted after its end.
        let lost = ChildJob { name: None, phase: Some(Phase::Succeeded), ..created };
        let again = ChildJob { phase: Some(Phase::Succeeded), ..recorded[0].clone() };
        assert_eq!(merged(&[lost], &[request("c-1")]), [again]);
    }

    #[test]
    fn a_child_is_settled_while_no_report_asks_about_it() {
        let recorded = merged(&[], &[request("c-1")]);
        let settled = merged(&recorded, &[]);
        assert_eq!((settled[0].settled, settled[0].request.as_ref()), (true, None));
        assert_eq!(merged(&settled, &[request("c-1")]), recorded);
        let refused = ChildJob { refused: Some("no".into()), request: None, ..recorded[0].clone() };
        assert_eq!(merged(std::slice::from_ref(&refused), &[request("c-1")]), [refused]);
    }

    #[test]
    fn a_status_has_room_for_a_limited_number_of_children() {
        let all: Vec<ChildRequest> = (0..40).map(|number| request(&format!("c-{number}"))).collect();
        assert_eq!(merged(&[], &all).len(), MAX_CHILDREN);
    }

    #[rstest]
    #[case::blank(|request: &mut ChildRequest| request.goal = " \n".into(), "goal: it must not be blank")]
    #[case::long(|request: &mut ChildRequest| request.goal = "x".repeat(5000), "5000 bytes exceed the maximum")]
    #[case::no_name(|request: &mut ChildRequest| request.skill = "Reviewer".into(), "name: ")]
    #[case::no_budget(|request: &mut ChildRequest| request.limits.tokens = Some(0), "limits: ")]
    fn an_impossible_request_is_refused_with_its_field(#[case] change: fn(&mut ChildRequest), #[case] expected: &str) {
        let mut wrong = request("c-1");
        change(&mut wrong);
        let recorded = merged(&[], &[wrong]);
        let refused = recorded[0].refused.as_ref().unwrap();
        assert!(refused.contains(expected) && recorded[0].request.is_none(), "{refused}");
    }
}
