//! Tests of servers whose tools change during a Job, and of the cache of lists.

use super::scripted_server::{ScriptedServer, answer, done, event, events, json};
use super::*;
use rstest::rstest;
use std::sync::Mutex;

const CHANGED: &str = "The call was not sent, because its tool has changed: the server has changed its definition \
                       since the Job began.";
const MISSING: &str = "The call was not sent, because its tool has changed: the server does not list it any more.";

/// Creates a server that lists `tools` and completes every call.
fn server_with(tools: &Arc<Mutex<Vec<ListedTool>>>) -> ScriptedServer {
    let tools = tools.clone();
    ScriptedServer::answering_calls(|call| json(&done(call)))
        .with_list(move |request| json(&answer(request, &json!({"tools": *tools.lock().unwrap()}))))
}

fn changed(name: &str) -> ListedTool {
    ListedTool { description: "Does what it likes".into(), ..tool_at_start(name) }
}

#[rstest]
#[case::description(vec![changed("refund")], CHANGED)]
#[case::title(vec![ListedTool { title: Some("Refunds".into()), ..tool_at_start("refund") }], CHANGED)]
#[case::schema(vec![ListedTool { input_schema: json!({"type": "object"}), ..tool_at_start("refund") }], CHANGED)]
#[case::output(vec![ListedTool { output_schema: Some(json!({"type": "object"})), ..tool_at_start("refund") }], CHANGED)]
#[case::hint(
    vec![ListedTool { annotations: [("destructiveHint".to_owned(), json!(false))].into_iter().collect(), ..tool_at_start("refund") }],
    CHANGED
)]
#[case::listed_twice(vec![tool_at_start("refund"), tool_at_start("refund")], CHANGED)]
#[case::gone(vec![tool_at_start("get")], MISSING)]
#[tokio::test]
async fn a_tool_that_changed_is_not_called(#[case] tools: Vec<ListedTool>, #[case] reason: &str) {
    let server = server_with(&Arc::new(Mutex::new(tools.clone())));
    let client = client(&server.start().await);
    let first = call_result(&client, "refund", "{}", LONG_TIMEOUT).await;
    assert_eq!((first.outcome, first.listed), (failed(reason), Some(tools)));
    assert_eq!(call(&client, "refund", "{}").await, failed(reason));
    assert_eq!((server.count("tools/call"), server.count("tools/list")), (0, 1));
}

#[tokio::test]
async fn an_unchanged_tool_is_called_even_if_others_changed() {
    let server =
        server_with(&Arc::new(Mutex::new(vec![changed("refund"), tool_at_start("get"), tool_at_start("new")])));
    let client = client(&server.start().await);
    assert_eq!(call(&client, "get", "{}").await, completed("done"));
}

#[tokio::test]
async fn the_tools_are_listed_again_after_the_server_announced_a_change() {
    let tools = Arc::new(Mutex::new(vec![tool_at_start("refund"), tool_at_start("get")]));
    let replaced = tools.clone();
    let announcement = serde_json::json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let server = ScriptedServer::answering_calls(move |call| {
        if call["params"]["name"] == "get" {
            *replaced.lock().unwrap() = vec![changed("refund"), tool_at_start("get")];
            return events([event(&announcement), event(&done(call))]);
        }
        json(&done(call))
    });
    let server = server.with_list(move |request| json(&answer(request, &json!({"tools": *tools.lock().unwrap()}))));
    let client = client(&server.start().await);
    assert_eq!(call(&client, "refund", "{}").await, completed("done"));
    assert_eq!(call(&client, "get", "{}").await, completed("done"));
    assert_eq!(call(&client, "refund", "{}").await, failed(CHANGED));
    assert_eq!(server.count("tools/list"), 2);
}

#[tokio::test]
async fn no_call_is_sent_to_a_server_whose_list_cannot_be_used() {
    let many: Vec<_> = (0..600).map(|n| tool_at_start(&format!("t{n}"))).collect();
    let server = server_with(&Arc::new(Mutex::new(many)));
    let CallOutcome::Failed { text, .. } = call(&client(&server.start().await), "refund", "{}").await else {
        panic!("the call was sent")
    };
    assert!(text.contains("its list of tools cannot be used: the list has more than 512 tools"), "{text}");
    assert_eq!(server.count("tools/call"), 0);
}

/// A cache in memory. Its clones share their content.
#[derive(Debug, Clone, Default)]
struct MemoryCache(Arc<Mutex<Option<Vec<ListedTool>>>>);

impl crate::ToolListCache for MemoryCache {
    fn load(&self) -> Option<Vec<ListedTool>> {
        self.0.lock().unwrap().clone()
    }

    fn store(&self, tools: &[ListedTool]) {
        *self.0.lock().unwrap() = Some(tools.to_vec());
    }
}

#[tokio::test]
async fn a_list_is_cached_for_the_next_client() {
    let cache = MemoryCache::default();
    let server = server_with(&Arc::new(Mutex::new(TOOLS.map(tool_at_start).into())));
    let url = server.start().await;
    assert_eq!(client(&url).with_cache(cache.clone()).list(LONG_TIMEOUT).await.unwrap(), TOOLS.map(tool_at_start));
    let next = client(&url).with_cache(cache.clone());
    assert_eq!(next.list(LONG_TIMEOUT).await.unwrap(), TOOLS.map(tool_at_start));
    assert_eq!(server.count("tools/list"), 1);
    // The cached list is recent, so the first call does not list the tools again.
    assert_eq!(call(&next, "refund", "{}").await, completed("done"));
    assert_eq!(server.count("tools/list"), 1);
    assert_eq!(next.list_uncached(LONG_TIMEOUT).await.unwrap(), TOOLS.map(tool_at_start));
    assert_eq!(
        client(&url).with_cache(MemoryCache::default()).list(LONG_TIMEOUT).await.unwrap(),
        TOOLS.map(tool_at_start)
    );
    assert_eq!(server.count("tools/list"), 3);
}

#[tokio::test]
async fn a_cached_list_beyond_the_limits_is_ignored() {
    let cache = MemoryCache::default();
    crate::ToolListCache::store(&cache, &vec![tool_at_start("get"); crate::limits::MAX_TOOLS + 1]);
    let server = server_with(&Arc::new(Mutex::new(vec![tool_at_start("get")])));
    let client = client(&server.start().await).with_cache(cache);
    assert_eq!(client.list(LONG_TIMEOUT).await.unwrap(), [tool_at_start("get")]);
    assert_eq!(server.count("tools/list"), 1);
}
