//! Upgrades and restarts of the operator, and CRDs of older versions.

use std::path::Path;
use std::process::Command;

use bloomery_crds::v1alpha1::{CRD_VERSION, CRD_VERSION_ANNOTATION, definitions};
use bloomery_e2e::harness::{audit, cluster, command, operator, refund_of, story, story_alone};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};

/// The Secret of the CA that signs the report endpoint.
const CA: &str = "bloomery-report-ca";

async fn ca(client: kube::Client) -> Vec<(String, ByteString)> {
    let secret = Api::<Secret>::namespaced(client, operator::NAMESPACE).get(CA).await.expect("the CA's Secret exists");
    secret.data.unwrap_or_default().into_iter().collect()
}

#[tokio::test]
async fn a_crd_of_an_older_version_is_refused() {
    story(async |tenant| {
        let crds = Api::<CustomResourceDefinition>::all(tenant.cluster.client.clone());
        // As `helm rollback` applies a stored manifest, but as a dry run, because other stories use the CRDs.
        let apply = PatchParams { dry_run: true, ..PatchParams::apply("bloomery-e2e").force() };
        for definition in definitions() {
            let name = definition.name_any();
            let same = crds.patch(&name, &apply, &Patch::Apply(definition)).await;
            same.unwrap_or_else(|error| panic!("{name} of the same version should be accepted: {error}"));
            let mut older = definition.clone();
            older.annotations_mut().insert(CRD_VERSION_ANNOTATION.to_owned(), (CRD_VERSION - 1).to_string());
            let refusal = crds.patch(&name, &apply, &Patch::Apply(&older)).await.expect_err("an older CRD is refused");
            let refusal = refusal.to_string();
            assert!(
                refusal.contains("it would remove fields of stored objects") && refusal.contains(&name),
                "{refusal}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn an_older_chart_keeps_the_newer_crds() {
    story(async |tenant| {
        let chart = std::env::temp_dir().join(&tenant.namespace);
        command::run(Command::new("cp").arg("-rL").arg(command::checkout("charts/bloomery")).arg(&chart));
        let older_group = "older.example.com";
        for file in std::fs::read_dir(chart.join("templates/crds")).expect("the chart has CRDs") {
            make_older(&file.expect("a file").path(), older_group);
        }
        let mut upgrade = command::helm(&["upgrade", "--namespace", operator::NAMESPACE, "--reuse-values"]);
        let rendered = command::run(upgrade.arg("--dry-run=server").arg(operator::RELEASE).arg(&chart));
        let _ = std::fs::remove_dir_all(&chart);
        let kept = format!("{CRD_VERSION_ANNOTATION}: \"{CRD_VERSION}\"");
        assert_eq!(rendered.matches(&kept).count(), definitions().count(), "{rendered}");
        assert!(!rendered.contains(older_group), "the specs are those of the cluster: {rendered}");
    })
    .await;
}

/// Lowers the version of a CRD in the chart, and marks its spec by another group.
fn make_older(template: &Path, group: &str) {
    let text = std::fs::read_to_string(template).expect("the template can be read");
    let lower = |text: &str, before: &str, after: &str| {
        let place = |version: u32| format!("{before}{version}{after}");
        assert!(text.contains(&place(CRD_VERSION)), "{} has no `{}`", template.display(), place(CRD_VERSION));
        text.replace(&place(CRD_VERSION), &place(CRD_VERSION - 1))
    };
    let text = lower(&lower(&text, "\"version\" ", ")"), "default \"", "\"");
    let text = text.replace("group: bloomery.dev", &format!("group: {group}"));
    std::fs::write(template, text).expect("the template is written");
}

/// These disturb all stories. `hack/e2e` runs them one by one, after the others.
mod alone {
    use super::*;

    #[tokio::test]
    async fn an_upgrade_keeps_the_ca_and_rewrites_no_object() {
        story_alone(async |tenant| {
            if !cluster::is_local_or_skips("the audit log") {
                return;
            }
            let shop = tenant.shop(&[refund_of("A-17")]).await;
            tenant.skill("cs-tier-1").await.ready().await;
            tenant.job("refund").await.succeeded().await;
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
            let mut after = audit::operator_writes(&tenant.namespace);
            after.retain(|write| !write.name.starts_with("later"));
            assert_eq!(audit::list(&after), audit::list(&before), "a restart rewrites no existing object");
            assert_eq!(self::ca(tenant.cluster.client.clone()).await, ca, "an upgrade leaves the CA as it is");
            shop.assert_refunded_once("A-17").await;
        })
        .await;
    }
}
