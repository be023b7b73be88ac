//! Questions that people answer in the spec of a Job, and messages without a question.

use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::v1alpha1::{JobStatus, Stage};
use bloomery_e2e::harness::machine::Process;
use bloomery_e2e::harness::{JobHandle, Shop, Tenant, Turn, call, cluster, conversation, eventually, story};
use kube::core::ResourceExt;
use serde_json::{Value, json};

use crate::faults::WORKER;
use crate::parked;

/// Starts a Job whose model asks for the order and refunds it after the reply.
async fn asking(tenant: &Tenant) -> (Shop, JobHandle<'_>) {
    let turns = [
        call("ask_user", json!({"text": "Which order?"})).offered(&["ask_user"]),
        call("check_eligibility", json!({"order_id": "A-17"})).after_result("A-17"),
        call("process_refund", json!({"order_id": "A-17", "amount": 49.9})).after_result("true"),
        Turn::answer("A-17").after_result("refunded"),
    ];
    let shop = tenant.shop(&[conversation("my money", turns)]).await;
    tenant.skill("cs-tier-1").await;
    let job = tenant.job("refund").goal("I want my money back").await;
    job.until_phase(Phase::AwaitingReply).await;
    (shop, job)
}

/// Checks that the worker requested no turn of the main loop twice, and none that the script does not expect.
async fn assert_asked_once(shop: &Shop, job: &JobHandle<'_>) {
    parked::assert_asked_once(shop, job).await;
    shop.model.assert_no_violations().await;
}

fn attempt(status: &JobStatus) -> Option<u32> {
    status.attempt.as_ref().map(|attempt| attempt.number)
}

#[tokio::test]
async fn a_question_parks_a_job_without_a_pod_and_its_answer_resumes_it() {
    story(async |tenant| {
        let (shop, job) = asking(tenant).await;
        let asked = job.until_questions(1).await;
        assert_eq!((asked[0].id.as_str(), asked[0].text.as_str()), ("q-1", "Which order?"));
        job.until_reason("AwaitingReply", &["q-1", "Which order?", "kubectl bloomery reply refund"]).await;
        let status = job.until("the time since when it waits", |status| status.waiting_for.is_some()).await;
        assert!(status.waiting_for.is_some_and(|waiting| waiting.since.is_some()));
        job.pods_have_ended().await;

        job.reply(Some("q-1"), "A-17").await;
        let status = job.succeeded().await;
        assert_eq!((attempt(&status), status.replies_heard, status.waiting_for), (Some(2), Some(1), None));
        shop.assert_refunded_once("A-17").await;
        assert_asked_once(&shop, &job).await;
    })
    .await;
}

#[tokio::test]
async fn a_reply_to_no_question_is_reported_and_resumes_no_job() {
    story(async |tenant| {
        let (shop, job) = asking(tenant).await;
        job.reply(Some("q-7"), "A-18").await;
        let taken = |status: &JobStatus| {
            let taken = conditions::find(&status.conditions, ConditionType::RepliesTaken)?;
            Some((taken.status.clone(), taken.reason.clone(), taken.message.clone()))
        };
        let status = job.until("a condition about the reply", |status| taken(status).is_some()).await;
        let (is_taken, reason, message) = taken(&status).expect("there is the condition");
        assert_eq!((is_taken.as_str(), reason.as_str()), ("False", "UnknownQuestion"));
        assert!(message.contains("q-7") && message.contains("A-18"), "{message}");
        assert_eq!(status.phase, Some(Phase::AwaitingReply));
        assert_eq!((attempt(&status), status.replies_heard), (Some(1), None));

        // A message does not resume the Job either. The model receives both texts together with the reply to its question.
        job.reply(None, "The customer is called Ada").await;
        job.reply(Some("q-1"), "A-17").await;
        let status = job.succeeded().await;
        assert_eq!((attempt(&status), status.replies_heard), (Some(2), Some(3)));
        assert!(taken(&status).is_some(), "the condition about the unknown question remains");
        shop.assert_refunded_once("A-17").await;
        assert_asked_once(&shop, &job).await;
    })
    .await;
}

#[tokio::test]
async fn a_call_with_an_unknown_result_becomes_a_question_and_is_never_sent_again() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("SIGKILL of a worker") {
            return;
        }
        let turns = [
            call("check_eligibility", json!({"order_id": "HOLD-7"})),
            call("process_refund", json!({"order_id": "HOLD-7", "amount": 29.9})).after_result("true"),
            Turn::answer("HOLD-7").after_result("It did not happen, as"),
        ];
        let shop = tenant.shop(&[conversation("HOLD-7", turns)]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").goal("Refund order HOLD-7").await;
        shop.ledger.until_refunded("HOLD-7").await;
        Process::find(&job.pod(1).await, WORKER).await.kill();

        let asked = job.until_questions(1).await;
        assert_eq!(asked[0].choices, ["happened", "did not happen", "stop"]);
        assert!(asked[0].text.contains("process_refund"), "{}", asked[0].text);
        job.reply(Some("q-1"), "perhaps").await;
        let refused = |status: &JobStatus| {
            let waiting = status.waiting_for.as_ref();
            waiting.and_then(|waiting| waiting.questions.first()?.refused.clone())
        };
        let rests = |status: &JobStatus| status.phase == Some(Phase::AwaitingReply);
        let status = job.until("the reply to be refused", |status| rests(status) && refused(status).is_some()).await;
        assert!(refused(&status).is_some_and(|why| why.contains("perhaps")));
        job.reply(Some("q-1"), "did not happen").await;
        job.succeeded().await;
        shop.assert_refunded_once("HOLD-7").await;
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_required_entity_is_asked_for_before_the_main_loop_begins() {
    story(async |tenant| {
        let conversation = refund_of_an_unnamed_order().intent("intent_refund", json!({}));
        let shop = tenant.shop(&[conversation]).await;
        tenant.skill("cs-tier-1").tier_one().await;
        let job = tenant.job("refund").goal("I want my money back").await;
        let asked = job.until_questions(1).await;
        assert!(asked[0].text.contains("order_id"), "{}", asked[0].text);
        assert_eq!(shop.model.asked_by(&job.uid).await.requests, 0, "the main loop waits");
        job.reply(Some("q-1"), "A-17").await;
        let status = job.succeeded().await;
        let intent = status.gates.and_then(|gates| gates.intent).expect("the intent is known");
        assert_eq!(intent.entities["order_id"], "A-17");
        let intents = shop.model.asked_by(&job.uid).await.by_stage.get(&Stage::Intent).copied();
        assert_eq!(intents, Some(1), "the intent was detected once");
        shop.assert_refunded_once("A-17").await;
        assert_asked_once(&shop, &job).await;
    })
    .await;
}

/// Returns a conversation that refunds A-17, an order that the goal does not name.
fn refund_of_an_unnamed_order() -> bloomery_e2e::harness::Conversation {
    let order = "A-17";
    let turns = [
        call("verify_identity", json!({"order_id": order, "email": "customer-17@example.com"}))
            .after_feedback("order_id: A-17"),
        call("check_eligibility", json!({"order_id": order})).after_result("true"),
        call("process_refund", json!({"order_id": order, "amount": 49.9})).after_result("true"),
        Turn::answer(order).after_result("refunded"),
    ];
    conversation("my money", turns)
}

#[tokio::test]
async fn a_running_job_receives_a_message_at_the_next_safe_point() {
    let turns = [
        call("check_eligibility", json!({"order_id": "A-17"})).fault(json!({"hold": "thinking"})),
        Turn::answer("A-17").after_feedback("called Ada"),
    ];
    story(async |tenant| {
        let shop = tenant.shop(&[conversation("A-17", turns)]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").await;
        shop.model.until_held("thinking").await;
        job.reply(None, "The customer is called Ada").await;
        // The message arrives in the response to a report, and the worker reports its receipt.
        eventually("the worker to receive the message", async || {
            let printed = job.logs(1).await;
            if printed.contains("reply 1 of the Job was received") { Ok(()) } else { Err(printed) }
        })
        .await;
        shop.model.release("thinking").await;
        let status = job.succeeded().await;
        assert_eq!((attempt(&status), status.replies_heard), (Some(1), Some(1)));
        assert_asked_once(&shop, &job).await;
    })
    .await;
}

#[tokio::test]
async fn a_question_without_an_answer_in_time_ends_the_job() {
    story(async |tenant| {
        let turns = [call("ask_user", json!({"text": "Which order?"}))];
        let shop = tenant.shop(&[conversation("my money", turns)]).await;
        let skill = tenant.skill("cs-tier-1");
        skill
            .with(|spec| {
                let engine = json!({"replyExpiry": "5s"});
                spec.engine = Some(serde_json::from_value(engine).expect("an engine"));
            })
            .await;
        let job = tenant.job("refund").goal("I want my money back").await;
        let status = job.ended(OutcomeCode::UserNeeded).await;
        let message = status.outcome.map(|outcome| outcome.message).unwrap_or_default();
        assert!(message.contains("q-1") && message.contains("Which order?"), "{message}");
        job.pods_have_ended().await;
        assert_eq!(job.pods().await.iter().filter(|pod| pod.name_any().contains("-2-")).count(), 0);
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_job_with_a_hundred_questions_ends_at_the_limit_of_replies() {
    story(async |tenant| {
        let ask = |n: usize| json!({"text": format!("Question {n} of a hundred?")});
        let first = call("ask_user", ask(1));
        let hundred = (2..=100).fold(first, |turn, n| turn.and_call("ask_user", ask(n)));
        let shop = tenant.shop(&[conversation("my money", [hundred, Turn::answer("A-17")])]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").goal("I want my money back").await;
        let asked = job.until_questions(8).await;
        assert_eq!((asked[0].id.as_str(), asked[7].id.as_str()), ("q-1", "q-8"), "the oldest first");
        job.pods_have_ended().await;

        let ids: Vec<String> = (1..=32).map(|n| format!("q-{n}")).collect();
        job.reply_all(ids.iter().map(|id| (Some(id.as_str()), "yes"))).await;
        let status = job.ended(OutcomeCode::UserNeeded).await;
        let message = status.outcome.map(|outcome| outcome.message).unwrap_or_default();
        assert!(message.contains("32") && message.len() < 1024, "{message}");
        assert_eq!(status.replies_heard, Some(32));
        assert_asked_once(&shop, &job).await;
    })
    .await;
}

#[tokio::test]
async fn a_reply_of_a_mebibyte_and_one_above_the_limit_are_refused() {
    story(async |tenant| {
        let jobs = tenant.jobs();
        tenant.job("asks").await;
        let set = async |replies: Value| jobs.change("asks", &json!({"spec": {"replies": replies}})).await;
        let large = json!([{"text": "A-17"}, {"question": "q-1", "text": "x".repeat(1024 * 1024)}]);
        let refusal = set(large).await.expect_err("a reply of 1 MiB");
        assert!(refusal.contains("spec.replies[1].text") && refusal.contains("1024"), "{refusal:.2000}");
        assert!(refusal.len() < 4096, "a message of {} bytes is too long to read", refusal.len());
        let replies = |count: usize| json!(vec![json!({"text": "A-17"}); count]);
        set(replies(32)).await.expect("the maximum number is accepted");
        let refusal = set(replies(33)).await.expect_err("one too many");
        assert!(refusal.contains("spec.replies") && refusal.contains("32"), "{refusal}");
    })
    .await;
}
