//! Faults of what is around a Job: containers and requests that others add to its pod, objects that are deleted while it runs, an API
//! server that does not answer, an operator that was uninstalled, and a platform that chooses the users of pods.

use bloomery_crds::names;
use bloomery_crds::v1alpha1::Skill;
use bloomery_e2e::harness::{
    Tenant, cluster, command, eventually, machine, operator, refund_of, refunds, story, story_alone, until,
};
use bloomery_testkit::json::typed;
use k8s_openapi::api::core::v1::{ConfigMap, LimitRange, Namespace, Node, PersistentVolumeClaim, Pod, PodSpec, Secret};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;

use crate::modes;

/// The name of the container that a policy or a webhook adds to pods.
pub const SIDECAR: &str = "proxy";

/// The patch of docs/how-to/upgrade.md that removes the finalizer of a Skill.
const NO_FINALIZERS: &str = r#"{"metadata": {"finalizers": null}}"#;

/// The scheduling gate that a policy adds to pods.
const GATE: &str = "queue.example/admission";

#[tokio::test]
async fn a_job_ends_although_a_sidecar_that_was_injected_runs_on() {
    story(async |tenant| {
        let policy = ChangedPods::create(tenant, &sidecar(), |pod| pod.containers.len() == 2).await;
        ends_beside_its_sidecar(tenant).await;
        policy.delete().await;
    })
    .await;
}

/// Runs a Job whose pod gets a sidecar that never ends, and waits until the pod is deleted.
pub async fn ends_beside_its_sidecar(tenant: &Tenant) {
    let shop = tenant.shop(&[refund_of("A-17")]).await;
    // The probe of the Skill has a sidecar too.
    tenant.skill("cs-tier-1").await.ready().await;
    let job = tenant.job("refund").await;
    let containers = job.pod(1).await.spec.expect("a pod has a spec").containers;
    assert!(containers.iter().any(|container| container.name == SIDECAR), "the sidecar is injected");
    let status = job.succeeded().await;
    assert_eq!(status.attempt.map(|attempt| attempt.number), Some(1));
    shop.assert_refunded_once("A-17").await;
    eventually("the pod of the ended Job to be deleted", async || {
        let pods = job.pods().await;
        if pods.is_empty() { Ok(()) } else { Err(pods.len()) }
    })
    .await;
}

/// Returns the change that adds a sidecar to a pod.
fn sidecar() -> String {
    let image = cluster::image("e2e-orders");
    format!(
        "[JSONPatch{{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{{name: '{SIDECAR}', image: '{image}', \
         imagePullPolicy: 'IfNotPresent', securityContext: Object.spec.containers.securityContext{{\
         allowPrivilegeEscalation: false, capabilities: Object.spec.containers.securityContext.capabilities{{drop: ['ALL']}}}}}}}}]"
    )
}

#[tokio::test]
async fn a_pod_that_a_queue_holds_back_is_queued_until_its_gate_is_removed() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await.ready().await;
        let gate = format!("[JSONPatch{{op: 'add', path: '/spec/schedulingGates', value: [{{'name': '{GATE}'}}]}}]");
        let policy = ChangedPods::create(tenant, &gate, |pod| pod.scheduling_gates.is_some()).await;
        let job = tenant.job("refund").await;
        job.until_reason("Queued", &["scheduling gates", GATE]).await;
        let opened = Patch::Merge(json!({"spec": {"schedulingGates": []}}));
        let pod = job.pod(1).await.name_any();
        let removed = tenant.api::<Pod>().patch(&pod, &PatchParams::default(), &opened).await;
        removed.expect("the gate is removed");
        let status = job.succeeded().await;
        assert_eq!(status.attempt.map(|attempt| attempt.number), Some(1));
        shop.assert_refunded_once("A-17").await;
        policy.delete().await;
    })
    .await;
}

/// An admission policy that changes the worker pods of a tenant. It stands for a webhook, such as that of a service mesh or of Kueue.
struct ChangedPods<'t> {
    tenant: &'t Tenant,
}

impl<'t> ChangedPods<'t> {
    /// Creates the policy with a change as an expression of CEL, and waits until it is in force.
    async fn create(tenant: &'t Tenant, change: &str, is_changed: impl Fn(&PodSpec) -> bool) -> Self {
        let policy = Self { tenant };
        let name = &tenant.namespace;
        let spec = json!({
            "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [new_pods()]},
            "matchConditions": [only_workers()],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": change}}],
        });
        register(tenant, "MutatingAdmissionPolicy", json!({"spec": spec})).await;
        let spec = json!({"policyName": name, "matchResources": {"namespaceSelector": only_in(tenant)}});
        register(tenant, "MutatingAdmissionPolicyBinding", json!({"spec": spec})).await;
        eventually("the policy to change pods", async || {
            let sample = admitted(tenant).await?;
            if is_changed(&sample) { Ok(()) } else { Err(format!("{sample:?}")) }
        })
        .await;
        policy
    }

    async fn delete(self) {
        for kind in ["MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy"] {
            unregister(self.tenant, kind).await;
        }
    }
}

/// Returns the rule of a policy or a webhook for new pods.
pub fn new_pods() -> Value {
    json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]})
}

/// Returns the condition that is true for the pods of workers, and for the sample.
pub fn only_workers() -> Value {
    json!({"name": "workers", "expression": "object.spec.containers[0].name in ['worker', 'sample']"})
}

/// Returns the selector of the namespace of a tenant.
pub fn only_in(tenant: &Tenant) -> Value {
    json!({"matchLabels": {"kubernetes.io/metadata.name": tenant.namespace}})
}

/// Creates a policy, or the configuration of a webhook, with the name of the tenant.
pub async fn register(tenant: &Tenant, kind: &str, mut object: Value) {
    let name = &tenant.namespace;
    object["apiVersion"] = json!("admissionregistration.k8s.io/v1");
    object["kind"] = json!(kind);
    object["metadata"] = json!({"name": name});
    let apply = PatchParams::apply("bloomery-e2e").force();
    let written = registrations(tenant, kind).patch(name, &apply, &Patch::Apply(&object)).await;
    written.unwrap_or_else(|error| panic!("{kind} {name} cannot be written: {error}"));
}

/// Deletes what [`register`] has created.
pub async fn unregister(tenant: &Tenant, kind: &str) {
    let deleted = registrations(tenant, kind).delete(&tenant.namespace, &DeleteParams::default()).await;
    deleted.unwrap_or_else(|error| panic!("{kind} cannot be deleted: {error}"));
}

fn registrations(tenant: &Tenant, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
    Api::all_with(tenant.cluster.client.clone(), &ApiResource::from_gvk(&kind))
}

/// Lets the API server admit a sample of a worker pod, as a dry run. Returns the spec as it would be stored.
///
/// # Errors
/// The API server refuses the pod.
pub async fn admitted(tenant: &Tenant) -> Result<PodSpec, String> {
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let sample = tenant.api::<Pod>().create(&dry_run, &sample()).await.map_err(|error| error.to_string())?;
    Ok(sample.spec.expect("a pod has a spec"))
}

/// A pod that is never created.
fn sample() -> Pod {
    typed(json!({
        "metadata": {"name": "sample"},
        "spec": {
            "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "sample", "image": "sample",
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            }],
        },
    }))
}

#[tokio::test]
async fn a_limit_range_may_change_the_pods_and_one_that_refuses_them_is_named() {
    let limits =
        |limits: Value| -> LimitRange { typed(json!({"metadata": {"name": "limits"}, "spec": {"limits": [limits]}})) };
    story(async |tenant| {
        let (default, request) = (json!({"cpu": "2"}), json!({"cpu": "10m", "ephemeral-storage": "16Mi"}));
        tenant.create(limits(json!({"type": "Container", "default": default, "defaultRequest": request}))).await;
        let shop = tenant.shop(&[refund_of("A-17"), refund_of("A-18")]).await;
        let skill = tenant.skill("cs-tier-1").await;
        skill.ready().await;
        let job = tenant.job("refund").await;
        let worker = job.pod(1).await.spec.expect("a pod has a spec").containers.remove(0);
        let resources = worker.resources.expect("a worker has resources");
        let amount = |list: Option<BTreeMap<String, Quantity>>, name: &str| list?.remove(name).map(|amount| amount.0);
        let changed = (amount(resources.limits, "cpu"), amount(resources.requests, "ephemeral-storage"));
        assert_eq!(changed, (Some("2".into()), Some("16Mi".into())), "the LimitRange has changed the pod");
        job.succeeded().await;

        tenant.remove::<LimitRange>("limits").await;
        tenant.create(limits(json!({"type": "Container", "max": {"memory": "128Mi"}}))).await;
        let refused = tenant.job("refused").goal("Refund order A-18").await;
        refused.until_reason("PodNotStarting", &["the API server refuses the pod", "maximum memory"]).await;
        assert_eq!(refused.pods().await.len(), 0);
        tenant.remove::<LimitRange>("limits").await;
        refused.succeeded().await;
        shop.assert_refunded_once("A-18").await;
    })
    .await;
}

#[tokio::test]
async fn a_running_job_survives_the_deletion_of_its_claim_its_revision_and_its_secret() {
    story(async |tenant| {
        let ledger = tenant.ledger().await;
        let model = tenant.model_server_with_key(&[refund_of("A-17").hold(3, "thinking")], "sk-1").await;
        tenant.secret("llm", "key", "sk-1").await;
        tenant.model("default").with_key_from("llm", "key").await;
        let skill = tenant.skill("cs-tier-1").await;
        let revision = skill.ready().await.revision.expect("a Skill that is ready has a revision").name;
        let job = tenant.job("refund").await;
        model.until_held("thinking").await;

        let before = tenant.api::<ConfigMap>().get(&revision).await.expect("the revision exists").uid();
        tenant.remove::<PersistentVolumeClaim>(names::MEMORY_CLAIM).await;
        tenant.remove::<ConfigMap>(&revision).await;
        tenant.remove::<Secret>("llm").await;
        eventually("the revision to be created again", async || {
            let found = tenant.api::<ConfigMap>().get_opt(&revision).await.map_err(|error| error.to_string())?;
            let uid = found.ok_or("it does not exist")?.uid();
            if uid == before { Err("it is not deleted".to_owned()) } else { Ok(()) }
        })
        .await;
        model.release("thinking").await;
        assert_eq!(job.succeeded().await.attempt.map(|attempt| attempt.number), Some(1));
        ledger.assert_refunded_once("A-17").await;
    })
    .await;
}

/// The user and the group that the platform chooses for the pods of the tenant.
const PLATFORM_ID: i64 = 1_000_690_000;

/// Returns the change of a platform that chooses users and groups, such as `OpenShift`.
fn ids_of_the_platform() -> String {
    let set =
        |field: &str| format!("JSONPatch{{op: 'add', path: '/spec/securityContext/{field}', value: {PLATFORM_ID}}}");
    format!("[{}, {}]", set("runAsUser"), set("fsGroup"))
}

/// Returns the runtime class and the user of a pod.
fn class_and_user(pod: &PodSpec) -> (Option<&str>, Option<i64>) {
    let user = pod.security_context.as_ref().and_then(|context| context.run_as_user);
    (pod.runtime_class_name.as_deref(), user)
}

/// Returns whether the runtime of every node has user namespaces.
async fn has_user_namespaces(tenant: &Tenant) -> bool {
    let nodes = Api::<Node>::all(tenant.cluster.client.clone());
    let nodes = nodes.list(&ListParams::default()).await.expect("nodes can be listed");
    nodes.iter().all(|node| {
        let handlers = node.status.iter().flat_map(|status| status.runtime_handlers.iter().flatten());
        let mut runc = handlers.filter(|handler| handler.name.as_deref() == Some("runc"));
        runc.any(|handler| handler.features.as_ref().and_then(|features| features.user_namespaces) == Some(true))
    })
}

/// Waits for a running pod of a Skill with this purpose, and returns its spec.
async fn running_pod(tenant: &Tenant, skill: &str, component: &str) -> PodSpec {
    let labels = format!("{}={skill},{}={component}", names::LABEL_SKILL, names::LABEL_COMPONENT);
    let is_running = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    eventually(&format!("a running pod with {labels}"), async || {
        let pods = tenant.api::<Pod>().list(&ListParams::default().labels(&labels)).await;
        let pods = pods.map_err(|error| error.to_string())?;
        let pod = pods.into_iter().find(is_running).ok_or("none runs")?;
        pod.spec.ok_or_else(|| "it has no spec".to_owned())
    })
    .await
}

/// These disturb all stories. `hack/e2e` runs them one by one, after the others.
mod alone {
    use super::*;

    #[tokio::test]
    async fn a_job_ends_although_the_api_server_does_not_answer_for_thirty_seconds() {
        story_alone(async |tenant| {
            if !cluster::is_local_or_skips("stopping the API server") {
                return;
            }
            let shop = tenant.shop(&[refund_of("A-17").hold(1, "thinking")]).await;
            tenant.skill("cs-tier-1").await;
            let job = tenant.job("refund").await;
            shop.model.until_held("thinking").await;
            machine::release_during_outage(tenant, "thinking").await;

            let status = job.succeeded().await;
            assert_eq!(status.attempt.map(|attempt| attempt.number), Some(1));
            shop.assert_refunded_once("A-17").await;
            operator::leader(&tenant.cluster).await;
            let again = tenant.job("again").await;
            again.until("the operator to start a Job", |status| status.attempt.is_some()).await;
        })
        .await;
    }

    #[tokio::test]
    async fn a_namespace_is_deleted_after_the_operator_was_uninstalled() {
        story_alone(async |tenant| {
            tenant.shop(&[refund_of("A-17").hold(1, "thinking")]).await;
            tenant.skill("cs-tier-1").await.ready().await;
            let job = tenant.job("refund").await;
            job.until("its start", |status| status.attempt.is_some()).await;
            operator::uninstalled(&tenant.cluster, async || {
                let skills = tenant.api::<Skill>().list(&ListParams::default()).await.expect("the CRDs stay");
                assert_eq!(skills.items.len(), 1);
                tenant.delete().await;
                tenant.gone().await;
            })
            .await;
        })
        .await;
    }

    /// The namespace has no pod of a Job, so only the finalizer delays its deletion.
    #[tokio::test]
    async fn a_skill_whose_memory_is_reclaimed_goes_by_a_command_after_the_operator_was_uninstalled() {
        story_alone(async |tenant| {
            let skill = tenant.skill_of("cs-tier-1", refunds()).with_reclaimed_memory().await;
            skill.until_finalizer().await;
            operator::uninstalled(&tenant.cluster, async || {
                tenant.delete().await;
                let namespaces = Api::<Namespace>::all(tenant.cluster.client.clone());
                until(&namespaces, &tenant.namespace, "a condition that names the finalizer", is_kept_by_memory).await;
                let page = include_str!("../../../docs/how-to/upgrade.md");
                assert!(page.contains(&format!("patch skill cs-tier-1 --type merge --patch '{NO_FINALIZERS}'")));
                let patch = ["patch", "skill", "cs-tier-1", "--type", "merge", "--patch", NO_FINALIZERS];
                command::run(command::kubectl(&["--namespace", &tenant.namespace]).args(patch));
                tenant.gone().await;
            })
            .await;
        })
        .await;
    }

    #[tokio::test]
    async fn pods_run_with_the_settings_of_the_chart_and_the_users_of_the_platform() {
        story_alone(async |tenant| {
            if !cluster::is_local_or_skips("a runtime class for runc") {
                return;
            }
            let (class, classes) = (&tenant.namespace, Api::<RuntimeClass>::all(tenant.cluster.client.clone()));
            let runc = typed(json!({"metadata": {"name": class}, "handler": "runc"}));
            classes.create(&PostParams::default(), &runc).await.expect("the runtime class is created");
            let ids = ids_of_the_platform();
            let policy = ChangedPods::create(tenant, &ids, |pod| class_and_user(pod).1 == Some(PLATFORM_ID)).await;
            let own_users = has_user_namespaces(tenant).await;
            let values = [
                "uidsFromPlatform=true".to_owned(),
                format!("worker.runtimeClassName={class}"),
                format!("mcp.runtimeClassName={class}"),
                format!("mcp.hostUsers={}", !own_users),
            ];
            modes::restored_afterwards(&tenant.cluster, async || {
                modes::install(&tenant.cluster, &values.each_ref().map(|value| ["--set", value]).concat()).await;
                let shop = tenant.shop(&[refund_of("A-17")]).await;
                tenant.skill("cs-tier-1").await.ready().await;
                let job = tenant.job("refund").await;
                job.succeeded().await;
                shop.assert_refunded_once("A-17").await;
                let worker = job.pod(1).await.spec.expect("a pod has a spec");
                assert_eq!(class_and_user(&worker), (Some(class.as_str()), Some(PLATFORM_ID)));
                let server = running_pod(tenant, "cs-tier-1", "mcp").await;
                assert_eq!(class_and_user(&server), (Some(class.as_str()), None), "it runs as the user of its image");
                assert_eq!(server.host_users, own_users.then_some(false));
                // The probe of a server that does not answer runs for a minute.
                tenant.skill("silent").with_server_env("SILENT", "true").await;
                let probe = running_pod(tenant, "silent", names::COMPONENT_PROBE).await;
                assert_eq!(class_and_user(&probe), (Some(class.as_str()), Some(PLATFORM_ID)));
            })
            .await;
            policy.delete().await;
            classes.delete(class, &DeleteParams::default()).await.expect("the runtime class is deleted");
        })
        .await;
    }

    /// Returns whether a condition of a namespace says that it waits for the finalizer of a Skill.
    fn is_kept_by_memory(namespace: &Namespace) -> bool {
        let conditions = namespace.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let mut remaining = conditions.filter(|condition| condition.type_ == "NamespaceFinalizersRemaining");
        remaining.any(|condition| {
            let message = condition.message.as_deref().unwrap_or_default();
            condition.status == "True" && message.contains(names::FINALIZER_MEMORY)
        })
    }
}
