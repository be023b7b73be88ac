//! The calls of a Job that people were asked about: pure. The Job's status records them, because Approvals can be deleted, and a false
//! report can replace the held call of the status.

use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::{ApprovedCall, AskedCall, HeldCall, JobStatus};

/// The end of the message about a report that contradicts an earlier one, with the remedy.
pub const TWO_WRITERS: &str = ", and was refused: only one of them is from the worker. Find out who may enter the pods of the namespace \
                               or write to its memory";

/// Returns the record of a Job. The status of an earlier version has only the call that the Job waits for.
pub fn recorded(status: &JobStatus) -> Vec<AskedCall> {
    let held = status.waiting_for.as_ref().and_then(|waiting| waiting.call.as_ref());
    let held = held.filter(|_| status.phase == Some(Phase::AwaitingApproval) && status.asked_calls.is_empty());
    let of_held =
        held.cloned().map(|HeldCall { id, tool, digest, approvers, .. }| AskedCall { id, tool, digest, approvers });
    status.asked_calls.iter().cloned().chain(of_held).collect()
}

/// Returns the record of a Job after a report of this held call. `is_asked` says whether people are asked about it now.
///
/// A new call replaces those that people have approved, because they have their results: the next call is held only after that.
///
/// # Errors
/// If people were asked about another call with this id, or about too many calls.
pub fn with_call(
    mut asked: Vec<AskedCall>,
    approved: Option<&ApprovedCall>,
    held: &HeldCall,
    is_asked: bool,
) -> Result<Vec<AskedCall>, String> {
    if let Some(known) = asked.iter_mut().find(|known| known.id == held.id) {
        if (&known.tool, &known.digest) != (&held.tool, &held.digest) {
            return Err(format!(
                "a report has another call {} than the one that people were asked about{TWO_WRITERS}",
                held.id
            ));
        }
        add_approvers(&mut known.approvers, held)?;
        return Ok(asked);
    }
    if is_asked {
        asked.retain(|call| !is_approved(call, approved));
        if asked.len() >= AskedCall::MAX_CALLS {
            return Err(format!(
                "people were asked about {} calls of the Job and have approved none of them, so they are not asked about the call {}: \
                 correct the Skill or the goal, and create another Job",
                AskedCall::MAX_CALLS,
                held.id
            ));
        }
        let HeldCall { id, tool, digest, .. } = held.clone();
        let mut call = AskedCall { id, tool, digest, approvers: Vec::new() };
        add_approvers(&mut call.approvers, held)?;
        asked.push(call);
    }
    Ok(asked)
}

fn add_approvers(approvers: &mut Vec<String>, held: &HeldCall) -> Result<(), String> {
    let new = held.approvers.iter().filter(|approver| !approvers.contains(approver)).cloned().collect::<Vec<_>>();
    if approvers.len() + new.len() > ApprovedCall::MAX_APPROVERS {
        return Err(format!("the call {} has more than {} approvers", held.id, ApprovedCall::MAX_APPROVERS));
    }
    approvers.extend(new);
    Ok(())
}

fn is_approved(asked: &AskedCall, approved: Option<&ApprovedCall>) -> bool {
    approved.is_some_and(|approved| {
        (&approved.id, &approved.digest) == (&asked.id, &asked.digest)
            && asked.approvers.iter().all(|approver| approved.approvers.contains(approver))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::held_call;
    use bloomery_crds::Digest;
    use bloomery_crds::v1alpha1::WaitingFor;

    fn held(id: &str, approvers: &[&str]) -> HeldCall {
        let approvers = approvers.iter().map(|&approver| approver.to_owned()).collect();
        HeldCall { id: id.into(), digest: Digest::of_bytes(id.as_bytes()), approvers, ..held_call() }
    }

    fn ids(asked: &[AskedCall]) -> Vec<&str> {
        asked.iter().map(|call| call.id.as_str()).collect()
    }

    #[test]
    fn a_call_is_recorded_with_all_approvers_who_were_asked() {
        let both = with_call(Vec::new(), None, &held("7-0", &["supervisor", "finance"]), true).unwrap();
        let one_left = with_call(both.clone(), None, &held("7-0", &["finance"]), true).unwrap();
        assert_eq!(one_left, both);
        assert_eq!(both[0].approvers, ["supervisor", "finance"]);
        assert_eq!(
            with_call(both.clone(), None, &held("9-0", &["finance"]), false).unwrap(),
            both,
            "nobody is asked yet"
        );
    }

    #[test]
    fn a_new_call_replaces_only_calls_that_all_approvers_have_approved() {
        let asked = with_call(Vec::new(), None, &held("7-0", &["supervisor", "finance"]), true).unwrap();
        let passed = |approvers: &[&str]| {
            let approvers = approvers.iter().map(|&approver| approver.to_owned()).collect();
            ApprovedCall { id: "7-0".into(), digest: Digest::of_bytes(b"7-0"), approvers }
        };
        let next =
            |approved: &ApprovedCall| with_call(asked.clone(), Some(approved), &held("9-0", &["legal"]), true).unwrap();
        assert_eq!(ids(&next(&passed(&["supervisor"]))), ["7-0", "9-0"]);
        assert_eq!(ids(&next(&passed(&["finance", "supervisor"]))), ["9-0"]);
    }

    #[test]
    fn another_call_with_a_known_id_is_refused() {
        let asked = with_call(Vec::new(), None, &held("7-0", &["supervisor"]), true).unwrap();
        let renamed = HeldCall { tool: "track_order".into(), ..held("7-0", &["supervisor"]) };
        let other = HeldCall { digest: Digest::of_bytes(b"other"), ..held("7-0", &["supervisor"]) };
        for call in [renamed, other] {
            for is_asked in [true, false] {
                assert!(with_call(asked.clone(), None, &call, is_asked).unwrap_err().contains("another call 7-0"));
            }
        }
    }

    #[test]
    fn people_are_asked_about_a_bounded_number_of_calls() {
        let mut asked = Vec::new();
        for n in 0..AskedCall::MAX_CALLS {
            asked = with_call(asked.clone(), None, &held(&format!("{n}-0"), &["supervisor"]), true).unwrap();
        }
        assert_eq!(with_call(asked.clone(), None, &held("0-0", &["supervisor"]), true).unwrap(), asked);
        assert!(with_call(asked.clone(), None, &held("99-0", &["supervisor"]), true).unwrap_err().contains("16 calls"));
    }

    #[test]
    fn approvers_are_not_dropped() {
        let approvers: Vec<String> = (0..ApprovedCall::MAX_APPROVERS).map(|n| n.to_string()).collect();
        let many = HeldCall { approvers, ..held("7-0", &[]) };
        let asked = with_call(Vec::new(), None, &many, true).unwrap();
        assert!(
            with_call(asked, None, &held("7-0", &["supervisor"]), true).unwrap_err().contains("more than 32 approvers")
        );
    }

    #[test]
    fn a_job_that_an_earlier_version_parked_has_its_held_call_on_record() {
        let call = Some(held("7-0", &["supervisor"]));
        let waiting_for = Some(WaitingFor { call, ..WaitingFor::default() }.into());
        let status = JobStatus { phase: Some(Phase::AwaitingApproval), waiting_for, ..JobStatus::default() };
        let asked = recorded(&status);
        assert_eq!(ids(&asked), ["7-0"]);
        assert_eq!(recorded(&JobStatus { asked_calls: asked.clone(), ..status.clone() }), asked);
        assert_eq!(recorded(&JobStatus { phase: Some(Phase::Running), ..status }), []);
    }
}
