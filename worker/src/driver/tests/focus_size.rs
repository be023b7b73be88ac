//! The size of the focus cache, which the command line sets.

use super::*;
use crate::fixture::shop::Shop;
use crate::focus;
use bloomery_crds::Digest;
use bloomery_engine::event::ToolProgress;
use serde_json::json;

/// A size that one result of [`Verbose`] fits into, and two do not.
const SIZE: u64 = 40_000;

/// A shop whose answers are long. Each contains the arguments of its call.
struct Verbose<'a>(&'a Shop);

impl Tools for Verbose<'_> {
    async fn list(&self, within: Duration) -> Result<Vec<ListedTool>, ListError> {
        self.0.list(within).await
    }

    async fn call(&self, call: &ToolCall<'_>, _: Duration, _: &dyn Fn(ToolProgress)) -> FinishedCall {
        let text = format!("{:24}\n", call.arguments).repeat(1_000);
        Event::ToolCompleted { call: call.id.clone(), text }.into()
    }
}

#[tokio::test]
async fn a_worker_keeps_the_focus_cache_within_the_size_of_its_command_line() {
    let lookup = |order: &str| Answer::Calls(vec![("lookup", json!({ "order": order }))]);
    let done = Answer::Says("Found.\n```json\n{\"status\": \"found\"}\n```\n");
    let mut stand = Stand::new(vec![lookup("A-17"), lookup("B-18"), done], Refund::Answers).await;
    stand.focus_cache_bytes = SIZE;
    let exit = stand.run_on(1, Disk, Stop::default(), &Verbose(&stand.shop)).await.unwrap();
    assert_eq!((exit, outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Succeeded));

    let stored =
        |event| if let Event::ResultOffloaded { handle, bytes, .. } = event { Some((handle, bytes)) } else { None };
    let results: Vec<(Digest, u64)> = stand.log().into_iter().filter_map(|entry| stored(entry.event)).collect();
    assert_eq!(results.len(), 2, "{results:?}");
    let ((_, older_bytes), (newer, newer_bytes)) = (&results[0], &results[1]);
    assert!(older_bytes + newer_bytes > SIZE && *newer_bytes <= SIZE, "{results:?}");
    let left: Vec<String> = Disk.list(&stand.memory().join(focus::DIR)).unwrap();
    assert_eq!(left, [newer.short(64)], "the older result is evicted");
}
