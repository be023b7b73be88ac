//! Tests of Jobs that wait for the approval of a call.

use super::super::fixtures::api::POLICIES;
use super::super::fixtures::open::{approval_path, open_approval, put_approval};
use super::super::fixtures::{counted, decided, held_call, policy_digest, status};
use super::*;
use bloomery_crds::Digest;
use bloomery_crds::v1alpha1::{Approval, ApprovalVerdict, WaitingFor};

/// A stored Approval whose expiry has passed.
fn expired(approver: &str) -> Approval {
    let mut approval = open_approval(approver);
    approval.spec.expires_at = Time(Timestamp::from_second(1_000_000_000).unwrap());
    approval
}

/// A Job whose worker parked with a call that supervisor and finance have to approve. Its pod is deleted.
pub(super) fn awaiting_approval() -> FakeApi {
    let api = tenant();
    api.install_policies();
    let call = held_call();
    let approvals = crate::approval::approval_names("refund", UID, &call);
    let mut status = status(1, Phase::AwaitingApproval);
    status.waiting_for = Some(WaitingFor { call: Some(call), approvals, ..WaitingFor::default() }.into());
    put_status(&api, status);
    api
}

/// The Job's part of the run document that a pod mounts.
fn job_part(api: &FakeApi, pod: &str) -> Value {
    let text = api.get(pod)["metadata"]["annotations"][names::ANNOTATION_JOB_PART].as_str().unwrap().to_owned();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn nothing_is_written_while_approvers_have_not_decided() {
    let api = awaiting_approval();
    put_approval(&api, &open_approval("supervisor"));
    put_approval(&api, &open_approval("finance"));
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn after_the_last_decision_the_next_attempt_starts_with_all_decisions() {
    let api = awaiting_approval();
    let supervisor = decided(open_approval("supervisor"), ApprovalVerdict::Approve);
    let finance = open_approval("finance");
    put_approval(&api, &supervisor);
    put_approval(&api, &finance);
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {}", approval_path(&supervisor))]);
    let counted = &api.get(&approval_path(&supervisor))["status"];
    assert_eq!(
        (&counted["counted"]["verdict"], &counted["conditions"][0]["reason"]),
        (&json!("Approve"), &json!("Approved"))
    );
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {JOB}")], "finance has not decided yet");
    assert_eq!(api.get(JOB)["status"]["waitingFor"]["approvals"], json!([finance.metadata.name]));
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);

    put_approval(&api, &decided(finance.clone(), ApprovalVerdict::Approve));
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {}", approval_path(&finance))]);
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_2}"), format!("status {JOB}")]);
    let given = job_part(&api, POD_2)["approvals"].clone();
    assert_eq!(given.as_array().unwrap().len(), 2);
    assert_eq!(given[0]["approver"], "supervisor");
    assert_eq!(given[0]["verdict"], "Approve");
    assert_eq!(given[0]["by"], "jane@acme.io");
    assert_eq!(given[0]["digest"], json!(held_call().digest));
    let passed = json!({ "id": "c-7", "digest": held_call().digest, "approvers": ["supervisor", "finance"] });
    assert_eq!(api.get(JOB)["status"]["approvedCall"], passed);
}

/// Both approvals were passed to the first worker. Since then, one Approval was deleted, or decided under other policies.
#[tokio::test]
async fn an_approval_that_was_passed_and_does_not_count_any_more_is_passed_as_void() {
    for is_deleted in [true, false] {
        let api = awaiting_approval();
        put_approval(&api, &counted(open_approval("supervisor"), ApprovalVerdict::Approve));
        if !is_deleted {
            let mut stale = counted(open_approval("finance"), ApprovalVerdict::Approve);
            stale.spec.guard = Some(Digest::of_bytes(b"earlier policies"));
            put_approval(&api, &stale);
        }
        let passed = json!({ "id": "c-7", "digest": held_call().digest, "approvers": ["supervisor", "finance"] });
        api.change(JOB, |job| {
            job["status"]["phase"] = json!("Queued");
            job["status"].as_object_mut().unwrap().remove("waitingFor");
            job["status"]["approvedCall"] = passed.clone();
        });
        reconcile_once(&api).await.unwrap();
        let part = job_part(&api, POD_2);
        assert_eq!(part["approvals"].as_array().unwrap().len(), 1);
        let void = json!({ "id": "c-7", "digest": held_call().digest, "approvers": ["finance"] });
        assert_eq!((&part["voidApprovals"], &api.get(JOB)["status"]["approvedCall"]), (&void, &passed));
    }
}

/// The Job is queued for another reason while a call is held.
#[tokio::test]
async fn a_worker_receives_only_decisions_that_the_policy_validated() {
    let given = |is_policy_installed: bool, digest: Option<Digest>| async move {
        let api = awaiting_approval();
        for approver in ["supervisor", "finance"] {
            let mut approval = counted(open_approval(approver), ApprovalVerdict::Approve);
            approval.spec.guard = digest.clone();
            put_approval(&api, &approval);
        }
        api.change(JOB, |job| job["status"]["phase"] = json!("Queued"));
        if !is_policy_installed {
            api.change(&format!("{POLICIES}/approvals"), |policy| policy["spec"]["failurePolicy"] = json!("Ignore"));
        }
        reconcile_once(&api).await.unwrap();
        let is_created = api.writes().contains(&format!("create {POD_2}"));
        is_created.then(|| job_part(&api, POD_2)["approvals"].as_array().map_or(0, Vec::len))
    };
    assert_eq!(given(true, Some(policy_digest())).await, Some(2));
    assert_ne!(given(false, Some(policy_digest())).await, Some(2));
    assert_ne!(given(true, None).await, Some(2));
}

/// The worker has recorded the approval and was lost before it made the call. The log alone does not prove the approval.
#[tokio::test]
async fn a_later_attempt_receives_the_decisions_on_the_latest_call() {
    let api = awaiting_approval();
    for approver in ["supervisor", "finance"] {
        put_approval(&api, &counted(open_approval(approver), ApprovalVerdict::Approve));
    }
    api.change(JOB, |job| {
        job["status"]["phase"] = json!("Queued");
        job["status"].as_object_mut().unwrap().remove("waitingFor");
    });
    api.change(&format!("{POLICIES}/approvals"), |policy| policy["spec"]["failurePolicy"] = json!("Ignore"));
    reconcile_once(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "ApprovalPolicyMissing"));
    api.install_policies();
    reconcile_once(&api).await.unwrap();
    let given = job_part(&api, POD_2)["approvals"].clone();
    assert_eq!((given.as_array().unwrap().len(), &given[0]["tool"]), (2, &json!("process_refund")));
}

/// A report has renamed the tool of the held call after the approvers were asked (finding 3 of issue 20).
#[tokio::test]
async fn an_approval_of_another_tool_than_the_status_names_is_deleted_and_not_passed_on() {
    for phase in ["AwaitingApproval", "Queued"] {
        let api = awaiting_approval();
        for approver in ["supervisor", "finance"] {
            put_approval(&api, &counted(open_approval(approver), ApprovalVerdict::Approve));
        }
        api.change(JOB, |job| {
            job["status"]["phase"] = json!(phase);
            job["status"]["waitingFor"]["call"]["tool"] = json!("delete_customer");
        });
        reconcile_once(&api).await.unwrap();
        let deleted =
            ["supervisor", "finance"].map(|approver| format!("delete {}", approval_path(&open_approval(approver))));
        assert_eq!(api.writes(), deleted);
    }
}

#[tokio::test]
async fn one_denial_withdraws_the_other_approvals() {
    let api = awaiting_approval();
    put_approval(&api, &decided(open_approval("supervisor"), ApprovalVerdict::Deny));
    let other = open_approval("finance");
    put_approval(&api, &other);
    reconcile_once(&api).await.unwrap();
    api.writes();
    reconcile_once(&api).await.unwrap();
    assert_eq!(
        api.writes(),
        [format!("replace {}", approval_path(&other)), format!("status {}", approval_path(&other))]
    );
    let withdrawn = api.get(&approval_path(&other));
    assert_eq!(withdrawn["spec"]["decision"]["verdict"], "Expired");
    assert_eq!(withdrawn["spec"]["decision"]["reason"], "the call is denied already");
    reconcile_once(&api).await.unwrap();
    let given = job_part(&api, POD_2)["approvals"].clone();
    assert_eq!((given.as_array().unwrap().len(), &given[0]["verdict"]), (1, &json!("Deny")));
}

#[tokio::test]
async fn an_approval_expires_without_a_decision_and_with_a_late_one() {
    for (approval, writes) in [
        (expired("supervisor"), vec!["replace", "status"]),
        (decided(expired("supervisor"), ApprovalVerdict::Approve), vec!["status"]),
    ] {
        let api = awaiting_approval();
        put_approval(&api, &approval);
        put_approval(&api, &open_approval("finance"));
        reconcile_once(&api).await.unwrap();
        let expected: Vec<String> = writes.iter().map(|verb| format!("{verb} {}", approval_path(&approval))).collect();
        assert_eq!(api.writes(), expected);
        assert_eq!(api.get(&approval_path(&approval))["status"]["counted"]["verdict"], "Expired");
        // No other decision is needed.
        reconcile_once(&api).await.unwrap();
        reconcile_once(&api).await.unwrap();
        assert_eq!(job_part(&api, POD_2)["approvals"][0]["verdict"], "Expired");
    }
}

#[tokio::test]
async fn without_the_policy_decisions_are_void() {
    let api = awaiting_approval();
    put_approval(&api, &open_approval("supervisor"));
    put_approval(&api, &open_approval("finance"));
    api.change(&format!("{POLICIES}/approvals"), |policy| policy["spec"]["failurePolicy"] = json!("Ignore"));
    reconcile_once(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "ApprovalPolicyMissing"));
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);

    let forged = decided(open_approval("supervisor"), ApprovalVerdict::Approve);
    put_approval(&api, &forged);
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("delete {}", approval_path(&forged))]);

    // Once the policy is installed, a worker starts to report the call again. It receives no decision.
    api.install_policies();
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_2}"), format!("status {JOB}")]);
    assert_eq!(job_part(&api, POD_2)["approvals"], Value::Null);
}

#[tokio::test]
async fn an_edited_approval_is_deleted() {
    let mut edited = decided(open_approval("supervisor"), ApprovalVerdict::Approve);
    edited.spec.arguments = "other arguments".to_owned();
    let mut foreign = decided(open_approval("supervisor"), ApprovalVerdict::Approve);
    foreign.spec.approver = "me".to_owned();
    for approval in [edited, foreign] {
        let api = awaiting_approval();
        put_approval(&api, &approval);
        put_approval(&api, &open_approval("finance"));
        reconcile_once(&api).await.unwrap();
        assert_eq!(api.writes(), [format!("delete {}", approval_path(&approval))]);
    }
}

/// A changed policy makes the Approvals of many Jobs void at once.
#[tokio::test]
async fn an_approval_is_replaced_only_in_the_turn_of_its_job_and_a_decision_counts_at_once() {
    let valid = decided(open_approval("supervisor"), ApprovalVerdict::Approve);
    // The admission policy has meant something else since.
    let mut void = valid.clone();
    void.spec.guard = Some(Digest::of_bytes(b"another policy"));
    for (approval, jobs_before, writes) in [
        (&void, 300, vec![]),
        (&void, 0, vec![format!("delete {}", approval_path(&void))]),
        (&valid, 300, vec![format!("status {}", approval_path(&valid))]),
    ] {
        let api = awaiting_approval();
        put_approval(&api, approval);
        put_approval(&api, &open_approval("finance"));
        let context = api.operator().await;
        for job in 0..jobs_before {
            context.void_pace.wait(&format!("{job}-uid"), std::time::Instant::now());
        }
        let job = serde_json::from_value(api.get(JOB)).unwrap();
        let action = Box::pin(reconcile(job, context, Arc::default())).await.unwrap();
        assert_eq!(api.writes(), writes);
        assert!(!writes.is_empty() || action != Action::await_change(), "the Job comes back");
    }
}

#[tokio::test]
async fn an_approval_of_a_cancelled_job_records_that_the_call_was_not_started() {
    let api = awaiting_approval();
    let (approved, other) = (decided(open_approval("supervisor"), ApprovalVerdict::Approve), open_approval("finance"));
    put_approval(&api, &approved);
    put_approval(&api, &other);
    reconcile_once(&api).await.unwrap();
    let counted_and_message = |approval: &Approval| {
        let status = api.get(&approval_path(approval))["status"].clone();
        (status["counted"].clone(), status["conditions"][0]["message"].as_str().unwrap_or_default().to_owned())
    };
    let (counted_before, message) = counted_and_message(&approved);
    assert_eq!(message, "jane@acme.io approved the call; it is made once every approver has approved it");
    // The Approval of an earlier call, which was made, must not change.
    let mut earlier = counted(open_approval("supervisor"), ApprovalVerdict::Approve);
    earlier.metadata.name = Some("refund-0".to_owned());
    earlier.spec.call_id = "c-6".to_owned();
    put_approval(&api, &earlier);

    api.change(JOB, |job| job["spec"]["cancel"] = json!(true));
    reconcile_once(&api).await.unwrap();
    api.writes();
    reconcile_once(&api).await.unwrap();
    let mut writes = api.writes();
    writes.sort();
    let (approved_path, other_path) = (approval_path(&approved), approval_path(&other));
    let mut expected =
        [format!("replace {other_path}"), format!("status {approved_path}"), format!("status {other_path}")];
    expected.sort();
    assert_eq!(writes, expected);
    let message =
        "jane@acme.io approved the call, and the Job was cancelled before the call was started: it is not made";
    assert_eq!(counted_and_message(&approved), (counted_before, message.to_owned()), "the counted decision stays");
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
}
