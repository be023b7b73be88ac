//! What people do with Jobs on a cluster: see them, answer them, end them, wait for them. Through their own kubeconfig, with
//! their own rights.

mod cancel;
mod desk;
mod events;
#[cfg(test)]
mod fixtures;
mod logs;
mod page;
mod reader;
mod reply;
mod rest;
mod say;
mod show;
mod tree;
mod wait;
mod watch;
mod way;

pub use rest::unasked;
pub use way::Way;

use crate::args::{CancelArgs, EventsArgs, GetArgs, ReplyArgs, TreeArgs, WaitArgs};
use crate::cluster::on_a_runtime;
use crate::exit::{Exit, Trouble};

/// Shows a Job, or lists all.
///
/// # Errors
/// If there is no such Job, or the cluster does not tell.
pub fn get(args: &GetArgs, way: &Way<'_>) -> Result<Exit, Trouble> {
    on_a_runtime(show::get(args, way))
}

/// Prints the events of a Job.
///
/// # Errors
/// If they cannot be read.
pub fn events(args: &EventsArgs, way: &Way<'_>) -> Result<Exit, Trouble> {
    on_a_runtime(events::run(args, way))
}

/// Answers a question of a Job, or says something to it.
///
/// # Errors
/// If it is not said, with the reason.
pub fn reply(args: &ReplyArgs, way: &Way<'_>) -> Result<Exit, Trouble> {
    on_a_runtime(reply::run(args, way))
}

/// Ends Jobs.
///
/// # Errors
/// If one is not ended, with the reason.
pub fn cancel(args: &CancelArgs, way: &Way<'_>) -> Result<Exit, Trouble> {
    on_a_runtime(cancel::run(args, way))
}

/// Waits for a Job.
///
/// # Errors
/// If it cannot be watched, or the time is up.
pub fn wait(args: &WaitArgs, way: &Way<'_>) -> Result<Exit, Trouble> {
    on_a_runtime(wait::run(args, way))
}

/// Shows Skills with their Jobs, and these with what belongs to them.
///
/// # Errors
/// If there is nothing of the name, or the cluster does not tell.
pub fn tree(args: &TreeArgs, way: &Way<'_>) -> Result<Exit, Trouble> {
    on_a_runtime(tree::run(args, way))
}
