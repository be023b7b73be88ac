//! Two decisions at the same time, and decisions while no operator runs.

use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::{Approval, ApprovalVerdict};
use bloomery_e2e::harness::{
    Conversation, JobHandle, Person, Shop, Tenant, Turn, call, command, conversation, figure, operator, price, story,
    story_alone, supervised,
};
use kube::ResourceExt;
use serde_json::json;
use std::process::{Output, Stdio};

pub(crate) const APPROVER: &str = "supervisor";

/// Returns a conversation that makes a large refund, and ends well after each verdict.
pub(crate) fn large_refund(order: &str) -> Conversation {
    large_refund_then(order, Turn::answer(order))
}

/// Returns a conversation that makes a large refund and ends with `answer`.
pub(crate) fn large_refund_then(order: &str, answer: Turn) -> Conversation {
    let refund = call("process_refund", json!({"order_id": order, "amount": price(order)}));
    conversation(order, [call("check_eligibility", json!({"order_id": order})), refund, answer])
}

/// Waits until a Job is parked without a pod, and returns the Approval of its held call.
pub(crate) async fn parked_approval(tenant: &Tenant, job: &JobHandle<'_>) -> Approval {
    job.until_phase(Phase::AwaitingApproval).await;
    let approval = tenant.approval_for(job, APPROVER).await;
    job.pods_have_ended().await;
    approval
}

/// Grants a user the right to decide as the supervisor, and returns the user.
pub(crate) async fn supervisor(tenant: &Tenant, name: &str) -> Person {
    tenant.grant_approval(name, &[APPROVER]).await;
    tenant.person(name).await
}

/// Approves a call as the supervisor.
pub(crate) async fn approve_as_supervisor(tenant: &Tenant, approval: &Approval) {
    let jane = supervisor(tenant, "jane@acme.io").await;
    jane.decide(approval, "Approve", "").await.expect("the decision is accepted");
}

/// One order for each round. Each refund needs an approval.
const ORDERS: [&str; 5] = ["A-443", "A-543", "A-643", "A-743", "A-843"];

/// A Job that waits for the supervisor, and its Approval.
struct Round<'t> {
    order: &'static str,
    job: JobHandle<'t>,
    approval: Approval,
}

impl Round<'_> {
    /// Checks that one decision counts, and that the call was made once or not at all, as the decision says.
    async fn is_decided(&self, tenant: &Tenant, shop: &Shop, by: &str, verdict: ApprovalVerdict) {
        let decision = tenant.until_counted(&self.approval).await.spec.decision.expect("a decision");
        assert_eq!((decision.by.as_str(), decision.verdict), (by, verdict), "the accepted decision counts");
        let status = self.job.succeeded().await;
        assert_eq!(status.attempt.map(|attempt| attempt.number), Some(2), "{}", self.order);
        let denied = status.gates.map(|gates| gates.pre_tool.denied);
        match verdict {
            ApprovalVerdict::Approve => {
                assert_eq!(denied, Some(0));
                shop.ledger.assert_refunded_once(self.order).await;
            }
            ApprovalVerdict::Deny | ApprovalVerdict::Expired => {
                assert_eq!(denied, Some(1));
                assert!(!shop.ledger.summary().await.orders.contains_key(self.order), "{} was denied", self.order);
            }
        }
    }
}

#[tokio::test]
async fn of_two_simultaneous_decisions_exactly_one_counts() {
    story(async |tenant| {
        let shop = tenant.shop(&ORDERS.map(large_refund)).await;
        tenant.skill_of("cs-tier-1", supervised()).with_orders().await;
        let (jane, joe) = (supervisor(tenant, "jane@acme.io").await, supervisor(tenant, "joe@acme.io").await);
        let mut rounds = Vec::new();
        for order in ORDERS {
            let job = tenant.job(&order.to_lowercase()).goal(&format!("Refund order {order}")).await;
            rounds.push((order, job));
        }
        let mut waiting = Vec::new();
        for (order, job) in rounds {
            let approval = parked_approval(tenant, &job).await;
            waiting.push(Round { order, job, approval });
        }
        let last = waiting.pop().expect("there are rounds");
        let verdicts = [("Approve", "Deny"), ("Deny", "Approve"), ("Approve", "Approve"), ("Deny", "Approve")];
        for (at, (round, (janes, joes))) in waiting.iter().zip(verdicts).enumerate() {
            // Jane and Joe alternate in sending their request first.
            let (jane_said, joe_said) = if at % 2 == 0 {
                tokio::join!(jane.decide(&round.approval, janes, ""), joe.decide(&round.approval, joes, ""))
            } else {
                let both = tokio::join!(joe.decide(&round.approval, joes, ""), jane.decide(&round.approval, janes, ""));
                (both.1, both.0)
            };
            let (by, verdict, refusal) = match (jane_said, joe_said) {
                (Ok(()), Err(refusal)) => (&jane.name, janes, refusal),
                (Err(refusal), Ok(())) => (&joe.name, joes, refusal),
                other => panic!("exactly one decision should be accepted: {other:?}"),
            };
            assert!(refusal.contains("a decision is never changed"), "{refusal}");
            let verdict = if verdict == "Approve" { ApprovalVerdict::Approve } else { ApprovalVerdict::Deny };
            figure("of two concurrent decisions, this one counts", format!("{by} {verdict:?} ({janes} and {joes})"));
            round.is_decided(tenant, &shop, by, verdict).await;
        }
        decide_with_the_command(tenant, &shop, &last).await;
        shop.model.assert_no_violations().await;
    })
    .await;
}

/// Makes two concurrent decisions with `kubectl bloomery`. The message to the second person names the first.
async fn decide_with_the_command(tenant: &Tenant, shop: &Shop, round: &Round<'_>) {
    let name = round.approval.name_any();
    let starts = |verb: &str, user: &str| {
        let arguments = [verb, &name, "--yes", "--namespace", &tenant.namespace, "--as", user];
        let mut command = command::bloomery(&arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts")
    };
    let (approving, denying) = (starts("approve", "jane@acme.io"), starts("deny", "joe@acme.io"));
    let ended = |child: std::process::Child| child.wait_with_output().expect("the command ends");
    let (approved, denied) = (ended(approving), ended(denying));
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let (by, verdict, late, expected) = match (approved.status.code(), denied.status.code()) {
        (Some(0), Some(_)) => {
            ("jane@acme.io", ApprovalVerdict::Approve, denied, "is approved already, by jane@acme.io")
        }
        (Some(_), Some(0)) => ("joe@acme.io", ApprovalVerdict::Deny, approved, "is denied already, by joe@acme.io"),
        _ => panic!("exactly one decision should be accepted:\n{}\n{}", said(&approved), said(&denied)),
    };
    let text = said(&late);
    assert_eq!(late.status.code(), Some(6), "{text}");
    assert!(text.contains(expected), "`{expected}` should be in: {text}");
    round.is_decided(tenant, shop, by, verdict).await;
}

/// These disturb all stories. `hack/e2e` runs them one by one, after the others.
mod alone {
    use super::*;

    #[tokio::test]
    async fn a_decision_made_while_no_operator_runs_counts_after_its_start() {
        story_alone(async |tenant| {
            let shop = tenant.shop(&[large_refund("A-443"), large_refund("A-543")]).await;
            tenant.skill_of("cs-tier-1", supervised()).with_orders().await;
            let jane = supervisor(tenant, "jane@acme.io").await;
            let first = tenant.job("first").goal("Refund order A-443").await;
            let second = tenant.job("second").goal("Refund order A-543").await;
            let (one, two) = (parked_approval(tenant, &first).await, parked_approval(tenant, &second).await);
            operator::with_replicas(&tenant.cluster, 0, async || {
                jane.decide(&one, "Approve", "").await.expect("the decision is accepted");
                jane.decide(&two, "Deny", "it arrived whole").await.expect("the decision is accepted");
                let changed = jane.decide(&two, "Approve", "").await;
                assert!(
                    changed.is_err_and(|why| why.contains("a decision is never changed")),
                    "the API server refuses it without the operator"
                );
                assert_eq!(first.pods().await.len(), 1, "no operator starts the next pod");
            })
            .await;
            first.succeeded().await;
            second.succeeded().await;
            shop.assert_refunded_once("A-443").await;
            assert!(!shop.ledger.summary().await.orders.contains_key("A-543"), "it was denied");
        })
        .await;
    }
}
