//! Prints the log of a Job with a reader pod.

use super::logs;
use crate::args::EventsArgs;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::exit::Exit;
use crate::text;
use bloomery_crds::v1alpha1::Job;
use bloomery_embed::cluster::reader;

/// Prints the log of a Job: creates a reader pod, prints its output, and deletes it.
///
/// # Errors
/// If the Job has no log, or the pod cannot read it.
pub(super) async fn read(cluster: &Cluster, job: &Job, args: &EventsArgs) -> Result<Exit, Error> {
    let name = reader::create(cluster, job, args.image.clone(), args.json).await?;
    text::inform(&format!(
        "The reader pod {name} reads the log from the memory (mounted read-only), and is deleted afterwards."
    ));
    let result = tokio::select! {
        result = print_log(cluster, &name) => result,
        _ = tokio::signal::ctrl_c() => Err(Error::new(Exit::Interrupted, "interrupted")),
    };
    if let Err(error) = reader::delete(cluster, &name).await {
        text::report(&error.message);
    }
    result
}

/// Waits for the start of the pod, prints its log, and checks that it ended without an error.
async fn print_log(cluster: &Cluster, name: &str) -> Result<Exit, Error> {
    reader::wait_for_start(cluster, name).await?;
    let has_reader = logs::print(cluster, name, true).await?;
    if has_reader {
        reader::check_end(cluster, name).await?;
    }
    Ok(Exit::Success)
}
