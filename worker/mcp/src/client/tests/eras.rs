//! Tests of a server that is replaced by a server of another era between two requests of a session.

use super::rmcp_server::{Era, RmcpServer};
use super::scripted_server::{ScriptedServer, done, json};
use super::*;
use rstest::rstest;
use std::sync::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A TCP proxy whose target can be replaced.
#[derive(Clone)]
struct Proxy {
    target: Arc<Mutex<String>>,
    connections: Arc<Mutex<JoinSet<()>>>,
}

impl Proxy {
    async fn start(url: &str) -> (Self, String) {
        let proxy = Self { target: Arc::new(Mutex::new(address(url))), connections: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let accepting = proxy.clone();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let target = accepting.target.lock().unwrap().clone();
                accepting.connections.lock().unwrap().spawn(async move {
                    let mut server = TcpStream::connect(target).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        (proxy, url)
    }

    /// Replaces the target, and closes all connections.
    async fn set_target(&self, url: &str) {
        *self.target.lock().unwrap() = address(url);
        let mut ended = std::mem::take(&mut *self.connections.lock().unwrap());
        ended.shutdown().await;
    }
}

fn address(url: &str) -> String {
    url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned()
}

/// The first call after the change is sent at most once, and its outcome agrees with what the server received. The next call succeeds.
#[rstest]
#[tokio::test]
async fn a_client_recovers_when_the_server_changes_its_era(
    #[values(Era::Newer, Era::Sessions, Era::Stateless)] before: Era,
    #[values(Era::Newer, Era::Sessions, Era::Stateless)] after: Era,
) {
    let ((old, old_url), (new, new_url)) = (RmcpServer::start(before).await, RmcpServer::start(after).await);
    let (proxy, url) = Proxy::start(&old_url).await;
    let client = client(&url);
    assert_eq!(client.list(LONG_TIMEOUT).await.unwrap(), TOOLS.map(tool_at_start));
    assert!(matches!(call(&client, "echo", "{}").await, CallOutcome::Completed { .. }));
    proxy.set_target(&new_url).await;
    let first = call(&client, "echo", "{}").await;
    match &first {
        CallOutcome::Completed { .. } | CallOutcome::Unread { .. } => assert_eq!(new.count("echo"), 1),
        CallOutcome::Failed { .. } => assert_eq!(new.count("echo"), 0, "{first:?}"),
        CallOutcome::Indeterminate { .. } => assert!(new.count("echo") <= 1),
    }
    let seen = new.count("echo");
    let next = call(&client, "echo", "{}").await;
    assert!(matches!(next, CallOutcome::Completed { .. }), "{before:?} to {after:?}: {first:?}, then {next:?}");
    assert_eq!((old.count("echo"), new.count("echo")), (1, seen + 1));
}

/// The first list after the change may fail. The next list succeeds.
#[rstest]
#[case::to_older(Era::Newer, Era::Stateless)]
#[case::to_newer(Era::Stateless, Era::Newer)]
#[case::to_sessions(Era::Newer, Era::Sessions)]
#[tokio::test]
async fn a_list_recovers_when_the_server_changes_its_era(#[case] before: Era, #[case] after: Era) {
    let ((_, old_url), (_, new_url)) = (RmcpServer::start(before).await, RmcpServer::start(after).await);
    let (proxy, url) = Proxy::start(&old_url).await;
    let client = client(&url);
    client.list(LONG_TIMEOUT).await.unwrap();
    proxy.set_target(&new_url).await;
    let first = client.list_uncached(LONG_TIMEOUT).await;
    assert!(matches!(&first, Ok(_) | Err(Error::Unavailable { .. })), "{first:?}");
    assert_eq!(client.list_uncached(LONG_TIMEOUT).await.unwrap(), TOOLS.map(tool_at_start));
}

/// Servers of the older era answer an unknown request in many ways.
#[rstest]
#[case::an_empty_result(json!({}))]
#[case::a_text(json!("what?"))]
#[case::another_result(json!({"tools": []}))]
#[case::older_versions(json!({"supportedVersions": ["2025-06-18"], "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}))]
#[tokio::test]
async fn a_server_that_answers_discovery_oddly_is_of_the_older_era(#[case] result: Value) {
    let server = ScriptedServer::answering_calls(|call| json(&done(call))).with_discovery(result);
    let client = client(&server.start().await);
    assert_eq!(call(&client, "refund", "{}").await, completed("done"));
    client.close().await;
    assert_eq!(call(&client, "refund", "{}").await, completed("done"));
    // The client remembers the era.
    assert_eq!((server.count("server/discover"), server.count("initialize")), (1, 2));
}

#[rstest]
#[case::server_error(500)]
#[case::not_implemented(501)]
#[tokio::test]
async fn a_server_that_fails_at_discovery_is_of_the_older_era(#[case] status: u16) {
    let server = ScriptedServer::answering_calls(|call| json(&done(call))).with_refusal("server/discover", status);
    assert_eq!(call(&client(&server.start().await), "refund", "{}").await, completed("done"));
}
