//! Builds the request of a tool call, and classifies its reply.

use crate::outcome::CallOutcome;
use crate::oversized;
use crate::repair;
use crate::result_text::{self, Content};
use crate::session::Reply;
use bloomery_crds::text::bounded;
use bloomery_engine::step::ToolCall;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ContentBlock, CustomResult, JsonObject,
    RequestMetaObject, ServerResult,
};
use serde_json::Value;

/// The field of `_meta` that holds the key of a call. A repeated call has the same key.
const CALL_KEY: &str = "bloomery.dev/callKey";

/// The field of `_meta` that lists the resources that the Job binds, without their secrets.
const RESOURCES: &str = "bloomery.dev/resources";

/// The field of `_meta` that requests the log lines of a call from a server of the newer era.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The longest error message that is passed on, in bytes.
const MAX_ERROR_BYTES: usize = 4096;

/// The longest name of an unknown result type that is passed on, in bytes.
const MAX_TYPE_BYTES: usize = 64;

/// The outcome of sending a call once.
#[derive(Debug)]
pub(crate) enum SendOutcome {
    /// The server answered.
    Answered(CallOutcome),
    /// No byte of the call was sent. The text is a clause, such as "it cannot be reached".
    NotSent(String),
    /// The call must not be sent, or the server has refused it. The text is a sentence for the model.
    Refused(String),
    /// The call was sent, or may have been. The text is a clause, such as "it answered HTTP 503".
    Unknown(String),
    /// The server answered that it does not know the session. It has not run the call if it then begins a session.
    SessionUnknown,
}

/// The error for a call whose arguments are not a JSON object.
#[derive(Debug, thiserror::Error)]
#[error("The call was not sent: its arguments are not a JSON object ({0}).")]
pub(crate) struct InvalidArguments(#[from] serde_json::Error);

/// Builds the request of a call from its arguments, its key, and the resources that the Job binds.
pub(crate) fn build_request(
    call: &ToolCall<'_>,
    resources: &[Value],
) -> Result<(ClientRequest, RequestMetaObject), InvalidArguments> {
    let arguments: JsonObject = serde_json::from_str(call.arguments)?;
    let mut meta = JsonObject::new();
    meta.insert(CALL_KEY.to_owned(), Value::from(call.key.as_str()));
    if !resources.is_empty() {
        meta.insert(RESOURCES.to_owned(), Value::from(resources));
    }
    meta.insert(LOG_LEVEL.to_owned(), Value::from("info"));
    let params = CallToolRequestParams::new(call.tool.to_owned()).with_arguments(arguments);
    Ok((ClientRequest::CallToolRequest(CallToolRequest::new(params)), RequestMetaObject::from(meta)))
}

/// Classifies a reply by what it proves about the call.
pub(crate) fn classify(reply: Reply) -> SendOutcome {
    match reply {
        Reply::Result(result) => classify_result(*result),
        Reply::Error(error) => {
            let message = bounded(&error.message, MAX_ERROR_BYTES);
            let text = format!("The server refused the call: {message} (code {}).", error.code.0);
            SendOutcome::Answered(CallOutcome::failed(text))
        }
        Reply::NotSent(reason) => SendOutcome::NotSent(reason),
        Reply::Unauthorized(reason) => SendOutcome::Refused(format!("The server refused the call: {reason}.")),
        Reply::Unknown(reason) => SendOutcome::Unknown(reason),
        Reply::SessionUnknown => SendOutcome::SessionUnknown,
    }
}

fn classify_result(result: ServerResult) -> SendOutcome {
    match result {
        ServerResult::CallToolResult(result) => SendOutcome::Answered(convert_result(result)),
        ServerResult::InputRequiredResult(_) => SendOutcome::Answered(CallOutcome::failed(
            "The tool asks for input before it acts. The client cannot give input, so the call had no effect."
                .to_owned(),
        )),
        ServerResult::CreateTaskResult(_) | ServerResult::GetTaskResult(_) => {
            SendOutcome::Unknown("it turned the call into a task, which was not requested".to_owned())
        }
        ServerResult::CustomResult(CustomResult(value)) => match value.get("resultType").and_then(Value::as_str) {
            Some(kind) if kind != "complete" => SendOutcome::Unknown(format!(
                "it answered with a result of the type `{}`",
                bounded(kind, MAX_TYPE_BYTES)
            )),
            _ => pass_on(&value.to_string()),
        },
        // A result of another kind also answers the call.
        other => match serde_json::to_string(&other) {
            Ok(raw) => pass_on(&raw),
            Err(_) => SendOutcome::Unknown("its answer is not the result of a tool call".to_owned()),
        },
    }
}

/// Passes an answer that is not the result of a tool call to the model, unchanged.
fn pass_on(raw: &str) -> SendOutcome {
    let text = ContentBlock::text(repair::verbatim_answer(raw));
    SendOutcome::Answered(convert_result(CallToolResult::success(vec![text])))
}

/// Converts the result of a tool call to its outcome.
fn convert_result(result: CallToolResult) -> CallOutcome {
    if let Some(size) = oversized::size_of_unread(&result) {
        return CallOutcome::Unread { text: oversized::note(size) };
    }
    let Content { text, media } = result_text::read(&result);
    if result.is_error == Some(true) {
        CallOutcome::Failed { text, media }
    } else {
        CallOutcome::Completed { text, structured: result.structured_content, media }
    }
}
