//! Servers whose tools change under a Job, and the cache of what they list.

use super::rude::{Rude, answer, done, event, events, json};
use super::*;
use rstest::rstest;
use std::sync::Mutex;

const CHANGED: &str = "The call was not sent, because the tool is not what it was: the server has changed its definition \
                       since the Job began.";
const MISSING: &str =
    "The call was not sent, because the tool is not what it was: the server does not list it any more.";

/// A server that lists what it is told to, and does every call.
fn listing(tools: &Arc<Mutex<Vec<ListedTool>>>) -> Rude {
    let tools = tools.clone();
    Rude::calls(|call| json(&done(call)))
        .listing(move |request| json(&answer(request, &json!({"tools": *tools.lock().unwrap()}))))
}

fn changed(name: &str) -> ListedTool {
    ListedTool { description: "Does what it likes".into(), ..fixed(name) }
}

#[rstest]
#[case::description(vec![changed("refund")], CHANGED)]
#[case::title(vec![ListedTool { title: Some("Refunds".into()), ..fixed("refund") }], CHANGED)]
#[case::schema(vec![ListedTool { input_schema: json!({"type": "object"}), ..fixed("refund") }], CHANGED)]
#[case::output(vec![ListedTool { output_schema: Some(json!({"type": "object"})), ..fixed("refund") }], CHANGED)]
#[case::hint(
    vec![ListedTool { annotations: [("destructiveHint".to_owned(), json!(false))].into_iter().collect(), ..fixed("refund") }],
    CHANGED
)]
#[case::listed_twice(vec![fixed("refund"), fixed("refund")], CHANGED)]
#[case::gone(vec![fixed("get")], MISSING)]
#[tokio::test]
async fn a_tool_that_is_not_what_it_was_is_not_called(#[case] tools: Vec<ListedTool>, #[case] why: &str) {
    let server = listing(&Arc::new(Mutex::new(tools.clone())));
    let client = client(&server.start().await);
    let first = called(&client, "refund", "{}", PLENTY).await;
    assert_eq!((first.outcome, first.listed), (failed(why), Some(tools)));
    assert_eq!(call(&client, "refund", "{}").await, failed(why));
    assert_eq!((server.times("tools/call"), server.times("tools/list")), (0, 1));
}

#[tokio::test]
async fn a_tool_that_stays_as_it_was_is_called_whatever_the_others_do() {
    let server = listing(&Arc::new(Mutex::new(vec![changed("refund"), fixed("get"), fixed("new")])));
    let client = client(&server.start().await);
    assert_eq!(call(&client, "get", "{}").await, completed("done"));
}

#[tokio::test]
async fn a_server_that_says_its_tools_have_changed_is_asked_for_them_before_the_next_call() {
    let tools = Arc::new(Mutex::new(vec![fixed("refund"), fixed("get")]));
    let changes = tools.clone();
    let tells = serde_json::json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let server = Rude::calls(move |call| {
        if call["params"]["name"] == "get" {
            *changes.lock().unwrap() = vec![changed("refund"), fixed("get")];
            return events([event(&tells), event(&done(call))]);
        }
        json(&done(call))
    });
    let server = server.listing(move |request| json(&answer(request, &json!({"tools": *tools.lock().unwrap()}))));
    let client = client(&server.start().await);
    assert_eq!(call(&client, "refund", "{}").await, completed("done"));
    assert_eq!(call(&client, "get", "{}").await, completed("done"));
    assert_eq!(call(&client, "refund", "{}").await, failed(CHANGED));
    assert_eq!(server.times("tools/list"), 2);
}

#[tokio::test]
async fn a_server_whose_list_cannot_be_had_is_sent_no_call() {
    let many: Vec<_> = (0..600).map(|n| fixed(&format!("t{n}"))).collect();
    let server = listing(&Arc::new(Mutex::new(many)));
    let CallOutcome::Failed { text, .. } = call(&client(&server.start().await), "refund", "{}").await else {
        panic!("it was sent")
    };
    assert!(text.contains("its list of tools cannot be used: more than 512 of them"), "{text}");
    assert_eq!(server.times("tools/call"), 0);
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
    let server = listing(&Arc::new(Mutex::new(TOOLS.map(fixed).into())));
    let url = server.start().await;
    assert_eq!(client(&url).with_cache(cache.clone()).list(PLENTY).await.unwrap(), TOOLS.map(fixed));
    let next = client(&url).with_cache(cache.clone());
    assert_eq!(next.list(PLENTY).await.unwrap(), TOOLS.map(fixed));
    assert_eq!(server.times("tools/list"), 1);
    // After a recent list, the first call needs no other one.
    assert_eq!(call(&next, "refund", "{}").await, completed("done"));
    assert_eq!(server.times("tools/list"), 1);
    assert_eq!(next.list_uncached(PLENTY).await.unwrap(), TOOLS.map(fixed));
    assert_eq!(client(&url).with_cache(MemoryCache::default()).list(PLENTY).await.unwrap(), TOOLS.map(fixed));
    assert_eq!(server.times("tools/list"), 3);
}

#[tokio::test]
async fn a_cached_list_beyond_the_bounds_is_ignored() {
    let cache = MemoryCache::default();
    crate::ToolListCache::store(&cache, &vec![fixed("get"); crate::limits::MAX_TOOLS + 1]);
    let server = listing(&Arc::new(Mutex::new(vec![fixed("get")])));
    let client = client(&server.start().await).with_cache(cache);
    assert_eq!(client.list(PLENTY).await.unwrap(), [fixed("get")]);
    assert_eq!(server.times("tools/list"), 1);
}
