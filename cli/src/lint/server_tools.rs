//! The tools of an MCP server, for `--tools`.

use crate::error::Error;
use crate::source;
use bloomery_crds::run::McpEndpoint;
use bloomery_engine::tool::ListedTool;
use bloomery_http::address::AddressPolicy;
use bloomery_mcp::Client;
use bloomery_redact::Redactor;
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;

/// The largest file with a list of tools, in bytes. A server may list as much.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The time limit for listing the tools of a server.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// A file with a list of tools.
#[derive(Deserialize)]
#[serde(untagged)]
enum ToolFile {
    /// An answer to `tools/list`.
    Answer { result: ToolList },
    /// The result of `tools/list`.
    Result(ToolList),
    /// The tools alone.
    Tools(Vec<ListedTool>),
}

#[derive(Deserialize)]
struct ToolList {
    tools: Vec<ListedTool>,
}

/// Returns the tools in a file, or those that the server at a URL lists.
///
/// # Errors
/// If the file or the server cannot be read, or lists no tool.
pub fn read(place: &str) -> Result<Vec<ListedTool>, Error> {
    let is_url = place.starts_with("http://") || place.starts_with("https://");
    let tools = if is_url { list(place) } else { read_file(Path::new(place)) };
    let unusable = |why: String| Error::usage(format!("--tools {place}: {why}"));
    let tools = tools.map_err(unusable)?;
    if tools.is_empty() { Err(unusable("there is no tool in the list".to_owned())) } else { Ok(tools) }
}

fn read_file(file: &Path) -> Result<Vec<ListedTool>, String> {
    let bytes = source::read_bounded(file, MAX_FILE_BYTES).map_err(|error| error.to_string())?;
    match serde_json::from_slice(&bytes) {
        Ok(ToolFile::Answer { result: ToolList { tools } } | ToolFile::Result(ToolList { tools }) | ToolFile::Tools(tools)) => {
            Ok(tools)
        }
        Err(_) => Err(
            "must be JSON: the result of tools/list, {\"tools\": [{\"name\": ..., \"inputSchema\": {...}}]}, or its list of tools"
                .to_owned(),
        ),
    }
}

fn list(url: &str) -> Result<Vec<ListedTool>, String> {
    bloomery_http::install_tls_provider();
    let endpoint = McpEndpoint { url: url.to_owned() };
    let client = Client::restricted(AddressPolicy::for_local_machine(), &endpoint, Redactor::default());
    let client = client.map_err(|error| error.to_string())?.without_credentials();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("the runtime cannot be started: {error}"))?;
    let tools = runtime.block_on(async {
        let tools = client.list_uncached(LIST_TIMEOUT).await;
        client.close().await;
        tools
    });
    runtime.shutdown_background();
    tools.map_err(|error| error.to_string())
}
