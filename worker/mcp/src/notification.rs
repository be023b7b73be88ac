//! Parses the messages of a server that are not answers: progress, log lines, cancelled calls, changed tools, and requests.
//!
//! The transports parse these messages where bytes are received. Only that place knows the order of the messages, and the call that each
//! message belongs to.

use bloomery_crds::text::bounded;
use bloomery_engine::event::ToolProgress;
use rmcp::model::{ProgressToken, RequestId};
use serde::Deserialize;
use serde_json::Value;

/// The largest message that is parsed, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// The longest text of a notification, in bytes. A longer text is cut.
const MAX_TEXT_BYTES: usize = 512;

/// The log levels of MCP. Any other level is replaced by `info`.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// A message that is not an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum ServerMessage {
    /// Progress of the call with this token.
    Progress(ProgressToken, ToolProgress),
    /// A line of the server's log.
    Log(ToolProgress),
    /// The server cancels a request of the client or a request of the server itself, for an optional reason.
    Cancelled(RequestId, Option<String>),
    /// The tools of the server changed.
    ToolsChanged,
    /// The server sends a request to the client.
    Request(RequestId),
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
struct ProgressParams {
    progress_token: ProgressToken,
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

#[derive(Deserialize)]
struct LogParams {
    level: Option<String>,
    logger: Option<String>,
    data: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelledParams {
    request_id: RequestId,
    reason: Option<String>,
}

/// Parses a message. Returns `None` for an answer, and for a message of an unknown kind.
pub(crate) fn read(data: &str) -> Option<ServerMessage> {
    // Answers may be large, and rmcp parses them later. So they are not parsed here.
    if data.len() > MAX_MESSAGE_BYTES || !data.contains("\"method\"") {
        return None;
    }
    let Message { method, id, params } = serde_json::from_str(data).ok()?;
    if let Some(id) = id {
        return Some(ServerMessage::Request(id));
    }
    match method.as_str() {
        "notifications/progress" => {
            let ProgressParams { progress_token, progress, total, message } = serde_json::from_value(params).ok()?;
            let progress_report =
                ToolProgress { progress: Some(progress), total, level: None, message: message.as_deref().map(excerpt) };
            Some(ServerMessage::Progress(progress_token, progress_report))
        }
        "notifications/message" => {
            let LogParams { level, logger, data } = serde_json::from_value(params).ok()?;
            let text = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
            let message = logger.map_or_else(|| excerpt(&text), |logger| excerpt(&format!("{logger}: {text}")));
            let level = level.filter(|level| LEVELS.contains(&level.as_str())).unwrap_or_else(|| "info".to_owned());
            Some(ServerMessage::Log(ToolProgress {
                level: Some(level),
                message: Some(message),
                ..ToolProgress::default()
            }))
        }
        "notifications/cancelled" => {
            let CancelledParams { request_id, reason } = serde_json::from_value(params).ok()?;
            Some(ServerMessage::Cancelled(request_id, reason.as_deref().map(excerpt)))
        }
        "notifications/tools/list_changed" => Some(ServerMessage::ToolsChanged),
        _ => None,
    }
}

fn excerpt(text: &str) -> String {
    bounded(text.trim(), MAX_TEXT_BYTES)
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

    fn progress(progress: f64, total: Option<f64>, message: Option<&str>) -> ServerMessage {
        let progress =
            ToolProgress { progress: Some(progress), total, level: None, message: message.map(str::to_owned) };
        ServerMessage::Progress(ProgressToken(NumberOrString::Number(7)), progress)
    }

    fn logged(level: &str, message: &str) -> ServerMessage {
        ServerMessage::Log(ToolProgress {
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
        Some(ServerMessage::Cancelled(NumberOrString::Number(3), Some("shutdown".into()))))]
    #[case("notifications/cancelled", json!({}), None)]
    #[case("notifications/tools/list_changed", json!({}), Some(ServerMessage::ToolsChanged))]
    #[case("notifications/resources/updated", json!({"uri": "x"}), None)]
    fn notifications_are_parsed(#[case] method: &str, #[case] params: Value, #[case] expected: Option<ServerMessage>) {
        assert_eq!(read(&notification(method, &params)), expected);
    }

    #[test]
    fn a_message_with_a_method_and_an_id_is_a_request() {
        let request = json!({"jsonrpc": "2.0", "id": 4, "method": "sampling/createMessage", "params": {}});
        assert_eq!(read(&request.to_string()), Some(ServerMessage::Request(NumberOrString::Number(4))));
        assert_eq!(read(&json!({"jsonrpc": "2.0", "id": 4, "result": {"method": 1}}).to_string()), None);
    }

    #[test]
    fn a_long_text_is_cut_and_a_huge_message_is_ignored() {
        let message = |bytes| notification("notifications/message", &json!({"data": "x".repeat(bytes)}));
        let Some(ServerMessage::Log(logged)) = read(&message(5000)) else { panic!("not read") };
        assert_eq!(logged.message.unwrap().len(), MAX_TEXT_BYTES);
        assert_eq!(read(&message(MAX_MESSAGE_BYTES)), None);
    }

    proptest! {
        #[test]
        fn no_message_makes_the_parser_panic(data in "(\\{|\\}|\"method\"|\"id\"|\"params\"|:|,|\"notifications/progress\"|[0-9.e+-]|null){0,30}") {
            let _ = read(&data);
        }
    }
}
