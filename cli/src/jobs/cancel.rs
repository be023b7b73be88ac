//! `bloomery cancel`: cancels Jobs.

use super::client::{self, Client};
use super::cluster_command::ClusterCommand;
use super::{show, state, wait};
use crate::args::{CancelArgs, WaitTarget};
use crate::error::Error;
use crate::exit::Exit;
use crate::{output, terminal, text};
use bloomery_crds::outcome::Phase;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::Job;
use kube::ResourceExt;

/// The maximum length of a goal in the confirmation, in bytes.
const MAX_GOAL_BYTES: usize = 120;

/// The note for Jobs whose pod may be running.
const RUNNING_NOTE: &str = "A running pod is asked to stop. A tool call in progress gets a short grace period, and is then \
                            recorded as indeterminate. ";

/// The note for all Jobs.
const FINAL_NOTE: &str = "A cancellation cannot be undone.";

/// Cancels Jobs: finds them, asks for confirmation, and requests the cancellation of each. With `--wait`, waits for their end.
pub(super) async fn run(args: &CancelArgs, command: &ClusterCommand<'_>) -> Result<Exit, Error> {
    if !args.yes && !terminal::is_interactive() {
        return Err(Error::usage("there is no terminal to ask for confirmation: use --yes"));
    }
    let client = client::open(command).await?;
    let jobs = find_jobs(args, &client).await?;
    let mut exit_codes = Vec::new();
    let (ended, live): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(state::has_ended);
    for job in &ended {
        text::inform(&format!("The Job {} has already ended: {}", job.name_any(), state::summary(job)));
        exit_codes.push(exit_code(job));
    }
    let (mut cancelled, to_cancel): (Vec<Job>, Vec<Job>) =
        live.into_iter().partition(|job| job.spec.cancel == Some(true));
    for job in &cancelled {
        text::inform(&format!("The Job {} is already being cancelled.", job.name_any()));
    }
    confirm(args, &to_cancel).await?;
    for job in to_cancel {
        match client.cancel(&job).await {
            Ok(job) => {
                print_status(args, &job, "is being cancelled")?;
                cancelled.push(job);
            }
            Err(error) => exit_codes.push(report_error(&error.into())),
        }
    }
    if args.wait {
        for job in &mut cancelled {
            exit_codes.push(wait_for_end(args, &client, job).await?);
        }
    }
    print_objects(args, &cancelled)?;
    let first_failure = exit_codes.into_iter().find(|exit| *exit != Exit::Success);
    Ok(first_failure.unwrap_or(Exit::Success))
}

/// Shows the Jobs, and asks for confirmation unless `--yes` is given.
///
/// # Errors
/// If the user does not confirm.
async fn confirm(args: &CancelArgs, jobs: &[Job]) -> Result<(), Error> {
    let question = match jobs {
        [] => return Ok(()),
        [_] => "Cancel it? yes or no: ".to_owned(),
        several => format!("Cancel these {}? yes or no: ", several.len()),
    };
    anstream::eprint!("{}", confirmation_text(jobs));
    if args.yes || terminal::confirm(question).await? {
        return Ok(());
    }
    Err(Error::failed("nothing was cancelled"))
}

/// Waits until a cancelled Job has ended, and prints its state. Updates `job`, and returns the exit code. Reports a failed wait.
async fn wait_for_end(args: &CancelArgs, client: &Client, job: &mut Job) -> Result<Exit, Error> {
    match wait::wait_until(client, job, Some(WaitTarget::Ended), args.timeout).await {
        Ok(ended) => {
            *job = ended;
            print_status(args, job, &state::summary(job))?;
            Ok(exit_code(job))
        }
        Err(error) => Ok(report_error(&error)),
    }
}

/// Reads the named Jobs. A Job that is named twice is returned once.
///
/// # Errors
/// All errors, at once.
async fn find_jobs(args: &CancelArgs, client: &Client) -> Result<Vec<Job>, Error> {
    let (mut jobs, mut errors): (Vec<Job>, Vec<Error>) = (Vec::new(), Vec::new());
    for name in &args.jobs {
        match client.job(name).await {
            Ok(job) if jobs.iter().any(|known| known.name_any() == job.name_any()) => {}
            Ok(job) => jobs.push(job),
            Err(error) => errors.push(error.into()),
        }
    }
    if errors.is_empty() { Ok(jobs) } else { Err(Error::join(errors)) }
}

/// Prints the cancelled Jobs in the format of `--output`, if it is given.
fn print_objects(args: &CancelArgs, jobs: &[Job]) -> Result<(), Error> {
    match (args.output, jobs) {
        (None, _) | (_, []) => Ok(()),
        (Some(format), [job]) => output::print(&show::format_job(job, format)?),
        (Some(format), jobs) => {
            output::print(&show::format_list(&jobs.iter().map(show::list_item).collect::<Vec<_>>(), format)?)
        }
    }
}

/// Prints the state of a Job, unless `--output` is given.
fn print_status(args: &CancelArgs, job: &Job, status: &str) -> Result<(), Error> {
    match args.output {
        Some(_) => Ok(()),
        None => output::print(&format!("job.bloomery.dev/{} {status}\n", job.name_any())),
    }
}

/// Reports an error of one Job, and returns the exit code of the error.
fn report_error(error: &Error) -> Exit {
    text::report(&error.message);
    error.exit
}

/// Describes the Jobs for the confirmation.
fn confirmation_text(jobs: &[Job]) -> String {
    let line = |job: &Job| {
        let goal = text::sanitized_line(&bounded(&job.spec.goal, MAX_GOAL_BYTES));
        format!("{}  {}  {goal}\n", job.name_any(), state::phase(job))
    };
    let is_running = |job: &Job| matches!(state::phase(job), Phase::Starting | Phase::Running | Phase::Finalizing);
    let running_note = if jobs.iter().any(is_running) { RUNNING_NOTE } else { "" };
    let jobs: String = jobs.iter().map(line).collect();
    format!("{jobs}{running_note}{FINAL_NOTE}\n")
}

/// Returns the exit code for a Job that has ended: the cancellation came too late if the Job has ended otherwise.
fn exit_code(job: &Job) -> Exit {
    if state::phase(job) == Phase::Cancelled { Exit::Success } else { Exit::TooLate }
}
