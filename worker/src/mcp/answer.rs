//! What is sent for a call, and what its answer means.

use super::CallOutcome;
use super::mend;
use super::session::Reply;
use super::text::{self, Content};
use bloomery_crds::text::bounded;
use bloomery_engine::step::ToolCall;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ContentBlock, CustomResult, JsonObject,
    RequestMetaObject, ServerResult,
};
use serde_json::Value;

/// The key of `_meta` under which a server finds the key of a call: the same whenever that call is sent again.
const CALL_KEY: &str = "bloomery.dev/callKey";

/// The key of `_meta` under which a server finds what the Job binds, secrets left out.
const RESOURCES: &str = "bloomery.dev/resources";

/// The key of `_meta` by which servers of the newer era are asked for the lines of their log that belong to a call.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// How much of an error's message is passed on, in bytes.
const MAX_ERROR: usize = 4096;

/// How much of the name of an unknown type is passed on, in bytes.
const MAX_TYPE: usize = 64;

/// Whether a call has an answer, and if not, whether it was sent.
#[derive(Debug)]
pub(super) enum Sent {
    /// It has; or it needed none, since it could not be sent as it is.
    Answered(CallOutcome),
    /// No byte of it has left us.
    Unsent(String),
    /// It is not to be sent: a sentence for the model.
    Refused(String),
    /// It was sent, or may have been.
    Unknown(String),
}

/// What is sent: the arguments that were ruled on, the key, and what the Job binds.
pub(super) fn request(call: &ToolCall<'_>, resources: &[Value]) -> Result<(ClientRequest, RequestMetaObject), String> {
    let arguments: JsonObject = serde_json::from_str(call.arguments)
        .map_err(|error| format!("The call was not sent: its arguments are no JSON object ({error})."))?;
    let mut meta = JsonObject::new();
    meta.insert(CALL_KEY.to_owned(), Value::from(call.key.as_str()));
    if !resources.is_empty() {
        meta.insert(RESOURCES.to_owned(), Value::from(resources));
    }
    meta.insert(LOG_LEVEL.to_owned(), Value::from("info"));
    let params = CallToolRequestParams::new(call.tool.to_owned()).with_arguments(arguments);
    Ok((ClientRequest::CallToolRequest(CallToolRequest::new(params)), RequestMetaObject::from(meta)))
}

/// Decides what a reply means.
pub(super) fn sort(reply: Reply) -> Sent {
    match reply {
        Reply::Result(result) => of_result(*result),
        Reply::Error(error) => {
            let message = bounded(&error.message, MAX_ERROR);
            let text = format!("The server refused the call: {message} (code {}).", error.code.0);
            Sent::Answered(CallOutcome::failed(text))
        }
        Reply::Unsent(why) => Sent::Unsent(why),
        Reply::Unknown(why) => Sent::Unknown(why),
    }
}

fn of_result(result: ServerResult) -> Sent {
    match result {
        ServerResult::CallToolResult(result) => Sent::Answered(completed(result)),
        ServerResult::InputRequiredResult(_) => Sent::Answered(CallOutcome::failed(
            "The tool asks for input before it acts, which cannot be given; the call was not done.".to_owned(),
        )),
        ServerResult::CreateTaskResult(_) | ServerResult::GetTaskResult(_) => {
            Sent::Unknown("it goes on with the call as a task of its own, which was not asked for".to_owned())
        }
        ServerResult::CustomResult(CustomResult(value)) => match value.get("resultType").and_then(Value::as_str) {
            Some(kind) if kind != "complete" => {
                Sent::Unknown(format!("it answered with a result of the type `{}`", bounded(kind, MAX_TYPE)))
            }
            _ => told(&value.to_string()),
        },
        // It has answered the call, whatever with.
        other => match serde_json::to_string(&other) {
            Ok(raw) => told(&raw),
            Err(_) => Sent::Unknown("it answered with something else than the result of a tool".to_owned()),
        },
    }
}

/// An answer that is none of a tool.
fn told(raw: &str) -> Sent {
    Sent::Answered(completed(CallToolResult::success(vec![ContentBlock::text(mend::as_it_came(raw))])))
}

fn completed(result: CallToolResult) -> CallOutcome {
    let Content { text, media } = text::of(&result);
    if result.is_error == Some(true) {
        CallOutcome::Failed { text, media }
    } else {
        CallOutcome::Completed { text, structured: result.structured_content, media }
    }
}
