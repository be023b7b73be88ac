//! The admission policy for the operator's own requests: what it may not write, although its roles would allow it.

use axum::http::{Method, Request};
use bloomery_e2e::harness::{Refusal, Tenant, operator, story, typed};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use serde_json::{Value, json};

/// Requests as the operator with the rights of an administrator, so that only the policy refuses them. All are dry runs.
struct Operator {
    tenant: Tenant,
}

impl Operator {
    async fn of(tenant: &Tenant) -> Self {
        let user = format!("system:serviceaccount:{}:{}", operator::NAMESPACE, operator::RELEASE);
        Self { tenant: tenant.seen_by(&user, &["system:masters"]).await }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<(), Refusal> {
        let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let path = path.replace("{}", &format!("namespaces/{}", self.tenant.namespace));
        let request = Request::builder().method(method).uri(format!("{path}?dryRun=All"));
        let request = request.header("content-type", content).body(body.to_string().into_bytes()).expect("a request");
        match self.tenant.cluster.client.request::<Value>(request).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) => Err(Refusal(status.message)),
            Err(other) => panic!("{path}: the API server does not answer: {other}"),
        }
    }

    async fn accepts(&self, method: Method, path: &str, body: &Value) {
        let sent = self.send(method, path, body).await;
        sent.unwrap_or_else(|refusal| panic!("{path} should accept {body:#}: {refusal}"));
    }

    async fn refuses(&self, method: Method, path: &str, body: &Value, expected: &str) {
        match self.send(method, path, body).await {
            Ok(()) => panic!("{path} should refuse {body:#}"),
            Err(Refusal(why)) => assert!(why.contains(expected), "{path}: `{expected}` should be in: {why}"),
        }
    }
}

const PODS: &str = "/api/v1/{}/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/{}/deployments";
const SERVICES: &str = "/api/v1/{}/services";
const CONFIG_MAPS: &str = "/api/v1/{}/configmaps";
const CLAIMS: &str = "/api/v1/{}/persistentvolumeclaims";
const SKILLS: &str = "/apis/bloomery.dev/v1alpha1/{}/skills";
const JOBS: &str = "/apis/bloomery.dev/v1alpha1/{}/skilljobs";

/// The metadata of an object that a Skill owns.
fn owned(name: &str, component: &str) -> Value {
    json!({
        "name": name,
        "labels": {
            "app.kubernetes.io/managed-by": "bloomery", "app.kubernetes.io/component": component,
            "bloomery.dev/skill": "cs-tier-1",
        },
        "ownerReferences": [
            {"apiVersion": "bloomery.dev/v1alpha1", "kind": "Skill", "name": "cs-tier-1", "uid": "u-1", "controller": true}
        ],
    })
}

/// The spec of a pod that passes the `restricted` Pod Security Standard.
fn pod_spec(account: &str) -> Value {
    let context = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    json!({
        "serviceAccountName": account, "automountServiceAccountToken": false,
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "c", "image": "localhost/none:1", "securityContext": context}],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    })
}

fn pod() -> Value {
    json!({"metadata": owned("cs-tier-1-probe-0", "probe"), "spec": pod_spec("cs-tier-1-worker")})
}

fn deployment(spec: &Value) -> Value {
    let labels = json!({"bloomery.dev/skill": "cs-tier-1"});
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    json!({
        "metadata": owned("cs-tier-1-mcp", "mcp"),
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    })
}

fn service() -> Value {
    json!({"metadata": owned("cs-tier-1-mcp", "mcp"), "spec": {"ports": [{"port": 80}]}})
}

fn revision() -> Value {
    json!({"metadata": owned("cs-tier-1-0123", "revision")})
}

fn claim(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "bloomery"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    })
}

/// A Skill without server, with these labels.
fn skill(labels: &Value) -> Value {
    json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Skill", "metadata": {"name": "new", "labels": labels},
        "spec": {"problem": {"statement": "p"}},
    })
}

/// A reference to an owner of a Job.
fn owner(kind: &str, uid: &str) -> Value {
    json!({"apiVersion": "bloomery.dev/v1alpha1", "kind": kind, "name": "waiting", "uid": uid, "controller": true})
}

/// A Job that another Job invokes, with this owner.
fn child(owner: &Value) -> Value {
    let labels = json!({"app.kubernetes.io/managed-by": "bloomery"});
    json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Job",
        "metadata": {"name": "child", "labels": labels, "ownerReferences": [owner]},
        "spec": {"skill": "absent", "goal": "g", "parent": {"name": "waiting", "uid": "u-1", "call": "c-1"}},
    })
}

/// Returns the object with this value at a JSON pointer, whose parent exists.
fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
    match object.pointer_mut(parent).expect("the parent exists") {
        Value::Object(fields) => drop(fields.insert(field.to_owned(), value)),
        other => panic!("{parent} is no object: {other}"),
    }
    object
}

#[tokio::test]
async fn the_operator_makes_only_objects_of_skills_and_jobs() {
    story(async |tenant| {
        for account in ["cs-tier-1-worker", "theirs"] {
            tenant.create::<ServiceAccount>(typed(json!({"metadata": {"name": account}}))).await;
        }
        let operator = Operator::of(tenant).await;
        let post = || Method::POST;
        operator.accepts(post(), PODS, &pod()).await;
        operator.accepts(post(), DEPLOYMENTS, &deployment(&pod_spec("cs-tier-1-mcp"))).await;
        operator.accepts(post(), SERVICES, &service()).await;
        operator.accepts(post(), CONFIG_MAPS, &revision()).await;
        operator.accepts(post(), CLAIMS, &claim("bloomery-memory")).await;
        let policy = json!({"metadata": owned("cs-tier-1", "network"), "spec": {"podSelector": {}}});
        operator.accepts(post(), "/apis/networking.k8s.io/v1/{}/networkpolicies", &policy).await;

        let labels = json!({"app.kubernetes.io/component": "probe", "bloomery.dev/skill": "cs-tier-1"});
        let owners =
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": "u-2", "controller": true}]);
        for (object, expected) in [
            (with(pod(), "/metadata/labels", labels), "only pods with the label app.kubernetes.io/managed-by"),
            (with(pod(), "/metadata/ownerReferences", json!([])), "only pods that a Skill or Job owns"),
            (with(pod(), "/metadata/ownerReferences", owners), "only pods that a Skill or Job owns"),
            (with(pod(), "/spec/serviceAccountName", json!("theirs")), "runs as the account of the workers"),
            (with(pod(), "/spec/automountServiceAccountToken", json!(true)), "mounts no token for the API server"),
        ] {
            operator.refuses(post(), PODS, &object, expected).await;
        }
    })
    .await;
}

/// Returns the spec of a pod with this field of the security context of its container.
fn with_container_context(spec: &Value, field: &str, value: Value) -> Value {
    with(spec.clone(), &format!("/containers/0/securityContext/{field}"), value)
}

/// Returns a volume with a token of this audience.
fn token_of(audience: &str) -> Value {
    let token = json!({"path": "t", "audience": audience});
    json!([{"name": "t", "projected": {"sources": [{"serviceAccountToken": token}]}}])
}

#[tokio::test]
async fn the_operator_makes_only_restricted_servers() {
    story(async |tenant| {
        let operator = Operator::of(tenant).await;
        let server = || pod_spec("cs-tier-1-mcp");
        let container = |field: &str, value: Value| with_container_context(&server(), field, value);
        let (of_pod, of_container) =
            ("a pod that the operator makes passes", "a container that the operator makes passes");
        let token = json!([{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]);
        for (spec, expected) in [
            (with(server(), "/hostNetwork", json!(true)), of_pod),
            (with(server(), "/securityContext", json!({"runAsNonRoot": true})), of_pod),
            (with(server(), "/volumes", json!([{"name": "h", "hostPath": {"path": "/"}}])), of_pod),
            (with(server(), "/nodeName", json!("node-1")), of_pod),
            (container("privileged", json!(true)), "privileged"),
            (container("runAsUser", json!(0)), of_container),
            (container("capabilities", json!({"drop": ["ALL"], "add": ["NET_ADMIN"]})), of_container),
            (with(server(), "/volumes", token), "mounts no token for the API server"),
            (pod_spec("default"), "runs as the account of the workers"),
        ] {
            operator.refuses(Method::POST, DEPLOYMENTS, &deployment(&spec), expected).await;
        }
        let published = with(service(), "/spec/type", json!("LoadBalancer"));
        operator.refuses(Method::POST, SERVICES, &published, "reachable only in the cluster").await;
    })
    .await;
}

/// Returns changed specs of a pod, each with its refusal: further ones that the Pod Security Standard `restricted` refuses, and those that
/// give the pod other nodes or credentials.
fn forbidden(spec: &Value) -> Vec<(Value, &'static str)> {
    let context = |field: &str, value: Value| with(spec.clone(), &format!("/securityContext/{field}"), value);
    let container = |field: &str, value: Value| with_container_context(spec, field, value);
    let probe = |field: &str, handler: Value| with(spec.clone(), &format!("/containers/0/{field}"), handler);
    let tolerates = |toleration: Value| with(spec.clone(), "/tolerations", json!([toleration]));
    let profile = "no other profile of AppArmor or type of SELinux";
    let (host, taint) = ("name no host", "tolerate neither every taint nor that of the control plane");
    let audience = "https://kubernetes.default.svc.cluster.local";
    vec![
        (context("appArmorProfile", json!({"type": "Unconfined"})), profile),
        (container("appArmorProfile", json!({"type": "Unconfined"})), profile),
        (context("seLinuxOptions", json!({"type": "spc_t"})), profile),
        (container("seLinuxOptions", json!({"user": "system_u"})), profile),
        (probe("livenessProbe", json!({"httpGet": {"host": "10.0.0.1", "port": 80}})), host),
        (probe("readinessProbe", json!({"tcpSocket": {"host": "10.0.0.1", "port": 80}})), host),
        (probe("lifecycle", json!({"preStop": {"httpGet": {"host": "10.0.0.1", "port": 80}}})), host),
        (with(spec.clone(), "/volumes", token_of(audience)), "mounts no token for the API server"),
        (tolerates(json!({"operator": "Exists"})), taint),
        (tolerates(json!({"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"})), taint),
        (with(spec.clone(), "/priorityClassName", json!("system-node-critical")), "no priority class of the system"),
    ]
}

#[tokio::test]
async fn the_operator_makes_no_pods_with_more_rights_than_restricted_ones() {
    story(async |tenant| {
        tenant.enforce_no_pod_security().await;
        for account in ["cs-tier-1-worker", "cs-tier-1-mcp"] {
            tenant.create::<ServiceAccount>(typed(json!({"metadata": {"name": account}}))).await;
        }
        let operator = Operator::of(tenant).await;
        let (worker, server) = (pod_spec("cs-tier-1-worker"), pod_spec("cs-tier-1-mcp"));
        let of_worker = |spec: Value| with(pod(), "/spec", spec);
        for (spec, expected) in forbidden(&worker) {
            operator.refuses(Method::POST, PODS, &of_worker(spec), expected).await;
        }
        for (spec, expected) in forbidden(&server) {
            operator.refuses(Method::POST, DEPLOYMENTS, &deployment(&spec), expected).await;
        }
        // The kubelet also reads the profile of a container in this annotation.
        let unconfined = json!({"container.apparmor.security.beta.kubernetes.io/c": "unconfined"});
        let annotated = with(deployment(&server), "/spec/template/metadata/annotations", unconfined);
        operator.refuses(Method::POST, DEPLOYMENTS, &annotated, "no other profile of AppArmor").await;

        // What the operator and admission plugins set.
        let plugin = json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]);
        let health = json!({"httpGet": {"path": "/healthz", "port": 8080}});
        for spec in [
            with(worker.clone(), "/volumes", token_of("bloomery")),
            with(worker.clone(), "/tolerations", plugin),
            with(worker.clone(), "/nodeSelector", json!({"disk": "ssd"})),
            with(worker.clone(), "/containers/0/readinessProbe", health),
            with(worker.clone(), "/securityContext/seLinuxOptions", json!({"level": "s0:c1,c2"})),
            with_container_context(&worker, "appArmorProfile", json!({"type": "RuntimeDefault"})),
        ] {
            operator.accepts(Method::POST, PODS, &of_worker(spec)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_operator_makes_nothing_of_others_or_in_system_namespaces() {
    story(async |tenant| {
        let operator = Operator::of(tenant).await;
        let post = || Method::POST;
        operator.refuses(post(), CLAIMS, &claim("other"), "only creates the volume claim").await;
        let theirs = json!({"metadata": {"name": "theirs"}});
        operator.refuses(post(), CONFIG_MAPS, &theirs, "only configmaps with the label").await;
        operator.refuses(post(), "/api/v1/{}/secrets", &theirs, "one of the secrets but its own").await;
        let skill = skill(&json!({"bloomery.dev/template": "new"}));
        let job = child(&owner("Job", "u-1"));
        for namespace in ["kube-system", "kube-public", "kube-node-lease"] {
            let path = format!("/api/v1/namespaces/{namespace}/configmaps");
            operator.refuses(post(), &path, &revision(), "in the system namespace").await;
            for (kind, object) in [("skills", &skill), ("skilljobs", &job)] {
                let path = format!("/apis/bloomery.dev/v1alpha1/namespaces/{namespace}/{kind}");
                operator.refuses(post(), &path, object, "in the system namespace").await;
            }
        }
        let own = format!("namespaces/{}", operator::NAMESPACE);
        operator
            .refuses(post(), &format!("/api/v1/{own}/configmaps"), &revision(), "no configmaps in its own namespace")
            .await;
        let skills = format!("/apis/bloomery.dev/v1alpha1/{own}/skills");
        operator.refuses(post(), &skills, &skill, "no skills in its own namespace").await;
        let lease = json!({"metadata": {"name": "other"}});
        let leases = format!("/apis/coordination.k8s.io/v1/{own}/leases");
        operator.refuses(post(), &leases, &lease, "one of the leases but its own").await;
    })
    .await;
}

#[tokio::test]
async fn the_operator_neither_changes_nor_deletes_objects_of_others() {
    story(async |tenant| {
        tenant.create::<ConfigMap>(typed(json!({"metadata": {"name": "theirs"}}))).await;
        let ours = json!({"metadata": {"name": "ours", "labels": {"app.kubernetes.io/managed-by": "bloomery"}}});
        tenant.create::<ConfigMap>(typed(ours)).await;
        tenant.skills().create("waiting", &json!({"problem": {"statement": "p"}})).await;
        tenant.job("waiting").for_skill("absent").await;
        let operator = Operator::of(tenant).await;
        let (patch, delete) = (|| Method::PATCH, || Method::DELETE);
        let at = |collection: &str, name: &str| format!("{collection}/{name}");

        operator.accepts(delete(), &at(CONFIG_MAPS, "ours"), &json!({})).await;
        operator.refuses(delete(), &at(CONFIG_MAPS, "theirs"), &json!({}), "only configmaps with the label").await;
        let label = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "bloomery"}}});
        operator.refuses(patch(), &at(CONFIG_MAPS, "theirs"), &label, "does not take over configmaps").await;

        let finalizer = json!({"metadata": {"finalizers": ["bloomery.dev/memory"]}});
        operator.accepts(patch(), &at(SKILLS, "waiting"), &finalizer).await;
        let (changed, only) = (json!({"spec": {"problem": {"statement": "q"}}}), "changes only the finalizers");
        operator.refuses(patch(), &at(SKILLS, "waiting"), &changed, only).await;
        operator.refuses(delete(), &at(SKILLS, "waiting"), &json!({}), only).await;
        let of_template = || skill(&json!({"bloomery.dev/template": "new"}));
        operator.accepts(Method::POST, SKILLS, &of_template()).await;
        operator.refuses(Method::POST, SKILLS, &skill(&json!({})), "creates Skills from templates").await;
        for (field, value) in [
            ("mcpServer", json!({"container": {"image": "localhost/none:1"}})),
            ("scripts", json!({"image": "localhost/none:1", "files": {"a.sh": "exit"}})),
            ("pods", json!({"worker": {"labels": {"team": "a"}}})),
        ] {
            let named = with(of_template(), &format!("/spec/{field}"), value);
            operator.refuses(Method::POST, SKILLS, &named, "a Skill that the operator creates names no images").await;
        }
        operator.refuses(delete(), &at(JOBS, "waiting"), &json!({}), "deletes only Jobs that have ended").await;
        operator.refuses(patch(), &at(JOBS, "waiting"), &json!({"spec": {"cancel": true}}), "changes none").await;

        let event = |api_version: &str, kind: &str| {
            json!({
                "metadata": {"name": "e", "namespace": tenant.namespace}, "eventTime": "2026-01-01T00:00:00.000000Z",
                "reportingController": "bloomery-operator", "reportingInstance": "op-0", "action": "Reconcile",
                "reason": "Ready", "type": "Normal",
                "regarding": {"apiVersion": api_version, "kind": kind, "name": "n", "namespace": tenant.namespace},
            })
        };
        let events = "/apis/events.k8s.io/v1/{}/events";
        operator.accepts(Method::POST, events, &event("bloomery.dev/v1alpha1", "Skill")).await;
        operator.refuses(Method::POST, events, &event("v1", "Pod"), "only Events about objects of Bloomery").await;

        // The policy is for the operator alone.
        let admin = Operator { tenant: tenant.seen_by("root@acme.io", &["system:masters"]).await };
        admin.accepts(delete(), &at(CONFIG_MAPS, "theirs"), &json!({})).await;
        admin.accepts(patch(), &at(SKILLS, "waiting"), &changed).await;
    })
    .await;
}

#[tokio::test]
async fn the_operator_creates_only_jobs_of_a_parent_and_tests_of_a_skill() {
    story(async |tenant| {
        let operator = Operator::of(tenant).await;
        operator.accepts(Method::POST, JOBS, &child(&owner("Job", "u-1"))).await;
        for other in [owner("Skill", "u-1"), owner("Job", "u-2")] {
            operator.refuses(Method::POST, JOBS, &child(&other), "creates only Jobs that a Job owns").await;
        }

        let test = |owner: Value, spec: Value| {
            let labels = json!({"app.kubernetes.io/managed-by": "bloomery"});
            json!({
                "apiVersion": "bloomery.dev/v1alpha1", "kind": "Job",
                "metadata": {"name": "test", "labels": labels, "ownerReferences": [owner]}, "spec": spec,
            })
        };
        let spec = json!({"skill": "waiting", "goal": "g", "mode": "Validate"});
        operator.accepts(Method::POST, JOBS, &test(owner("Skill", "u-1"), spec.clone())).await;
        let resources = json!({"docs": {"value": "https://docs.example"}});
        for (kind, other) in [
            ("Job", spec.clone()),
            ("Skill", with(spec.clone(), "/mode", json!("Run"))),
            ("Skill", with(spec.clone(), "/skill", json!("another"))),
            ("Skill", with(spec, "/resources", resources)),
        ] {
            let job = test(owner(kind, "u-1"), other);
            operator.refuses(Method::POST, JOBS, &job, "or that test the Skill that owns them").await;
        }
    })
    .await;
}
