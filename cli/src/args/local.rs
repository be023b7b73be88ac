//! Arguments of the commands that use a memory on this machine.
#![expect(clippy::doc_markdown, reason = "help texts have no markup")]

use super::cluster::{ObjectOutput, PlaceArgs};
use super::values::{Error, name, pair};
use crate::local::key::key_fault;
use crate::local::older_jobs::OLDER_JOBS_DIR;
use crate::local::{DEFAULT_MEMORY, DEFAULT_SKILL};
use bloomery_crds::v1alpha1::CoreNote;
use bloomery_embed::run::options::RunOptions;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// The arguments of `run`.
#[derive(Debug, Args)]
#[command(
    after_help = "The answer is printed to stdout, everything else to stderr. ^C parks the Job, so that it can be resumed. A second ^C\n\
                  stops at once.\n\n\
                  Exit codes: 0 succeeded, 1 internal error, 2 invalid arguments or input, 3 failed, 4 refused, 5 escalated,\n\
                  7 parked, 8 taken over by another process, 130 stopped at once.\n\n\
                  Example: bloomery run --resource codebase=../project --goal \"Explain what this program does\""
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct RunArgs {
    /// The goal of the Job
    #[arg(long, value_name = "TEXT", required_unless_present_any = ["resume", "command"])]
    pub goal: Option<String>,
    /// The Skill: a file (a manifest or the older dialect; FILE#NAME if it has several), or the name of a Skill in the
    /// memory or of a template [default: sw-dev-agent]
    #[arg(long, value_name = "FILE|NAME", value_hint = ValueHint::AnyPath)]
    pub skill: Option<String>,
    /// Bind a resource of the Skill to a path (PATH:ro is read-only), a URL, or a secret in a file (@FILE)
    #[arg(long = "resource", value_name = "NAME=VALUE", value_parser = pair)]
    pub resources: Vec<(String, String)>,
    /// Bind a directory to the resource `codebase`
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub project_path: Option<String>,
    /// Create a minimal Skill if neither the memory nor the templates have a Skill of that name
    #[arg(long)]
    pub bootstrap: bool,
    /// The directory of the memory, with one directory for each Skill
    #[arg(long, value_name = "DIR", default_value = DEFAULT_MEMORY)]
    pub memory: PathBuf,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// The MCP server, instead of the Skill's
    #[command(flatten)]
    pub mcp: McpArgs,
    /// Run the scripts of the Skill on this machine, as your user. By default, the Skill runs without them
    #[arg(long)]
    pub allow_scripts: bool,
    /// Lower a limit: steps, toolCalls, tokens or duration (such as 10m)
    #[arg(long = "limit", value_name = "NAME=VALUE", value_parser = pair)]
    pub limits: Vec<(String, String)>,
    /// The key of the Job (lower-case letters, digits and '-'). A Job that has ended is not run again
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub run_key: Option<String>,
    /// Continue a Job of the Skill that has ended: the model sees its goal and its answer first
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub continues: Option<String>,
    /// Read only these core notes of the memory bank at the start (names separated by commas) [default: those in
    /// memory.scope of the Skill]
    #[arg(long, value_name = "NOTE", value_delimiter = ',', value_parser = core_note)]
    pub memory_scope: Vec<CoreNote>,
    /// Resume a Job that was parked or interrupted
    #[arg(long, value_name = "KEY", value_parser = key, conflicts_with_all = ["goal", "resources", "project_path", "bootstrap", "limits", "run_key", "continues", "memory_scope"])]
    pub resume: Option<String>,
    /// How long a failing model or MCP server is retried, in seconds. A request to a model without a response times out
    /// after the timeout of the Model (120 s by default)
    #[arg(long, value_name = "SECONDS", default_value_t = RunOptions::DEFAULT_PATIENCE.as_secs())]
    pub patience: u64,
    /// Print the lines of the log to stdout instead of the answer
    #[arg(long)]
    pub json: bool,
    /// Print no progress and no summary: only the answer, warnings and errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// The model, and how to reach it.
#[derive(Debug, Default, Args)]
#[group(skip)]
pub struct ModelArgs {
    /// The name of the model at its provider, or a file with Model manifests
    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::AnyPath)]
    pub model: Option<String>,
    /// The wire protocol: openai (any compatible server) or anthropic
    #[arg(long)]
    pub provider: Option<String>,
    /// The URL of the API, such as http://localhost:11434/v1
    #[arg(long, value_name = "URL")]
    pub model_url: Option<String>,
    /// The file with the API key; can be repeated for Models with servers of their own [default: the variable
    /// OPENAI_API_KEY or ANTHROPIC_API_KEY, sent only to the address of that provider]
    #[arg(long, value_name = "[MODEL=]FILE")]
    pub api_key_file: Vec<String>,
}

/// The MCP server, and how to reach it.
#[derive(Debug, Default, Args)]
#[group(skip)]
pub struct McpArgs {
    /// The URL of an MCP server (streamable HTTP)
    #[arg(long = "mcp", value_name = "URL", conflicts_with = "command")]
    pub url: Option<String>,
    /// The program to run as the MCP server (stdio), and its arguments, up to a `;` or the end of the command line
    #[arg(long = "mcp-command", value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true, value_terminator = ";")]
    pub command: Vec<String>,
    /// Pass a variable of the environment to the program of --mcp-command. By default, it gets only PATH, HOME and similar
    /// variables
    #[arg(long = "mcp-env", value_name = "NAME", requires = "command")]
    pub env: Vec<String>,
}

/// The arguments of `events`.
#[derive(Debug, Args)]
#[command(
    after_help = "On a cluster, prints the logs of the Job's pods. If no pod is left, a temporary reader pod reads the log from the memory,\n\
                  which requires the right to create pods.\n\n\
                  Exit codes: 0 success, 1 the log is broken or cannot be read, 2 no such log."
)]
pub struct EventsArgs {
    /// A Job on the cluster, the key of a Job in the memory, or the directory of a log
    #[arg(value_name = "JOB|KEY|DIR")]
    pub log: String,
    /// The Skill of the Job, if several in the memory have a Job of that key
    #[arg(long, value_name = "NAME")]
    pub skill: Option<String>,
    /// Follow the log until the Job ends, or waits for people
    #[arg(short, long)]
    pub follow: bool,
    /// Print the lines of the log unchanged. On a cluster, this needs a reader pod
    #[arg(long)]
    pub json: bool,
    /// On a cluster: read the whole log from the memory with a reader pod, even if the Job has pods
    #[arg(long, conflicts_with_all = ["memory", "follow"])]
    pub whole: bool,
    /// On a cluster: the image of the reader pod [default: that of the newest worker pod in the namespace]
    #[arg(long, value_name = "IMAGE", conflicts_with = "memory")]
    pub image: Option<String>,
    /// Where the Job is: in a memory on this machine, or on a cluster
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// The arguments of `get`.
#[derive(Debug, Args)]
#[command(after_help = "Without a name, lists all Jobs of the memory or of the namespace.\n\n\
                        Exit codes: 0 success, 1 a log is broken, or the cluster refuses or cannot be reached, 2 no such memory, Skill or Job.")]
pub struct GetArgs {
    /// A Job on the cluster, or the key of a Job in the memory
    #[arg(value_name = "JOB|KEY", value_parser = any_key)]
    pub key: Option<String>,
    /// List only the Jobs of this Skill
    #[arg(long, value_name = "NAME")]
    pub skill: Option<String>,
    /// List the Jobs of all namespaces of the cluster
    #[arg(short = 'A', long, conflicts_with_all = ["key", "memory", "namespace"])]
    pub all_namespaces: bool,
    /// Print the Jobs in this format
    #[arg(short, long, value_enum)]
    pub output: Option<ObjectOutput>,
    /// Where the Jobs are: in a memory on this machine, or on a cluster
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// The arguments of `migrate`.
#[derive(Debug, Args)]
#[command(
    after_help = "Without --apply, only shows the moves. A file that would replace another one stays, and is reported.\n\n\
                  Exit codes: 0 success, 1 a file stays, 2 no such memory."
)]
pub struct MigrateArgs {
    /// The directory of the memory
    #[arg(long, value_name = "DIR", default_value = DEFAULT_MEMORY)]
    pub memory: PathBuf,
    /// The directory in the memory that holds the jobs of all Skills
    #[arg(long, value_name = "NAME", default_value = OLDER_JOBS_DIR)]
    pub from: String,
    /// The Skill of jobs that name no Skill
    #[arg(long, value_name = "NAME", default_value = DEFAULT_SKILL, value_parser = name)]
    pub skill: String,
    /// Move the files
    #[arg(long)]
    pub apply: bool,
}

/// Parses the name of a core note.
fn core_note(text: &str) -> Result<CoreNote, Error> {
    text.parse().map_err(|_| Error(format!("must be one of {}", CoreNote::names())))
}

/// Parses the key of a Job.
fn key(text: &str) -> Result<String, Error> {
    match key_fault(text) {
        None => Ok(text.to_owned()),
        Some(fault) => Err(Error(fault.to_owned())),
    }
}

/// Parses the key of a Job, of this runtime or of the older one that `migrate` supports.
fn any_key(text: &str) -> Result<String, Error> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if (1..=128).contains(&text.len()) && !text.starts_with('.') && text.chars().all(is_allowed) {
        return Ok(text.to_owned());
    }
    Err(Error("must be at most 128 letters, digits, '.', '_' and '-'".to_owned()))
}
