//! Faults around the gateway: its clients lose no event.

use crate::gateway::{assert_complete, events_in_log};
use bloomery_e2e::harness::gateway::LocalGateway;
use bloomery_e2e::harness::{Tenant, refund_of, story};
use k8s_openapi::api::core::v1::ServiceAccount;

/// The number of files that a gateway with few connections may open.
const FILES: usize = 128;

/// Creates the account of a client that may start Jobs. Returns its token.
async fn editor(tenant: &Tenant) -> String {
    let (editor, token) = tenant.account("editor").await;
    tenant.bind(&editor, "edit", "skilljobs").await;
    token
}

/// A token lives for at least ten minutes. One of a deleted account is refused in the same way.
#[tokio::test]
async fn a_client_whose_token_has_gone_continues_with_a_new_one() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17").hold(2, "thinking")]).await;
        tenant.skill("cs-tier-1").await.ready().await;
        let token = editor(tenant).await;
        let gateway = LocalGateway::start(tenant).await;
        let (job, stream) = gateway.client(&token).chat("cs-tier-1", "Refund order A-17").await;
        shop.model.until_held("thinking").await;
        tenant.remove::<ServiceAccount>("editor").await;
        let (mut events, problem) = stream.until_problem().await;
        assert_eq!(problem["status"], 401, "{problem}");

        let (_, token) = tenant.account("editor").await;
        let seen = events.last().map_or(0, |event| event.id);
        let mut stream = gateway.client(&token).follow(&job, seen).await;
        shop.model.release("thinking").await;
        events.extend(stream.rest().await);
        assert_complete(&events, events_in_log(tenant, &job).await);
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}

#[tokio::test]
async fn a_gateway_whose_connections_are_in_use_refuses_with_the_reason() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17").hold(1, "thinking")]).await;
        tenant.skill("cs-tier-1").await.ready().await;
        let token = editor(tenant).await;
        let gateway = LocalGateway::with_open_files(tenant, FILES).await;
        let client = gateway.client(&token);
        let (job, stream) = client.chat("cs-tier-1", "Refund order A-17").await;
        shop.model.until_held("thinking").await;
        let mut streams = vec![stream];
        while streams.len() < FILES / 2 {
            streams.push(client.follow(&job, 0).await);
        }
        let refused = gateway.request("GET", "/api/jobs", &token).send().await.expect("the gateway responds");
        assert_eq!(refused.status(), 503);
        assert!(refused.headers().contains_key("retry-after"));
        let text = refused.text().await.expect("the gateway responds");
        assert!(text.contains("all its connections are in use"), "{text}");

        streams.pop();
        let served = gateway.request("GET", "/api/jobs", &token).send().await.expect("the gateway responds");
        assert_eq!(served.status(), 200);
    })
    .await;
}

/// These install the release again, which disturbs all stories. `hack/e2e` runs them one by one, after the others.
mod alone {
    use super::*;
    use bloomery_crds::v1alpha1::Job;
    use bloomery_e2e::harness::gateway::{self, with_gateway};
    use bloomery_e2e::harness::{cluster, eventually, machine, operator, story_alone};
    use k8s_openapi::api::core::v1::Pod;
    use kube::ResourceExt;
    use kube::api::DeleteParams;

    #[tokio::test]
    async fn a_client_has_each_event_once_although_the_api_server_does_not_answer_for_thirty_seconds() {
        story_alone(async |tenant| {
            if !cluster::is_local_or_skips("stopping the API server") {
                return;
            }
            with_gateway(&tenant.cluster, async || {
                let shop = tenant.shop(&[refund_of("A-17").hold(2, "thinking")]).await;
                tenant.skill("cs-tier-1").await.ready().await;
                let token = editor(tenant).await;
                let (job, mut stream) = tenant.gateway(&token).await.chat("cs-tier-1", "Refund order A-17").await;
                shop.model.until_held("thinking").await;
                let mut events = stream.take(3).await;
                machine::release_during_outage(tenant, "thinking").await;
                events.extend(stream.rest().await);
                assert_complete(&events, events_in_log(tenant, &job).await);
                shop.assert_refunded_once("A-17").await;
                operator::leader(&tenant.cluster).await;
            })
            .await;
        })
        .await;
    }

    #[tokio::test]
    async fn a_client_has_each_event_once_although_the_log_is_rotated_and_the_pod_goes() {
        story_alone(async |tenant| {
            if !cluster::is_local_or_skips("the log of a pod, and reaching a pod from outside") {
                return;
            }
            with_gateway(&tenant.cluster, async || {
                let script = refund_of("A-17").hold(2, "checked").hold(3, "refunded");
                let shop = tenant.shop(&[script]).await;
                tenant.skill("cs-tier-1").await.ready().await;
                let token = editor(tenant).await;
                let pods = eventually("two ready pods of the gateway", async || {
                    let pods = gateway::pods(&tenant.cluster).await;
                    <[Pod; 2]>::try_from(pods).map_err(|pods| pods.len())
                })
                .await;
                let [early, late] = pods.each_ref().map(|pod| tenant.gateway_pod(pod, &token));
                let (job, mut early_stream) = early.chat("cs-tier-1", "Refund order A-17").await;
                shop.model.until_held("checked").await;
                let mut early_events = early_stream.take(3).await;
                let running = tenant.api::<Job>().get(&job).await.expect("the gateway has created the Job");
                let running = tenant.existing_job(&running);
                running.until("three events", |status| status.log.as_ref().is_some_and(|log| log.events >= 3)).await;

                let worker = running.pod(1).await;
                machine::rotate_log(&worker).await;
                // This pod of the gateway has no event of the Job, and the log has lost them.
                let mut late_stream = late.follow(&job, 0).await;
                let mut late_events = late_stream.take(3).await;
                assert_eq!(late_events, early_events, "while the model thinks");

                shop.model.release("checked").await;
                shop.model.until_held("refunded").await;
                let at_once = DeleteParams::default().grace_period(0);
                tenant.api::<Pod>().delete(&worker.name_any(), &at_once).await.expect("the pod is deleted");
                shop.model.until_asked(&running.uid, 3, 2).await;
                shop.model.release("refunded").await;
                early_events.extend(early_stream.rest().await);
                late_events.extend(late_stream.rest().await);
                let in_log = events_in_log(tenant, &job).await;
                for events in [early_events, late_events] {
                    assert_complete(&events, in_log);
                }
                shop.assert_refunded_once("A-17").await;
            })
            .await;
        })
        .await;
    }
}
