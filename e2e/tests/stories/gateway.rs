//! The gateway over a real cluster, with the tokens of its clients.

use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::Job;
use bloomery_e2e::harness::{Tenant, command, eventually, refund_of, story, typed, until};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::PostParams;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::Child;

/// A gateway, which is stopped when this value is dropped.
struct Gateway {
    process: Child,
    url: String,
    namespace: String,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns an address of this machine that no program listens at.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").to_string()
}

impl Gateway {
    /// Starts a gateway, and waits until it serves.
    async fn start(tenant: &Tenant) -> Self {
        let (api, health) = (free_address(), free_address());
        let arguments = [format!("--api-addr={api}"), format!("--http-addr={health}")];
        let mut command = command::gateway(&arguments.each_ref().map(String::as_str));
        let process = command.spawn().expect("hack/images builds bloomery-gateway");
        let gateway = Self { process, url: format!("http://{api}"), namespace: tenant.namespace.clone() };
        eventually("the gateway to serve", async || {
            let response = Client::new().get(format!("http://{health}/readyz")).send().await;
            response.and_then(reqwest::Response::error_for_status).map(drop)
        })
        .await;
        gateway
    }

    /// Returns a request of a client, in the namespace of the story.
    fn request(&self, method: &str, path: &str, token: &str) -> RequestBuilder {
        let method = method.parse().expect("a method");
        let request = Client::new().request(method, format!("{}{path}", self.url));
        request.bearer_auth(token).header("Bloomery-Namespace", &self.namespace)
    }
}

/// Creates a `ServiceAccount`, with a role of the cluster if there is one, and returns its token.
async fn token(tenant: &Tenant, name: &str, role: Option<&str>) -> String {
    tenant.create::<ServiceAccount>(typed(json!({"metadata": {"name": name}}))).await;
    if let Some(role) = role {
        let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": tenant.namespace});
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role});
        let binding = json!({"metadata": {"name": name}, "subjects": [subject], "roleRef": role});
        tenant.create::<RoleBinding>(typed(binding)).await;
    }
    let accounts = tenant.api::<ServiceAccount>();
    let request = typed::<TokenRequest>(json!({"spec": {"audiences": [], "expirationSeconds": 3600}}));
    let made: TokenRequest = accounts
        .create_subresource("token", name, &PostParams::default(), &request)
        .await
        .expect("the administrator may request tokens");
    made.status.expect("a token").token
}

#[tokio::test]
async fn a_client_starts_a_job_and_follows_it_with_its_own_rights() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await;
        let (client, stranger) = (token(tenant, "client", Some("edit")).await, token(tenant, "stranger", None).await);
        let gateway = Gateway::start(tenant).await;
        let body = json!({"goal": "Refund order A-17, it arrived broken", "skillSlug": "cs-tier-1"});
        let start = async |token: &str| {
            let request = gateway.request("POST", "/api/chat", token).header("Idempotency-Key", "one").json(&body);
            request.send().await.expect("the gateway responds")
        };
        // The API server takes some time to see the role.
        let job = eventually("the client to start a Job", async || {
            let response = start(&client).await;
            let status = response.status();
            let text = response.text().await.expect("the gateway responds");
            if status == StatusCode::ACCEPTED { Ok(text) } else { Err(text) }
        })
        .await;
        let job = serde_json::from_str::<Value>(&job).expect("JSON")["job"].as_str().expect("a name").to_owned();
        assert_eq!(start(&client).await.status(), StatusCode::ACCEPTED, "the same Job");

        let refused = start(&stranger).await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
        let text = refused.text().await.expect("the gateway responds");
        assert!(text.contains("the verb create on skilljobs.bloomery.dev"), "{text}");
        let unknown = gateway.request("GET", "/api/jobs", "no-token").send().await.expect("the gateway responds");
        assert_eq!(unknown.status(), StatusCode::UNAUTHORIZED);

        let has_succeeded = |job: &Job| job.status.as_ref().and_then(|status| status.phase) == Some(Phase::Succeeded);
        until(&tenant.api::<Job>(), &job, "a success", has_succeeded).await;
        shop.assert_refunded_once("A-17").await;
        let events = gateway.request("GET", &format!("/api/jobs/{job}/events"), &client).send().await;
        let events = events.expect("the gateway responds").text().await.expect("the events end with the Job");
        assert!(events.contains("id: 1\n") && events.contains("event: conversation.finished\n"), "{events}");
        let refused = gateway.request("GET", &format!("/api/jobs/{job}/events"), &stranger).send().await;
        assert_eq!(refused.expect("the gateway responds").status(), StatusCode::FORBIDDEN);
    })
    .await;
}
