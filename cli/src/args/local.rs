//! What the commands take that work on a memory of this machine, without a cluster.
#![expect(clippy::doc_markdown, reason = "what is shown at a terminal has no markup")]

use super::cluster::{ObjectOutput, PlaceArgs};
use super::values::{Error, name};
use crate::local::older_jobs::OLDER_JOBS_DIR;
use crate::local::{DEFAULT_MEMORY, DEFAULT_SKILL};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// What `run` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "The answer goes to stdout, everything else to stderr. ^C parks the Job and says how to go on; a second ^C ends at once.\n\n\
                  Exit codes: 0 succeeded, 1 internal error, 2 wrong usage or bad input, 3 failed, 4 refused, 5 escalated,\n\
                  7 parked, 8 taken over by another process, 130 ended at once.\n\n\
                  Example: bloomery run --resource codebase=../project --goal \"Explain what this program does\""
)]
pub struct RunArgs {
    /// What is to be reached
    #[arg(long, value_name = "TEXT", required_unless_present = "resume")]
    pub goal: Option<String>,
    /// The Skill: a file (a manifest or the older dialect; FILE#NAME where it has several), or the name of one in the
    /// memory or of a template [default: sw-dev-agent]
    #[arg(long, value_name = "FILE|NAME", value_hint = ValueHint::AnyPath)]
    pub skill: Option<String>,
    /// Bind a resource of the Skill: a path (PATH:ro is read-only), a URL, or @FILE for a secret
    #[arg(long = "resource", value_name = "NAME=VALUE", value_parser = pair)]
    pub resources: Vec<(String, String)>,
    /// Bind a directory to the resource `codebase`
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub project_path: Option<String>,
    /// Make a minimal Skill where the memory has none of the name, and no template is called so
    #[arg(long)]
    pub bootstrap: bool,
    /// The memory: its directory, with one below it for each Skill
    #[arg(long, value_name = "DIR", default_value = DEFAULT_MEMORY)]
    pub memory: PathBuf,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// The MCP server, instead of the Skill's
    #[command(flatten)]
    pub mcp: McpArgs,
    /// Lower a limit: steps, toolCalls, tokens or duration (as 10m)
    #[arg(long = "limit", value_name = "NAME=VALUE", value_parser = pair)]
    pub limits: Vec<(String, String)>,
    /// Name the Job so (lower-case letters, digits and '-'): a Job of that name that has ended is not run again
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub run_key: Option<String>,
    /// Follow up a Job of the Skill that has ended: its goal and its answer are told first
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub continues: Option<String>,
    /// Go on with a Job that was parked or interrupted
    #[arg(long, value_name = "KEY", value_parser = key, conflicts_with_all = ["goal", "resources", "project_path", "bootstrap", "limits", "run_key", "continues"])]
    pub resume: Option<String>,
    /// For how many seconds a model or an MCP server that failed is tried again. How long one request to a model may
    /// stay silent is its Model's timeout (120 s), which this does not cut short
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub patience: u64,
    /// Print the lines of the log to stdout, and nothing else; of a Job that has ended, too
    #[arg(long)]
    pub json: bool,
}

/// Which model, and how it is reached.
#[derive(Debug, Default, Args)]
#[group(skip)]
pub struct ModelArgs {
    /// The provider's name of the model, or a file with manifests of Models
    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::AnyPath)]
    pub model: Option<String>,
    /// The wire protocol: openai (any compatible server) or anthropic
    #[arg(long)]
    pub provider: Option<String>,
    /// Where the API is, such as http://localhost:11434/v1
    #[arg(long, value_name = "URL")]
    pub model_url: Option<String>,
    /// The file that holds the key, or one for each Model that has a server of its own; without it,
    /// OPENAI_API_KEY or ANTHROPIC_API_KEY is sent to its provider's own address
    #[arg(long, value_name = "[MODEL=]FILE")]
    pub api_key_file: Vec<String>,
}

/// Which MCP server, and how it is reached.
#[derive(Debug, Default, Args)]
#[group(skip)]
pub struct McpArgs {
    /// The URL of an MCP server (streamable HTTP)
    #[arg(long = "mcp", value_name = "URL", conflicts_with = "command")]
    pub url: Option<String>,
    /// A program that is an MCP server (stdio), with its arguments, up to the end or to a `;`
    #[arg(long = "mcp-command", value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true, value_terminator = ";")]
    pub command: Vec<String>,
    /// Hand a variable of the environment to that program; it gets no others but PATH, HOME and their like
    #[arg(long = "mcp-env", value_name = "NAME", requires = "command")]
    pub env: Vec<String>,
}

/// What `events` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "On a cluster the logs of the Job's pods are printed as they are. Where no pod is left, a short pod reads the log out of\n\
                  the memory: that takes the right to create pods.\n\n\
                  Exit codes: 0 good, 1 the log is broken or cannot be read, 2 there is no such log."
)]
pub struct EventsArgs {
    /// A Job on the cluster; in the memory, the key of one, or the directory of a log
    #[arg(value_name = "JOB|KEY|DIR")]
    pub log: String,
    /// The name of its Skill: in a memory several may have a Job of that key
    #[arg(long, value_name = "NAME")]
    pub skill: Option<String>,
    /// Wait for what comes, until the Job has ended, or waits for people
    #[arg(short, long)]
    pub follow: bool,
    /// Print the lines as they stand in the log; on a cluster, with a reader pod
    #[arg(long)]
    pub json: bool,
    /// On a cluster: read the whole log out of the memory, with a reader pod, though there may be pods of the Job
    #[arg(long, conflicts_with_all = ["memory", "follow"])]
    pub whole: bool,
    /// On a cluster: the image of the reader pod [default: that of the newest worker pod in the namespace]
    #[arg(long, value_name = "IMAGE", conflicts_with = "memory")]
    pub image: Option<String>,
    /// Where it is looked for
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// What `get` takes.
#[derive(Debug, Args)]
#[command(after_help = "Without a name, all Jobs are listed: those of the memory, or of the namespace.\n\n\
                        Exit codes: 0 good, 1 a log is broken, or the cluster does not tell, 2 there is no such memory, Skill or Job.")]
pub struct GetArgs {
    /// A Job on the cluster, or the key of one in the memory
    #[arg(value_name = "JOB|KEY", value_parser = any_key)]
    pub key: Option<String>,
    /// The Jobs of this Skill only
    #[arg(long, value_name = "NAME")]
    pub skill: Option<String>,
    /// The Jobs of all namespaces of the cluster
    #[arg(short = 'A', long, conflicts_with_all = ["key", "memory", "namespace"])]
    pub all_namespaces: bool,
    /// Print it for programs
    #[arg(short, long, value_enum)]
    pub output: Option<ObjectOutput>,
    /// Where it is looked for
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// What `migrate` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Without --apply nothing is changed. What would replace another file stays where it is, and is named.\n\n\
                  Exit codes: 0 good, 1 something stays where it is, 2 there is no such memory."
)]
pub struct MigrateArgs {
    /// The memory
    #[arg(long, value_name = "DIR", default_value = DEFAULT_MEMORY)]
    pub memory: PathBuf,
    /// The directory in it that held the jobs of all Skills
    #[arg(long, value_name = "NAME", default_value = OLDER_JOBS_DIR)]
    pub from: String,
    /// The Skill of what names none
    #[arg(long, value_name = "NAME", default_value = DEFAULT_SKILL, value_parser = name)]
    pub skill: String,
    /// Do it
    #[arg(long)]
    pub apply: bool,
}

fn pair(text: &str) -> Result<(String, String), Error> {
    let (name, value) = text.split_once('=').ok_or_else(|| Error("must be NAME=VALUE".to_owned()))?;
    if name.is_empty() || value.is_empty() {
        return Err(Error("must be NAME=VALUE, and neither may be empty".to_owned()));
    }
    Ok((name.to_owned(), value.to_owned()))
}

fn key(text: &str) -> Result<String, Error> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=63).contains(&text.len()) && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    Err(Error("must be at most 63 lower-case letters, digits and '-'".to_owned()))
}

/// A key as this runtime gives them, or the one before it.
fn any_key(text: &str) -> Result<String, Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if (1..=128).contains(&text.len()) && !text.starts_with('.') && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    Err(Error("must be at most 128 letters, digits, '.', '_' and '-'".to_owned()))
}
