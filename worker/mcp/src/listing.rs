//! Lists the tools of a server page by page, within bounds.

use crate::known_tools::KnownTools;
use crate::limits::{MAX_BODY_BYTES, MAX_TOOLS};
use crate::oversized;
use crate::repair::UNUSABLE;
use crate::session::{Era, Reply, SESSION_UNKNOWN, Session};
use bloomery_crds::text::bounded;
use bloomery_engine::step::ToolCall;
use bloomery_engine::tool::ListedTool;
use rmcp::model::{
    ClientRequest, ListToolsRequest, ListToolsResult, PaginatedRequestParams, RequestMetaObject, ServerResult, Tool,
};
use serde_json::Value;
use std::sync::Arc;
use tokio::time::Instant;

/// The largest number of pages of a list.
pub(crate) const MAX_PAGES: usize = 32;

/// The size limit of the definition of one tool, in bytes. Every request to the model contains the definition.
pub(crate) const MAX_DEFINITION_BYTES: usize = 64 * 1024;

/// The longest name of an ignored tool in a log message, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// The longest reason for ignoring a tool in a log message, in bytes.
const MAX_REASON_BYTES: usize = 300;

/// The reason that the tools cannot be listed. Each text is a clause.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// A retry may succeed.
    Unavailable(String),
    /// The list exceeds a limit.
    Unusable(String),
}

/// The check of a tool before it is called.
#[derive(Debug, Default)]
pub(crate) struct ToolCheck {
    /// The reason that the call must not be sent, if any.
    pub(crate) objection: Option<String>,
    /// The tools, if they were listed for the check.
    pub(crate) listed: Option<Vec<ListedTool>>,
}

/// Lists all tools.
pub(crate) async fn list(session: &Session, until: Instant) -> Result<Vec<ListedTool>, Error> {
    let mut known = session.known_tools.lock().await;
    list_into(session, &mut known, until).await
}

/// Checks that a tool has not changed since the Job began. The tools are listed first if they were not listed in this session, or if
/// the server announced a change. Concurrent calls share one list.
pub(crate) async fn check_tool(session: &Session, call: &ToolCall<'_>, until: Instant) -> Result<ToolCheck, Error> {
    let mut known = session.known_tools.lock().await;
    // In the newer era, cached tools do not suffice; see [`Session::era`].
    let is_known = known.are_listed() || known.are_cached() && session.era() == Era::Older;
    let listed = if is_known && !session.deliveries().tools_changed() {
        None
    } else {
        Some(list_into(session, &mut known, until).await?)
    };
    Ok(ToolCheck { objection: known.objection(call), listed })
}

/// Returns the size of the tools in bytes, which is limited to [`MAX_BODY_BYTES`].
pub(crate) fn total_bytes(tools: &[ListedTool]) -> usize {
    tools.iter().map(ListedTool::bytes).sum()
}

/// Lists all tools, and replaces `known` by the record of these tools.
async fn list_into(session: &Session, known: &mut KnownTools, until: Instant) -> Result<Vec<ListedTool>, Error> {
    // The flag is cleared before the request, so a change that is announced during the request leads to another list.
    session.deliveries().take_tools_changed();
    *known = KnownTools::default();
    let tools = request_pages(session, until).await?;
    *known = KnownTools::listed(&tools);
    for name in known.duplicates() {
        tracing::warn!("the MCP server lists the tool {name:?} more than once, so the tool is ambiguous and ignored");
    }
    Ok(tools)
}

async fn request_pages(session: &Session, until: Instant) -> Result<Vec<ListedTool>, Error> {
    let mut list = List::default();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let page = request_page(session, cursor.take(), until).await?;
        cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
        list.add(page.tools)?;
        if cursor.is_none() {
            return Ok(list.tools);
        }
    }
    Err(Error::Unusable(format!("the list has more than {MAX_PAGES} pages")))
}

async fn request_page(session: &Session, cursor: Option<String>, until: Instant) -> Result<ListToolsResult, Error> {
    let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
    let request = ListToolsRequest { params, ..ListToolsRequest::default() };
    // The request is sent directly, because the method of rmcp may answer from a cache.
    let request = ClientRequest::ListToolsRequest(request);
    match session.ask(request, RequestMetaObject::default(), until, &|_| {}).await {
        Reply::Result(result) => match *result {
            ServerResult::ListToolsResult(page) => Ok(page),
            other => {
                let size = match &other {
                    ServerResult::CallToolResult(result) => oversized::size_of_unread(result),
                    _ => None,
                };
                let is_large = |size| format!("its answer {size}");
                Err(Error::Unavailable(size.map_or_else(|| "its answer is not a list of tools".to_owned(), is_large)))
            }
        },
        Reply::Error(error) => Err(Error::Unavailable(format!(
            "it refused to list its tools: {} (code {})",
            bounded(&error.message, MAX_REASON_BYTES),
            error.code.0
        ))),
        Reply::NotSent(reason) | Reply::Unauthorized(reason) | Reply::Unknown(reason) => {
            Err(Error::Unavailable(reason))
        }
        Reply::SessionUnknown => Err(Error::Unavailable(SESSION_UNKNOWN.to_owned())),
    }
}

/// The tools of all pages that were read so far.
#[derive(Default)]
struct List {
    tools: Vec<ListedTool>,
    bytes: usize,
    /// The number of all tools, including ignored ones.
    count: usize,
}

impl List {
    fn add(&mut self, page: Vec<Tool>) -> Result<(), Error> {
        for tool in page {
            self.count += 1;
            if self.count > MAX_TOOLS {
                return Err(Error::Unusable(format!("the list has more than {MAX_TOOLS} tools")));
            }
            let name = bounded(&tool.name, MAX_NAME_BYTES);
            let tool = match check_usable(tool) {
                Ok(tool) => tool,
                Err(UnusableTool(reason)) => {
                    tracing::warn!("the MCP server lists the tool {name:?}, which is ignored: {reason}");
                    continue;
                }
            };
            self.bytes += tool.bytes();
            self.tools.push(tool);
            if self.bytes > MAX_BODY_BYTES {
                return Err(Error::Unusable(format!("the list has more than {MAX_BODY_BYTES} bytes")));
            }
        }
        Ok(())
    }
}

/// The reason that a tool is ignored, as a clause.
struct UnusableTool(String);

fn check_usable(tool: Tool) -> Result<ListedTool, UnusableTool> {
    if let Some(reason) = tool.meta.as_ref().and_then(|meta| meta.get(UNUSABLE)?.as_str()) {
        return Err(UnusableTool(bounded(reason, MAX_REASON_BYTES)));
    }
    let tool = convert_tool(tool);
    match tool.bytes() {
        _ if tool.name.is_empty() => Err(UnusableTool("it has no name, so it cannot be called".to_owned())),
        bytes if bytes > MAX_DEFINITION_BYTES => {
            Err(UnusableTool(format!("its definition has {bytes} bytes, and the limit is {MAX_DEFINITION_BYTES}")))
        }
        _ => Ok(tool),
    }
}

fn convert_tool(tool: Tool) -> ListedTool {
    let annotations = tool.annotations.and_then(|annotations| match serde_json::to_value(annotations) {
        Ok(Value::Object(annotations)) => Some(annotations),
        _ => None,
    });
    ListedTool {
        name: tool.name.into_owned(),
        title: tool.title,
        description: tool.description.unwrap_or_default().into_owned(),
        input_schema: Value::Object(Arc::unwrap_or_clone(tool.input_schema)),
        output_schema: tool.output_schema.map(|schema| Value::Object(Arc::unwrap_or_clone(schema))),
        annotations: annotations.unwrap_or_default(),
    }
}
