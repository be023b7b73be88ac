//! Upgrades and restarts of the operator, and CRDs of older versions.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;

use bloomery_crds::v1alpha1::{CRD_VERSION, CRD_VERSION_ANNOTATION, Job, JobSpec, Skill, SkillSpec, definitions};
use bloomery_e2e::harness::{
    Tenant, audit, cluster, command, eventually, operator, refund_after_question, refund_of, story, story_alone,
};
use futures::FutureExt;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::versions::{JOBS_CRD, LATER_FIELD, assert_marked, later_field, mark};

/// The clause with which the policy of the chart refuses an older CRD.
const REFUSAL: &str = "it would remove fields of stored objects";

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
            assert!(refusal.contains(REFUSAL) && refusal.contains(&name), "{refusal}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_older_chart_keeps_the_newer_crds() {
    story(async |tenant| {
        let older_group = "older.example.com";
        let of_older_group = |text: &str| text.replace("group: bloomery.dev", &format!("group: {older_group}"));
        let chart = chart_with_crds(&tenant.namespace, CRD_VERSION - 1, of_older_group);
        let rendered = command::run(upgrade().arg("--dry-run=server").arg(&chart));
        let _ = std::fs::remove_dir_all(&chart);
        let kept = format!("{CRD_VERSION_ANNOTATION}: \"{CRD_VERSION}\"");
        assert_eq!(rendered.matches(&kept).count(), definitions().count(), "{rendered}");
        assert!(!rendered.contains(older_group), "the specs are those of the cluster: {rendered}");
    })
    .await;
}

/// Returns the command that upgrades the release. Its last argument is the chart.
fn upgrade() -> Command {
    command::helm(&["upgrade", "--namespace", operator::NAMESPACE, "--reuse-values", operator::RELEASE])
}

/// Copies the chart, and gives its CRDs another version. `change` returns the changed text of each.
fn chart_with_crds(name: &str, version: u32, change: impl Fn(&str) -> String) -> PathBuf {
    let chart = std::env::temp_dir().join(name);
    command::run(Command::new("cp").arg("-rL").arg(command::checkout("charts/bloomery")).arg(&chart));
    for file in std::fs::read_dir(chart.join("templates/crds")).expect("the chart has CRDs") {
        let template = file.expect("a file").path();
        let text = std::fs::read_to_string(&template).expect("the template can be read");
        std::fs::write(&template, change(&with_version(&text, version))).expect("the template is written");
    }
    chart
}

/// Replaces the version of a CRD of the chart, which is in two places.
fn with_version(template: &str, version: u32) -> String {
    [("\"version\" ", ")"), ("default \"", "\"")].iter().fold(template.to_owned(), |text, (before, after)| {
        let place = |version: u32| format!("{before}{version}{after}");
        assert!(text.contains(&place(CRD_VERSION)), "there is no `{}` in {text}", place(CRD_VERSION));
        text.replace(&place(CRD_VERSION), &place(version))
    })
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

    #[tokio::test]
    async fn a_newer_crd_is_installed_while_a_job_waits_for_a_person_and_no_rollback_narrows_it() {
        story_alone(async |tenant| {
            let newer = chart_with_crds(&tenant.namespace, CRD_VERSION + 1, with_later_field);
            let done = AssertUnwindSafe(upgrades_and_rolls_back(tenant, &newer)).catch_unwind().await;
            let _ = std::fs::remove_dir_all(&newer);
            restore_crds(tenant).await;
            done.unwrap_or_else(|failure| resume_unwind(failure));
        })
        .await;
    }

    async fn upgrades_and_rolls_back(tenant: &Tenant, newer: &Path) {
        let shop = tenant.shop(&[refund_after_question("A-17")]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").await;
        job.until_questions(1).await;
        let before = specs(tenant).await;

        // Changes an annotation of the pod, so that the Deployment rolls out.
        let pod_annotation = format!("podAnnotations.story={}", tenant.namespace);
        let flags = ["--wait", "--force-conflicts", "--set-string", &pod_annotation];
        command::run(upgrade().args(flags).arg(newer));
        operator::until_rolled_out(&tenant.cluster).await;
        let installed = (Some((CRD_VERSION + 1).to_string()), true);
        assert_eq!(crd_of_jobs(tenant).await, installed);
        assert_eq!(specs(tenant).await, before);
        mark(tenant, &job).await;
        job.reply(Some("q-1"), "lost").await;
        job.succeeded().await;
        shop.assert_refunded_once("A-17").await;

        let rollback = ["rollback", "--namespace", operator::NAMESPACE, "--force-conflicts", operator::RELEASE];
        let rollback = command::attempt(&mut command::helm(&rollback));
        let refusal = String::from_utf8_lossy(&rollback.stderr);
        assert!(!rollback.status.success() && refusal.contains(REFUSAL), "{refusal}");
        let output = "jsonpath={.spec.template.metadata.annotations.story}";
        let get = ["get", "deployment", operator::RELEASE, "--namespace", operator::NAMESPACE, "--output", output];
        assert_eq!(command::run(&mut command::kubectl(&get)), "", "Helm applies all other objects");
        command::run(&mut command::script("hack/install", &[]));
        assert_eq!(crd_of_jobs(tenant).await, installed);
        assert_marked(tenant, &job);
    }

    /// Adds the later field to the CRD of Jobs, before a field of its status.
    fn with_later_field(template: &str) -> String {
        let field = "\n              approvedCall:\n";
        template.replace(field, &format!("\n              {LATER_FIELD}:\n                type: string{field}"))
    }

    /// Returns the version of the CRD of Jobs, and whether it has the later field.
    async fn crd_of_jobs(tenant: &Tenant) -> (Option<String>, bool) {
        let crds = Api::<CustomResourceDefinition>::all(tenant.cluster.client.clone());
        let crd = crds.get(JOBS_CRD).await.expect("the CRD exists");
        (crd.annotations().get(CRD_VERSION_ANNOTATION).cloned(), json!(crd).pointer(&later_field()).is_some())
    }

    /// Returns the specs of the Skill and of the Job.
    async fn specs(tenant: &Tenant) -> (SkillSpec, JobSpec) {
        let skill = tenant.api::<Skill>().get("cs-tier-1").await.expect("the Skill exists");
        let job = tenant.api::<Job>().get("refund").await.expect("the Job exists");
        (skill.spec, job.spec)
    }

    /// Installs the CRDs of this version again, without the policy that refuses it, and then the policy.
    async fn restore_crds(tenant: &Tenant) {
        let binding = format!("{}-crds", operator::RELEASE);
        let delete = ["delete", "validatingadmissionpolicybinding", &binding, "--ignore-not-found"];
        command::run(&mut command::kubectl(&delete));
        // The API server refuses them until it has noticed the deletion.
        eventually("the CRDs of this version to be accepted", async || {
            let mut apply = command::kubectl(&["apply", "--server-side", "--force-conflicts", "--filename"]);
            let applied = command::attempt(apply.arg(command::checkout("crds/yaml")));
            let error = String::from_utf8_lossy(&applied.stderr).into_owned();
            if applied.status.success() { Ok(()) } else { Err(error) }
        })
        .await;
        command::run(&mut command::script("hack/install", &[]));
        operator::until_rolled_out(&tenant.cluster).await;
        assert_eq!(crd_of_jobs(tenant).await, (Some(CRD_VERSION.to_string()), false));
    }
}
