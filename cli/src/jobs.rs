//! The commands for Jobs on a cluster: `get`, `events`, `reply`, `cancel`, `wait` and `tree`. They use the kubeconfig and the
//! rights of the user.

mod cancel;
mod client;
mod cluster_command;
mod events;
mod logs;
mod page;
mod reader;
mod reply;
mod show;
mod state;
mod tree;
mod wait;

pub use cluster_command::ClusterCommand;

use crate::args::{CancelArgs, EventsArgs, GetArgs, ReplyArgs, TreeArgs, WaitArgs};
use crate::cluster::block_on;
use crate::error::Error;
use crate::exit::Exit;
use bloomery_embed::cluster::{compose_reply, watch};

/// Shows the named Job, or lists all Jobs.
///
/// # Errors
/// If there is no such Job, or the cluster cannot be read.
pub fn get(args: &GetArgs, command: &ClusterCommand<'_>) -> Result<Exit, Error> {
    block_on(show::get(args, command))
}

/// Prints the events of a Job.
///
/// # Errors
/// If they cannot be read.
pub fn events(args: &EventsArgs, command: &ClusterCommand<'_>) -> Result<Exit, Error> {
    block_on(events::run(args, command))
}

/// Answers a question of a Job, or sends it a message.
///
/// # Errors
/// If the reply cannot be recorded.
pub fn reply(args: &ReplyArgs, command: &ClusterCommand<'_>) -> Result<Exit, Error> {
    block_on(reply::run(args, command))
}

/// Cancels Jobs.
///
/// # Errors
/// If no Job is cancelled. An error for one of several Jobs is reported, and determines the exit code.
pub fn cancel(args: &CancelArgs, command: &ClusterCommand<'_>) -> Result<Exit, Error> {
    block_on(cancel::run(args, command))
}

/// Waits until a Job reaches a state.
///
/// # Errors
/// If it cannot be watched, or the timeout has passed.
pub fn wait(args: &WaitArgs, command: &ClusterCommand<'_>) -> Result<Exit, Error> {
    block_on(wait::run(args, command))
}

/// Shows Skills with their Jobs, and each Job with its Approvals and pods, as a tree.
///
/// # Errors
/// If no Skill or Job has the name, or the cluster cannot be read.
pub fn tree(args: &TreeArgs, command: &ClusterCommand<'_>) -> Result<Exit, Error> {
    block_on(tree::run(args, command))
}
