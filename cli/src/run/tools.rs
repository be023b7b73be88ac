//! Connects a Job to its tools: its MCP server, and the scripts of its Skill.

use super::mcp_environment;
use super::prepare::PreparedJob;
use super::screen::Screen;
use super::scripts::LocalScripts;
use crate::error::Error;
use bloomery_http::address::AddressPolicy;
use bloomery_mcp as mcp;
use bloomery_redact::Redactor;
use bloomery_worker::driver::SkillTools;
use bloomery_worker::shared_cache::SharedCache;
use bloomery_worker::tool_list_cache::ToolListCache;
use std::sync::Arc;

/// Creates the tools of a Job. `scripts` are those that the command line allows.
///
/// # Errors
/// If the MCP server cannot be used.
pub fn connect(
    job: &PreparedJob<'_>,
    scripts: Option<&LocalScripts>,
    redactor: &Redactor,
    screen: &Screen,
) -> Result<SkillTools, Error> {
    let server = mcp_client(job, redactor, screen).map_err(|error| Error::usage(error.to_string()))?;
    let tools = SkillTools::new(server.map(|server| server.with_observer(&screen.observer())));
    let Some(scripts) = scripts else { return Ok(tools) };
    let spec = &job.document.revision.spec;
    let client = scripts.client(listener(screen), redactor.clone()).with_max_result_bytes(spec.max_result_bytes());
    Ok(tools.with_scripts(client.with_observer(&screen.observer()), spec))
}

/// Returns what shows the standard error of a program.
fn listener(screen: &Screen) -> mcp::StderrListener {
    let screen = screen.clone();
    Arc::new(move |line: &str| screen.print_dimmed(line))
}

/// Creates the client of the MCP server, if the Job has one.
fn mcp_client(
    job: &PreparedJob<'_>,
    redactor: &Redactor,
    screen: &Screen,
) -> Result<Option<mcp::Client>, bloomery_http::Error> {
    let (part, revision) = (&job.document.part, &job.document.revision);
    let max_result_bytes = revision.spec.max_result_bytes();
    if let Some(program) = &job.document.program {
        let env = mcp_environment::environment(program);
        let program = mcp::Program { argv: program.argv.clone(), env, listener: listener(screen) };
        let client = mcp::Client::program(program, redactor.clone()).with_max_result_bytes(max_result_bytes);
        return Ok(Some(client.with_resources(&part.resources)));
    }
    let Some(endpoint) = &revision.mcp else { return Ok(None) };
    let client = mcp::Client::restricted(AddressPolicy::for_local_machine(), endpoint, redactor.clone())?;
    let shared = SharedCache::new(&job.directory.dir, &job.writer);
    let cache = ToolListCache::new(shared, &endpoint.url, &revision.spec.mcp_server);
    let client = client.with_max_result_bytes(max_result_bytes).with_resources(&part.resources);
    Ok(Some(client.without_credentials().with_cache(cache)))
}
