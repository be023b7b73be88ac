//! Jobs that wait for the answer to a question.

use super::super::fixtures::{asked, status};
use super::*;

/// A Job whose worker parked with two questions; its pod is gone. It asks since then, in seconds from now.
fn asking(since: i64) -> FakeApi {
    let api = tenant();
    let mut waits = status(1, Phase::AwaitingReply);
    let since = Timestamp::now() + SignedDuration::from_secs(since);
    waits.waiting_for = Some(bloomery_crds::v1alpha1::WaitingFor { since: Some(Time(since)), ..asked(0) });
    waits.replies_heard = Some(1);
    rests(&api, waits);
    reply(&api, &json!([{ "text": "be quick" }]));
    api
}

fn reply(api: &FakeApi, replies: &Value) {
    api.change(JOB, |job| job["spec"]["replies"] = replies.clone());
}

#[tokio::test]
async fn nothing_is_written_while_people_think_and_a_message_is_no_answer() {
    let api = asking(-60);
    look(&api).await.unwrap();
    reply(&api, &json!([{ "text": "be quick" }, { "text": "please" }]));
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn with_an_answer_the_next_attempt_starts_and_knows_all_that_was_not_heard() {
    let api = asking(-60);
    let replies = json!([{ "text": "be quick" }, { "text": "please" }, { "question": "q-2", "text": "A-17" }]);
    reply(&api, &replies);
    look(&api).await.unwrap();
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
async fn a_question_that_nobody_answers_ends_the_job() {
    let api = asking(-8 * 24 * 3600);
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    let outcome = api.get(JOB)["status"]["outcome"].clone();
    assert_eq!(outcome["code"], "UserNeeded");
    assert!(outcome["message"].as_str().unwrap().contains("q-1 (\"Which order?\")"), "{outcome}");
}

#[tokio::test]
async fn a_skill_may_give_more_time_and_less_to_jobs_that_wait_already() {
    for (expiry, since, ended) in [("240h", -8 * 24 * 3600, false), ("1h", -3700, true), ("1h", -3500, false)] {
        let api = asking(since);
        api.change(SKILL, |skill| skill["spec"]["engine"] = json!({ "replyExpiry": expiry }));
        look(&api).await.unwrap();
        let is_ended = api.get(JOB)["status"]["phase"] == "Escalated";
        assert_eq!(is_ended, ended, "{expiry} after {since}");
    }
}

/// An answered Job that gets no pod yet stays queued, though its last pod still says that it parked with a question.
#[tokio::test]
async fn what_the_ended_pod_says_does_not_bring_an_answered_job_back_to_rest() {
    let api = asking(-60);
    let mut told = message(1, PodEnd::Parked(ParkReason::Reply), None);
    told.job = UID.to_owned();
    api.put(POD_1, stored(&ended_pod(1, Timestamp::now().as_second(), Some(told))));
    reply(&api, &json!([{ "text": "be quick" }, { "question": "q-1", "text": "A-17" }]));
    api.remove(MODEL);
    for _ in 0..3 {
        look(&api).await.unwrap();
    }
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    assert_eq!((&api.get(JOB)["status"]["phase"], reason(&api).as_str()), (&json!("Queued"), "ModelNotFound"));
}

/// A Job takes so many replies and no more: it does not wait for one that cannot come.
#[tokio::test]
async fn a_job_that_has_all_the_replies_that_it_takes_does_not_wait_for_another() {
    let api = asking(-60);
    reply(&api, &json!(vec![json!({ "text": "be quick" }); 31]));
    look(&api).await.unwrap();
    assert_eq!(api.get(JOB)["status"]["phase"], "AwaitingReply");
    reply(&api, &json!(vec![json!({ "text": "be quick" }); 32]));
    look(&api).await.unwrap();
    let outcome = api.get(JOB)["status"]["outcome"].clone();
    assert!(outcome["message"].as_str().unwrap().starts_with("nobody can answer q-1"), "{outcome}");
}

fn taken(api: &FakeApi) -> (String, String) {
    let conditions = api.get(JOB)["status"]["conditions"].clone();
    let taken = conditions.as_array().unwrap().iter().find(|condition| condition["type"] == "RepliesTaken").cloned();
    let word = |key: &str| taken.as_ref().map_or("", |taken| taken[key].as_str().unwrap()).to_owned();
    (word("reason"), word("message"))
}

#[tokio::test]
async fn a_reply_to_a_question_that_is_not_open_wakes_nobody_and_is_told() {
    let api = asking(-60);
    reply(&api, &json!([{ "text": "be quick" }, { "question": "q-9", "text": "A-17" }]));
    let since = api.get(JOB)["status"]["waitingFor"]["since"].clone();
    for _ in 0..3 {
        look(&api).await.unwrap();
    }
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    let (reason, message) = taken(&api);
    assert_eq!((reason.as_str(), message.contains("reply 2 is to q-9")), ("UnknownQuestion", true), "{message}");
    let status = api.get(JOB)["status"].clone();
    assert_eq!((&status["phase"], &status["waitingFor"]["since"]), (&json!("AwaitingReply"), &since));
    // With an answer beside it, the worker hears both.
    let both =
        json!([{ "text": "be quick" }, { "question": "q-9", "text": "A-17" }, { "question": "q-1", "text": "A-17" }]);
    reply(&api, &both);
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_2}"), format!("status {JOB}")]);
}

#[tokio::test]
async fn a_reply_that_the_job_ended_without_is_told_once() {
    let api = asking(-60);
    let replies = json!([{ "text": "be quick" }, { "question": "q-1", "text": "A-17" }, { "text": "please" }]);
    reply(&api, &replies);
    api.change(JOB, |job| {
        job["status"]["phase"] = json!("Succeeded");
        job["status"]["outcome"] = json!({ "code": "Succeeded", "message": "It is done." });
    });
    for _ in 0..3 {
        look(&api).await.unwrap();
    }
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    let (reason, message) = taken(&api);
    assert_eq!(reason, "JobEnded");
    for part in ["reply 2 to q-1", "\"A-17\"", "reply 3,", "\"please\""] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!message.contains("be quick"), "it was heard: {message}");
    // And so is one that comes long after.
    reply(&api, &json!([{ "text": "be quick" }, { "text": "x" }, { "text": "y" }, { "text": "too late" }]));
    look(&api).await.unwrap();
    look(&api).await.unwrap();
    assert_eq!((api.writes(), taken(&api).1.contains("reply 4")), (vec![format!("status {JOB}")], true));
}

/// What is bound is read by the worker, as it is then: a Secret that is rotated meanwhile is nothing to the Job.
#[tokio::test]
async fn a_secret_that_is_rotated_while_people_are_waited_for_wakes_nobody() {
    let api = asking(-60);
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
        look(&api).await.unwrap();
    }
    assert_eq!(api.writes(), [""; 0]);
    reply(&api, &json!([{ "text": "be quick" }, { "question": "q-1", "text": "A-17" }]));
    look(&api).await.unwrap();
    assert!(!api.reads().iter().any(|path| path.contains("/secrets/")), "the operator reads none");
    let pod = api.get(POD_2);
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    assert!(volumes.iter().any(|volume| volume["secret"]["secretName"] == "git"), "{volumes:?}");
    assert!(!pod.to_string().contains("dHdv") && !pod.to_string().contains("b25l"));
}

/// One may be whether a call has happened.
#[tokio::test]
async fn a_question_that_is_open_when_its_job_is_cancelled_is_told_with_the_end() {
    let api = asking(-60);
    api.change(JOB, |job| job["spec"]["cancel"] = json!(true));
    look(&api).await.unwrap();
    let message = api.get(JOB)["status"]["outcome"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("The Job was cancelled, with an open question: q-1 (\""), "{message}");
}
