//! Jobs whose worker pods are deleted without grace again and again, together with the operator's pod: disruptions are no
//! crash loop, and no effect is repeated.

use std::time::Duration;

use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::JobStatus;
use bloomery_e2e::harness::{JobHandle, Tenant, figure, operator, refund_of, story_alone};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use tokio::time::Instant;

/// The number of Jobs that the story creates at the same time.
const AT_ONCE: usize = 16;

#[tokio::test]
#[ignore = "takes minutes: make bench-cluster"]
async fn forty_jobs_survive_ninety_seconds_of_disruptions() {
    survive(40, Duration::from_secs(90)).await;
}

/// Disturbs this number of Jobs, each with one refund. Each must succeed or ask a person, and none is refunded twice.
async fn survive(jobs: usize, time: Duration) {
    story_alone(async |tenant| {
        let orders: Vec<String> = (101..).take(jobs).map(|number| format!("A-{number}")).collect();
        let refunds: Vec<_> = orders.iter().map(|order| refund_of(order)).collect();
        let shop = tenant.shop(&refunds).await;
        tenant.skill("cs-tier-1").await.ready().await;
        let started = futures::stream::iter(&orders)
            .map(|order| async move { tenant.job(&order.to_lowercase()).goal(&format!("Refund order {order}")).await });
        let handles: Vec<JobHandle<'_>> = started.buffered(AT_ONCE).collect().await;
        let (deleted, restarts) = disrupt(tenant, time).await;
        let refunded = shop.ledger.summary().await.effects;
        let mut asking = 0;
        for (order, job) in orders.iter().zip(&handles) {
            let ends = |status: &JobStatus| status.is_terminal() || status.phase == Some(Phase::AwaitingReply);
            let status = job.until("its end or a question", ends).await;
            let outcome = status.outcome.map(|outcome| outcome.message);
            let effects = shop.ledger.summary().await.orders.get(order).map_or(0, |found| found.effects);
            match status.phase {
                Some(Phase::Succeeded) => assert_eq!(effects, 1, "{order} succeeded"),
                Some(Phase::AwaitingReply) => {
                    assert!(effects <= 1, "{order} was refunded {effects} times");
                    asking += 1;
                }
                phase => panic!("{order} is {phase:?}: {outcome:?}"),
            }
        }
        assert!(deleted > 0 && restarts > 0, "{deleted} worker pods and {restarts} restarts disturb nothing");
        figure("worker pods deleted without grace", deleted);
        figure("restarts of the operator", restarts);
        figure("refunds at the end of the disruptions", refunded);
        figure("Jobs that succeeded", jobs - asking);
        figure("Jobs that ask a person whether their refund happened", asking);
    })
    .await;
}

/// Deletes all worker pods of the tenant and the operator's pod, waits until the operator is back, and begins again.
/// Returns the number of deleted worker pods, and of restarts of the operator.
async fn disrupt(tenant: &Tenant, time: Duration) -> (usize, usize) {
    let at_once = DeleteParams::default().grace_period(0);
    let workers =
        ListParams::default().labels("bloomery.dev/job").fields("status.phase!=Succeeded,status.phase!=Failed");
    let (mut deleted, mut restarts) = (0, 0);
    let began = Instant::now();
    while began.elapsed() < time {
        let pods = tenant.api::<Pod>().list(&workers).await.expect("pods can be listed").items;
        for pod in &pods {
            // A pod may be gone by now.
            deleted += usize::from(tenant.api::<Pod>().delete(&pod.name_any(), &at_once).await.is_ok());
        }
        let running = operator::ready_pod(&tenant.cluster).await;
        operator::api(&tenant.cluster).delete(&running.name_any(), &at_once).await.expect("the pod is deleted");
        operator::until_rolled_out(&tenant.cluster).await;
        restarts += 1;
    }
    (deleted, restarts)
}

/// These disturb all stories. `hack/e2e` runs them one by one, after the others.
mod alone {
    use super::*;

    #[tokio::test]
    async fn jobs_survive_twenty_seconds_of_disruptions() {
        survive(8, Duration::from_secs(20)).await;
    }
}
