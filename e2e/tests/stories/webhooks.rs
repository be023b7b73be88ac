//! Admission webhooks that deny the pods of Jobs, change them, or are down. The server runs in the process of the story.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::{Json, Router};
use bloomery_e2e::harness::{Tenant, cluster, eventually, refund_of, story};
use bloomery_testkit::tls::{self, TlsListener};
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::environment::{
    SIDECAR, admitted, ends_beside_its_sidecar, new_pods, only_in, only_workers, register, unregister,
};

const VALIDATING: &str = "ValidatingWebhookConfiguration";
const MUTATING: &str = "MutatingWebhookConfiguration";

/// The message with which a webhook denies a pod.
const DENIAL: &str = "the image is not signed";

#[tokio::test]
async fn a_pod_that_a_webhook_denies_starts_once_the_webhook_allows_it() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("a webhook on this machine") {
            return;
        }
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await.ready().await;
        let denied = json!({"allowed": false, "status": {"message": DENIAL}});
        let webhook = Webhook::create(tenant, VALIDATING, denied).await;
        let job = tenant.job("refund").await;
        job.until_reason("PodNotStarting", &[&webhook.name, &format!("denied the request: {DENIAL}")]).await;
        assert_eq!(job.pods().await.len(), 0);

        webhook.answer(json!({"allowed": true}));
        assert_eq!(job.succeeded().await.attempt.map(|attempt| attempt.number), Some(1));
        shop.assert_refunded_once("A-17").await;
        webhook.delete().await;
    })
    .await;
}

#[tokio::test]
async fn a_webhook_that_is_down_is_named_until_its_configuration_is_deleted() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("a webhook on this machine") {
            return;
        }
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await.ready().await;
        let mut webhook = Webhook::create(tenant, VALIDATING, json!({"allowed": true})).await;
        webhook.stop().await;
        let job = tenant.job("refund").await;
        job.until_reason("PodNotStarting", &["failed calling webhook", &webhook.name]).await;
        assert_eq!(job.pods().await.len(), 0);

        webhook.delete().await;
        assert_eq!(job.succeeded().await.attempt.map(|attempt| attempt.number), Some(1));
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}

#[tokio::test]
async fn a_job_ends_although_a_sidecar_that_a_webhook_injected_runs_on() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("a webhook on this machine") {
            return;
        }
        let sidecar = json!({
            "name": SIDECAR, "image": cluster::image("e2e-orders"), "imagePullPolicy": "IfNotPresent",
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        });
        let patch = json!([{"op": "add", "path": "/spec/containers/-", "value": sidecar}]).to_string();
        let changed = json!({"allowed": true, "patchType": "JSONPatch", "patch": ByteString(patch.into_bytes())});
        let webhook = Webhook::create(tenant, MUTATING, changed).await;
        ends_beside_its_sidecar(tenant).await;
        webhook.delete().await;
    })
    .await;
}

/// A webhook that the API server of the local cluster asks about each new worker pod of a tenant.
struct Webhook<'t> {
    tenant: &'t Tenant,
    kind: &'static str,
    name: String,
    reviews: Arc<Reviews>,
    /// The server runs until this is dropped.
    server: Option<oneshot::Sender<()>>,
}

/// The reviews of the server of a webhook.
struct Reviews {
    /// The response to each, without its UID.
    response: Mutex<Value>,
    number: AtomicU32,
}

impl<'t> Webhook<'t> {
    /// Starts a server, registers it, and waits until the API server asks it.
    async fn create(tenant: &'t Tenant, kind: &'static str, response: Value) -> Self {
        let name = format!("{}.webhooks.example", tenant.namespace);
        let reviews = Arc::new(Reviews { response: Mutex::new(response), number: AtomicU32::new(0) });
        let (acceptor, ca) = tls::localhost();
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = tcp.local_addr().expect("the address of a listener").port();
        let router = Router::new().fallback(review).with_state(reviews.clone());
        let (server, stopped) = oneshot::channel::<()>();
        let serving = axum::serve(TlsListener::new(tcp, acceptor), router).with_graceful_shutdown(async move {
            let _ = stopped.await;
        });
        tokio::spawn(async move { serving.await });

        let client = json!({"url": format!("https://localhost:{port}/"), "caBundle": ByteString(ca.into_bytes())});
        let webhook = json!({
            "name": name, "clientConfig": client, "rules": [new_pods()], "namespaceSelector": only_in(tenant),
            "matchConditions": [only_workers()], "failurePolicy": "Fail", "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        });
        register(tenant, kind, json!({"webhooks": [webhook]})).await;
        eventually("the API server to ask the webhook", async || {
            let sample = admitted(tenant).await;
            if reviews.number.load(Ordering::Relaxed) > 0 { Ok(()) } else { Err(format!("{sample:?}")) }
        })
        .await;
        Self { tenant, kind, name, reviews, server: Some(server) }
    }

    /// Gives another response to the reviews from now on.
    fn answer(&self, response: Value) {
        *self.reviews.response.lock().expect("no review panics") = response;
    }

    /// Stops the server, and waits until the API server cannot ask it.
    async fn stop(&mut self) {
        drop(self.server.take());
        eventually("the webhook to be down", async || match admitted(self.tenant).await {
            Err(refusal) if refusal.contains("failed calling webhook") => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    }

    /// Deletes the configuration.
    async fn delete(self) {
        unregister(self.tenant, self.kind).await;
    }
}

/// Answers the review of a pod.
async fn review(State(reviews): State<Arc<Reviews>>, Json(review): Json<Value>) -> Json<Value> {
    reviews.number.fetch_add(1, Ordering::Relaxed);
    let mut response = reviews.response.lock().expect("no review panics").clone();
    response["uid"] = review["request"]["uid"].clone();
    Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}
