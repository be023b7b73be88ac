//! The command line.

mod cluster;
mod invocation;
mod jobs;
mod local;
mod serve;
mod skills;
mod validate;
mod values;

pub use cluster::{CanApproveArgs, ClusterArgs, DecideArgs, ObjectOutput, Place, PlaceArgs};
pub use invocation::Invocation;
pub use jobs::{CancelArgs, ReplyArgs, TreeArgs, WaitArgs, WaitTarget};
pub use local::{EventsArgs, GetArgs, McpArgs, MigrateArgs, ModelArgs, RunArgs};
pub use serve::ServeArgs;
pub use skills::{ExportArgs, ExportFormat, ImportArgs, NewArgs, ScriptOs};
pub use validate::ValidateArgs;

use crate::local::DEFAULT_MEMORY;
use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Write, check and run Skills on this machine, and manage their Jobs on a cluster.
#[derive(Debug, Parser)]
#[command(name = "bloomery", version, after_help = EXIT_CODES_HELP)]
pub struct Args {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES_HELP: &str =
    "Exit codes: 0 success, 1 error, 2 invalid arguments or input. The help of each command lists its own.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a Skill on this machine, without a cluster
    Run(Box<RunArgs>),
    /// Serve the Jobs of a memory to programs of this machine, over HTTP
    Serve(Box<ServeArgs>),
    /// Test the features of Skills on this machine, without a cluster
    Validate(Box<ValidateArgs>),
    /// Print the events of a Job, on this machine or on a cluster
    Events(EventsArgs),
    /// Show Jobs on this machine or on a cluster: decisions, progress, what they wait for
    Get(GetArgs),
    /// Move the jobs of an older memory, which has one directory for all Skills, to the directories of their Skills
    Migrate(MigrateArgs),
    /// Convert the skills of a repository, Agent Skills or a skill file of the older dialect into manifests
    Import(ImportArgs),
    /// Write Skills in the format of another system
    Export(ExportArgs),
    /// Start a skill of a repository from a template
    New(NewArgs),
    /// Check Skills, Jobs and Models, and report all problems with line and column
    Lint(LintArgs),
    /// Test the rules of a Skill
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Approve a held call of a Job on a cluster, in your own name
    Approve(DecideArgs),
    /// Deny a held call of a Job on a cluster, in your own name
    Deny(DecideArgs),
    /// Check whether you may decide for an approver
    CanApprove(CanApproveArgs),
    /// Answer a question of a Job on a cluster, or send it a message
    Reply(ReplyArgs),
    /// Cancel Jobs on a cluster
    Cancel(CancelArgs),
    /// Wait until a Job on a cluster ends, or waits for people
    Wait(WaitArgs),
    /// Show the Skills of a namespace as a tree, with their Jobs, Approvals and pods
    Tree(TreeArgs),
    /// Print the completion script of a shell
    Completion {
        /// The shell, or kubectl for the completion of `kubectl bloomery`
        shell: Shell,
    },
}

/// The shells with completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// bash
    Bash,
    /// elvish
    Elvish,
    /// fish
    Fish,
    /// kubectl: save the script as `kubectl_complete-bloomery` in a directory of PATH
    Kubectl,
    /// `PowerShell`
    Powershell,
    /// zsh
    Zsh,
}

/// The arguments of `lint`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Reads manifests (Skill, Job, Model) and the older dialect. Objects of other APIs are skipped. A file may have several\n\
                  documents. Each finding is one line: file:line:column: severity: kind/name: field: message.\n\n\
                  Exit codes: 0 no errors, 1 errors were found (with --strict, also warnings), 2 invalid arguments."
)]
pub struct LintArgs {
    /// The files to read, repositories of skills as bloomery import reads them, or - for stdin
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Print the findings as one JSON array
    #[arg(long)]
    pub json: bool,
    /// Treat warnings as errors
    #[arg(long)]
    pub strict: bool,
    /// Check the rules against the tools of an MCP server: a file with the JSON result of tools/list, or the URL of the
    /// server. A rule that names no tool or argument of it is an error
    #[arg(long, value_name = "FILE|URL", value_hint = ValueHint::AnyPath)]
    pub tools: Option<String>,
}

/// The commands about rules.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Replay calls against the rules of a Skill, and compare the verdicts with the expected ones
    Test(PolicyTestArgs),
}

/// The arguments of `policy test`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The engine decides as in a run. The model, the tools and people are those of the file. Nothing is sent.\n\n\
                  Exit codes: 0 all verdicts are as expected, 1 a verdict or a reason differs, 2 invalid arguments or input.\n\n\
                  Example: bloomery policy test policy-test.yaml --tools tools.json"
)]
pub struct PolicyTestArgs {
    /// The file with the cases, or - for stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The Skill, instead of the file's `skill`: a file (FILE#NAME if it has several), or the name of a Skill in the memory or of
    /// a template
    #[arg(long, value_name = "FILE|NAME", value_hint = ValueHint::AnyPath)]
    pub skill: Option<String>,
    /// The tools of the MCP server, instead of the file's `tools`: a file with the JSON result of tools/list, or the URL of the
    /// server [default: the tools that the Skill declares]
    #[arg(long, value_name = "FILE|URL", value_hint = ValueHint::AnyPath)]
    pub tools: Option<String>,
    /// The directory of the memory, with one directory for each Skill
    #[arg(long, value_name = "DIR", default_value = DEFAULT_MEMORY)]
    pub memory: PathBuf,
    /// Print the verdicts in this format
    #[arg(short, long, value_enum)]
    pub output: Option<DataOutput>,
}

/// The formats of data that is no object of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DataOutput {
    /// JSON
    Json,
    /// YAML
    Yaml,
}

#[cfg(test)]
mod tests {
    use super::Args;
    use clap::{CommandFactory, Parser};
    use std::fs;
    use std::path::{Path, PathBuf};

    #[test]
    fn the_definition_of_the_command_line_is_valid() {
        Args::command().debug_assert();
    }

    /// Splits a command line into words as a shell does, up to a comment, a pipe or a redirection.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for c in line.chars() {
            match (quote, c) {
                (None, '"' | '\'') => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (Some(open), _) if open == c => quote = None,
                (None, '#') if word.is_none() => break,
                (None, '|' | '>' | '<' | '&') => break,
                (None, ' ') => words.extend(word.take()),
                _ => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }

    fn collect_pages(dir: &Path, pages: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect_pages(&path, pages);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }

    /// Parses the commands without running them, because they need a key, a server or a cluster.
    #[test]
    fn every_command_in_the_documentation_can_be_parsed() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut pages = vec![repository.join("README.md")];
        collect_pages(&repository.join("docs"), &mut pages);
        let mut commands = 0;
        for page in pages {
            let text = fs::read_to_string(&page).unwrap().replace("\\\n", " ");
            let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
            for line in blocks.flat_map(str::lines).map(str::trim_start) {
                let line = line.strip_prefix("kubectl ").filter(|line| line.starts_with("bloomery ")).unwrap_or(line);
                if !line.starts_with("bloomery ") {
                    continue;
                }
                if let Err(error) = Args::try_parse_from(words(line)) {
                    panic!("{}: {line}: {error}", page.display());
                }
                commands += 1;
            }
        }
        assert!(commands > 30, "{commands}");
    }
}
