//! The leadership of the operator changes while Jobs run, report and wait for people.

use bloomery_crds::v1alpha1::Approval;
use bloomery_e2e::harness::machine::Process;
use bloomery_e2e::harness::{
    Cluster, Conversation, JobHandle, Person, Shop, Tenant, Turn, call, cluster, conversation, eventually, figure,
    operator, price, refund_of, story_alone, supervised,
};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;
use tokio::time::Instant;

use crate::deciding::{large_refund, parked_approval, supervisor};
use crate::parked;

/// The number of refunds of a group of Jobs: one for each Job.
const REFUNDS_OF_A_GROUP: u64 = 5;

/// Starts a shop with a Skill whose supervisor approves large refunds. Returns the supervisor too.
pub(crate) async fn start_shop(tenant: &Tenant, conversations: &[Conversation]) -> (Shop, Person) {
    let shop = tenant.shop(conversations).await;
    tenant.skill_of("cs-tier-1", supervised()).with_orders().await.ready().await;
    (shop, supervisor(tenant, "jane@acme.io").await)
}

/// Kills the leader, so that it cannot release its lease, and deletes its pod. Returns the pod.
pub(crate) async fn kill_leader(cluster: &Cluster) -> Pod {
    let leader = operator::leader(cluster).await;
    if cluster::is_local() {
        Process::find(&leader, operator::PROGRAM).await.kill();
    }
    let at_once = DeleteParams::default().grace_period(0);
    operator::api(cluster).delete(&leader.name_any(), &at_once).await.expect("the leader's pod is deleted");
    leader
}

/// Jobs that are in the middle of different things. Each makes one refund.
pub(crate) struct Group<'t> {
    number: u32,
    /// Its model works on the second turn, before the refund.
    plans: JobHandle<'t>,
    /// Its model works on the answer, after the refund.
    answers: JobHandle<'t>,
    /// Its refund is made, but the MCP server has not answered.
    calls: JobHandle<'t>,
    /// It waits for the Approval.
    held: (JobHandle<'t>, Approval),
    /// The number of attempts that it needs: one more for each time that it is asked again.
    held_attempts: u32,
    /// It waits for a reply.
    asks: JobHandle<'t>,
}

impl<'t> Group<'t> {
    pub(crate) fn conversations(number: u32) -> Vec<Conversation> {
        let [plans, answers, calls, held, asks] = orders(number);
        let turns = [
            call("ask_user", json!({"text": "Which order?"})),
            call("process_refund", json!({"order_id": asks, "amount": price(&asks)})).after_result(&asks),
            Turn::answer(&asks).after_result("refunded"),
        ];
        vec![
            refund_of(&plans).hold(1, &hold("planning", number)),
            refund_of(&answers).hold(3, &hold("answering", number)),
            refund_of(&calls),
            large_refund(&held),
            conversation(&unnamed_goal(number), turns),
        ]
    }

    /// Returns all Jobs.
    pub(crate) fn jobs(&self) -> [&JobHandle<'t>; 5] {
        [&self.plans, &self.answers, &self.calls, &self.held.0, &self.asks]
    }

    /// Returns the Jobs that need a second attempt, because they wait for people.
    pub(crate) fn resumed(&self) -> [&JobHandle<'t>; 2] {
        [&self.held.0, &self.asks]
    }

    /// Creates the Jobs, and waits until each is in its state.
    pub(crate) async fn start(tenant: &'t Tenant, shop: &Shop, number: u32) -> Self {
        let create = async |what: &str, goal: String| tenant.job(&format!("{what}-{number}")).goal(&goal).await;
        let refund = async |what: &str, order: &str| create(what, format!("Refund order {order}")).await;
        let orders = orders(number);
        let (plans, answers, calls, held, asks) = tokio::join!(
            refund("plans", &orders[0]),
            refund("answers", &orders[1]),
            refund("calls", &orders[2]),
            refund("held", &orders[3]),
            create("asks", unnamed_goal(number)),
        );
        shop.model.until_held(&hold("planning", number)).await;
        shop.model.until_held(&hold("answering", number)).await;
        shop.ledger.until_refunded(&orders[2]).await;
        let approval = parked_approval(tenant, &held).await;
        asks.until_questions(1).await;
        Self { number, plans, answers, calls, held: (held, approval), held_attempts: 2, asks }
    }

    /// Waits until the supervisor is asked under the admission policies under which the Approval of `other` was created.
    pub(crate) async fn until_asked_as(&mut self, tenant: &Tenant, other: &Self) {
        let (job, first) = &self.held;
        let guard = &other.held.1.spec.guard;
        let what = format!("an Approval of {} under other policies", job.name);
        let approval = eventually(&what, async || {
            let approvals = tenant.approvals_of(job).await;
            let seen: Vec<_> = approvals.iter().map(|approval| approval.spec.guard.clone()).collect();
            approvals.into_iter().find(|approval| approval.spec.guard == *guard).ok_or(seen)
        })
        .await;
        if approval.uid() != first.uid() {
            self.held_attempts += 1;
            self.held.1 = approval;
        }
    }

    /// Lets all Jobs go on, and gives the decision and the reply.
    pub(crate) async fn go_on(&self, shop: &Shop, supervisor: &Person) {
        let [_, _, calls, _, asks] = orders(self.number);
        shop.model.release(&hold("planning", self.number)).await;
        shop.model.release(&hold("answering", self.number)).await;
        shop.ledger.release(&calls).await;
        supervisor.decide(&self.held.1, "Approve", "").await.expect("the decision is accepted");
        self.asks.reply(Some("q-1"), &asks).await;
    }

    /// Waits until all Jobs have succeeded. Only those that waited for people have a second attempt.
    pub(crate) async fn succeeded(&self, shop: &Shop) {
        let [plans, answers, calls, held, asks] = orders(self.number);
        succeeded_in(1, &self.plans, shop, &plans).await;
        succeeded_in(1, &self.answers, shop, &answers).await;
        succeeded_in(1, &self.calls, shop, &calls).await;
        succeeded_in(self.held_attempts, &self.held.0, shop, &held).await;
        succeeded_in(2, &self.asks, shop, &asks).await;
    }
}

/// Waits until a Job has succeeded. Checks the number of its attempts, that its last report was accepted, that its order was refunded
/// once, and that no turn of the model was requested twice.
async fn succeeded_in(attempts: u32, job: &JobHandle<'_>, shop: &Shop, order: &str) {
    let status = job.succeeded().await;
    assert!(status.result.is_some(), "only a report has the result of {}", job.name);
    let attempt = status.attempt.expect("a Job that ran has an attempt");
    assert_eq!((attempt.number, attempt.epoch), (attempts, Some(attempts.into())), "the attempts of {}", job.name);
    shop.assert_refunded_once(order).await;
    parked::assert_asked_once(shop, job).await;
}

/// The order of each Job of a group. No goal contains the order of another Job.
fn orders(group: u32) -> [String; 5] {
    [
        format!("A-{group}1"),
        format!("A-{group}2"),
        format!("HOLD-{group}"),
        format!("A-4{group}3"),
        format!("A-{group}5"),
    ]
}

/// The goal of the Job that asks for its order.
fn unnamed_goal(group: u32) -> String {
    format!("I want my money back, claim {group}")
}

fn hold(what: &str, group: u32) -> String {
    format!("{what}-{group}")
}

/// These disturb all stories. `hack/e2e` runs them one by one, after the others.
mod alone {
    use super::*;

    #[tokio::test]
    async fn a_replica_takes_over_from_a_killed_leader_without_losing_or_repeating_anything() {
        story_alone(async |tenant| {
            let fresh = "A-31";
            let conversations = [Group::conversations(1), Group::conversations(2), vec![refund_of(fresh)]].concat();
            let (shop, jane) = start_shop(tenant, &conversations).await;
            operator::with_replicas(&tenant.cluster, 2, async || {
                let (first, second) = tokio::join!(Group::start(tenant, &shop, 1), Group::start(tenant, &shop, 2));
                let killed = kill_leader(&tenant.cluster).await;
                let began = Instant::now();
                // Until the lease of the killed leader expires, nobody leads.
                first.go_on(&shop, &jane).await;
                let created = tenant.job("created").goal(&format!("Refund order {fresh}")).await;
                let leader = operator::leader(&tenant.cluster).await;
                figure("seconds until another replica led", began.elapsed().as_secs());
                assert_ne!(leader.uid(), killed.uid(), "another replica leads");
                second.go_on(&shop, &jane).await;
                first.succeeded(&shop).await;
                second.succeeded(&shop).await;
                succeeded_in(1, &created, &shop, fresh).await;
                assert_eq!(shop.ledger.summary().await.effects, 2 * REFUNDS_OF_A_GROUP + 1);
            })
            .await;
        })
        .await;
    }

    /// The frozen leader finds its lease taken when it goes on, with the caches and the plans of the time before.
    #[tokio::test]
    async fn a_leader_that_goes_on_beside_its_successor_repeats_nothing() {
        story_alone(async |tenant| {
            if !cluster::is_local_or_skips("freezing the operator") {
                return;
            }
            let conversations = [Group::conversations(1), Group::conversations(2)].concat();
            let (shop, jane) = start_shop(tenant, &conversations).await;
            operator::with_replicas(&tenant.cluster, 2, async || {
                let first = Group::start(tenant, &shop, 1).await;
                let former = operator::leader(&tenant.cluster).await;
                let process = Process::find(&former, operator::PROGRAM).await;
                process.freeze();
                let leader = operator::leader_after(&tenant.cluster, &former).await;
                let second = Group::start(tenant, &shop, 2).await;
                // Both replicas see the decisions, the replies and the ends of the attempts, and both believe that they lead.
                process.thaw();
                first.go_on(&shop, &jane).await;
                second.go_on(&shop, &jane).await;
                first.succeeded(&shop).await;
                second.succeeded(&shop).await;
                assert_eq!(shop.ledger.summary().await.effects, 2 * REFUNDS_OF_A_GROUP);
                let last = operator::leader(&tenant.cluster).await;
                assert_eq!(last.uid(), leader.uid(), "the former leader does not lead any more");
            })
            .await;
        })
        .await;
    }
}
