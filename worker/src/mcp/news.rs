//! What a server says beside its answers: how far a call is, its log, that it gives a call up, that its tools changed.
//!
//! It is read where the bytes come in, because there it is known on the answer to which call they come, and in which
//! order.

use bloomery_crds::text::bounded;
use bloomery_engine::event::ToolProgress;
use rmcp::model::{ProgressToken, RequestId};
use serde::Deserialize;
use serde_json::Value;

/// The largest message that is looked at, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// The longest text of a notification that is kept, in bytes.
const MAX_MESSAGE: usize = 512;

/// The severities of MCP. Any other is told as the one that servers send by default.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// One message that is no answer.
#[derive(Debug, PartialEq)]
pub(super) enum News {
    /// How far the call with this token is.
    Progress(ProgressToken, ToolProgress),
    /// A line of the server's log.
    Logged(ToolProgress),
    /// The server gives a request up: one of ours, or one of its own.
    Cancelled(RequestId, Option<String>),
    /// The tools are not those that were listed any more.
    ToolsChanged,
    /// The server asks something of us.
    Asked(RequestId),
}

#[derive(Deserialize)]
struct Message {
    method: String,
    id: Option<RequestId>,
    #[serde(default)]
    params: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HowFar {
    progress_token: ProgressToken,
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

#[derive(Deserialize)]
struct Logged {
    level: Option<String>,
    logger: Option<String>,
    data: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled {
    request_id: RequestId,
    reason: Option<String>,
}

/// Reads a message of a stream; none where it is an answer, or nothing that we know.
pub(super) fn read(data: &str) -> Option<News> {
    // Answers are large, and not read twice.
    if data.len() > MAX_BYTES || !data.contains("\"method\"") {
        return None;
    }
    let Message { method, id, params } = serde_json::from_str(data).ok()?;
    if let Some(id) = id {
        return Some(News::Asked(id));
    }
    match method.as_str() {
        "notifications/progress" => {
            let HowFar { progress_token, progress, total, message } = serde_json::from_value(params).ok()?;
            let told =
                ToolProgress { progress: Some(progress), total, level: None, message: message.as_deref().map(shown) };
            Some(News::Progress(progress_token, told))
        }
        "notifications/message" => {
            let Logged { level, logger, data } = serde_json::from_value(params).ok()?;
            let text = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
            let message = logger.map_or_else(|| shown(&text), |logger| shown(&format!("{logger}: {text}")));
            let level = level.filter(|level| LEVELS.contains(&level.as_str())).unwrap_or_else(|| "info".to_owned());
            Some(News::Logged(ToolProgress { level: Some(level), message: Some(message), ..ToolProgress::default() }))
        }
        "notifications/cancelled" => {
            let Cancelled { request_id, reason } = serde_json::from_value(params).ok()?;
            Some(News::Cancelled(request_id, reason.as_deref().map(shown)))
        }
        "notifications/tools/list_changed" => Some(News::ToolsChanged),
        _ => None,
    }
}

fn shown(text: &str) -> String {
    bounded(text.trim(), MAX_MESSAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rmcp::model::NumberOrString;
    use rstest::rstest;
    use serde_json::json;

    fn notification(method: &str, params: &Value) -> String {
        json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
    }

    fn progress(progress: f64, total: Option<f64>, message: Option<&str>) -> News {
        let told = ToolProgress { progress: Some(progress), total, level: None, message: message.map(str::to_owned) };
        News::Progress(ProgressToken(NumberOrString::Number(7)), told)
    }

    fn logged(level: &str, message: &str) -> News {
        News::Logged(ToolProgress {
            level: Some(level.into()),
            message: Some(message.into()),
            ..ToolProgress::default()
        })
    }

    #[rstest]
    #[case("notifications/progress", json!({"progressToken": 7, "progress": 1, "total": 3.5, "message": " half\n"}),
        Some(progress(1.0, Some(3.5), Some("half"))))]
    #[case("notifications/progress", json!({"progressToken": 7, "progress": 0.1}), Some(progress(0.1, None, None)))]
    #[case("notifications/progress", json!({"progress": 0.1}), None)]
    #[case("notifications/progress", json!({"progressToken": 7, "progress": "much"}), None)]
    #[case("notifications/message", json!({"level": "error", "data": "no stock"}), Some(logged("error", "no stock")))]
    #[case("notifications/message", json!({"level": "shout", "logger": "db", "data": {"a": 1}}),
        Some(logged("info", "db: {\"a\":1}")))]
    #[case("notifications/cancelled", json!({"requestId": 3, "reason": "shutdown"}),
        Some(News::Cancelled(NumberOrString::Number(3), Some("shutdown".into()))))]
    #[case("notifications/cancelled", json!({}), None)]
    #[case("notifications/tools/list_changed", json!({}), Some(News::ToolsChanged))]
    #[case("notifications/resources/updated", json!({"uri": "x"}), None)]
    fn what_is_no_answer_is_news(#[case] method: &str, #[case] params: Value, #[case] expected: Option<News>) {
        assert_eq!(read(&notification(method, &params)), expected);
    }

    #[test]
    fn a_request_of_the_server_is_told_from_a_notification() {
        let request = json!({"jsonrpc": "2.0", "id": 4, "method": "sampling/createMessage", "params": {}});
        assert_eq!(read(&request.to_string()), Some(News::Asked(NumberOrString::Number(4))));
        assert_eq!(read(&json!({"jsonrpc": "2.0", "id": 4, "result": {"method": 1}}).to_string()), None);
    }

    #[test]
    fn a_long_message_is_cut_and_a_huge_one_is_not_read() {
        let message = |bytes| notification("notifications/message", &json!({"data": "x".repeat(bytes)}));
        let Some(News::Logged(told)) = read(&message(5000)) else { panic!("not read") };
        assert_eq!(told.message.unwrap().len(), MAX_MESSAGE);
        assert_eq!(read(&message(MAX_BYTES)), None);
    }

    proptest! {
        #[test]
        fn nothing_that_a_server_sends_stops_the_reader(data in "(\\{|\\}|\"method\"|\"id\"|\"params\"|:|,|\"notifications/progress\"|[0-9.e+-]|null){0,30}") {
            let _ = read(&data);
        }
    }
}
