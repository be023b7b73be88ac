//! Implements the driver's trait for the real tools of a Skill: those of its MCP server, and its scripts, which another MCP server runs.
//!
//! The Skill says which tools are scripts. The server of the scripts has no other tools, and the Skill's MCP server has none with the
//! name of a script: the author of the Skill wrote the script, and a rule for this name means the script.

use super::environment::{ListError, Tools};
use super::finished_call::FinishedCall;
use bloomery_crds::scripts;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{Engine, SkillSpec};
use bloomery_engine::Event;
use bloomery_engine::event::{CallId, ToolProgress};
use bloomery_engine::step::ToolCall;
use bloomery_engine::tool::ListedTool;
use bloomery_mcp::{self as mcp, CallOutcome, CallResult};
use futures::future::OptionFuture;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The maximum length of an error message from a server, in bytes. It must fit in a condition and in an outcome.
const MAX_MESSAGE_BYTES: usize = 512;

/// The seconds that the worker waits longer for a script than the script may take, so that the answer says that it was killed.
const SCRIPT_MARGIN_SECONDS: u64 = 15;

/// The tools of a Skill. A Skill without an MCP server and without scripts has none.
#[derive(Debug, Default)]
pub struct SkillTools {
    server: Option<mcp::Client>,
    scripts: Option<Scripts>,
    /// The latest list of each source, once both have listed their tools.
    latest: Mutex<Option<Listings>>,
}

#[derive(Debug)]
struct Scripts {
    client: mcp::Client,
    /// The names of the tools.
    names: BTreeSet<String>,
    timeout_seconds: u64,
}

#[derive(Debug)]
struct Listings {
    server: Vec<ListedTool>,
    scripts: Vec<ListedTool>,
}

impl SkillTools {
    /// Creates the tools of an MCP server, if there is one.
    pub fn new(server: Option<mcp::Client>) -> Self {
        Self { server, ..Self::default() }
    }

    /// Adds the scripts of a Skill, which the server of `client` runs. The largest limit of results, and not that of the Skill, lets every
    /// result pass, because a validation must learn how a script ended. The bridge cuts the output and the errors of a script at 1 MiB each.
    #[must_use]
    pub fn with_scripts(self, client: mcp::Client, spec: &SkillSpec) -> Self {
        let timeout_seconds = spec.scripts.as_ref().map_or(0, scripts::timeout_seconds) + SCRIPT_MARGIN_SECONDS;
        let names = scripts::tools_of(spec).into_keys().collect();
        let client = client.with_max_result_bytes(Engine::LARGEST_MAX_RESULT_BYTES);
        Self { scripts: Some(Scripts { client, names, timeout_seconds }), ..self }
    }

    /// Ends the sessions.
    pub async fn close(&self) {
        let server = self.server.as_ref().map(mcp::Client::close);
        let scripts = self.scripts.as_ref().map(|scripts| scripts.client.close());
        tokio::join!(OptionFuture::from(server), OptionFuture::from(scripts));
    }

    /// Lists the scripts beside the tools of the server, and returns both.
    async fn list_all(
        &self,
        server: Option<impl Future<Output = Result<Vec<ListedTool>, mcp::Error>>>,
        within: Duration,
    ) -> Result<Vec<ListedTool>, ListError> {
        let scripts = self.scripts.as_ref().map(|scripts| scripts.client.list_uncached(within));
        let (server, scripts) = tokio::join!(OptionFuture::from(server), OptionFuture::from(scripts));
        let listed = |list: Option<Result<Vec<ListedTool>, mcp::Error>>| {
            list.transpose().map(Option::unwrap_or_default).map_err(|error| list_error(&error))
        };
        let listings = Listings { server: listed(server)?, scripts: listed(scripts)? };
        let tools = self.joined(&listings);
        *self.latest() = Some(listings);
        Ok(tools)
    }

    /// Returns all tools after one source has listed its own again; none if the other source has not listed its tools yet.
    fn relisted(&self, is_of_scripts: bool, listed: Vec<ListedTool>) -> Option<Vec<ListedTool>> {
        let mut latest = self.latest();
        let listings = latest.as_mut()?;
        if is_of_scripts {
            listings.scripts = listed;
        } else {
            listings.server = listed;
        }
        Some(self.joined(listings))
    }

    fn joined(&self, Listings { server, scripts }: &Listings) -> Vec<ListedTool> {
        let of_server = server.iter().filter(|tool| !self.is_script(&tool.name));
        of_server.chain(scripts.iter().filter(|tool| self.is_script(&tool.name))).cloned().collect()
    }

    fn is_script(&self, tool: &str) -> bool {
        self.scripts.as_ref().is_some_and(|scripts| scripts.names.contains(tool))
    }

    fn latest(&self) -> MutexGuard<'_, Option<Listings>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tools for SkillTools {
    async fn list(&self, within: Duration) -> Result<Vec<ListedTool>, ListError> {
        let server = self.server.as_ref().map(|client| client.list(within));
        Box::pin(self.list_all(server, within)).await
    }

    async fn list_uncached(&self, within: Duration) -> Result<Vec<ListedTool>, ListError> {
        let server = self.server.as_ref().map(|client| client.list_uncached(within));
        Box::pin(self.list_all(server, within)).await
    }

    async fn call(&self, call: &ToolCall<'_>, within: Duration, listener: &dyn Fn(ToolProgress)) -> FinishedCall {
        let is_script = self.is_script(call.tool);
        let result = match (self.scripts.as_ref().filter(|_| is_script), &self.server) {
            (Some(Scripts { client, timeout_seconds, .. }), _) => {
                let call = ToolCall { timeout_seconds: Some(*timeout_seconds), ..call.clone() };
                client.call(&call, within, listener).await
            }
            (None, Some(client)) => client.call(call, within, listener).await,
            (None, None) => {
                let text = "The Skill has no MCP server any more, so nothing was sent.".to_owned();
                return FinishedCall::from(Event::ToolFailed { call: call.id.clone(), text });
            }
        };
        let CallResult { outcome, listed } = result;
        let listed = listed.and_then(|listed| self.relisted(is_script, listed));
        FinishedCall { listed, ..finished(call.id.clone(), outcome) }
    }
}

fn finished(call: CallId, outcome: CallOutcome) -> FinishedCall {
    match outcome {
        CallOutcome::Completed { text, structured, media } => {
            FinishedCall { structured, media, ..FinishedCall::from(Event::ToolCompleted { call, text }) }
        }
        CallOutcome::Unread { text } => {
            FinishedCall { is_unread: true, ..FinishedCall::from(Event::ToolCompleted { call, text }) }
        }
        CallOutcome::Failed { text, media } => {
            FinishedCall { media, ..FinishedCall::from(Event::ToolFailed { call, text }) }
        }
        CallOutcome::Indeterminate { text } => FinishedCall::from(Event::ToolIndeterminate { call, text }),
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

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::Digest;
    use bloomery_engine::tool::ToolSource;
    use bloomery_redact::Redactor;
    use serde_json::{Value, json};
    use std::sync::Arc;

    const PLENTY: Duration = Duration::from_mins(1);

    /// A stdio server that answers `tools/list` with `$1` and `tools/call` with `$2`.
    const SERVER: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"method":"tools/list"'*) result=$1 ;;
    *'"method":"tools/call"'*) result=$2 ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

    fn client(name: &str, tools: &[&str]) -> mcp::Client {
        let tool = |tool: &&str| json!({"name": tool, "description": name, "inputSchema": {"type": "object"}});
        let list = json!({"tools": tools.iter().map(tool).collect::<Vec<Value>>()}).to_string();
        let answer = json!({"content": [{"type": "text", "text": name}]}).to_string();
        let argv = ["sh", "-c", SERVER, "sh", &list, &answer].map(str::to_owned).to_vec();
        let env = [("PATH".to_owned(), std::env::var("PATH").unwrap())].into();
        mcp::Client::program(mcp::Program { argv, env, listener: Arc::new(|_: &str| {}) }, Redactor::default())
    }

    fn skill() -> SkillSpec {
        let scripts = json!({"image": "busybox", "files": {"check.sh": "exit 0"}});
        serde_json::from_value(json!({"problem": {"statement": "x"}, "scripts": scripts})).unwrap()
    }

    fn names(tools: &[ListedTool]) -> Vec<(&str, &str)> {
        tools.iter().map(|tool| (tool.name.as_str(), tool.description.as_str())).collect()
    }

    async fn called(tools: &SkillTools, tool: &ListedTool) -> FinishedCall {
        let id = CallId::new(7, 0);
        let call = ToolCall {
            id: &id,
            tool: &tool.name,
            arguments: "{}",
            key: Digest::of_bytes(b"the key"),
            idempotent: false,
            read_only: false,
            sent_before: false,
            source: ToolSource::Server,
            definition: &tool.digest(),
            timeout_seconds: None,
        };
        tools.call(&call, PLENTY, &|_| {}).await
    }

    #[tokio::test]
    async fn a_script_wins_over_a_tool_of_the_server_and_each_call_reaches_its_source() {
        let server = client("server", &["act", "script_check"]);
        let tools = SkillTools::new(Some(server)).with_scripts(client("scripts", &["pay", "script_check"]), &skill());
        let listed = tools.list(PLENTY).await.unwrap();
        let expected = [("act", "server"), ("script_check", "scripts")];
        assert_eq!(names(&listed), expected);
        // The next call of each source begins a session, which lists the tools of this source again.
        tools.close().await;
        for (tool, (_, source)) in listed.iter().zip(expected) {
            let FinishedCall { outcome, listed, .. } = called(&tools, tool).await;
            assert_eq!(outcome, Event::ToolCompleted { call: CallId::new(7, 0), text: source.to_owned() });
            assert_eq!(names(&listed.unwrap()), expected, "a list of one source has the tools of the other one too");
        }
        tools.close().await;
    }

    #[tokio::test]
    async fn a_skill_may_have_scripts_without_a_server() {
        let tools = SkillTools::new(None).with_scripts(client("scripts", &["script_check"]), &skill());
        assert_eq!(names(&tools.list_uncached(PLENTY).await.unwrap()), [("script_check", "scripts")]);
        let unknown = ListedTool { name: "act".into(), ..ListedTool::default() };
        assert!(matches!(called(&tools, &unknown).await.outcome, Event::ToolFailed { .. }));
        tools.close().await;
    }
}
