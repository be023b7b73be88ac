//! A server that is started anew, of another era, between two requests of a session.

use super::genuine::{Era, Shop};
use super::*;
use rstest::rstest;
use std::sync::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// One address, behind which one server takes the place of another.
#[derive(Clone)]
struct Front {
    behind: Arc<Mutex<String>>,
    connections: Arc<Mutex<JoinSet<()>>>,
}

impl Front {
    async fn start(url: &str) -> (Self, String) {
        let front = Self { behind: Arc::new(Mutex::new(address(url))), connections: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let accepting = front.clone();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let behind = accepting.behind.lock().unwrap().clone();
                accepting.connections.lock().unwrap().spawn(async move {
                    let mut far = TcpStream::connect(behind).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        (front, url)
    }

    /// The server ends, with its connections, and another is there.
    async fn turn_to(&self, url: &str) {
        *self.behind.lock().unwrap() = address(url);
        let mut ended = std::mem::take(&mut *self.connections.lock().unwrap());
        ended.shutdown().await;
    }
}

fn address(url: &str) -> String {
    url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned()
}

/// A call that meets the other era is not made twice, and what is said of it is true; the next one finds its way.
#[rstest]
#[tokio::test]
async fn a_server_of_another_era_is_found_by_the_next_call(
    #[values(Era::Newer, Era::Sessions, Era::Stateless)] before: Era,
    #[values(Era::Newer, Era::Sessions, Era::Stateless)] after: Era,
) {
    let ((old, old_url), (new, new_url)) = (Shop::start(before).await, Shop::start(after).await);
    let (front, url) = Front::start(&old_url).await;
    let client = client(&url);
    assert_eq!(client.list(PLENTY).await.unwrap(), TOOLS.map(fixed));
    assert!(matches!(call(&client, "echo", "{}").await, CallOutcome::Completed { .. }));
    front.turn_to(&new_url).await;
    let met = call(&client, "echo", "{}").await;
    match &met {
        CallOutcome::Completed { .. } => assert_eq!(new.saw("echo"), 1),
        CallOutcome::Failed { .. } => assert_eq!(new.saw("echo"), 0, "{met:?}"),
        CallOutcome::Indeterminate { .. } => assert!(new.saw("echo") <= 1),
    }
    let seen = new.saw("echo");
    let next = call(&client, "echo", "{}").await;
    assert!(matches!(next, CallOutcome::Completed { .. }), "{before:?} to {after:?}: {met:?}, then {next:?}");
    assert_eq!((old.saw("echo"), new.saw("echo")), (1, seen + 1));
}

/// The same where the tools are listed: whoever asks again gets them.
#[rstest]
#[case::to_older(Era::Newer, Era::Stateless)]
#[case::to_newer(Era::Stateless, Era::Newer)]
#[case::to_sessions(Era::Newer, Era::Sessions)]
#[tokio::test]
async fn a_server_of_another_era_lists_its_tools(#[case] before: Era, #[case] after: Era) {
    let ((_, old_url), (_, new_url)) = (Shop::start(before).await, Shop::start(after).await);
    let (front, url) = Front::start(&old_url).await;
    let client = client(&url);
    client.list(PLENTY).await.unwrap();
    front.turn_to(&new_url).await;
    let met = client.list_uncached(PLENTY).await;
    assert!(matches!(&met, Ok(_) | Err(Error::Unavailable { .. })), "{met:?}");
    assert_eq!(client.list_uncached(PLENTY).await.unwrap(), TOOLS.map(fixed));
}
