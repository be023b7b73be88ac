//! Jobs that succeed: their gates, results, conditions and logs.

use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::report::result_digest;
use bloomery_crds::v1alpha1::{Gates, JobStatus, SkillStatus, Verdict};
use bloomery_e2e::harness::{Turn, cluster, conversation, machine, refund_of, say, story};
use serde_json::json;

use crate::memory;

#[tokio::test]
async fn a_refund_passes_every_gate() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        let skill = tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").goal("Refund order A-17, it arrived broken").await;

        let status = job.succeeded().await;
        assert_gates(&status);
        assert_result(&status);
        assert_usage(&status);
        assert_conditions(&skill.ready().await, &status);
        shop.assert_refunded_once("A-17").await;

        let asked = shop.model.asked_by(&job.uid).await;
        assert_eq!((asked.requests, asked.answered), (4, 4), "each turn is asked for once: {asked:?}");
        let log = job.logs(1).await;
        for event in
            ["epoch.started", "goal: Refund order A-17", "tool.ruled", "tool.completed", "gate.ruled", "finished"]
        {
            assert!(log.contains(event), "kubectl logs should show `{event}`:\n{log}");
        }
        if cluster::is_local_or_skips("a look at the volume") {
            let skill_dir = machine::memory(tenant).await.join("cs-tier-1");
            memory::holds_the_job(&skill_dir, &job.uid, &status);
        }
    })
    .await;
}

fn assert_gates(status: &JobStatus) {
    let Gates { intent, pre_tool, finalization } =
        *status.gates.clone().expect("the status has the outcomes of the gates");
    assert_eq!(intent, None, "the Skill declares no intents");
    assert_eq!((pre_tool.allowed, pre_tool.denied), (3, 0));
    let ruled: Vec<(&str, Verdict)> =
        pre_tool.last.iter().map(|ruling| (ruling.tool.as_str(), ruling.verdict)).collect();
    let expected = ["verify_identity", "check_eligibility", "process_refund"].map(|tool| (tool, Verdict::Allow));
    assert_eq!(ruled, expected);
    assert!(finalization.passed, "{finalization:?}");
    assert_eq!((finalization.form_errors, finalization.attempts.len()), (0, 1));
}

fn assert_result(status: &JobStatus) {
    let result = status.result.clone().expect("a Job that succeeded has a result");
    assert!(result.verified);
    assert_eq!(result.text, "Order A-17 is refunded.");
    let fields = json!({"order_id": "A-17", "status": "refunded", "next_steps": ["The money arrives within 5 days."]});
    assert_eq!(json!(result.fields), fields);
    assert_eq!(result.digest, Some(result_digest(&result.text, &result.fields)));
}

fn assert_usage(status: &JobStatus) {
    let usage = status.usage.clone().expect("a Job has spent something");
    assert_eq!((usage.llm_calls.plan, usage.tool_calls), (4, 3));
    assert!(usage.input_tokens > 0 && usage.output_tokens > 0, "{usage:?}");
}

fn assert_conditions(skill: &SkillStatus, job: &JobStatus) {
    for kind in [ConditionType::Accepted, ConditionType::MemoryReady, ConditionType::McpAvailable] {
        assert!(conditions::is_true(&skill.conditions, kind), "{kind}: {:#?}", skill.conditions);
    }
    assert!(conditions::find(&skill.conditions, ConditionType::Reconciling).is_none(), "{:#?}", skill.conditions);
    assert_eq!(job.skill_revision, skill.revision);
    let kinds: Vec<&str> = job.conditions.iter().map(|condition| condition.type_.as_str()).collect();
    assert!(kinds.contains(&"Ready") && !kinds.contains(&"Reconciling") && !kinds.contains(&"Stalled"), "{kinds:?}");
    assert!(conditions::is_true(&job.conditions, ConditionType::Ready));
    assert!(job.start_time.is_some() && job.completion_time.is_some());
    let attempt = job.attempt.clone().expect("a Job that ran has an attempt");
    assert_eq!((attempt.number, attempt.epoch), (1, Some(1)));
}

#[tokio::test]
async fn jobs_of_two_skills_run_at_the_same_time_in_separate_directories() {
    story(async |tenant| {
        let shop = tenant.shop(&["A-1", "A-2", "A-3"].map(refund_of)).await;
        tokio::join!(tenant.skill("cs-tier-1").into_future(), tenant.skill("cs-tier-2").into_future());
        let (one, two, other) = tokio::join!(
            tenant.job("one").goal("Refund order A-1").into_future(),
            tenant.job("two").goal("Refund order A-2").into_future(),
            tenant.job("other").for_skill("cs-tier-2").goal("Refund order A-3").into_future(),
        );
        let (first, second, third) = tokio::join!(one.succeeded(), two.succeeded(), other.succeeded());
        for order in ["A-1", "A-2", "A-3"] {
            shop.assert_refunded_once(order).await;
        }
        if cluster::is_local_or_skips("a look at the volume") {
            let memory = machine::memory(tenant).await;
            memory::holds_the_job(&memory.join("cs-tier-1"), &one.uid, &first);
            memory::holds_the_job(&memory.join("cs-tier-1"), &two.uid, &second);
            memory::holds_the_job(&memory.join("cs-tier-2"), &other.uid, &third);
            assert_eq!(memory::jobs(&memory.join("cs-tier-1")).len(), 2, "a skill directory has only its own Jobs");
            assert_eq!(memory::jobs(&memory.join("cs-tier-2")).len(), 1, "a skill directory has only its own Jobs");
        }
    })
    .await;
}

#[tokio::test]
async fn an_answer_in_the_wrong_form_is_sent_back_once() {
    let turns = [say("Order A-17 is fine."), Turn::answer("A-17").after_feedback("json block")];
    story(async |tenant| {
        let shop = tenant.shop(&[conversation("A-17", turns)]).await;
        tenant.skill("cs-tier-1").await;
        let status = tenant.job("form").await.succeeded().await;
        let gate = status.gates.expect("the status has the outcomes of the gates").finalization;
        assert_eq!((gate.form_errors, gate.passed), (1, true));
        assert_eq!(gate.attempts.len(), 1, "a form error does not count as an attempt: {gate:?}");
        shop.model.assert_no_violations().await;
    })
    .await;
}
