//! Requests to Services of a tenant, through the API server: it works wherever the cluster is.

use std::time::Duration;

use axum::http::{Method, Request};
use kube::Client;
use serde::de::DeserializeOwned;

/// A request that a server should answer at once.
const ANSWER: Duration = Duration::from_secs(10);

/// One port of one Service.
#[derive(Clone)]
pub(super) struct Service {
    client: Client,
    base: String,
}

impl Service {
    pub(super) fn new(client: Client, namespace: &str, name: &str, port: u16) -> Self {
        Self { client, base: format!("/api/v1/namespaces/{namespace}/services/{name}:{port}/proxy") }
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, String> {
        self.send(Method::GET, path).await
    }

    pub(super) async fn post<T: DeserializeOwned>(&self, path: &str) -> Result<T, String> {
        self.send(Method::POST, path).await
    }

    pub(super) async fn text(&self, path: &str) -> Result<String, String> {
        self.ask(Method::GET, path).await
    }

    async fn send<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T, String> {
        let text = self.ask(method, path).await?;
        serde_json::from_str(&text).map_err(|error| format!("{path}: {error}: {text}"))
    }

    async fn ask(&self, method: Method, path: &str) -> Result<String, String> {
        let uri = format!("{}{path}", self.base);
        let request = Request::builder().method(method).uri(&uri).body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        match tokio::time::timeout(ANSWER, self.client.request_text(request)).await {
            Ok(answer) => answer.map_err(|error| format!("{uri}: {error}")),
            Err(_) => Err(format!("{uri}: no answer in {ANSWER:?}")),
        }
    }
}
