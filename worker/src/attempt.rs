//! One attempt of one Job on a cluster, from its inputs to its end.

use crate::driver::{Decided, Exit, Model, Patience, People, Tools};
use crate::epoch::{Company, Ended, Epoch, Ground};
use crate::inputs::{self, Inputs};
use crate::printer::{Behind, Printer};
use crate::reach::{ApiServer, Reach};
use crate::recent::Recent;
use crate::report::{self, Reporter};
use crate::settings::RunArgs;
use crate::stop::Stop;
use crate::trace::{self, Trace};
use crate::{ending, http, mcp, model, skill_file};
use bloomery_journal::files::{Disk, Files};
use bloomery_redact::Redactor;
use std::sync::Arc;
use std::time::Duration;

/// How long the end of the session with the MCP server may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// Why there was no epoch, or why it is over without an end that was told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run document cannot be used.
    #[error(transparent)]
    Inputs(#[from] inputs::Error),
    /// The log cannot be read or written.
    #[error(transparent)]
    Log(#[from] bloomery_journal::Error),
    /// Nothing can be sent to a server that the run needs.
    #[error(transparent)]
    Http(#[from] http::Error),
    /// Nothing can be reported.
    #[error("{0}")]
    Report(String),
    /// Nothing can be printed.
    #[error("nothing can be printed: {0}")]
    Output(std::io::Error),
    /// The worker would not notice that its pod is to end.
    #[error("signals cannot be handled: {0}")]
    Signals(std::io::Error),
}

/// Runs the attempt that `args` describe, into `trace` too; returns once its end is told. `redactor` is what the log of
/// this process is written through, and learns the Job's secrets.
///
/// # Errors
/// If the epoch could not begin or could not go on. The log has what happened until then, and the reason is left
/// as the termination message.
pub async fn run(args: &RunArgs, trace: &Trace, redactor: &Redactor) -> Result<Exit, Error> {
    let ran = Box::pin(prepare_and_run(args, trace, redactor)).await;
    if let Err(error) = &ran {
        ending::leave_failure(&redactor.text(&error.to_string()), &args.termination_log);
    }
    ran
}

async fn prepare_and_run(args: &RunArgs, trace: &Trace, redactor: &Redactor) -> Result<Exit, Error> {
    redactor.watch("report token", &args.token);
    let mut inputs = Inputs::read(args, redactor.clone())?;
    // Whoever can write the Job can answer.
    inputs.people = true;
    let stop = Stop::default();
    stop.listen().map_err(Error::Signals)?;
    let part = &inputs.part;
    if let Err(error) = trace.open(&args.memory, &part.run_key) {
        tracing::warn!("there will be no trace in the memory's {}: {error}", trace::DIR);
    }
    let outside = Duration::from_secs(args.patience);
    let models = model::Clients::new(&part.models, &part.job.uid, &model::Patience::of(outside), redactor)?;
    let tools = tools(args, &inputs, redactor)?;
    let stdout = Behind::new(std::io::stdout()).map_err(Error::Output)?;
    let people = Arc::new(Decided::new(&part.approvals, &part.replies));
    let host = Host {
        files: Disk,
        model: &models,
        tools: &tools,
        people: people.as_ref(),
        inbox: Arc::clone(&people),
        printer: Printer::new(args.log_format, Box::new(redactor.writer(trace.tee(stdout)))),
        patience: Patience::of(outside),
        stop,
    };
    let exit = attempt(args, &inputs, host).await;
    if let Some(tools) = &tools {
        // A courtesy to the server, not worth a wait.
        let _ = tokio::time::timeout(GOODBYE, tools.close()).await;
    }
    exit
}

/// The client of the Skill's MCP server.
fn tools(args: &RunArgs, inputs: &Inputs, redactor: &Redactor) -> Result<Option<mcp::Client>, http::Error> {
    let Some(endpoint) = &inputs.revision.mcp else { return Ok(None) };
    let recent = Recent::new(&args.memory, &args.pod_uid);
    let client = mcp::Client::new(endpoint, redactor.clone())?.telling(&inputs.part.resources);
    Ok(Some(client.keeping(recent, &inputs.revision.spec.mcp_server)))
}

/// What an attempt runs on.
#[derive(Debug)]
pub struct Host<'a, M, T, F> {
    /// The file system that holds the memory.
    pub files: F,
    /// The models.
    pub model: &'a M,
    /// The Skill's tools.
    pub tools: &'a T,
    /// Who decides and answers.
    pub people: &'a dyn People,
    /// Where what people have said meanwhile is put, as the operator tells it.
    pub inbox: Arc<Decided>,
    /// Where events are printed.
    pub printer: Printer,
    /// How long to wait for what.
    pub patience: Patience,
    /// The request to stop.
    pub stop: Stop,
}

/// Runs an attempt on a host.
pub async fn attempt<M: Model, T: Tools, F: Files>(
    args: &RunArgs,
    inputs: &Inputs,
    host: Host<'_, M, T, F>,
) -> Result<Exit, Error> {
    let Host { files, model, tools, people, inbox, printer, patience, stop } = host;
    let part = &inputs.part;
    let Some(endpoint) = &part.report else {
        return Err(Error::Report("the Job's part names no endpoint for reports".to_owned()));
    };
    let client = report::Client::new(endpoint, args.token.clone(), inputs.redactor.clone()).map_err(Error::Report)?;
    let api_server = ApiServer::told(std::env::var("KUBERNETES_SERVICE_HOST").ok().as_deref()).await;
    let reach = Reach::of_namespace(&part.job.namespace, args.endpoint_range.clone()).without_api_server(api_server);
    let ground = Ground {
        memory: &args.memory,
        writer: &args.pod_uid,
        focus_cache_bytes: args.focus_cache_bytes,
        reach: &reach,
        // No Job may bind the claim that it lies on.
        hidden: &[],
    };
    let epoch = Epoch::claim(files, inputs, ground, patience.outside).await?;
    let number = epoch.number();
    if number == 1 {
        keep_skill(epoch.files(), args, inputs);
    }
    let sender = report::Sender { job: part.job.clone(), attempt: part.attempt, epoch: number };
    let reporter = Reporter::start(client, sender, epoch.projection(), stop.clone(), inbox);
    let company = Company { model, tools, people, audience: &reporter, stop: &stop, printer, patience };
    let Ended { exit, projection, hold, result: _ } = epoch.drive(company).await?;
    if let Some(hold) = hold {
        reporter.held(hold);
    }
    ending::tell(exit, projection, inputs, &args.termination_log, (number, reporter, &stop)).await;
    Ok(exit)
}

/// For people; no reason to fail.
fn keep_skill(files: &impl Files, args: &RunArgs, inputs: &Inputs) {
    let (revision, digest) = (&inputs.revision, &inputs.part.revision);
    if let Err(error) = skill_file::keep(files, &args.memory, revision, digest, &args.pod_uid) {
        tracing::error!("{} cannot be written: {error}", skill_file::NAME);
    }
}
