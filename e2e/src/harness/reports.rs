//! Sends reports that do not come from a worker, from the node of the local cluster.

use std::net::{IpAddr, SocketAddr};

use bloomery_crds::report::{PATH, Report};
use bloomery_testkit::json::typed;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Pod, Secret, ServiceAccount};
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::operator::{self, NAMESPACE, RELEASE};
use super::tenant::Tenant;

/// The port of the report endpoint.
const PORT: u16 = 8443;

/// A client of the operator's report endpoint that trusts its CA.
pub struct ReportClient {
    client: reqwest::Client,
    url: String,
}

impl Tenant {
    /// Returns a client of the operator's report endpoint.
    pub async fn report_endpoint(&self) -> ReportClient {
        let secret = Api::<Secret>::namespaced(self.cluster.client.clone(), NAMESPACE).get("bloomery-report-ca").await;
        let data = secret.expect("the CA's Secret exists").data.unwrap_or_default();
        let ca = reqwest::Certificate::from_pem_bundle(&data.get("ca.crt").expect("it has certificates").0);
        let host = format!("{RELEASE}.{NAMESPACE}.svc");
        let address: IpAddr = operator::address(&self.cluster).await.parse().expect("an IP address");
        let client = reqwest::Client::builder()
            .tls_certs_only(ca.expect("certificates in PEM"))
            .resolve(&host, SocketAddr::new(address, PORT))
            .build();
        ReportClient { client: client.expect("an HTTP client"), url: format!("https://{host}:{PORT}{PATH}") }
    }

    /// Returns a token of a pod's ServiceAccount, bound to the pod if `bound`. A kubelet could request it.
    pub async fn token(&self, pod: &Pod, audience: &str, bound: bool) -> String {
        let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone()).expect("a ServiceAccount");
        let reference = json!({"apiVersion": "v1", "kind": "Pod", "name": pod.name_any(), "uid": pod.uid()});
        let spec =
            json!({"audiences": [audience], "expirationSeconds": 600, "boundObjectRef": bound.then_some(reference)});
        let kubelet = self.seen_by("a-kubelet", &["system:nodes", "system:masters"]).await;
        request_token(&kubelet.api(), &account, spec).await
    }
}

/// Requests a token of a `ServiceAccount`, with this spec of a `TokenRequest`.
pub(super) async fn request_token(accounts: &Api<ServiceAccount>, account: &str, spec: Value) -> String {
    let request = typed::<TokenRequest>(json!({ "spec": spec }));
    let made: TokenRequest = accounts
        .create_subresource("token", account, &PostParams::default(), &request)
        .await
        .unwrap_or_else(|error| panic!("no token for {account}: {error}"));
    made.status.expect("a token").token
}

impl ReportClient {
    /// Sends a report. Returns the HTTP status and the body of the response.
    pub async fn send(&self, token: Option<&str>, report: &Report) -> (u16, Value) {
        let mut request = self.client.post(&self.url).json(report);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let answer = request.send().await.unwrap_or_else(|error| panic!("no answer from {}: {error:?}", self.url));
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }
}
