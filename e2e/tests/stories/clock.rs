//! An operator whose clock is set back while people decide.

use std::time::Duration;

use bloomery_crds::v1alpha1::ApprovalVerdict;
use bloomery_e2e::harness::{clock, cluster, eventually, operator, story_alone, supervised};
use serde_json::json;

use crate::deciding::{large_refund, parked_approval, supervisor};

/// How far the operator's clock is ahead: less than its certificates tolerate.
const CLOCK_ERROR: Duration = Duration::from_mins(30);

/// These disturb all stories. `hack/e2e` runs them one by one, after the others.
mod alone {
    use super::*;

    #[tokio::test]
    async fn setting_the_clock_back_reverts_no_decision_and_delays_no_job() {
        // With a clock that is ahead, the operator would delete objects that other stories still use.
        story_alone(async |tenant| {
            if !cluster::is_local_or_skips("changing the operator's clock") {
                return;
            }
            let orders = ["A-443", "A-543", "A-643"];
            let shop = tenant.shop(&orders.map(large_refund)).await;
            let skill = tenant.skill_of("cs-tier-1", supervised()).with_orders();
            let expiry = json!({"approvalExpiry": "20m"});
            skill.with(|spec| spec.engine = Some(serde_json::from_value(expiry).expect("an engine"))).await;
            let jane = supervisor(tenant, "jane@acme.io").await;
            let job = |name: &'static str, order: &str| tenant.job(name).goal(&format!("Refund order {order}"));

            let expires = job("expires", orders[0]).await;
            let too_late = parked_approval(tenant, &expires).await;
            let (waits, later) = clock::ahead(&tenant.cluster, CLOCK_ERROR, async || {
                let counted = tenant.until_counted(&too_late).await.status.and_then(|status| status.counted);
                assert_eq!(
                    counted.map(|counted| counted.verdict),
                    Some(ApprovalVerdict::Expired),
                    "it has expired by the clock that is ahead"
                );
                expires.succeeded().await;
                let decided = job("decided", orders[1]).await;
                let approval = parked_approval(tenant, &decided).await;
                jane.decide(&approval, "Approve", "").await.expect("the decision is accepted");
                decided.succeeded().await;
                let waits = job("waits", orders[2]).await;
                let later = parked_approval(tenant, &waits).await;
                (waits, later)
            })
            .await;

            let late = jane.decide(&too_late, "Approve", "").await;
            assert!(
                late.is_err_and(|why| why.contains("a decision is never changed")),
                "an expired Approval stays expired"
            );
            let status = waits.until("the time since which it waits", |status| status.waiting_for.is_some()).await;
            assert!(status.waiting_for.is_some_and(|waiting| waiting.since.is_some()));
            eventually("a waiting time that is not negative", async || {
                let metrics = operator::get(&tenant.cluster, "/metrics").await;
                let line = metrics
                    .lines()
                    .find(|line| line.starts_with("bloomery_waiting_longest_seconds"))
                    .map(str::to_owned);
                let seconds = line.as_deref().and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
                seconds.filter(|seconds| *seconds >= 0.0).ok_or(line)
            })
            .await;
            jane.decide(&later, "Approve", "").await.expect("the decision is accepted");
            waits.succeeded().await;
            shop.assert_refunded_once(orders[1]).await;
            shop.assert_refunded_once(orders[2]).await;
            assert!(!shop.ledger.summary().await.orders.contains_key(orders[0]), "the refund was not approved");
        })
        .await;
    }
}
