//! Implements the driver's traits for the real models and the real MCP client.

use super::environment::{ListError, Model, Tools};
use super::finished_call::FinishedCall;
use bloomery_crds::report::ExternalWait;
use bloomery_crds::text::bounded;
use bloomery_engine::Event;
use bloomery_engine::event::ToolProgress;
use bloomery_engine::step::{ModelRequest, ToolCall};
use bloomery_engine::tool::ListedTool;
use bloomery_http::Pauses;
use bloomery_mcp::{self as mcp, CallOutcome, CallResult};
use bloomery_models as model;
use std::time::Duration;

/// The maximum length of an error message from a server, in bytes. It must fit in a condition and in an outcome.
const MAX_MESSAGE_BYTES: usize = 512;

impl Model for model::Clients {
    fn missing_key(&self, model: &str) -> Option<ExternalWait> {
        self.missing_secret(model)
    }

    async fn complete(&self, request: &ModelRequest<'_>, within: Duration, waits: &Pauses<'_>) -> Event {
        match model::Clients::complete(self, request, within, waits).await {
            Ok(answer) => Event::ModelAnswered { answer },
            Err(model::Error { kind, message }) => Event::ModelFailed { kind, message },
        }
    }
}

/// A Skill without an MCP server has no tools.
impl Tools for Option<mcp::Client> {
    async fn list(&self, within: Duration) -> Result<Vec<ListedTool>, ListError> {
        match self {
            Some(client) => client.list(within).await.map_err(|error| list_error(&error)),
            None => Ok(Vec::new()),
        }
    }

    async fn list_uncached(&self, within: Duration) -> Result<Vec<ListedTool>, ListError> {
        match self {
            Some(client) => client.list_uncached(within).await.map_err(|error| list_error(&error)),
            None => Ok(Vec::new()),
        }
    }

    async fn call(&self, call: &ToolCall<'_>, within: Duration, listener: &dyn Fn(ToolProgress)) -> FinishedCall {
        let id = call.id.clone();
        let Some(client) = self else {
            let text = "The Skill has no MCP server any more, so nothing was sent.".to_owned();
            return FinishedCall::from(Event::ToolFailed { call: id, text });
        };
        let CallResult { outcome, listed } = client.call(call, within, listener).await;
        let called = match outcome {
            CallOutcome::Completed { text, structured, media } => {
                FinishedCall { structured, media, ..FinishedCall::from(Event::ToolCompleted { call: id, text }) }
            }
            CallOutcome::Unread { text } => {
                FinishedCall { is_unread: true, ..FinishedCall::from(Event::ToolCompleted { call: id, text }) }
            }
            CallOutcome::Failed { text, media } => {
                FinishedCall { media, ..FinishedCall::from(Event::ToolFailed { call: id, text }) }
            }
            CallOutcome::Indeterminate { text } => FinishedCall::from(Event::ToolIndeterminate { call: id, text }),
        };
        FinishedCall { listed, ..called }
    }
}

fn list_error(error: &mcp::Error) -> ListError {
    let is_final = match error {
        mcp::Error::ProgramFailed { .. } | mcp::Error::Refused { .. } => true,
        // The server may be repaired while the worker waits.
        mcp::Error::Unavailable { .. } | mcp::Error::Unusable { .. } => false,
    };
    ListError { message: bounded(&error.to_string(), MAX_MESSAGE_BYTES), is_final }
}
