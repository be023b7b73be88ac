//! What a person has who speaks with a cluster: a kubeconfig, and what commands print. And how an API server in memory is
//! served, and refuses.

use axum::Router;
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;

/// What a command printed, and its exit code.
pub struct Ran {
    pub exit: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { exit: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Writes the kubeconfig of the administrator of the namespace `acme`.
pub fn kubeconfig(home: &Path, server: &str) {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "local", "cluster": {"server": server}}],
        "users": [{"name": "admin", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "local", "user": "admin", "namespace": "acme"}}],
    });
    std::fs::write(home.join("config"), config.to_string()).unwrap();
}

/// Serves an API server; returns its address.
pub async fn serve(app: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// What an API server says that refuses.
pub fn refusal(code: StatusCode, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": code.as_u16(), "reason": reason, "message": message})
}
