//! Listing the tools, page by page, within bounds of ours.

use super::MAX_BODY;
use super::session::{Reply, Session};
use bloomery_crds::text::bounded;
use bloomery_engine::tool::ListedTool;
use rmcp::model::{
    ClientRequest, ListToolsRequest, ListToolsResult, PaginatedRequestParams, RequestMetaObject, ServerResult, Tool,
};
use serde_json::Value;
use tokio::time::Instant;

/// The most pages of a list.
pub(super) const MAX_PAGES: usize = 32;

/// The most tools of a server.
pub(super) const MAX_TOOLS: usize = 512;

/// Why there is no list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Error {
    /// It may be asked again.
    Unavailable(String),
    /// It can be asked, and not be used.
    Unusable(String),
}

impl Session {
    /// Lists all tools.
    pub(super) async fn list(&self, until: Instant) -> Result<Vec<ListedTool>, Error> {
        let mut list = List::default();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = self.page(cursor.take(), until).await?;
            cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
            list.add(page.tools)?;
            if cursor.is_none() {
                self.mark_listed();
                return Ok(list.tools);
            }
        }
        Err(Error::Unusable(format!("more than {MAX_PAGES} pages")))
    }

    /// Lists the tools where a call needs it. A list that cannot be used was judged when the tools were fixed.
    pub(super) async fn prime(&self, until: Instant) -> Result<(), Error> {
        if !self.needs_list() {
            return Ok(());
        }
        match self.list(until).await {
            Err(Error::Unavailable(why)) => Err(Error::Unavailable(why)),
            Ok(_) | Err(Error::Unusable(_)) => {
                self.mark_listed();
                Ok(())
            }
        }
    }

    async fn page(&self, cursor: Option<String>, until: Instant) -> Result<ListToolsResult, Error> {
        let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = ListToolsRequest { params, ..ListToolsRequest::default() };
        // Not through rmcp's own method: that one may answer from a cache.
        let request = ClientRequest::ListToolsRequest(request);
        match self.ask(request, RequestMetaObject::default(), until).await {
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

/// The tools so far, and their size.
#[derive(Default)]
struct List {
    tools: Vec<ListedTool>,
    bytes: usize,
}

impl List {
    fn add(&mut self, page: Vec<Tool>) -> Result<(), Error> {
        for tool in page {
            let tool = listed(tool);
            self.bytes += tool.name.len() + tool.description.len() + tool.input_schema.to_string().len();
            self.tools.push(tool);
            if self.tools.len() > MAX_TOOLS {
                return Err(Error::Unusable(format!("more than {MAX_TOOLS} of them")));
            }
            if self.bytes > MAX_BODY {
                return Err(Error::Unusable(format!("more than {MAX_BODY} bytes of them")));
            }
        }
        Ok(())
    }
}

fn listed(tool: Tool) -> ListedTool {
    ListedTool {
        name: tool.name.into_owned(),
        description: tool.description.unwrap_or_default().into_owned(),
        input_schema: Value::Object(std::sync::Arc::unwrap_or_clone(tool.input_schema)),
        read_only_hint: tool.annotations.and_then(|annotations| annotations.read_only_hint),
    }
}
