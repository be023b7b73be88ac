//! The command line of the worker. It names the files of the run document, which has all settings that affect the
//! conversation.

use crate::housekeeping::Bounds;
use crate::printer::Format;
use bloomery_crds::{Digest, skill_directory};
use bloomery_http::address::{AddressPolicy, ApiServer};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

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
    /// Continues a conversation from its log until it ends or the worker has to stop.
    Run(Box<RunArgs>),
    /// Lists the tools of a Skill's MCP server, compiles the rules of the Skill against them, and reports both.
    Probe(ProbeArgs),
    /// Prints the events of a log. `kubectl bloomery events` starts a pod with this command.
    Events(EventsArgs),
    /// Removes the directory of a deleted Skill. The operator starts a pod with this command.
    Reclaim(ReclaimArgs),
    /// Moves the jobs of an older memory, which has one directory for all Skills, to the directories of their Skills.
    Migrate(MigrateArgs),
}

/// The arguments of `migrate`.
#[derive(Debug, Clone, Args)]
pub struct MigrateArgs {
    /// Directory of the memory, with the directories of all Skills.
    #[arg(long, default_value = bloomery_crds::run::MEMORY_ROOT)]
    pub memory: PathBuf,
    /// Directory in the memory that has the jobs of all Skills.
    #[arg(long, default_value = crate::migration::older_job::OLDER_JOBS_DIR)]
    pub from: String,
    /// Skill of jobs that name no Skill.
    #[arg(long, default_value = bloomery_crds::v1alpha1::JobSpec::DEFAULT_SKILL)]
    pub skill: String,
    /// Moves the files. Without it, only the moves are shown.
    #[arg(long)]
    pub apply: bool,
}

/// The arguments of `reclaim`.
#[derive(Debug, Clone, Args)]
pub struct ReclaimArgs {
    /// Directory of the memory, with the directories of all Skills.
    #[arg(long)]
    pub memory: PathBuf,
    /// Name of the Skill.
    #[arg(long)]
    pub skill: String,
    /// UID of the Skill. It names the directory while it is removed.
    #[arg(long)]
    pub skill_uid: String,
    /// File that the kubelet reads the termination message from.
    #[arg(long, default_value = "/dev/termination-log")]
    pub termination_log: PathBuf,
}

/// The arguments of `events`.
#[derive(Debug, Clone, Args)]
pub struct EventsArgs {
    /// Directory of the log.
    pub dir: PathBuf,
    /// Format of the events on stdout.
    #[arg(long, value_enum, default_value_t)]
    pub log_format: Format,
}

/// The arguments of `probe`.
#[derive(Debug, Clone, Args)]
pub struct ProbeArgs {
    /// File of the compiled Skill.
    #[arg(long)]
    pub revision: PathBuf,
    /// Digest of the compiled Skill. Other content is an error.
    #[arg(long)]
    pub revision_digest: Digest,
    /// File of the probe's part of the run document.
    #[arg(long)]
    pub part: PathBuf,
    /// Digest of the probe's part. Other content is an error.
    #[arg(long)]
    pub part_digest: Digest,
    /// File of the projected token for reports.
    #[arg(long)]
    pub token: PathBuf,
    /// File that the kubelet reads the termination message from.
    #[arg(long, default_value = "/dev/termination-log")]
    pub termination_log: PathBuf,
    /// Format of the diagnostics.
    #[arg(long, value_enum, default_value_t)]
    pub log_format: Format,
    /// Time limit in seconds for an MCP server that does not answer.
    #[arg(long, default_value_t = 60)]
    pub patience: u64,
    /// Addresses of an MCP server outside of the cluster.
    #[command(flatten)]
    pub addresses: AddressArgs,
}

/// The arguments of `run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// File of the compiled Skill.
    #[arg(long)]
    pub revision: PathBuf,
    /// Digest of the compiled Skill. Other content is an error.
    #[arg(long)]
    pub revision_digest: Digest,
    /// File of the Job's part of the run document.
    #[arg(long)]
    pub job: PathBuf,
    /// Digest of the Job's part. Other content is an error.
    #[arg(long)]
    pub job_digest: Digest,
    /// Directory of the Skill's memory.
    #[arg(long)]
    pub memory: PathBuf,
    /// File of the projected token for reports.
    #[arg(long)]
    pub token: PathBuf,
    /// UID of the pod. It makes the names of temporary files unique.
    #[arg(long)]
    pub pod_uid: String,
    /// File that the kubelet reads the termination message from.
    #[arg(long, default_value = "/dev/termination-log")]
    pub termination_log: PathBuf,
    /// Format of the events on stdout.
    #[arg(long, value_enum, default_value_t)]
    pub log_format: Format,
    /// Time limit in seconds for waiting for a model or an MCP server that does not answer. Together with the last try it
    /// must be less than 300 s, which the pod has in addition to the Job's duration.
    #[arg(long, default_value_t = 180)]
    pub patience: u64,
    /// Time limit in seconds for waiting for a missing key of a Secret. It must end before the pod's deadline.
    #[arg(long, default_value_t = 180)]
    pub secret_wait: u64,
    /// Budget of the focus cache in the Skill's memory, in bytes. The least recently used results are evicted first.
    #[arg(long, default_value_t = crate::focus::DEFAULT_BUDGET_BYTES)]
    pub focus_cache_bytes: u64,
    /// Age in seconds from which on the log of an ended run is pruned, if no Job needs it. Its outcome record stays.
    #[arg(long, default_value_t = skill_directory::LOG_MAX_AGE_SECONDS)]
    pub log_max_age: u64,
    /// Largest number of logs of ended runs in the Skill's memory. The oldest are pruned first.
    #[arg(long, default_value_t = skill_directory::LOG_MAX_COUNT)]
    pub log_max_count: u32,
    /// Largest size of all logs of ended runs in the Skill's memory, in bytes. The oldest are pruned first.
    #[arg(long, default_value_t = skill_directory::LOG_MAX_BYTES)]
    pub log_max_bytes: u64,
    /// Addresses of endpoints, Models and external MCP servers.
    #[command(flatten)]
    pub addresses: AddressArgs,
}

/// The addresses that a pod may and may not connect to, besides public addresses and the Services of its namespace.
#[derive(Debug, Clone, Default, Args)]
pub struct AddressArgs {
    /// Range of addresses, in CIDR notation, at which a Job may call endpoints, Models and external MCP servers in addition to
    /// public addresses and the Services of its namespace. May be repeated.
    #[arg(long)]
    pub endpoint_range: Vec<ipnet::IpNet>,
    /// Host that a Job may call at a private address. May be repeated.
    #[arg(long)]
    pub shared_host: Vec<String>,
    /// Range of addresses, in CIDR notation, that a Job may never call. May be repeated.
    #[arg(long)]
    pub deny_range: Vec<ipnet::IpNet>,
}

impl AddressArgs {
    /// Returns the policy of a pod of this namespace. It also refuses the API server of the cluster.
    pub async fn policy(&self, namespace: &str) -> AddressPolicy {
        let api_server = ApiServer::resolve(std::env::var("KUBERNETES_SERVICE_HOST").ok().as_deref()).await;
        AddressPolicy::for_pod(namespace, self.endpoint_range.clone())
            .with_shared(self.shared_host.clone())
            .without_ranges(self.deny_range.clone())
            .without_api_server(api_server)
    }
}

impl RunArgs {
    /// Returns the bounds of the logs of ended runs.
    pub fn log_bounds(&self) -> Bounds {
        Bounds {
            max_age: Duration::from_secs(self.log_max_age),
            max_count: usize::try_from(self.log_max_count).unwrap_or(usize::MAX),
            max_bytes: self.log_max_bytes,
        }
    }
}
