//! Stdio servers of npm and `PyPI`, which `hack/third-party` installs.

use crate::bridge::{Bridge, Job};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Installs the servers, unless they are installed already. Returns their directory.
fn install() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hack/third-party");
    let output = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "hack/third-party failed");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

#[tokio::test]
async fn the_reference_server_of_node_is_served() {
    let script = install().join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let bridge = Bridge::start(&[], &["node".to_owned(), script.display().to_string(), "stdio".to_owned()]);
    let job = Job::at(bridge.url()).await;
    assert_eq!(job.completed_with("echo", r#"{"message":"hello"}"#).await, "Echo: hello");
    let (_, progress) = job.call_with("trigger-long-running-operation", r#"{"duration":1,"steps":2}"#).await;
    assert!(!progress.is_empty());
    job.client.close().await;
}

#[tokio::test]
async fn the_time_server_of_python_is_served() {
    let python = install().join("venv/bin/python").display().to_string();
    let bridge = Bridge::start(&[], &[python, "-m".to_owned(), "mcp_server_time".to_owned()]);
    let job = Job::at(bridge.url()).await;
    let time = job.completed_with("get_current_time", r#"{"timezone":"America/Lima"}"#).await;
    assert!(time.contains("America/Lima"), "{time}");
}
