//! The admission policies: who creates worker pods and changes their labels, who gets their tokens, and who may name a Secret.

use bloomery_crds::names::{self, REPORT_AUDIENCE};
use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::JobStatus;
use bloomery_e2e::harness::admission::ObjectApi;
use bloomery_e2e::harness::{JobHandle, Refusal, Tenant, Turn, call, conversation, story, supervised, typed};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Binding, Pod, ServiceAccount};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

/// The order whose refund the supervisor has to approve.
const ORDER: &str = "A-443";

/// The start of the message that refuses a change of a worker pod.
const REFUSED_CHANGE: &str =
    "nobody may change the labels bloomery.dev/job and bloomery.dev/attempt or the images of a worker pod";

/// Returns the message of the refusal. Fails if the API server accepted the request.
fn refused<T>(answer: kube::Result<T>) -> String {
    match answer {
        Err(kube::Error::Api(status)) if status.is_forbidden() => status.message,
        Err(error) => panic!("it should be forbidden: {error}"),
        Ok(_) => panic!("it should be forbidden"),
    }
}

/// Returns a pod that looks like the one of the next attempt and never runs. It has the label of its Job only if `labelled`.
pub(crate) fn forged_pod(job: &JobHandle<'_>, of_first_attempt: &Pod, labelled: bool) -> Pod {
    let mut forged: Value = json!(of_first_attempt);
    let metadata = &of_first_attempt.metadata;
    let mut labels = metadata.labels.clone().unwrap_or_default();
    labels.insert(names::LABEL_ATTEMPT.to_owned(), "2".to_owned());
    if !labelled {
        labels.remove(names::LABEL_JOB);
    }
    forged["metadata"] = json!({
        "name": names::worker_pod(&job.name, 2, &job.uid),
        "labels": labels, "annotations": metadata.annotations, "ownerReferences": metadata.owner_references,
    });
    forged["spec"]["nodeName"] = Value::Null;
    forged["spec"]["schedulingGates"] = json!([{"name": "acme.io/never"}]);
    forged["status"] = Value::Null;
    typed(forged)
}

#[tokio::test]
async fn a_pod_that_the_operator_did_not_create_is_never_adopted() {
    story(async |tenant| {
        let turns = [
            call("check_eligibility", json!({"order_id": ORDER})),
            call("process_refund", json!({"order_id": ORDER, "amount": 901.9})),
            Turn::answer(ORDER).after_result("it arrived whole"),
        ];
        let shop = tenant.shop(&[conversation(ORDER, turns)]).await;
        tenant.skill_of("cs-tier-1", supervised()).with_orders().await;
        let job = tenant.job("large-refund").goal(&format!("Refund order {ORDER}")).await;
        job.until_phase(Phase::AwaitingApproval).await;
        let first = job.pod(1).await;
        job.pods_have_ended().await;

        // An administrator has every right on pods.
        let labelled = tenant.api::<Pod>().create(&PostParams::default(), &forged_pod(&job, &first, true)).await;
        assert!(refused(labelled).contains("only the operator may create a pod with the label bloomery.dev/job"));
        let forged = tenant.create(forged_pod(&job, &first, false)).await;
        let label = json!({"metadata": {"labels": {names::LABEL_JOB: job.name}}});
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(&label));
        let api = tenant.api::<Pod>();
        assert!(refused(api.patch(&forged.name_any(), &parameters, &patch).await).contains(REFUSED_CHANGE));
        assert!(refused(api.patch_status(&forged.name_any(), &parameters, &patch).await).contains(REFUSED_CHANGE));

        let image = json!({"spec": {"containers": [{"name": "worker", "image": "localhost/other:1"}]}});
        let changed = api.patch(&first.name_any(), &parameters, &Patch::Strategic(&image)).await;
        assert!(refused(changed).contains(REFUSED_CHANGE));

        let approval = tenant.approval_for(&job, "supervisor").await;
        tenant.grant_approval("jane@acme.io", &["supervisor"]).await;
        let jane = tenant.person("jane@acme.io").await;
        jane.decide(&approval, "Deny", "it arrived whole").await.expect("the decision is accepted");
        let is_in_third = |status: &JobStatus| status.attempt.as_ref().is_some_and(|attempt| attempt.number == 3);
        job.until("a third attempt", is_in_third).await;
        let status = job.succeeded().await;
        assert_eq!(status.gates.map(|gates| gates.pre_tool.denied), Some(1));
        assert_eq!(shop.ledger.summary().await.effects, 0);
        job.until_event("NameTaken", &[]).await;
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn only_a_kubelet_gets_the_token_of_a_worker() {
    story(async |tenant| {
        tenant.create::<ServiceAccount>(typed(json!({"metadata": {"name": "cs-tier-1-worker"}}))).await;
        let request = async |user: &str, groups: &[&str], audience: &str| {
            let request = typed::<TokenRequest>(json!({"spec": {"audiences": [audience], "expirationSeconds": 600}}));
            let accounts = tenant.seen_by(user, groups).await.api::<ServiceAccount>();
            accounts
                .create_subresource::<TokenRequest, TokenRequest>(
                    "token",
                    "cs-tier-1-worker",
                    &PostParams::default(),
                    &request,
                )
                .await
        };
        let admin = ("root@acme.io", &["system:masters"][..]);
        let message = refused(request(admin.0, admin.1, REPORT_AUDIENCE).await);
        assert!(message.contains("only a kubelet may request a token of the audience bloomery"), "{message}");
        request(admin.0, admin.1, "https://acme.io").await.expect("a token of another audience");
        // A kubelet also needs the right, which it has for the pods of its node.
        let kubelet = &["system:masters", "system:nodes"];
        request("a-kubelet", kubelet, REPORT_AUDIENCE).await.expect("a token for reports");
    })
    .await;
}

/// A pod that never runs, with the labels by which the network policies of an MCP server select it.
fn server_pod() -> Pod {
    let labels = json!({
        names::LABEL_MANAGED_BY: names::MANAGER, names::LABEL_COMPONENT: "mcp", names::LABEL_SKILL: "cs-tier-1",
    });
    let container = json!({
        "name": "c", "image": "localhost/none:1",
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
    });
    typed(json!({
        "metadata": {"name": "server", "labels": labels},
        "spec": {
            "schedulingGates": [{"name": "acme.io/never"}], "containers": [container],
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        },
    }))
}

#[tokio::test]
async fn only_the_operator_changes_the_labels_by_which_policies_select_a_pod() {
    story(async |tenant| {
        tenant.create(server_pod()).await;
        tenant.bind("lea@acme.io", "edit", "skills").await;
        let editor = tenant.seen_by("lea@acme.io", &[]).await.api::<Pod>();
        let admin = tenant.api::<Pod>();
        let why = "only the operator may set or change the labels of a pod by which network policies select it";
        let parameters = PatchParams::default();
        for (label, value) in [
            (names::LABEL_MANAGED_BY, Value::Null),
            (names::LABEL_SKILL, json!("other")),
            (names::LABEL_SKILL, Value::Null),
            (names::LABEL_COMPONENT, json!("worker")),
        ] {
            let change = json!({"metadata": {"labels": {label: value}}});
            let patch = Patch::Merge(&change);
            assert!(refused(editor.patch("server", &parameters, &patch).await).contains(why), "{change}");
            assert!(refused(admin.patch_status("server", &parameters, &patch).await).contains(why), "{change}");
        }
        let mut plain = server_pod();
        (plain.metadata.name, plain.metadata.labels) = (Some("plain".to_owned()), None);
        tenant.create(plain).await;
        let taken = json!({"metadata": {"labels": {names::LABEL_MANAGED_BY: "bloomery"}}});
        assert!(refused(editor.patch("plain", &parameters, &Patch::Merge(&taken)).await).contains(why));
        // The API server would copy the labels of a Binding to the pod.
        let target = json!({"apiVersion": "v1", "kind": "Node", "name": "none"});
        let labels = json!({names::LABEL_SKILL: "other"});
        let binding: Binding = typed(json!({"metadata": {"name": "server", "labels": labels}, "target": target}));
        let bound =
            admin.create_subresource::<Binding, Value>("binding", "server", &PostParams::default(), &binding).await;
        assert!(refused(bound).contains(why));

        let other = json!({"metadata": {"labels": {"team": "a"}}});
        editor.patch("server", &parameters, &Patch::Merge(&other)).await.expect("other labels may change");
    })
    .await;
}

fn model(url: &str, reference: &Value) -> Value {
    let mut spec = json!({"provider": "openai", "model": "m", "baseUrl": url});
    spec.as_object_mut().expect("an object").extend(reference.as_object().expect("an object").clone());
    spec
}

fn key_of(secret: &str) -> Value {
    json!({"secretKeyRef": {"name": secret, "key": "key"}})
}

fn skill(statement: &str, image: &str, secrets: &[String]) -> Value {
    let variable =
        |(index, secret): (usize, &String)| json!({"name": format!("V{index}"), "valueFrom": key_of(secret)});
    let env: Vec<Value> = secrets.iter().enumerate().map(variable).collect();
    json!({"problem": {"statement": statement}, "mcpServer": {"container": {"image": image, "env": env}}})
}

fn job(bindings: &Value) -> Value {
    json!({"skill": "cs-tier-1", "goal": "Refund order A-17", "resources": bindings})
}

async fn assert_refuses(objects: &ObjectApi, spec: &Value, secret: &str) {
    let message = objects.refuses("named", spec).await;
    let namespace = message.rsplit(' ').next().unwrap_or_default();
    let expected = format!(
        "mallory@acme.io may not name the Secret {secret}: it needs the verb get on secrets/{secret} in the namespace {namespace}"
    );
    assert!(message.contains(&expected), "`{expected}` should be in: {message}");
}

/// Returns a user who may write Skills, Jobs and Models, and read these Secrets.
async fn author(tenant: &Tenant, secrets: &[String]) -> Tenant {
    let name = "mallory@acme.io";
    let author = json!({
        "apiGroups": ["bloomery.dev"], "resources": ["skills", "skilljobs", "models"],
        "verbs": ["create", "get", "update", "patch"],
    });
    let reader = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": secrets, "verbs": ["get"]});
    tenant.grant(name, &[author, reader]).await;
    tenant.seen_by(name, &[]).await
}

#[tokio::test]
async fn only_who_may_read_a_secret_may_name_it() {
    story(async |tenant| {
        let readable: Vec<String> = (0..25).map(|index| format!("own-{index}")).collect();
        let (own, bank) = (&readable[..24], "bank".to_owned());
        let mallory = author(tenant, &readable).await;
        let url = "https://models.acme.io/v1";

        let models = mallory.models();
        for field in ["apiKey", "ca"] {
            models.accepts("named", &model(url, &json!({field: key_of(&own[0])}))).await;
            assert_refuses(&models, &model(url, &json!({field: key_of(&bank)})), &bank).await;
        }
        let jobs = mallory.jobs();
        jobs.accepts("named", &job(&json!({"one": key_of(&own[0]), "two": key_of(&own[1])}))).await;
        assert_refuses(&jobs, &job(&json!({"one": key_of(&own[0]), "two": key_of(&bank)})), &bank).await;
        let skills = mallory.skills();
        skills.accepts("named", &skill("p", "i", own)).await;
        let last_of_many = [&own[1..], std::slice::from_ref(&bank)].concat();
        assert_refuses(&skills, &skill("p", "i", &last_of_many), &bank).await;
        skills.accepts("named", &skill("p", "i", &[own, own].concat())).await;
        let too_many = skills.refuses("named", &skill("p", "i", &readable)).await;
        assert!(too_many.contains("at most 24 Secrets, and this one names 25"), "{too_many}");

        // Objects of an administrator: their Secrets may be kept, but not be sent elsewhere.
        tenant.models().create("default", &model(url, &json!({"apiKey": key_of(&bank)}))).await;
        models.change("default", &json!({"spec": {"contextWindow": 9000}})).await.expect("it sends nothing elsewhere");
        models.change("default", &json!({"metadata": {"labels": {"team": "a"}}})).await.expect("only metadata");
        let elsewhere = [
            json!({"baseUrl": "https://mallory.io/v1"}),
            json!({"proxy": "http://mallory.io:3128"}),
            json!({"ca": {"configMapKeyRef": {"name": "mallory", "key": "ca"}}}),
        ];
        for change in elsewhere {
            let Refusal(message) = models.change("default", &json!({"spec": change})).await.expect_err("a redirection");
            assert!(message.contains("may not name the Secret bank"), "{message}");
        }
        // A trusted certificate may not become a key that is sent.
        tenant.models().create("trusting", &model(url, &json!({"ca": key_of(&bank)}))).await;
        let sent = json!({"spec": {"apiKey": key_of(&bank)}});
        let Refusal(message) = models.change("trusting", &sent).await.expect_err("the value would be sent");
        assert!(message.contains("may not name the Secret bank"), "{message}");
        let own_key = json!({"spec": {"apiKey": key_of(&own[0])}});
        models.change("trusting", &own_key).await.expect("the certificate stays");
        tenant.skills().create("named", &skill("p", "i", &[bank])).await;
        skills.change("named", &json!({"spec": {"problem": {"statement": "q"}}})).await.expect("the same server");
        let other_image = json!({"spec": {"mcpServer": {"container": {"image": "mallory"}}}});
        let Refusal(message) = skills.change("named", &other_image).await.expect_err("another server");
        assert!(message.contains("may not name the Secret bank"), "{message}");
    })
    .await;
}
