//! One attempt of one Job, from its inputs to its end.

use crate::driver::{Driver, Exit, Journal, Model, Patience, Tools, World};
use crate::focus::FocusCache;
use crate::inputs::{self, Inputs};
use crate::log::files::{Disk, Files};
use crate::log::{self, Claimed, Store, claim};
use crate::printer::Printer;
use crate::record::Record;
use crate::report::{self, Reporter};
use crate::settings::RunArgs;
use crate::stop::Stop;
use crate::tools::CoreTools;
use crate::{ending, http, mcp, model, skill_file};
use bloomery_engine::Conversation;
use bloomery_engine::line::Chain;
use bloomery_engine::projection::project;
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
    Log(#[from] log::Error),
    /// Nothing can be sent to a server that the run needs.
    #[error(transparent)]
    Http(#[from] http::Error),
    /// Nothing can be reported.
    #[error("{0}")]
    Report(String),
    /// The worker would not notice that its pod is to end.
    #[error("signals cannot be handled: {0}")]
    Signals(std::io::Error),
}

/// Runs the attempt that `args` describe; returns once its end is told.
///
/// # Errors
/// If the epoch could not begin or could not go on. The log has what happened until then, and the reason is left
/// as the termination message.
pub async fn run(args: &RunArgs) -> Result<Exit, Error> {
    let ran = Box::pin(prepare_and_run(args)).await;
    if let Err(error) = &ran {
        ending::leave_failure(&error.to_string(), &args.termination_log);
    }
    ran
}

async fn prepare_and_run(args: &RunArgs) -> Result<Exit, Error> {
    let inputs = Inputs::read(args)?;
    let stop = Stop::default();
    stop.listen().map_err(Error::Signals)?;
    let part = &inputs.part;
    let outside = Duration::from_secs(args.patience);
    let models = model::Clients::new(&part.models, &part.job.uid, &model::Patience::of(outside))?;
    let tools = inputs.revision.mcp.as_ref().map(mcp::Client::new).transpose()?;
    let host = Host {
        files: Disk,
        model: &models,
        tools: &tools,
        printer: Printer::new(args.log_format, Box::new(std::io::stdout())),
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

/// What an attempt runs on.
#[derive(Debug)]
pub struct Host<'a, M, T, F> {
    /// The file system that holds the memory.
    pub files: F,
    /// The models.
    pub model: &'a M,
    /// The Skill's tools.
    pub tools: &'a T,
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
    let Host { files, model, tools, printer, patience, stop } = host;
    let part = &inputs.part;
    let client = report::Client::new(&part.report, args.token.clone()).map_err(Error::Report)?;
    let store = Store::open(files, &args.memory, &part.run_key, &args.pod_uid)?;
    let mut conversation = Conversation::new(inputs.run());
    let chain = Chain::new(inputs.source()).knowing(part.log.as_ref());
    let claimed = claim(store, chain, &mut conversation, part.attempt, patience.outside).await?;
    let epoch = conversation.epoch();
    if epoch == 1 {
        keep_skill(&claimed, args, inputs);
    }
    let reporter = start_reports(client, &claimed, &conversation, inputs, &stop);
    let core = CoreTools::new(FocusCache::new(&args.memory, &args.pod_uid, args.focus_cache_bytes));
    let world = World { model, tools, core: &core, reporter: &reporter, stop: &stop, patience };
    let journal = Journal::new(claimed, printer, conversation.calls());
    let mut driver = Driver::new(conversation, journal, world);
    let exit = driver.run().await?;
    let projection = driver.projection();
    if exit == Exit::Finished {
        keep_record(&driver, args, inputs);
    }
    ending::tell(exit, projection, part, &args.termination_log, (epoch, reporter, &stop)).await;
    Ok(exit)
}

fn start_reports<F: Files>(
    client: report::Client,
    claimed: &Claimed<F>,
    conversation: &Conversation,
    inputs: &Inputs,
    stop: &Stop,
) -> Reporter {
    let first = project(conversation, claimed.log.position());
    let sender =
        report::Sender { job: inputs.part.job.clone(), attempt: inputs.part.attempt, epoch: conversation.epoch() };
    Reporter::start(client, sender, first, stop.clone())
}

/// For people; no reason to fail.
fn keep_skill<F: Files>(claimed: &Claimed<F>, args: &RunArgs, inputs: &Inputs) {
    let files = claimed.log.files();
    let (revision, digest) = (&inputs.revision, &inputs.part.revision);
    if let Err(error) = skill_file::keep(files, &args.memory, revision, digest, &args.pod_uid) {
        tracing::error!("{} cannot be written: {error}", skill_file::NAME);
    }
}

/// The log says all that the record does, so a record that cannot be written is no reason to fail.
fn keep_record<M: Model, T: Tools, F: Files>(driver: &Driver<'_, M, T, F>, args: &RunArgs, inputs: &Inputs) {
    let record = Record::new(&inputs.part, driver.conversation(), driver.projection());
    if let Err(error) = record.write(driver.files(), &args.memory, &inputs.part.run_key, &args.pod_uid) {
        tracing::error!("the Job's record cannot be written: {error}");
    }
}
