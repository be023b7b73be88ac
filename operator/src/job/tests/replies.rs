//! Tests of Jobs that wait for the answer to a question.

use super::super::fixtures::{asked, status};
use super::*;

/// Returns an API server with a Job that waits for the answers to two questions. `since` is the start of the wait, in seconds
/// from now. The pod of the Job is deleted, and its worker has received the first reply.
fn awaiting_reply(since: i64) -> FakeApi {
    let api = tenant();
    let mut status = status(1, Phase::AwaitingReply);
    let since = Timestamp::now() + SignedDuration::from_secs(since);
    status.waiting_for = Some(bloomery_crds::v1alpha1::WaitingFor { since: Some(Time(since)), ..asked(0) }.into());
    status.replies_heard = Some(1);
    put_status(&api, status);
    set_replies(&api, &json!([{ "text": "be quick" }]));
    api
}

fn set_replies(api: &FakeApi, replies: &Value) {
    api.change(JOB, |job| job["spec"]["replies"] = replies.clone());
}

#[tokio::test]
async fn a_reply_without_a_question_does_not_end_the_wait() {
    let api = awaiting_reply(-60);
    reconcile_once(&api).await.unwrap();
    set_replies(&api, &json!([{ "text": "be quick" }, { "text": "please" }]));
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn an_answer_starts_the_next_attempt_with_all_unheard_replies() {
    let api = awaiting_reply(-60);
    let replies = json!([{ "text": "be quick" }, { "text": "please" }, { "question": "q-2", "text": "A-17" }]);
    set_replies(&api, &replies);
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_2}"), format!("status {JOB}")]);
    let text = api.get(POD_2)["metadata"]["annotations"][names::ANNOTATION_JOB_PART].as_str().unwrap().to_owned();
    let part: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        part["replies"],
        json!([{ "nth": 2, "text": "please" }, { "nth": 3, "question": "q-2", "text": "A-17" }])
    );
    assert_eq!(api.get(JOB)["status"]["waitingFor"]["since"], Value::Null);
}

#[tokio::test]
async fn a_question_without_an_answer_ends_the_job() {
    let api = awaiting_reply(-8 * 24 * 3600);
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    let outcome = api.get(JOB)["status"]["outcome"].clone();
    assert_eq!(outcome["code"], "UserNeeded");
    assert!(outcome["message"].as_str().unwrap().contains("q-1 (\"Which order?\")"), "{outcome}");
}

#[tokio::test]
async fn an_edited_reply_expiry_applies_to_waiting_jobs() {
    for (expiry, since, ended) in [("240h", -8 * 24 * 3600, false), ("1h", -3700, true), ("1h", -3500, false)] {
        let api = awaiting_reply(since);
        api.change(SKILL, |skill| skill["spec"]["engine"] = json!({ "replyExpiry": expiry }));
        reconcile_once(&api).await.unwrap();
        let is_ended = api.get(JOB)["status"]["phase"] == "Escalated";
        assert_eq!(is_ended, ended, "{expiry} after {since}");
    }
}

/// The pod of the first attempt still exists, and its termination message says that it parked with a question. The second
/// attempt cannot start, because the Model is missing.
#[tokio::test]
async fn an_answered_job_whose_next_attempt_cannot_start_stays_queued() {
    let api = awaiting_reply(-60);
    let mut termination = message(1, PodEnd::Parked(ParkReason::Reply), None);
    termination.job = UID.to_owned();
    api.put(POD_1, stored(&ended_pod(1, Timestamp::now().as_second(), Some(termination))));
    set_replies(&api, &json!([{ "text": "be quick" }, { "question": "q-1", "text": "A-17" }]));
    api.remove(MODEL);
    for _ in 0..3 {
        reconcile_once(&api).await.unwrap();
    }
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    assert_eq!((&api.get(JOB)["status"]["phase"], reason(&api).as_str()), (&json!("Queued"), "ModelNotFound"));
}

#[tokio::test]
async fn a_job_with_the_maximum_number_of_replies_does_not_wait_for_another() {
    let api = awaiting_reply(-60);
    set_replies(&api, &json!(vec![json!({ "text": "be quick" }); 31]));
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.get(JOB)["status"]["phase"], "AwaitingReply");
    set_replies(&api, &json!(vec![json!({ "text": "be quick" }); 32]));
    reconcile_once(&api).await.unwrap();
    let outcome = api.get(JOB)["status"]["outcome"].clone();
    assert!(outcome["message"].as_str().unwrap().starts_with("nobody can answer q-1"), "{outcome}");
}

/// Returns the reason and the message of the condition `RepliesTaken`.
fn replies_taken(api: &FakeApi) -> (String, String) {
    let conditions = api.get(JOB)["status"]["conditions"].clone();
    let taken = conditions.as_array().unwrap().iter().find(|condition| condition["type"] == "RepliesTaken").cloned();
    let field = |key: &str| taken.as_ref().map_or("", |taken| taken[key].as_str().unwrap()).to_owned();
    (field("reason"), field("message"))
}

#[tokio::test]
async fn a_reply_to_an_unknown_question_is_recorded_and_starts_no_attempt() {
    let api = awaiting_reply(-60);
    set_replies(&api, &json!([{ "text": "be quick" }, { "question": "q-9", "text": "A-17" }]));
    let since = api.get(JOB)["status"]["waitingFor"]["since"].clone();
    for _ in 0..3 {
        reconcile_once(&api).await.unwrap();
    }
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    let (reason, message) = replies_taken(&api);
    assert_eq!((reason.as_str(), message.contains("reply 2 is to q-9")), ("UnknownQuestion", true), "{message}");
    let status = api.get(JOB)["status"].clone();
    assert_eq!((&status["phase"], &status["waitingFor"]["since"]), (&json!("AwaitingReply"), &since));
    // An answer starts an attempt, whose worker receives both replies.
    let both =
        json!([{ "text": "be quick" }, { "question": "q-9", "text": "A-17" }, { "question": "q-1", "text": "A-17" }]);
    set_replies(&api, &both);
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_2}"), format!("status {JOB}")]);
}

#[tokio::test]
async fn unheard_replies_of_an_ended_job_are_recorded_once() {
    let api = awaiting_reply(-60);
    let replies = json!([{ "text": "be quick" }, { "question": "q-1", "text": "A-17" }, { "text": "please" }]);
    set_replies(&api, &replies);
    api.change(JOB, |job| {
        job["status"]["phase"] = json!("Succeeded");
        job["status"]["outcome"] = json!({ "code": "Succeeded", "message": "It is done." });
    });
    for _ in 0..3 {
        reconcile_once(&api).await.unwrap();
    }
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    let (reason, message) = replies_taken(&api);
    assert_eq!(reason, "JobEnded");
    for part in ["reply 2 to q-1", "\"A-17\"", "reply 3,", "\"please\""] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!message.contains("be quick"), "the first reply was heard: {message}");
    // A reply after the end is recorded, too.
    set_replies(&api, &json!([{ "text": "be quick" }, { "text": "x" }, { "text": "y" }, { "text": "too late" }]));
    reconcile_once(&api).await.unwrap();
    reconcile_once(&api).await.unwrap();
    assert_eq!((api.writes(), replies_taken(&api).1.contains("reply 4")), (vec![format!("status {JOB}")], true));
}

/// The operator reads no Secrets. The worker of each attempt reads their current values.
#[tokio::test]
async fn a_rotated_secret_does_not_wake_a_waiting_job() {
    let api = awaiting_reply(-60);
    let declared = json!([{ "name": "token", "type": "credential" }]);
    put_skill_with(&api, &json!({ "problem": { "statement": "refunds" }, "resources": declared }), REVISION);
    let revision = api.get(SKILL)["status"]["revision"].clone();
    api.change(JOB, |job| {
        job["spec"]["resources"] = json!({ "token": { "secretKeyRef": { "name": "git", "key": "token" } } });
        job["status"]["skillRevision"] = revision;
    });
    for value in ["b25l", "dHdv"] {
        let secret =
            json!({ "metadata": { "namespace": "acme", "name": "git", "uid": "git" }, "data": { "token": value } });
        api.put("/api/v1/namespaces/acme/secrets/git", secret);
        reconcile_once(&api).await.unwrap();
    }
    assert_eq!(api.writes(), [""; 0]);
    set_replies(&api, &json!([{ "text": "be quick" }, { "question": "q-1", "text": "A-17" }]));
    reconcile_once(&api).await.unwrap();
    assert!(!api.reads().iter().any(|path| path.contains("/secrets/")), "the operator reads no Secret");
    let pod = api.get(POD_2);
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    assert!(volumes.iter().any(|volume| volume["secret"]["secretName"] == "git"), "{volumes:?}");
    assert!(!pod.to_string().contains("dHdv") && !pod.to_string().contains("b25l"));
}

/// A person needs the open questions after the end, because one may be whether a call happened.
#[tokio::test]
async fn the_outcome_of_a_cancelled_job_names_its_open_questions() {
    let api = awaiting_reply(-60);
    api.change(JOB, |job| job["spec"]["cancel"] = json!(true));
    reconcile_once(&api).await.unwrap();
    let message = api.get(JOB)["status"]["outcome"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("The Job was cancelled, with an open question: q-1 (\""), "{message}");
}
