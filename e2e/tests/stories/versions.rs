//! The version before this one runs beside this version, as operator and as worker (`make test-versions`).

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bloomery_e2e::harness::operator::{LABEL_BESIDE, NAMESPACE, RELEASE};
use bloomery_e2e::harness::{Cluster, JobHandle, Tenant, command, eventually, operator, story_alone, typed, until};
use futures::FutureExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::takeover::{Group, start_shop};

/// The environment variable with the directory of the version before: its sources, and its images in `target/images.json`.
const DIRECTORY_VARIABLE: &str = "BLOOMERY_BEFORE";

/// The name of the Deployment of the version before.
const DEPLOYMENT: &str = "bloomery-before";

/// The field that a later version adds to the status of Jobs. No version knows it.
pub const LATER_FIELD: &str = "fromLater";

/// The CRD of Jobs.
pub const JOBS_CRD: &str = "skilljobs.bloomery.dev";

#[tokio::test]
#[ignore = "builds the version before: make test-versions"]
async fn two_versions_lead_in_turns_and_lose_no_job_and_no_field() {
    let Some(before) = VersionBefore::built() else {
        eprintln!("skipped: {DIRECTORY_VARIABLE} names no version before (make test-versions)");
        return;
    };
    story_alone(async |tenant| {
        change_later_field(tenant, "add").await;
        let done = AssertUnwindSafe(lead_in_turns(tenant, &before)).catch_unwind().await;
        before.remove(&tenant.cluster).await;
        install_policies(&command::checkout(""));
        change_later_field(tenant, "remove").await;
        done.unwrap_or_else(|failure| resume_unwind(failure));
    })
    .await;
}

/// Lets this version lead first, then the version before, then this version again.
async fn lead_in_turns(tenant: &Tenant, before: &VersionBefore) {
    let conversations = [Group::conversations(1), Group::conversations(2)].concat();
    let (shop, jane) = start_shop(tenant, &conversations).await;
    before.deploy(&tenant.cluster).await;
    assert!(!is_beside(&operator::leader(&tenant.cluster).await), "this version leads");
    // Either version may receive the reports.
    let mut first = Group::start(tenant, &shop, 1).await;
    mark_all(tenant, &first).await;

    // A rollback changes the policies before the Deployment, and so does an upgrade.
    install_policies(&before.directory);
    let second = operator::with_replicas(&tenant.cluster, 0, async || {
        let leader = operator::leader(&tenant.cluster).await;
        assert!(is_beside(&leader), "after the rollback, the version before leads");
        let second = Group::start(tenant, &shop, 2).await;
        mark_all(tenant, &second).await;
        // The version before does not know later policies, so it asks again.
        first.until_asked_as(tenant, &second).await;
        first.go_on(&shop, &jane).await;
        first.succeeded(&shop).await;
        for job in first.resumed() {
            assert_eq!(worker_image(job, 2).await, before.image("worker"), "{}", job.name);
        }
        install_policies(&command::checkout(""));
        second
    })
    .await;

    before.remove(&tenant.cluster).await;
    assert!(!is_beside(&operator::leader(&tenant.cluster).await), "after the upgrade, this version leads");
    second.go_on(&shop, &jane).await;
    second.succeeded(&shop).await;
    for job in second.resumed() {
        assert_eq!(worker_image(job, 1).await, before.image("worker"), "{}", job.name);
        assert_ne!(worker_image(job, 2).await, before.image("worker"), "{}", job.name);
    }
    for job in first.jobs().into_iter().chain(second.jobs()) {
        assert_marked(tenant, job);
    }
}

/// The version before this one, built.
struct VersionBefore {
    directory: PathBuf,
    images: BTreeMap<String, String>,
}

impl VersionBefore {
    fn built() -> Option<Self> {
        let directory = PathBuf::from(std::env::var_os(DIRECTORY_VARIABLE)?);
        let images = directory.join("target/images.json");
        let text = std::fs::read_to_string(&images).unwrap_or_else(|error| panic!("{}: {error}", images.display()));
        let images = serde_json::from_str(&text).expect("the images are named in JSON");
        Some(Self { directory, images })
    }

    fn image(&self, name: &str) -> &str {
        &self.images[name]
    }

    /// Returns the Deployment of its own chart, under another name. The Services and roles are those of the release.
    fn deployment(&self) -> Deployment {
        let mut template = template(&self.directory, "deployment");
        template.args(["--set", "memory.size=1Gi"]);
        for (value, name) in [("image", "operator"), ("worker.image", "worker")] {
            let (repository, tag) = self.image(name).rsplit_once(':').expect("an image has a tag");
            template.args(["--set", &format!("{value}.repository={repository}")]);
            template.args(["--set-string", &format!("{value}.tag={tag}")]);
        }
        let rendered = command::run(&mut template);
        let mut deployment: Value = serde_yaml::from_str(&rendered).expect("the chart has a Deployment");
        deployment["metadata"]["name"] = json!(DEPLOYMENT);
        deployment["spec"]["selector"]["matchLabels"][LABEL_BESIDE] = json!("before");
        deployment["spec"]["template"]["metadata"]["labels"][LABEL_BESIDE] = json!("before");
        typed(deployment)
    }

    async fn deploy(&self, cluster: &Cluster) {
        let api = Api::<Deployment>::namespaced(cluster.client.clone(), NAMESPACE);
        api.create(&PostParams::default(), &self.deployment()).await.expect("the version before is deployed");
        let is_available = |deployment: &Deployment| {
            deployment.status.as_ref().is_some_and(|status| status.available_replicas == Some(1))
        };
        until(&api, DEPLOYMENT, "the version before to be available", is_available).await;
    }

    /// Deletes the Deployment if it is there, and waits until its pods are gone.
    async fn remove(&self, cluster: &Cluster) {
        let api = Api::<Deployment>::namespaced(cluster.client.clone(), NAMESPACE);
        match api.delete(DEPLOYMENT, &DeleteParams::background()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => panic!("the version before cannot be deleted: {error}"),
            Ok(_) => {}
        }
        eventually("the pods of the version before to end", async || {
            let pods = operator::api(cluster).list(&ListParams::default().labels(LABEL_BESIDE)).await;
            let left: Vec<String> =
                pods.map_err(|error| vec![error.to_string()])?.iter().map(ResourceExt::name_any).collect();
            if left.is_empty() { Ok(()) } else { Err(left) }
        })
        .await;
    }
}

/// Returns the command that renders a template of the chart of a version, whose sources are in `directory`.
fn template(directory: &Path, name: &str) -> Command {
    let mut template = command::helm(&["template", RELEASE, "--namespace", NAMESPACE]);
    template.arg(directory.join("charts/bloomery")).args(["--show-only", &format!("templates/{name}.yaml")]);
    template
}

/// Installs the admission policies of a version on which its approvals depend, as Helm does.
fn install_policies(directory: &Path) {
    let mut rendering = template(directory, "policies").stdout(Stdio::piped()).spawn().expect("Helm starts");
    let rendered = rendering.stdout.take().expect("a pipe");
    command::run(command::kubectl(&["apply", "--server-side", "--field-manager=helm", "--filename=-"]).stdin(rendered));
    assert!(rendering.wait().expect("Helm ends").success(), "the policies of {} are rendered", directory.display());
}

/// Returns whether a pod is of the version before.
fn is_beside(pod: &Pod) -> bool {
    pod.labels().contains_key(LABEL_BESIDE)
}

async fn worker_image(job: &JobHandle<'_>, attempt: u32) -> String {
    let spec = job.pod(attempt).await.spec.expect("a pod has a spec");
    spec.containers.first().and_then(|container| container.image.clone()).expect("a worker has an image")
}

/// Returns the JSON pointer to the schema of the later field in the CRD of Jobs.
pub fn later_field() -> String {
    format!("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/{LATER_FIELD}")
}

/// Adds the later field to the CRD of Jobs, or removes it.
async fn change_later_field(tenant: &Tenant, operation: &str) {
    let change = json!([{"op": operation, "path": later_field(), "value": {"type": "string"}}]);
    let patch: Patch<Value> = Patch::Json(typed(change));
    let crds = Api::<CustomResourceDefinition>::all(tenant.cluster.client.clone());
    crds.patch(JOBS_CRD, &PatchParams::default(), &patch).await.expect("the CRD is changed");
}

async fn mark_all(tenant: &Tenant, group: &Group<'_>) {
    for job in group.jobs() {
        mark(tenant, job).await;
    }
}

/// Sets the later field in the status of a Job, as a later version does.
pub async fn mark(tenant: &Tenant, job: &JobHandle<'_>) {
    let status = json!({"status": {LATER_FIELD: "kept"}}).to_string();
    let patch = ["patch", "skilljob", &job.name, "--namespace", &tenant.namespace, "--subresource=status"];
    // The API server removes the field until it has noticed the change of the CRD.
    eventually(&format!("the later field of {}", job.name), async || {
        let mut patch = command::kubectl(&patch);
        let stored = command::run(patch.args(["--type=merge", "--patch", &status, "--output", &printed_field()]));
        if stored == "kept" { Ok(()) } else { Err(stored) }
    })
    .await;
}

/// Checks that a Job still has the later field.
pub fn assert_marked(tenant: &Tenant, job: &JobHandle<'_>) {
    let field = printed_field();
    let get = ["get", "skilljob", &job.name, "--namespace", &tenant.namespace, "--output", &field];
    assert_eq!(command::run(&mut command::kubectl(&get)), "kept", "{}", job.name);
}

/// Returns the output of kubectl that has only the later field.
fn printed_field() -> String {
    format!("jsonpath={{.status.{LATER_FIELD}}}")
}
