//! Requests to Services through the proxy of the API server, which works with local and remote clusters.

use std::time::Duration;

use axum::http::{Method, Request};
use kube::Client;
use serde::de::DeserializeOwned;

/// The time limit of a request.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The reason for which a request has no usable response.
#[derive(Debug)]
pub(super) struct Error(String);

impl From<Error> for String {
    fn from(Error(message): Error) -> Self {
        message
    }
}

/// A port of a Service.
#[derive(Clone)]
pub(super) struct Service {
    client: Client,
    base: String,
}

impl Service {
    pub(super) fn new(client: Client, namespace: &str, name: &str, port: u16) -> Self {
        Self { client, base: format!("/api/v1/namespaces/{namespace}/services/{name}:{port}/proxy") }
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.send(Method::GET, path).await
    }

    pub(super) async fn post<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.send(Method::POST, path).await
    }

    pub(super) async fn text(&self, path: &str) -> Result<String, Error> {
        self.ask(Method::GET, path).await
    }

    async fn send<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T, Error> {
        let text = self.ask(method, path).await?;
        serde_json::from_str(&text).map_err(|error| Error(format!("{path}: {error}: {text}")))
    }

    async fn ask(&self, method: Method, path: &str) -> Result<String, Error> {
        let uri = format!("{}{path}", self.base);
        let request = Request::builder().method(method).uri(&uri).body(Vec::new());
        let request = request.map_err(|error| Error(error.to_string()))?;
        match tokio::time::timeout(RESPONSE_TIMEOUT, self.client.request_text(request)).await {
            Ok(answer) => answer.map_err(|error| Error(format!("{uri}: {error}"))),
            Err(_) => Err(Error(format!("{uri}: no response in {RESPONSE_TIMEOUT:?}"))),
        }
    }
}
