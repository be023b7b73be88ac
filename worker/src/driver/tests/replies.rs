//! Replies of people in the spec of a Job.

use super::*;
use bloomery_crds::run::GivenReply;
use bloomery_crds::v1alpha1::{ApprovalVerdict, AskedQuestion, GateReason, Limits, ToolPolicy};
use rstest::rstest;
use serde_json::json;

fn reply_to(nth: u32, question: &str, text: &str) -> GivenReply {
    GivenReply { nth, question: Some(question.into()), text: text.into() }
}

fn message(nth: u32, text: &str) -> GivenReply {
    GivenReply { nth, question: None, text: text.into() }
}

/// Returns a stand whose model first asks questions. People can only reply in the Job's spec.
async fn stand(questions: &[&'static str]) -> Stand {
    let ask = |text: &&'static str| ("ask_user", json!({ "text": text }));
    let script = [vec![Answer::Calls(questions.iter().map(ask).collect())], refund()].concat();
    let mut stand = Stand::new(script, Refund::Answers).await;
    stand.replies = Some(Vec::new());
    stand
}

/// Returns a stand whose first attempt has parked with its questions.
async fn parked(questions: &[&'static str]) -> Stand {
    let stand = stand(questions).await;
    assert_eq!(stand.run(1).await, Exit::Parked(ParkReason::Reply));
    stand
}

fn last(stand: &Stand) -> Projection {
    stand.reports().pop().unwrap().report.projection
}

fn asked(stand: &Stand) -> Vec<AskedQuestion> {
    last(stand).waiting_for.map(|waiting| waiting.questions).unwrap_or_default()
}

fn count(stand: &Stand, event: &str) -> usize {
    stand.events().iter().filter(|name| **name == event).count()
}

#[tokio::test]
async fn a_question_parks_the_job_and_its_reply_continues_it_without_another_model_request() {
    let mut stand = parked(&["Which order?"]).await;
    let (report, message) = (stand.reports().pop().unwrap().report, stand.termination(1));
    assert_eq!(
        (report.end.clone(), message.end),
        (Some(PodEnd::Parked(ParkReason::Reply)), report.end.clone().unwrap())
    );
    assert_eq!((report.projection.phase, report.projection.replies_heard), (Phase::AwaitingReply, 0));
    let question = AskedQuestion { id: "q-1".into(), text: "Which order?".into(), ..AskedQuestion::default() };
    assert_eq!(asked(&stand), [question]);
    // The termination message has the questions too, in case the report is lost.
    assert_eq!((message.questions, message.replies_heard), (asked(&stand), 0));
    let before = stand.log();
    // Five more requests: three answers of the main loop, the ruling and the polish.
    let undisturbed = stand.model.request_count() + 5;

    // The reply is in the Job's part and in the answer to each report, until a report acknowledges it.
    let given = vec![reply_to(1, "q-1", "A-17")];
    *stand.operator.replies.lock().unwrap() = given.clone();
    stand.replies = Some(given);
    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!((outcome(&stand, 2), count(&stand, "user.replied")), (OutcomeCode::Succeeded, 1));
    assert_eq!(stand.log()[..before.len()], before);
    assert_eq!((last(&stand).replies_heard, asked(&stand)), (1, Vec::new()));
    assert_eq!((stand.model.request_count(), stand.shop.effects().len()), (undisturbed, 2));
}

#[tokio::test]
async fn a_recorded_reply_is_ignored_in_later_attempts() {
    let mut stand = parked(&["Which order?"]).await;
    let given = vec![reply_to(1, "q-1", "A-17"), message(2, "be quick"), reply_to(3, "q-9", "to nobody")];
    stand.replies = Some(given);
    stand.shop.refund = Refund::Waits;
    let stop = Stop::default();
    let drain = async {
        stand.shop.until_effects(1).await;
        stop.request(StopReason::Drain);
        stand.shop.answer_calls();
    };
    let (exit, ()) = tokio::join!(stand.run_with(2, Disk, stop.clone()), drain);
    assert_eq!(exit.unwrap(), Exit::Parked(ParkReason::Drain));
    // The operator may pass on the same replies again.
    assert_eq!(stand.run(3).await, Exit::Finished);
    assert_eq!((count(&stand, "user.replied"), count(&stand, "user.message")), (2, 1));
    let last = last(&stand);
    assert_eq!(last.replies_heard, 3);
    assert_eq!(last.stray_replies, ["reply 3 is to q-9, which was never asked: \"to nobody\""]);
}

#[tokio::test]
async fn several_questions_are_asked_and_answered_together() {
    let mut stand = parked(&["Which order?", "Which shop?"]).await;
    let ids: Vec<String> = asked(&stand).into_iter().map(|asked| asked.id).collect();
    assert_eq!(ids, ["q-1", "q-2"]);
    stand.replies = Some(vec![reply_to(1, "q-2", "Mill Lane"), reply_to(2, "q-1", "A-17")]);
    assert_eq!(stand.run(2).await, Exit::Finished);
    let results = stand.model.requests()[1]["messages"].to_string();
    assert!(results.contains("Mill Lane") && results.contains("A-17"), "{results}");
    assert_eq!((outcome(&stand, 2), count(&stand, "user.replied")), (OutcomeCode::Succeeded, 2));
}

#[tokio::test]
async fn a_reply_to_one_of_two_questions_parks_the_job_again_with_the_other() {
    let mut stand = parked(&["Which order?", "Which shop?"]).await;
    stand.replies = Some(vec![reply_to(1, "q-1", "A-17")]);
    assert_eq!(stand.run(2).await, Exit::Parked(ParkReason::Reply));
    let left: Vec<String> = asked(&stand).into_iter().map(|asked| asked.text).collect();
    assert_eq!((left, stand.model.request_count()), (vec!["Which shop?".to_owned()], 1));
    let message = stand.termination(2);
    assert_eq!((message.questions, message.replies_heard), (asked(&stand), 1));
}

#[rstest]
#[case::unknown("q-7", "reply 1 is to q-7, which was never asked: \"A-17\"")]
#[case::no_question_at_all("order", "reply 1 is to order, which was never asked: \"A-17\"")]
#[tokio::test]
async fn a_stray_reply_is_reported_and_the_job_still_waits(#[case] question: &str, #[case] reported: &str) {
    let mut stand = parked(&["Which order?"]).await;
    stand.replies = Some(vec![reply_to(1, question, "A-17")]);
    assert_eq!(stand.run(2).await, Exit::Parked(ParkReason::Reply));
    let last = last(&stand);
    assert_eq!((last.stray_replies, last.replies_heard), (vec![reported.to_owned()], 1));
    assert_eq!(asked(&stand)[0].id, "q-1");
}

#[tokio::test]
async fn a_message_reaches_a_running_job_in_the_answer_to_a_report() {
    // After a late message, the model gives its answer again.
    let script = [refund(), refund().split_off(2)].concat();
    let mut stand = Stand::new(script, Refund::Waits).await;
    stand.replies = Some(Vec::new());
    let says = async {
        stand.shop.until_effects(1).await;
        *stand.operator.replies.lock().unwrap() = vec![message(1, "the customer is called Ada")];
        // The answer to the next report contains the message.
        let reports = stand.reports().len();
        stand.operator.until_received(|received| received.len() > reports).await;
        stand.shop.answer_calls();
    };
    let (exit, ()) = tokio::join!(stand.run(1), says);
    assert_eq!(exit, Exit::Finished);
    assert_eq!((outcome(&stand, 1), count(&stand, "user.message")), (OutcomeCode::Succeeded, 1));
    assert!(stand.model.requests().iter().any(|asked| asked["messages"].to_string().contains("called Ada")));
    assert_eq!(last(&stand).replies_heard, 1);
}

#[tokio::test]
async fn lowered_limits_reach_a_running_job_in_the_answer_to_a_report() {
    let stand = Stand::new(refund(), Refund::Waits).await;
    let lowers = async {
        stand.shop.until_effects(1).await;
        *stand.operator.limits.lock().unwrap() = Some(Limits { steps: Some(2), ..Limits::default() });
        let reports = stand.reports().len();
        stand.operator.until_received(|received| received.len() > reports).await;
        stand.shop.answer_calls();
    };
    let (exit, ()) = tokio::join!(stand.run(1), lowers);
    assert_eq!(exit, Exit::Finished);
    // The operator repeats the limits in every answer, and the log has them once.
    assert_eq!((outcome(&stand, 1), count(&stand, "limits.lowered")), (OutcomeCode::StepLimit, 1));
    assert_eq!(stand.model.requests().len(), 2);
}

#[tokio::test]
async fn tools_that_the_skill_blocks_meanwhile_are_denied_in_a_running_job() {
    let stand = Stand::new(refund(), Refund::Waits).await;
    let blocks = async {
        stand.shop.until_effects(1).await;
        *stand.operator.blocked_tools.lock().unwrap() = vec!["notify".to_owned()];
        let reports = stand.reports().len();
        stand.operator.until_received(|received| received.len() > reports).await;
        stand.shop.answer_calls();
    };
    let _ = tokio::join!(stand.run(1), blocks);
    assert_eq!(count(&stand, "tools.blocked"), 1);
    assert_eq!(stand.shop.effects().len(), 1, "only the refund, which was under way");
    let rulings = last(&stand).gates.pre_tool;
    assert!(rulings.denied >= 1, "{rulings:?}");
}

#[tokio::test]
async fn a_tool_policy_of_the_tenant_is_enforced_from_the_start_and_when_it_changes() {
    let policy = |tool: &str| Some(ToolPolicy { allowed: None, blocked: vec![tool.to_owned()] });
    let mut stand = Stand::new(refund(), Refund::Waits).await;
    stand.tenant_tools = policy("delete_*");
    *stand.operator.tenant_tools.lock().unwrap() = stand.tenant_tools.clone();
    let changes = async {
        stand.shop.until_effects(1).await;
        *stand.operator.tenant_tools.lock().unwrap() = policy("notify");
        let reports = stand.reports().len();
        stand.operator.until_received(|received| received.len() > reports).await;
        stand.shop.answer_calls();
    };
    let _ = tokio::join!(stand.run(1), changes);
    assert_eq!(count(&stand, "tools.restricted"), 1, "the policy of the run document is not recorded again");
    assert_eq!(stand.shop.effects().len(), 1, "only the refund, which was under way");
    assert!(last(&stand).gates.pre_tool.denied >= 1);
}

#[tokio::test]
async fn a_tool_that_the_tenant_blocks_is_denied_whatever_the_skill_says() {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    let allowed = ["lookup", "verify", "refund"].map(str::to_owned);
    stand.tenant_tools = Some(ToolPolicy { allowed: Some(allowed.into()), blocked: Vec::new() });
    let _ = stand.run(1).await;
    assert!(stand.shop.effects().iter().all(|(tool, _)| tool != "notify"));
    let rulings = last(&stand).gates.pre_tool.last;
    let ruling = rulings.iter().find(|ruling| ruling.tool == "notify").unwrap();
    let reason = "the tool policy of the namespace does not allow the tool \"notify\"";
    assert_eq!((ruling.rule, ruling.reason.as_deref()), (Some(GateReason::Policy), Some(reason)));
}

#[tokio::test]
async fn limits_that_lower_nothing_are_not_recorded() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    *stand.operator.limits.lock().unwrap() = Some(Limits { steps: Some(9_000), ..Limits::default() });
    assert_eq!(stand.run(1).await, Exit::Finished);
    assert_eq!((outcome(&stand, 1), count(&stand, "limits.lowered")), (OutcomeCode::Succeeded, 0));
}

#[tokio::test]
async fn a_lost_call_waits_for_a_person_and_is_not_sent_again() {
    let mut stand = Stand::new(refund(), Refund::Loses).await;
    stand.replies = Some(Vec::new());
    assert_eq!(stand.run(1).await, Exit::Parked(ParkReason::Reply));
    assert_eq!(asked(&stand)[0].choices, ["happened", "did not happen", "stop"]);
    stand.replies = Some(vec![reply_to(1, "q-1", "perhaps")]);
    assert_eq!(stand.run(2).await, Exit::Parked(ParkReason::Reply));
    let refused = asked(&stand)[0].refused.clone().unwrap();
    assert!(refused.contains("\"perhaps\" is none of: happened, did not happen, stop"), "{refused}");
    stand.replies = Some(vec![reply_to(1, "q-1", "perhaps"), reply_to(2, "q-1", "did not happen")]);
    assert_eq!(stand.run(3).await, Exit::Finished);
    assert_eq!((outcome(&stand, 3), stand.shop.effects().len()), (OutcomeCode::Succeeded, 1));
    assert_eq!(last(&stand).stray_replies, Vec::<String>::new());
}

#[tokio::test]
async fn a_question_together_with_a_held_call_parks_for_the_approval() {
    let mut stand = stand(&["Which order?", "May I?"]).await;
    let approvals = json!({"approvals": [
        { "toolId": "ask_user", "when": "text == 'May I?'", "action": "require_approval", "approver": "supervisor" },
    ]});
    stand.skill.policy = Some(serde_json::from_value(approvals).unwrap());
    assert_eq!(stand.run(1).await, Exit::Parked(ParkReason::Approval));
    let report = stand.reports().pop().unwrap().report;
    let waiting = report.projection.waiting_for.unwrap();
    assert_eq!(
        (report.projection.phase, waiting.questions[0].text.as_str()),
        (Phase::AwaitingApproval, "Which order?")
    );
    let call = waiting.call.unwrap();

    // The Job needs both the reply and the decision.
    stand.replies = Some(vec![reply_to(1, "q-1", "A-17")]);
    assert_eq!(stand.run(2).await, Exit::Parked(ParkReason::Approval));
    assert_eq!(asked(&stand), []);
    stand.decided = vec![bloomery_crds::run::GivenDecision {
        call: call.id,
        tool: Some(call.tool),
        digest: call.digest,
        approver: "supervisor".into(),
        verdict: ApprovalVerdict::Deny,
        by: "jane@acme.io".into(),
        reason: None,
    }];
    assert_eq!(stand.run(3).await, Exit::Finished);
    assert_eq!((outcome(&stand, 3), count(&stand, "user.replied")), (OutcomeCode::Succeeded, 1));
}
