//! What the command line takes.

mod cluster;
mod invocation;
mod jobs;
mod local;
mod values;

pub use cluster::{CanApproveArgs, ClusterArgs, DecideArgs, ObjectOutput, Place, PlaceArgs};
pub use invocation::Invocation;
pub use jobs::{CancelArgs, Goal, ReplyArgs, TreeArgs, WaitArgs};
pub use local::{EventsArgs, GetArgs, McpArgs, MigrateArgs, ModelArgs, RunArgs};

use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use values::{name, namespace};

/// Write Skills, know what is wrong with them before a cluster does, run them without one, and see, answer, approve and
/// cancel their Jobs on a cluster.
#[derive(Debug, Parser)]
#[command(name = "bloomery", version, after_help = EXITS)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXITS: &str = "Exit codes: 0 good, 1 something is wrong and was said, 2 what was given cannot be used. What they mean for each command\n\
                     is in its help; run has more.";

/// What there is to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a Skill on this machine, without a cluster
    Run(Box<RunArgs>),
    /// Print the events of a Job, on this machine or on a cluster
    Events(EventsArgs),
    /// Show how a Job stands, on this machine or on a cluster: what its gates decided, what it waits for, how it goes on
    Get(GetArgs),
    /// Move the jobs of an older memory, which held those of all Skills in one directory, to their Skills
    Migrate(MigrateArgs),
    /// Turn a skill file of the older dialect (names in snake case: domain.yaml, skill.yaml) into a manifest
    Import(ImportArgs),
    /// Find what is wrong with Skills, all at once, with line and column
    Lint(LintArgs),
    /// Approve a call that a Job on a cluster holds, in your own name
    Approve(DecideArgs),
    /// Deny a call that a Job on a cluster holds, in your own name
    Deny(DecideArgs),
    /// Say whether you may decide for an approver
    CanApprove(CanApproveArgs),
    /// Answer a question of a Job on a cluster, or say something to it
    Reply(ReplyArgs),
    /// End Jobs on a cluster
    Cancel(CancelArgs),
    /// Wait until a Job on a cluster has ended, or waits for people
    Wait(WaitArgs),
    /// Show the Skills of a namespace with their Jobs, and these with their Approvals and pods
    Tree(TreeArgs),
    /// Print a script that completes commands, and names of a cluster, in a shell
    Completion {
        /// The shell; kubectl completes `kubectl bloomery` by a script of its own
        shell: Shell,
    },
}

/// What can complete commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// bash
    Bash,
    /// elvish
    Elvish,
    /// fish
    Fish,
    /// kubectl: save it as `kubectl_complete-bloomery` in a directory of PATH
    Kubectl,
    /// `PowerShell`
    Powershell,
    /// zsh
    Zsh,
}

/// What an import takes.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The manifest goes to stdout, what was found to stderr. Where there is an error, nothing is written.\n\
                  What a Skill cannot say is named in a warning, never dropped silently.\n\n\
                  Example: bloomery import domain.yaml --namespace acme --model default | kubectl apply -f -"
)]
pub struct ImportArgs {
    /// The file to read; - is stdin
    pub file: PathBuf,
    /// Write the manifest to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write this namespace into the manifest
    #[arg(long, value_name = "NS", value_parser = namespace)]
    pub namespace: Option<String>,
    /// Name the Skill so, instead of by the file's `id`
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub name: Option<String>,
    /// Name this Model, instead of the file's `engine.model`
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub model: Option<String>,
    /// What the Skill is for, in a sentence, instead of the file's `problem.statement`
    #[arg(long, value_name = "TEXT")]
    pub problem: Option<String>,
}

/// What lint takes.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Reads manifests (Skill, Job, Model) and the older dialect, several documents in a file too; objects of other\n\
                  APIs are passed over. One line a finding: file:line:column: severity: field: what is wrong.\n\n\
                  Exit codes: 0 good, 1 errors were found (with --strict: warnings too), 2 wrong usage."
)]
pub struct LintArgs {
    /// The files to read; - is stdin
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Print the findings as one JSON array
    #[arg(long)]
    pub json: bool,
    /// Warnings count as errors
    #[arg(long)]
    pub strict: bool,
}

#[cfg(test)]
mod tests {
    use super::Args;
    use clap::{CommandFactory, Parser};
    use std::fs;
    use std::path::{Path, PathBuf};

    #[test]
    fn the_command_line_is_sound() {
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

    fn pages(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pages(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }

    /// The command lines need a key, a server or a cluster, so they are parsed and not run.
    #[test]
    fn the_commands_of_the_documentation_are_commands() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = vec![top.join("README.md")];
        pages(&top.join("docs"), &mut found);
        let mut commands = 0;
        for page in found {
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
