//! Upgrades and restarts of the operator.

use bloomery_e2e::harness::{audit, cluster, command, operator, refund_of, story};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt};

/// The Secret of the CA that signs the report endpoint.
const CA: &str = "bloomery-report-ca";

#[tokio::test]
async fn an_upgrade_keeps_the_ca_and_rewrites_no_object() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("the audit log") {
            return;
        }
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await.ready().await;
        tenant.job("refund").await.succeeded().await;
        let alone = operator::alone().await;
        let (pod, ca, before) = (
            operator::ready_pod(&tenant.cluster).await,
            ca(tenant.cluster.client.clone()).await,
            audit::operator_writes(&tenant.namespace),
        );
        assert!(!ca.is_empty(), "the operator fills the Secret that the chart ships empty");

        // Changes an annotation of the pod, so that the Deployment rolls out.
        let mark = format!("podAnnotations.story={}", tenant.namespace);
        command::run(&mut command::script("hack/install", &["--set-string", &mark]));
        operator::until_rolled_out(&tenant.cluster).await;
        assert_ne!(operator::ready_pod(&tenant.cluster).await.uid(), pod.uid(), "the operator was restarted");

        // The new operator has processed this Skill, and therefore all older objects.
        tenant.skill("later").with(|spec| spec.mcp_server = None).await.ready().await;
        let later = tenant.job("later").for_skill("absent").await;
        later.until_reason("SkillNotFound", &[]).await;
        drop(alone);
        let mut after = audit::operator_writes(&tenant.namespace);
        after.retain(|write| !write.name.starts_with("later"));
        assert_eq!(audit::list(&after), audit::list(&before), "a restart rewrites no existing object");
        assert_eq!(self::ca(tenant.cluster.client.clone()).await, ca, "an upgrade leaves the CA as it is");
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}

async fn ca(client: kube::Client) -> Vec<(String, ByteString)> {
    let secret = Api::<Secret>::namespaced(client, operator::NAMESPACE).get(CA).await.expect("the CA's Secret exists");
    secret.data.unwrap_or_default().into_iter().collect()
}
