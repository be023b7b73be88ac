//! Runs one attempt of one Job on a cluster: reads the run document, runs an epoch, and reports the end. An attempt is one pod of the
//! Job.

use crate::children::PodChildren;
use crate::driver::{ChildDesk, DecisionInbox, Environment, Exit, Model, Patience, SkillTools, Tools};
use crate::ending::AttemptEnd;
use crate::epoch::{Epoch, EpochEnd};
use crate::housekeeping::{Housekeeper, SurveyLink};
use crate::inputs::{self, Inputs};
use crate::printer::{BackgroundWriter, Printer};
use crate::report::{self, Reporter};
use crate::settings::RunArgs;
use crate::shared_cache::SharedCache;
use crate::stop::Stop;
use crate::tool_list_cache::ToolListCache;
use crate::tools::CoreTools;
use crate::trace::{self, Trace};
use crate::validation::{self, Scratch};
use crate::{ended_run, ending, skill_file};
use bloomery_crds::pod::{MCP_CONTAINER, SCRIPTS_CONTAINER};
use bloomery_crds::report::MemoryFault;
use bloomery_crds::run::Revision;
use bloomery_http::address::AddressPolicy;
use bloomery_journal::files::{Disk, Files};
use bloomery_mcp::{self as mcp, ServerTokens};
use bloomery_models as model;
use bloomery_redact::Redactor;
use std::sync::Arc;
use std::time::Duration;

/// The name of the directory for the memories of tests, in the temporary directory of the pod.
const SCRATCH: &str = "bloomery-tests";

/// The time limit for closing the session with the MCP server.
pub(crate) const SESSION_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The time that the end of a run waits for the first survey of the Skill's memory. Most runs take longer than the survey.
const SURVEY_TIMEOUT: Duration = Duration::from_secs(1);

/// The time that a worker which has reported its end may take to prune logs.
const PRUNE_TIMEOUT: Duration = Duration::from_secs(10);

/// The error of an attempt that could not begin or continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run document cannot be used.
    #[error(transparent)]
    Inputs(#[from] inputs::Error),
    /// The log cannot be read or written.
    #[error(transparent)]
    Log(#[from] bloomery_journal::Error),
    /// The record of an ended run cannot be read.
    #[error(
        "the log of the run key was deleted, and the record of its run cannot be read: {0}. Restore the record, or create the Job again with \
         another runKey"
    )]
    Record(std::io::Error),
    /// An HTTP client cannot be set up.
    #[error(transparent)]
    Http(#[from] bloomery_http::Error),
    /// The Job's part of the run document has no endpoint for reports.
    #[error("the Job's part of the run document has no endpoint for reports")]
    NoReportEndpoint,
    /// The client for reports cannot be set up.
    #[error(transparent)]
    Report(#[from] report::Error),
    /// The thread that writes to stdout cannot be started.
    #[error("the thread that writes to stdout cannot be started: {0}")]
    Output(std::io::Error),
    /// The handlers for signals cannot be installed.
    #[error("the signal handlers cannot be installed: {0}")]
    Signals(std::io::Error),
}

/// Runs the attempt that `args` describe, and returns once its end is reported. Its output is also written to `trace`. The Job's secrets
/// are registered with `redactor`, through which the caller writes the diagnostics of this process.
///
/// # Errors
/// If the epoch could not begin or continue. The log has the events until then, and the termination message has the error.
pub async fn run(args: &RunArgs, trace: &Trace, redactor: &Redactor) -> Result<Exit, Error> {
    let result = Box::pin(prepare_and_run(args, trace, redactor)).await;
    if let Err(error) = &result {
        let text = error.to_string();
        let failure = redactor.redact_text(&text);
        match memory_fault(error, args, &failure) {
            Some(fault) => ending::write_memory_fault(&fault, &args.termination_log),
            None => ending::write_failure(&failure, &args.termination_log),
        }
    }
    result
}

/// Returns the termination message of an attempt that ended because the memory cannot be written. Another pod may find it writable.
pub(crate) fn memory_fault(error: &Error, args: &RunArgs, failure: &str) -> Option<MemoryFault> {
    let is_fault = match error {
        Error::Log(bloomery_journal::Error::NotWritable { .. } | bloomery_journal::Error::ReadOnly { .. }) => true,
        Error::Record(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
        _ => false,
    };
    if !is_fault {
        return None;
    }
    let part = inputs::read_job_part(args).ok()?;
    Some(MemoryFault { job: part.job.uid, attempt: part.attempt, not_writable: failure.to_owned() })
}

async fn prepare_and_run(args: &RunArgs, trace: &Trace, redactor: &Redactor) -> Result<Exit, Error> {
    redactor.watch("report token", &args.token);
    let mut inputs = Inputs::read(args, redactor.clone())?;
    // People can answer in the Job's spec.
    inputs.run.people = true;
    let stop = Stop::default();
    stop.listen().map_err(Error::Signals)?;
    let part = &inputs.part;
    if let Err(error) = trace.open(&args.memory, &part.run_key) {
        tracing::warn!("the trace cannot be written to `{}` in the Skill's memory: {error}", trace::DIR);
    }
    let external_wait = Duration::from_secs(args.patience);
    let addresses = args.addresses.policy(&part.job.namespace).await;
    let retry_policy = model::RetryPolicy::new(external_wait);
    let models = model::Clients::new(&part.models, &part.job.uid, &retry_policy, addresses.clone(), redactor)?;
    let cache = SharedCache::new(&args.memory, &args.pod_uid);
    let server_tokens = ServerTokens::new(redactor.clone());
    let server = mcp_client(&inputs, cache.clone(), addresses.clone(), &server_tokens)?;
    let tools = with_scripts(SkillTools::new(server), &inputs)?;
    let scratch =
        Scratch { dir: std::env::temp_dir().join(SCRATCH), addresses: addresses.clone(), trace: trace.clone() };
    let core = core_tools(args, &inputs, addresses);
    let inbox = Arc::new(DecisionInbox::new(&part.approvals, &part.replies));
    let desk = Arc::new(ChildDesk::new(&part.children));
    let client = report_client(args, &inputs)?.with_server_tokens(server_tokens);
    let children = PodChildren::new(&inputs, client.clone(), Arc::clone(&desk));
    let environment = Environment {
        memory: &args.memory,
        writer: &args.pod_uid,
        model: &models,
        tools: &tools,
        core: &core,
        cache: &cache,
        people: inbox.as_ref(),
        children: &children,
        stop: &stop,
        patience: Patience::new(external_wait, Duration::from_secs(args.secret_wait)),
    };
    let stdout = BackgroundWriter::new(std::io::stdout()).map_err(Error::Output)?;
    let printer = Printer::new(args.log_format, Box::new(redactor.writer(trace.tee(stdout))));
    let attempt = Attempt { args, inputs: &inputs, inbox: Arc::clone(&inbox), desk, client, scratch };
    let exit = Box::pin(attempt.run(Disk, environment, printer)).await;
    // Lets the servers free the sessions at once. Otherwise a session stays until it expires.
    let _ = tokio::time::timeout(SESSION_CLOSE_TIMEOUT, tools.close()).await;
    exit
}

/// Creates the core tools of the Job, with the memory and the bounds of the command line.
pub(crate) fn core_tools(args: &RunArgs, inputs: &Inputs, addresses: AddressPolicy) -> CoreTools {
    CoreTools::for_job(inputs, &args.memory, &args.pod_uid, args.focus_cache_bytes, addresses)
}

/// Creates the client for reports.
fn report_client(args: &RunArgs, inputs: &Inputs) -> Result<report::Client, Error> {
    let endpoint = inputs.part.report.as_ref().ok_or(Error::NoReportEndpoint)?;
    Ok(report::Client::new(endpoint, args.token.clone(), inputs.redactor.clone())?)
}

/// Creates the client of the Skill's MCP server.
fn mcp_client(
    inputs: &Inputs,
    cache: SharedCache,
    addresses: AddressPolicy,
    tokens: &ServerTokens,
) -> Result<Option<mcp::Client>, bloomery_http::Error> {
    let Some(endpoint) = &inputs.revision.mcp else { return Ok(None) };
    let redactor = inputs.redactor.clone();
    let client = match &inputs.revision.spec.mcp_server {
        Some(server) if server.uri.is_some() => {
            let external = inputs.part.external_mcp.clone().unwrap_or_default();
            mcp::Client::external(addresses, endpoint, &external, redactor)
        }
        Some(server) if server.requires_token() => mcp::Client::with_token(endpoint, tokens.clone(), redactor)?,
        Some(server) if server.takes_token() => mcp::Client::with_token(endpoint, tokens.clone().optional(), redactor)?,
        Some(server) if server.sidecar().is_some() => mcp::Client::new(endpoint, redactor)?.as_sidecar(MCP_CONTAINER),
        _ => mcp::Client::restricted(addresses, endpoint, redactor)?,
    };
    let client = client.with_resources(&inputs.part.resources);
    let client = client.with_max_result_bytes(inputs.revision.spec.max_result_bytes());
    Ok(Some(client.with_cache(ToolListCache::new(cache, &endpoint.url, &inputs.revision.spec.mcp_server))))
}

/// Adds the scripts of the Skill, which run in a sidecar of this pod.
fn with_scripts(tools: SkillTools, inputs: &Inputs) -> Result<SkillTools, bloomery_http::Error> {
    let Revision { spec, scripts: Some(endpoint), .. } = &inputs.revision else { return Ok(tools) };
    let client = mcp::Client::new(endpoint, inputs.redactor.clone())?.as_sidecar(SCRIPTS_CONTAINER);
    Ok(tools.with_scripts(client, spec))
}

/// An attempt whose run document is checked.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// The command line.
    pub args: &'a RunArgs,
    /// The run document.
    pub inputs: &'a Inputs,
    /// Receives the replies of people that the operator passes on.
    pub inbox: Arc<DecisionInbox>,
    /// Receives the states of children that the operator passes on.
    pub desk: Arc<ChildDesk>,
    /// Sends reports to the operator.
    pub client: report::Client,
    /// The scratch directory of the tests of features. They do not use the memory of the Skill.
    pub scratch: Scratch,
}

impl Attempt<'_> {
    /// Runs the attempt's epoch in an environment, and reports its state and its end.
    ///
    /// # Errors
    /// If the epoch could not begin or continue.
    pub async fn run<M: Model, T: Tools, F: Files>(
        self,
        files: F,
        environment: Environment<'_, M, T>,
        printer: Printer,
    ) -> Result<Exit, Error> {
        let Self { args, inputs, inbox, desk, client, scratch } = self;
        let part = &inputs.part;
        let (stop, memory) = (environment.stop, environment.memory);
        if let Some(projection) = ended_run::projection(inputs, environment.memory).map_err(Error::Record)? {
            let end = AttemptEnd { exit: Exit::Finished, projection, epoch: 1 };
            let identity = report::Identity { job: part.job.clone(), attempt: part.attempt, epoch: end.epoch };
            let link = SurveyLink::unconnected();
            let reporter = Reporter::start(client, identity, end.projection.clone(), stop.clone(), (inbox, desk, link));
            ending::report(end, inputs, &args.termination_log, reporter, stop).await;
            return Ok(Exit::Finished);
        }
        let epoch = Epoch::claim(files, inputs, environment).await?;
        let number = epoch.number();
        if number == 1 {
            write_skill(epoch.files(), args, inputs);
        }
        let identity = report::Identity { job: part.job.clone(), attempt: part.attempt, epoch: number };
        let (mut housekeeper, link) = Housekeeper::start(memory, &part.run_key, args.log_bounds());
        let reporter = Reporter::start(client, identity, epoch.projection(), stop.clone(), (inbox, desk, link));
        let end = if part.validates {
            Box::pin(validation::run(epoch, &reporter, printer, &scratch)).await?
        } else {
            epoch.drive(&reporter, printer).await?
        };
        let EpochEnd { exit, projection, hold, result: _, scripts: _ } = end;
        if let Some(hold) = hold {
            reporter.set_held_call(hold);
        }
        let end = AttemptEnd { exit, projection, epoch: number };
        housekeeper.wait_for_survey(SURVEY_TIMEOUT).await;
        ending::report(end, inputs, &args.termination_log, reporter, stop).await;
        housekeeper.finish(PRUNE_TIMEOUT).await;
        Ok(exit)
    }
}

/// Writes a copy of the Skill to its memory, for people. A failure does not fail the Job.
fn write_skill(files: &impl Files, args: &RunArgs, inputs: &Inputs) {
    let (revision, digest) = (&inputs.revision, &inputs.part.revision);
    if let Err(error) = skill_file::write(files, &args.memory, revision, digest, &args.pod_uid) {
        tracing::error!("{} cannot be written: {error}", skill_file::NAME);
    }
}

#[cfg(test)]
mod tests;
