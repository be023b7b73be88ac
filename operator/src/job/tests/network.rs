//! The network policy of a Job, and bindings that it may not connect to.

use super::*;

const POLICY: &str = "/apis/networking.k8s.io/v1/namespaces/acme/networkpolicies/refund-job-01234";
const SERVICE: &str = "/api/v1/namespaces/acme/services/docs";

/// Reconciles the Job once, with an operator that has just started and writes network policies.
async fn reconcile_isolated(api: &FakeApi) {
    let context = api.operator_with(&[r#"--network={"policies": true, "deny": ["10.0.0.0/24"]}"#]).await;
    let job = serde_json::from_value(api.get(JOB)).unwrap();
    Box::pin(reconcile(job, context, Arc::default())).await.unwrap();
}

/// A tenant whose Job binds an API.
fn binding(url: &str) -> FakeApi {
    let api = tenant();
    let declared = json!([{ "name": "docs", "type": "api_endpoint" }]);
    put_skill_with(&api, &json!({ "problem": { "statement": "refunds" }, "resources": declared }), REVISION);
    api.change(JOB, |job| job["spec"]["resources"] = json!({ "docs": { "value": url } }));
    api
}

fn message(api: &FakeApi) -> String {
    let conditions = api.get(JOB)["status"]["conditions"].clone();
    let ready = conditions.as_array().unwrap().iter().find(|condition| condition["type"] == "Ready").unwrap();
    ready["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_job_that_binds_an_api_has_a_policy_before_its_pod() {
    let api = binding("https://docs.example.com/v1");
    reconcile_isolated(&api).await;
    assert_eq!(api.writes(), [format!("apply {POLICY}"), format!("create {POD_1}"), format!("status {JOB}")]);
    let policy = api.get(POLICY);
    assert_eq!(policy["spec"]["egress"].as_array().unwrap().len(), 1);
    assert_eq!(policy["metadata"]["ownerReferences"][0]["uid"], UID);
    reconcile_isolated(&api).await;
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn a_job_without_bindings_has_no_policy() {
    let api = tenant();
    reconcile_isolated(&api).await;
    assert_eq!(api.writes(), [format!("create {POD_1}"), format!("status {JOB}")]);
    assert_eq!(connects_to(&api), "x:443");
}

/// The destinations in the annotation of the pod.
fn connects_to(api: &FakeApi) -> Value {
    api.get(POD_1)["metadata"]["annotations"][names::ANNOTATION_CONNECTS_TO].clone()
}

#[tokio::test]
async fn a_pod_lists_only_what_the_policy_of_its_skill_allows() {
    let api = binding("https://docs.example.com/v1");
    reconcile_isolated(&api).await;
    assert_eq!(connects_to(&api), "x:443");

    // The revision names another Model than the Skill does now.
    let api = tenant();
    let spec = |model: &str| json!({ "problem": { "statement": "refunds" }, "engine": { "model": model } });
    put_skill_with(&api, &spec("other"), REVISION);
    let mut other = api.get(MODEL);
    (other["metadata"]["name"], other["spec"]["baseUrl"]) = (json!("other"), json!("https://other.example:9443/v1"));
    api.put(&MODEL.replace("default", "other"), other);
    api.change(SKILL, |skill| skill["spec"] = spec("default"));
    reconcile_isolated(&api).await;
    assert_eq!(connects_to(&api), Value::Null);
    let rules = api.get(POLICY)["spec"]["egress"].clone();
    assert_eq!((rules.as_array().unwrap().len(), &rules[0]["ports"][0]["port"]), (1, &json!(9443)));
}

#[tokio::test]
async fn a_job_waits_if_it_may_not_connect_to_an_api() {
    for (url, why) in [
        ("http://169.254.169.254/latest", "a link-local, metadata or reserved address"),
        ("http://10.0.0.7", "network.deny refuses"),
        ("http://shop.other.svc", "is not a Service of this namespace"),
    ] {
        let api = binding(url);
        reconcile_isolated(&api).await;
        assert_eq!(reason(&api), "EgressNotAllowed");
        let message = message(&api);
        assert!(message.contains("spec.resources.docs: ") && message.contains(why), "{message}");
        assert!(!api.writes().iter().any(|write| write.contains("networkpolicies")), "{url}");
    }
}

#[tokio::test]
async fn a_job_waits_for_the_service_of_an_api() {
    let api = binding("http://docs.acme.svc/v1");
    reconcile_isolated(&api).await;
    assert_eq!(reason(&api), "ResourceNotFound");
    api.put(
        SERVICE,
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": "acme", "name": "docs", "uid": "docs" },
            "spec": { "selector": { "app": "docs" }, "ports": [{ "port": 80, "targetPort": "http" }] },
        }),
    );
    reconcile_isolated(&api).await;
    assert_eq!(reason(&api), "Starting");
    let rule = &api.get(POLICY)["spec"]["egress"][0];
    assert_eq!(rule["to"], json!([{ "podSelector": { "matchLabels": { "app": "docs" } } }]));
    assert_eq!(rule["ports"], json!([{ "port": "http", "protocol": "TCP" }]));
}
