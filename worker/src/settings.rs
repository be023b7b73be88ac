//! The command line. It names the files of the run document, which contains all settings that affect the conversation.

use crate::printer::Format;
use bloomery_crds::Digest;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Runs one attempt of one Job of Bloomery.
#[derive(Debug, Parser)]
#[command(name = "bloomery-worker", version)]
pub struct Settings {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of the worker.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs a conversation from its log to its end, or until it has to stop.
    Run(Box<RunArgs>),
    /// Prints the events of a log, as `kubectl bloomery events` has it read in a pod of its own. Nothing is written.
    Events(EventsArgs),
}

/// The arguments of `events`.
#[derive(Debug, Clone, Args)]
pub struct EventsArgs {
    /// Directory of the log.
    pub dir: PathBuf,
    /// How events are printed to stdout.
    #[arg(long, value_enum, default_value_t)]
    pub log_format: Format,
}

/// The arguments of `run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// File of the compiled Skill.
    #[arg(long)]
    pub revision: PathBuf,
    /// Digest of the compiled Skill; anything else is refused.
    #[arg(long)]
    pub revision_digest: Digest,
    /// File of the Job's part of the run document.
    #[arg(long)]
    pub job: PathBuf,
    /// Digest of the Job's part; anything else is refused.
    #[arg(long)]
    pub job_digest: Digest,
    /// Directory of the Skill's memory.
    #[arg(long)]
    pub memory: PathBuf,
    /// File of the projected token for reports.
    #[arg(long)]
    pub token: PathBuf,
    /// UID of the pod: makes what this worker writes its own.
    #[arg(long)]
    pub pod_uid: String,
    /// File that the kubelet reads the termination message from.
    #[arg(long, default_value = "/dev/termination-log")]
    pub termination_log: PathBuf,
    /// How events are printed to stdout.
    #[arg(long, value_enum, default_value_t)]
    pub log_format: Format,
    /// How many seconds a model or an MCP server that gives no answer, or a missing key, is waited for. With the last
    /// try it must fit into the 300 s that the pod has beyond the Job's duration.
    #[arg(long, default_value_t = 180)]
    pub patience: u64,
    /// How many bytes the focus cache of the Skill's memory may take; the least recently used results go first.
    #[arg(long, default_value_t = crate::focus::BUDGET)]
    pub focus_cache_bytes: u64,
    /// Addresses that the endpoints of a Job may be at beside public ones and Services of its namespace, in CIDR
    /// notation; any number of times.
    #[arg(long)]
    pub endpoint_range: Vec<ipnet::IpNet>,
}
