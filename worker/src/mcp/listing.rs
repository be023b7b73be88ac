//! Listing the tools, page by page, within bounds of ours.

use super::MAX_BODY;
use super::mend::UNUSABLE;
use super::session::{Reply, Session};
use bloomery_crds::Digest;
use bloomery_crds::text::bounded;
use bloomery_engine::catalogue::Drift;
use bloomery_engine::step::ToolCall;
use bloomery_engine::tool::ListedTool;
use rmcp::model::{
    ClientRequest, ListToolsRequest, ListToolsResult, PaginatedRequestParams, RequestMetaObject, ServerResult, Tool,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;

/// The most pages of a list.
pub(super) const MAX_PAGES: usize = 32;

/// The most tools of a server.
pub(super) const MAX_TOOLS: usize = 512;

/// The largest definition of one tool, in bytes: a model reads all of it with every request.
pub(super) const MAX_DEFINITION: usize = 64 * 1024;

/// How much of the name of a tool that is not used is told, in bytes, and of why not.
const MAX_NAME: usize = 128;
const MAX_WHY: usize = 300;

/// Why there is no list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Error {
    /// It may be asked again.
    Unavailable(String),
    /// It can be asked, and not be used.
    Unusable(String),
}

/// What is known of the tools in a session.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// The digests that stand for each tool as it was listed last; none of a name that was listed twice.
    definitions: Option<BTreeMap<String, Option<[Digest; 2]>>>,
    /// Whether a list that a worker of the slag has read lately is as good.
    is_known: bool,
}

impl Listing {
    /// A list was read lately, from the cache.
    pub(super) fn known() -> Self {
        Self { definitions: None, is_known: true }
    }

    fn of(tools: &[ListedTool]) -> Self {
        let mut definitions = BTreeMap::new();
        for tool in tools {
            let own = Some(tool.definitions());
            definitions.entry(tool.name.clone()).and_modify(|first| *first = None).or_insert(own);
        }
        Self { definitions: Some(definitions), is_known: false }
    }

    fn listed_twice(&self) -> impl Iterator<Item = &str> {
        self.definitions.iter().flatten().filter(|(_, definition)| definition.is_none()).map(|(name, _)| name.as_str())
    }

    /// Why a call is not sent: its tool is not what it was when the Job began.
    fn objection(&self, call: &ToolCall<'_>) -> Option<String> {
        let drift = match self.definitions.as_ref()?.get(call.tool) {
            Some(Some(definitions)) if definitions.contains(call.definition) => return None,
            Some(_) => Drift::Changed,
            None => Drift::Missing,
        };
        Some(format!("The call was not sent, because the tool is not what it was: {}.", drift.objection()))
    }
}

/// What a look at the tools before a call has brought.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Why the call is not sent.
    pub(super) objection: Option<String>,
    /// The tools, where they were listed for it.
    pub(super) listed: Option<Vec<ListedTool>>,
}

impl Session {
    /// Lists all tools.
    pub(super) async fn list(&self, until: Instant) -> Result<Vec<ListedTool>, Error> {
        let mut listing = self.listing.lock().await;
        self.list_into(&mut listing, until).await
    }

    /// Looks whether a tool is what it was, before a call of it is sent. The tools are listed where they were not in
    /// this session, or where the server has said that they changed; several calls at once wait for one list.
    pub(super) async fn look(&self, call: &ToolCall<'_>, until: Instant) -> Result<Look, Error> {
        let mut listing = self.listing.lock().await;
        let is_known = listing.definitions.is_some() || listing.is_known && !self.is_newer();
        let listed = if is_known && !self.wire().tools_changed() {
            None
        } else {
            Some(self.list_into(&mut listing, until).await?)
        };
        Ok(Look { objection: listing.objection(call), listed })
    }

    async fn list_into(&self, listing: &mut Listing, until: Instant) -> Result<Vec<ListedTool>, Error> {
        // Before it is asked: what changes meanwhile is listed again.
        self.wire().take_tools_changed();
        *listing = Listing::default();
        let tools = self.pages(until).await?;
        *listing = Listing::of(&tools);
        for name in listing.listed_twice() {
            tracing::warn!(
                "the MCP server lists the tool {name:?} more than once: it is not used, since nobody can say which is meant"
            );
        }
        Ok(tools)
    }

    async fn pages(&self, until: Instant) -> Result<Vec<ListedTool>, Error> {
        let mut list = List::default();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = self.page(cursor.take(), until).await?;
            cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
            list.add(page.tools)?;
            if cursor.is_none() {
                return Ok(list.tools);
            }
        }
        Err(Error::Unusable(format!("more than {MAX_PAGES} pages")))
    }

    async fn page(&self, cursor: Option<String>, until: Instant) -> Result<ListToolsResult, Error> {
        let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = ListToolsRequest { params, ..ListToolsRequest::default() };
        // Not through rmcp's own method: that one may answer from a cache.
        let request = ClientRequest::ListToolsRequest(request);
        match self.ask(request, RequestMetaObject::default(), until, &|_| {}).await {
            Reply::Result(result) => match *result {
                ServerResult::ListToolsResult(page) => Ok(page),
                _ => Err(Error::Unavailable("it answered with something else than a list of tools".to_owned())),
            },
            Reply::Error(error) => Err(Error::Unavailable(format!(
                "it refuses to list them: {} (code {})",
                bounded(&error.message, 300),
                error.code.0
            ))),
            Reply::Unsent(why) | Reply::Unknown(why) => Err(Error::Unavailable(why)),
        }
    }
}

/// The tools so far, their size, and how many there are with those that are not used.
#[derive(Default)]
struct List {
    tools: Vec<ListedTool>,
    bytes: usize,
    count: usize,
}

impl List {
    fn add(&mut self, page: Vec<Tool>) -> Result<(), Error> {
        for tool in page {
            self.count += 1;
            if self.count > MAX_TOOLS {
                return Err(Error::Unusable(format!("more than {MAX_TOOLS} of them")));
            }
            let name = bounded(&tool.name, MAX_NAME);
            let tool = match usable(tool) {
                Ok(tool) => tool,
                Err(why) => {
                    tracing::warn!("the MCP server lists the tool {name:?}, which is not used: {why}");
                    continue;
                }
            };
            self.bytes += tool.bytes();
            self.tools.push(tool);
            if self.bytes > MAX_BODY {
                return Err(Error::Unusable(format!("more than {MAX_BODY} bytes of them")));
            }
        }
        Ok(())
    }
}

/// What tools count against [`MAX_BODY`].
pub(super) fn bytes(tools: &[ListedTool]) -> usize {
    tools.iter().map(ListedTool::bytes).sum()
}

/// A tool, or why it is none for us. The others are used.
fn usable(tool: Tool) -> Result<ListedTool, String> {
    if let Some(why) = tool.meta.as_ref().and_then(|meta| meta.get(UNUSABLE)?.as_str()) {
        return Err(bounded(why, MAX_WHY));
    }
    let tool = listed(tool);
    match tool.bytes() {
        _ if tool.name.is_empty() => Err("it has no name, so it cannot be called".to_owned()),
        bytes if bytes > MAX_DEFINITION => {
            Err(format!("its definition takes {bytes} bytes, and the most is {MAX_DEFINITION}"))
        }
        _ => Ok(tool),
    }
}

fn listed(tool: Tool) -> ListedTool {
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
