//! The kubeconfig of a user, and the output of commands.

use serde_json::json;
use std::path::Path;
use std::process::Output;

/// The output of a command, and its exit code.
pub struct CommandOutput {
    pub exit: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for CommandOutput {
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
