//! Policies that read the conversation, a list from a ConfigMap, and the calls of other Jobs. The reasons of their rules.

use crate::deciding::{APPROVER, approve_as_supervisor, parked_approval};
use crate::kubectl::run;
use bloomery_crds::conditions::ConditionType;
use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::{GateReason, SkillStatus, Verdict};
use bloomery_e2e::harness::{Tenant, Turn, call, conversation, story, typed};
use bloomery_testkit::script::price;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

/// The name of the ConfigMap with the trusted orders.
const LISTS: &str = "order-lists";

/// The reason of a rule that denies the refund of an order.
const DENIED: &str = "Only the legal department refunds this order";

/// The reason of a rule that holds the refund of another order.
const HELD: &str = "A person checks each refund of this order";

/// The largest sum of refunds in a day: enough for A-17 (49.90) and A-2 (19.90), and not for A-30 (75.90).
const MAX_SUM: u32 = 70;

/// A rule about the source of the order, which also reads the list, and a limit over all Jobs.
fn policy() -> Value {
    json!({
        "listsFrom": {"trusted": {"configMapKeyRef": {"name": LISTS, "key": "trusted"}}},
        "approvals": [{
            "toolId": "process_refund", "when": "!fromUser(order_id) && !(order_id in lists.trusted)",
            "reason": "The order is neither in the request nor trusted", "approver": "supervisor",
        }],
        "limits": [{
            "tool": "process_refund", "sum": "amount", "per": "skill", "window": "24h", "max": MAX_SUM, "action": "deny",
            "reason": "Refunds of one day",
        }],
    })
}

fn refund(order: &str) -> Turn {
    call("process_refund", json!({"order_id": order, "amount": price(order)}))
}

/// Creates or changes the list of trusted orders.
async fn trust(tenant: &Tenant, orders: &str) {
    let lists: ConfigMap = typed(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": LISTS}, "data": {"trusted": orders},
    }));
    let apply = PatchParams::apply("bloomery-e2e").force();
    let written = tenant.api::<ConfigMap>().patch(LISTS, &apply, &Patch::Apply(&lists)).await;
    written.unwrap_or_else(|error| panic!("the ConfigMap {LISTS} cannot be written: {error}"));
}

/// The first Job runs on a list without the order, so its second refund waits. The second Job runs on the changed list, and reaches the
/// limit that both Jobs share.
#[tokio::test]
async fn a_policy_reads_a_list_the_request_and_the_refunds_of_other_jobs() {
    let first = [refund("A-17"), refund("A-2").after_result("refunded")];
    let second = [
        refund("A-2"),
        refund("A-30").after_result("refunded"),
        Turn::answer("A-30").after_result("Refunds of one day"),
    ];
    story(async |tenant| {
        let shop = tenant.shop(&[conversation("A-17", first), conversation("A-30", second)]).await;
        let skill = tenant.skill("cs-tier-1").with(|spec| spec.policy = Some(typed(policy()))).await;
        skill.until_reason(ConditionType::Accepted, "ListNotFound", &["spec.policy.listsFrom.trusted", LISTS]).await;
        trust(tenant, "B-1\n").await;
        let before = skill.ready().await.revision;

        let held = tenant.job("held").await;
        let status = held.until_phase(Phase::AwaitingApproval).await;
        let gate = status.gates.expect("the status has the outcomes of the gates").pre_tool;
        assert_eq!((gate.allowed, gate.denied, gate.held), (1, 0, 1), "{gate:#?}");
        let waiting = status.waiting_for.and_then(|waiting| waiting.call).expect("the status has the call");
        assert_eq!(waiting.reason, "The order is neither in the request nor trusted");
        let approval = tenant.approval_for(&held, "supervisor").await;
        assert_eq!(approval.spec.rules[0].text, "The order is neither in the request nor trusted");

        trust(tenant, "B-1\nA-2\n").await;
        skill.until("a revision with the changed list", |status: &SkillStatus| status.revision != before).await;
        skill.ready().await;
        let status = tenant.job("limited").goal("Refund order A-30").await.succeeded().await;
        let gate = status.gates.expect("the status has the outcomes of the gates").pre_tool;
        assert_eq!((gate.allowed, gate.denied, gate.held), (1, 1, 0), "{gate:#?}");
        let last = gate.last.last().expect("a ruling");
        assert_eq!((last.verdict, last.rule), (Verdict::Deny, Some(GateReason::Approval)), "{last:?}");
        assert!(last.reason.as_deref().unwrap_or_default().starts_with("Refunds of one day"), "{last:?}");

        shop.assert_refunded_once("A-17").await;
        shop.assert_refunded_once("A-2").await;
        assert_eq!(shop.ledger.summary().await.effects, 2, "A-30 is beyond the limit");
    })
    .await;
}

#[tokio::test]
async fn the_reason_of_a_rule_reaches_the_model_the_approver_the_status_and_the_command() {
    let rules = json!({"approvals": [
        {"toolId": "process_refund", "when": "order_id == 'A-30'", "action": "deny", "reason": DENIED},
        {"toolId": "process_refund", "when": "order_id == 'A-2'", "approver": APPROVER, "reason": HELD},
    ]});
    // The model continues only if it has read the reason of the denial.
    let turns = [refund("A-30"), refund("A-2").after_result(DENIED), Turn::answer("A-2").after_result("refunded")];
    story(async |tenant| {
        let shop = tenant.shop(&[conversation("A-30", turns)]).await;
        tenant.skill("cs-tier-1").with(|spec| spec.policy = Some(typed(rules))).await;

        let job = tenant.job("explained").goal("Refund the orders A-30 and A-2").await;
        let approval = parked_approval(tenant, &job).await;
        let texts: Vec<&str> = approval.spec.rules.iter().map(|rule| rule.text.as_str()).collect();
        assert_eq!(texts, [HELD]);

        let status = job.until_phase(Phase::AwaitingApproval).await;
        let call = status.waiting_for.and_then(|waiting| waiting.call).expect("the status has the call");
        assert_eq!(call.reason, HELD);
        let last = status.gates.expect("the status has the outcomes of the gates").pre_tool.last;
        let denied = last.iter().find(|ruling| ruling.verdict == Verdict::Deny).expect("a denial");
        assert_eq!(denied.reason.as_deref(), Some(DENIED));

        let denial = format!("Deny process_refund: {DENIED}");
        let hold = format!("{APPROVER} to approve a call of process_refund: {HELD}");
        run(tenant, &["get", "explained"]).exits(0).says(&[&denial, &hold]);

        approve_as_supervisor(tenant, &approval).await;
        job.succeeded().await;
        shop.assert_refunded_once("A-2").await;
        assert_eq!(shop.ledger.summary().await.effects, 1, "A-30 is not refunded");
    })
    .await;
}
