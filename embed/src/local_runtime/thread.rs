//! The thread of a Job. The driver of a Job is not `Send`, so each Job has a thread with a runtime of its own.

use super::inbox::Letter;
use super::running::{Place, Printed, RunningJobs};
use crate::error::Error;
use crate::local::job_state::JobState;
use crate::run::execute::{Execution, begin_attempt, tokio_runtime};
use crate::run::options::RunOptions;
use crate::run::prepare::{self, PreparedJob, again};
use crate::run::view::RunView;
use bloomery_crds::report::{ExternalWait, Projection};
use bloomery_http::progress::ProgressObserver;
use bloomery_mcp::StderrListener;
use bloomery_redact::Redactor;
use bloomery_worker::driver::Observer;
use bloomery_worker::inputs::Inputs;
use bloomery_worker::stop::StopReason;
use bloomery_worker::trace::Trace;
use std::io::Write;
use std::sync::Arc;
use std::thread::Builder;
use tokio::sync::oneshot;

/// The size of the stack, in bytes: that of the main thread, on which `bloomery run` drives a Job.
const STACK_BYTES: usize = 8 << 20;

/// The reason why a Job gets a thread.
#[derive(Debug)]
pub(super) enum Begin {
    /// It is new, or its start is repeated.
    New,
    /// It was parked or interrupted, and continues.
    Continue(String),
    /// It was parked or interrupted, and a person has made a statement.
    Resume(String, Letter),
    /// It was parked or interrupted, and is cancelled.
    Cancel(String),
}

/// Starts the thread of a Job. Returns the key of the Job once it is stored and has its place.
///
/// # Errors
/// If the Job cannot be prepared, or too many Jobs run.
pub(super) async fn start(jobs: Arc<RunningJobs>, options: RunOptions, begin: Begin) -> Result<String, Error> {
    jobs.check_capacity()?;
    let (sender, receiver) = oneshot::channel();
    let run = move || match Ready::prepare(&jobs, &options, begin) {
        Ok((key, ready)) => {
            // The caller may have gone. The Job goes on.
            let _ = sender.send(Ok(key));
            if let Some(ready) = ready {
                ready.drive();
            }
        }
        Err(error) => {
            let _ = sender.send(Err(error));
        }
    };
    let spawned = Builder::new().name("job".to_owned()).stack_size(STACK_BYTES).spawn(run);
    spawned.map_err(|error| Error::failed(format!("the thread of the Job cannot be started: {error}")))?;
    receiver.await.unwrap_or_else(|_| Err(Error::failed("the thread of the Job has ended before it began")))
}

/// A Job that can be driven.
#[derive(Debug)]
struct Ready<'a> {
    job: PreparedJob<'a>,
    inputs: Inputs,
    place: Place,
}

impl<'a> Ready<'a> {
    /// Prepares a Job, and takes its place. Returns the key; and the Job, unless it has ended, or has begun already.
    fn prepare(
        jobs: &Arc<RunningJobs>,
        options: &'a RunOptions,
        begin: Begin,
    ) -> Result<(String, Option<Self>), Error> {
        let redactor = Redactor::default();
        let (job, mut inputs) = match &begin {
            Begin::New => match again::stored_job(options, redactor.clone())? {
                Some(stored) => stored,
                None => prepare::new_job(options, redactor)?,
            },
            Begin::Continue(key) | Begin::Resume(key, _) | Begin::Cancel(key) => {
                prepare::resume(options, key, redactor)?
            }
        };
        let key = inputs.part.run_key.clone();
        let state = JobState::read(&job.directory, &inputs)?;
        // Another process may drive a Job that has events. It would stop if this one went on with the Job.
        let has_begun = state.projection.log.events > 0 && matches!(begin, Begin::New);
        if has_begun || state.conversation.outcome().is_some() {
            return Ok((key, None));
        }
        begin_attempt(&job, &mut inputs, &state)?;
        inputs.run.people = true;
        let place = jobs.take_place(&key, inputs.redactor.clone())?;
        match (begin, &place) {
            (Begin::New | Begin::Continue(_), _) => {}
            // If the Job has a place already, another caller has resumed it meanwhile.
            (Begin::Resume(key, letter), _) => drop(jobs.deliver(&key, letter)),
            (Begin::Cancel(_), Some(place)) => place.stop.request(StopReason::Cancelled),
            (Begin::Cancel(key), None) => drop(jobs.cancel(&key)),
        }
        Ok((key, place.map(|place| Self { job, inputs, place })))
    }

    /// Drives the Job until it ends or parks.
    fn drive(self) {
        if let Err(error) = self.run() {
            let (key, skill) = (&self.inputs.part.run_key, &self.job.directory.name);
            tracing::error!("the Job {key} of the Skill {skill} is interrupted: {error}");
        }
    }

    fn run(&self) -> Result<(), Error> {
        let Self { job, inputs, place } = self;
        let runtime = tokio_runtime()?;
        let (view, trace) = (JobView(place.printed()), Trace::default());
        let skills = vec![job.document.revision.skill.clone()];
        let (people, stop) = (&place.inbox, &place.stop);
        let execution = Execution { job, inputs, people, view: &view, trace: &trace, stop, skills };
        execution.open_trace();
        let end = runtime.block_on(Box::pin(execution.drive(execution.text_printer())));
        // A pending name lookup must not keep the thread.
        runtime.shutdown_background();
        end.map(drop)
    }
}

/// Shows nothing, because hosts read the log. It only reports that events are durable.
#[derive(Debug)]
struct JobView(Printed);

impl Observer for JobView {
    fn state_changed(&self, _: Projection) {}

    fn waiting(&self, _: Option<ExternalWait>) {}
}

impl RunView for JobView {
    fn print(&self, lines: &str) {
        tracing::warn!("{lines}");
    }

    fn print_progress(&self, _: &str) {}

    fn progress(&self) -> ProgressObserver {
        ProgressObserver::default()
    }

    fn program_output(&self) -> StderrListener {
        Arc::new(|_: &str| {})
    }

    fn events(&self) -> Box<dyn Write + Send> {
        Box::new(self.0.clone())
    }
}
