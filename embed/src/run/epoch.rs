//! One epoch of a conversation on this machine: connects its model and its tools, claims the epoch, and drives the conversation.

use super::checked_tools::CheckedTools;
use super::scripts::LocalScripts;
use super::server;
use super::skill::LoadedSkill;
use super::view::RunView;
use crate::error::Error;
use crate::local::memory;
use crate::local::memory_error::log_error;
use crate::local::run_document::McpProgram;
use crate::local::skill_directory::SkillDirectory;
use bloomery_http::address::AddressPolicy;
use bloomery_journal::files::Disk;
use bloomery_mcp as mcp;
use bloomery_models::{Clients, RetryPolicy};
use bloomery_worker::driver::{Children, Environment, Patience, People, SkillTools};
use bloomery_worker::epoch::{Epoch, EpochEnd};
use bloomery_worker::focus;
use bloomery_worker::inputs::Inputs;
use bloomery_worker::printer::Printer;
use bloomery_worker::shared_cache::SharedCache;
use bloomery_worker::stop::Stop;
use bloomery_worker::tool_list_cache::ToolListCache;
use bloomery_worker::tools::CoreTools;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The timeout for closing the sessions with the MCP server and the scripts.
const MCP_CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// An epoch of a conversation on this machine.
#[derive(Debug)]
pub struct LocalEpoch<'a> {
    /// The input of the driver.
    pub inputs: &'a Inputs,
    /// The Skill, if the epoch shows how many findings the lint has about it.
    pub skill: Option<&'a LoadedSkill>,
    /// The MCP server if it is a program.
    pub program: Option<&'a McpProgram>,
    /// True if the scripts of the Skill may run.
    pub allows_scripts: bool,
    /// The directory of the log, in its memory.
    pub directory: &'a SkillDirectory,
    /// The memories of other tenants, which the Job must not read.
    pub other_memories: &'a [PathBuf],
    /// The unique name for the files of this process.
    pub writer: &'a str,
    /// The time for which a failing model or MCP server is retried.
    pub patience: Duration,
    /// The people who can be asked.
    pub people: &'a dyn People,
    /// The children of the Job.
    pub children: &'a dyn Children,
    /// The view of the conversation.
    pub view: &'a dyn RunView,
    /// The requests to stop.
    pub stop: &'a Stop,
}

impl LocalEpoch<'_> {
    /// Drives the conversation until it ends or has to stop. Calls `on_claim` when the epoch has begun. Returns `None` if another process
    /// has taken over the Job.
    ///
    /// # Errors
    /// If the model or the tools cannot be used, or the log cannot be written.
    pub async fn run(&self, printer: Printer, on_claim: impl FnOnce()) -> Result<Option<EpochEnd>, Error> {
        let Self { inputs, directory, writer, patience, people, children, view, stop, .. } = *self;
        let unusable = |error: bloomery_http::Error| Error::invalid(error.to_string());
        // The memory was checked before. From now on, an error of the log is not a mistake in the options.
        let failed = |error: bloomery_journal::Error| Error::failed(log_error(&error).message);
        let (part, redactor) = (&inputs.part, &inputs.redactor);
        let models = Clients::new(
            &part.models,
            &part.job.uid,
            // Nobody corrects a key while a person waits for the run.
            &RetryPolicy::new(patience).without_key_corrections(),
            AddressPolicy::for_local_machine(),
            redactor,
        );
        let models = models.map_err(unusable)?.with_observer(&view.progress());
        // Dropping the scripts removes their files.
        let scripts = LocalScripts::write(&inputs.revision.spec, self.allows_scripts)?;
        let tools = self.tools(scripts.as_ref()).map_err(unusable)?;
        let tools = CheckedTools { tools, skill: self.skill, view };
        let dir = directory.dir.as_path();
        // File tools must not reach the memory, or another one.
        let mut hidden = memory::all_directories(directory.memory());
        hidden
            .extend(self.other_memories.iter().filter(|dir| dir.is_dir()).flat_map(|dir| memory::all_directories(dir)));
        let hidden: Vec<&Path> = hidden.iter().map(PathBuf::as_path).chain([dir]).collect();
        let core =
            CoreTools::for_job(inputs, dir, writer, focus::DEFAULT_BUDGET_BYTES, AddressPolicy::for_local_machine())
                .hiding(&hidden)
                .map_err(|error| failed(bloomery_journal::Error::from_io("hide", dir, error)))?;
        let cache = SharedCache::new(dir, writer);
        let environment = Environment {
            memory: dir,
            writer,
            model: &models,
            tools: &tools,
            core: &core,
            cache: &cache,
            people,
            children,
            stop,
            patience: Patience::new(patience, patience),
        };
        let epoch = match Epoch::claim(Disk, inputs, environment).await {
            Err(bloomery_journal::Error::Superseded { .. }) => return Ok(None),
            claimed => claimed.map_err(failed)?,
        };
        on_claim();
        let end = epoch.drive(view, printer).await;
        // Gives programs time to end by themselves, even after an error of the epoch.
        let _ = tokio::time::timeout(MCP_CLOSE_TIMEOUT, tools.tools.close()).await;
        end.map(Some).map_err(failed)
    }

    /// Creates the clients of the MCP server, and of the scripts.
    fn tools(&self, scripts: Option<&LocalScripts>) -> Result<SkillTools, bloomery_http::Error> {
        let Self { inputs: Inputs { revision, redactor, .. }, view, .. } = *self;
        let server = self.mcp_client()?.map(|server| server.with_observer(&view.progress()));
        let tools = SkillTools::new(server);
        let Some(scripts) = scripts else { return Ok(tools) };
        let client = scripts.client(view.program_output(), redactor.clone()).with_observer(&view.progress());
        Ok(tools.with_scripts(client, &revision.spec))
    }

    /// Creates the client of the MCP server, if the Job has one.
    fn mcp_client(&self) -> Result<Option<mcp::Client>, bloomery_http::Error> {
        let Self { inputs: Inputs { revision, part, redactor, .. }, program, directory, writer, view, .. } = *self;
        let client = server::client(revision.mcp.as_ref(), program, view.program_output(), redactor)?;
        let max_result_bytes = revision.spec.max_result_bytes();
        let client =
            client.map(|client| client.with_max_result_bytes(max_result_bytes).with_resources(&part.resources));
        let Some(endpoint) = revision.mcp.as_ref().filter(|_| program.is_none()) else { return Ok(client) };
        let shared = SharedCache::new(&directory.dir, writer);
        let cache = ToolListCache::new(shared, &endpoint.url, &revision.spec.mcp_server);
        Ok(client.map(|client| client.with_cache(cache)))
    }
}
