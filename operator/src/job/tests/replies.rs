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
    let replies = json!([{ "text": "be quick" }, { "text": "please" }, { "question": "q-9", "text": "A-17" }]);
    reply(&api, &replies);
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_2}"), format!("status {JOB}")]);
    let text = api.get(POD_2)["metadata"]["annotations"][names::ANNOTATION_JOB_PART].as_str().unwrap().to_owned();
    let part: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        part["replies"],
        json!([{ "nth": 2, "text": "please" }, { "nth": 3, "question": "q-9", "text": "A-17" }])
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
