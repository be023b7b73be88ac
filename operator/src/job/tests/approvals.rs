//! Jobs that wait for people.

use super::super::fixtures::api::POLICIES;
use super::super::fixtures::open::{open, path, put};
use super::super::fixtures::{counted, decided, held_call, policy_digest, status};
use super::*;
use bloomery_crds::Digest;
use bloomery_crds::v1alpha1::{Approval, ApprovalVerdict, WaitingFor};

fn expired(approver: &str) -> Approval {
    let mut approval = open(approver);
    approval.spec.expires_at = Time(Timestamp::from_second(1_000_000_000).unwrap());
    approval
}

/// A Job whose worker parked with a call that supervisor and finance have to approve; its pod is gone.
pub(super) fn waiting() -> FakeApi {
    let api = tenant();
    api.install_policy();
    let call = held_call();
    let approvals = crate::approval::approval_names("refund", UID, &call);
    let mut waits = status(1, Phase::AwaitingApproval);
    waits.waiting_for = Some(WaitingFor { call: Some(call), approvals, ..WaitingFor::default() });
    rests(&api, waits);
    api
}

fn part(api: &FakeApi, pod: &str) -> Value {
    let text = api.get(pod)["metadata"]["annotations"][names::ANNOTATION_JOB_PART].as_str().unwrap().to_owned();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn nothing_is_written_while_people_think() {
    let api = waiting();
    put(&api, &open("supervisor"));
    put(&api, &open("finance"));
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn with_the_last_decision_the_next_attempt_starts_and_knows_them() {
    let api = waiting();
    let supervisor = decided(open("supervisor"), ApprovalVerdict::Approve);
    let finance = open("finance");
    put(&api, &supervisor);
    put(&api, &finance);
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {}", path(&supervisor))]);
    let counted = &api.get(&path(&supervisor))["status"];
    assert_eq!(
        (&counted["counted"]["verdict"], &counted["conditions"][0]["reason"]),
        (&json!("Approve"), &json!("Approved"))
    );
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {JOB}")], "the other one has still to decide");
    assert_eq!(api.get(JOB)["status"]["waitingFor"]["approvals"], json!([finance.metadata.name]));
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);

    put(&api, &decided(finance.clone(), ApprovalVerdict::Approve));
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {}", path(&finance))]);
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_2}"), format!("status {JOB}")]);
    let given = part(&api, POD_2)["approvals"].clone();
    assert_eq!(given.as_array().unwrap().len(), 2);
    assert_eq!(given[0]["approver"], "supervisor");
    assert_eq!(given[0]["verdict"], "Approve");
    assert_eq!(given[0]["by"], "jane@acme.io");
    assert_eq!(given[0]["digest"], json!(held_call().digest));
}

/// It goes on because of something else, beside which a call is held.
#[tokio::test]
async fn a_worker_is_given_only_what_was_decided_under_the_policy() {
    let given = |is_guarded: bool, edition: Option<Digest>| async move {
        let api = waiting();
        for approver in ["supervisor", "finance"] {
            let mut approval = counted(open(approver), ApprovalVerdict::Approve);
            approval.spec.guard = edition.clone();
            put(&api, &approval);
        }
        api.change(JOB, |job| job["status"]["phase"] = json!("Queued"));
        if !is_guarded {
            api.change(&format!("{POLICIES}/approvals"), |policy| policy["spec"]["failurePolicy"] = json!("Ignore"));
        }
        look(&api).await.unwrap();
        let made = api.writes().contains(&format!("create {POD_2}"));
        made.then(|| part(&api, POD_2)["approvals"].as_array().map_or(0, Vec::len))
    };
    assert_eq!(given(true, Some(policy_digest())).await, Some(2));
    assert_ne!(given(false, Some(policy_digest())).await, Some(2));
    assert_ne!(given(true, None).await, Some(2));
}

#[tokio::test]
async fn one_denial_is_enough() {
    let api = waiting();
    put(&api, &decided(open("supervisor"), ApprovalVerdict::Deny));
    let other = open("finance");
    put(&api, &other);
    look(&api).await.unwrap();
    api.writes();
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("replace {}", path(&other)), format!("status {}", path(&other))]);
    let withdrawn = api.get(&path(&other));
    assert_eq!(withdrawn["spec"]["decision"]["verdict"], "Expired");
    assert_eq!(withdrawn["spec"]["decision"]["reason"], "the call is denied already");
    look(&api).await.unwrap();
    let given = part(&api, POD_2)["approvals"].clone();
    assert_eq!((given.as_array().unwrap().len(), &given[0]["verdict"]), (1, &json!("Deny")));
}

#[tokio::test]
async fn what_nobody_decided_in_time_expires_and_so_does_what_came_too_late() {
    for (approval, writes) in [
        (expired("supervisor"), vec!["replace", "status"]),
        (decided(expired("supervisor"), ApprovalVerdict::Approve), vec!["status"]),
    ] {
        let api = waiting();
        put(&api, &approval);
        put(&api, &open("finance"));
        look(&api).await.unwrap();
        let expected: Vec<String> = writes.iter().map(|verb| format!("{verb} {}", path(&approval))).collect();
        assert_eq!(api.writes(), expected);
        assert_eq!(api.get(&path(&approval))["status"]["counted"]["verdict"], "Expired");
        // Nobody else need decide.
        look(&api).await.unwrap();
        look(&api).await.unwrap();
        assert_eq!(part(&api, POD_2)["approvals"][0]["verdict"], "Expired");
    }
}

#[tokio::test]
async fn without_the_policy_nobody_is_asked_and_what_was_decided_then_never_counts() {
    let api = waiting();
    put(&api, &open("supervisor"));
    put(&api, &open("finance"));
    api.change(&format!("{POLICIES}/approvals"), |policy| policy["spec"]["failurePolicy"] = json!("Ignore"));
    look(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "ApprovalPolicyMissing"));
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);

    let forged = decided(open("supervisor"), ApprovalVerdict::Approve);
    put(&api, &forged);
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("delete {}", path(&forged))]);

    // With the policy, the worker is started to tell the call again, and nobody has decided.
    api.install_policy();
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_2}"), format!("status {JOB}")]);
    assert_eq!(part(&api, POD_2)["approvals"], Value::Null);
}

#[tokio::test]
async fn an_approval_that_is_not_what_was_asked_goes() {
    let mut edited = decided(open("supervisor"), ApprovalVerdict::Approve);
    edited.spec.arguments = "other arguments".to_owned();
    let mut foreign = decided(open("supervisor"), ApprovalVerdict::Approve);
    foreign.spec.approver = "me".to_owned();
    for approval in [edited, foreign] {
        let api = waiting();
        put(&api, &approval);
        put(&api, &open("finance"));
        look(&api).await.unwrap();
        assert_eq!(api.writes(), [format!("delete {}", path(&approval))]);
    }
}

#[tokio::test]
async fn what_let_a_call_be_made_says_that_the_job_was_cancelled_before() {
    let api = waiting();
    let (approved, other) = (decided(open("supervisor"), ApprovalVerdict::Approve), open("finance"));
    put(&api, &approved);
    put(&api, &other);
    look(&api).await.unwrap();
    let said = |approval: &Approval| {
        let status = api.get(&path(approval))["status"].clone();
        (status["counted"].clone(), status["conditions"][0]["message"].as_str().unwrap_or_default().to_owned())
    };
    let (counts, lets) = said(&approved);
    assert_eq!(lets, "jane@acme.io approved the call; it is made once every approver has approved it");
    // Of a call that was made before, nothing is taken back.
    let mut earlier = counted(open("supervisor"), ApprovalVerdict::Approve);
    earlier.metadata.name = Some("refund-0".to_owned());
    earlier.spec.call_id = "c-6".to_owned();
    put(&api, &earlier);

    api.change(JOB, |job| job["spec"]["cancel"] = json!(true));
    look(&api).await.unwrap();
    api.writes();
    look(&api).await.unwrap();
    let mut writes = api.writes();
    writes.sort();
    let (approved_, other_) = (path(&approved), path(&other));
    let mut expected = [format!("replace {other_}"), format!("status {approved_}"), format!("status {other_}")];
    expected.sort();
    assert_eq!(writes, expected);
    let told = "jane@acme.io approved the call, and the Job was cancelled before the call was started: it is not made";
    assert_eq!(said(&approved), (counts, told.to_owned()), "what counted stays");
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
}
