//! Arguments of the commands that convert and create skills.
#![expect(clippy::doc_markdown, reason = "help texts have no markup")]

use super::values::{name, namespace};
use bloomery_skills::repository::Os;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// The arguments of `import`.
#[derive(Debug, Args)]
#[command(
    after_help = "A directory is a repository of skills (skill.json), an Agent Skill (SKILL.md), or a directory of such skills. Each skill\n\
                  becomes a Skill, named by its path: use-skill/list becomes use-skill-list. A file is a skill file of the older\n\
                  dialect (domain.yaml, skill.yaml with names in snake case). Without either, the directory is that of the variable\n\
                  MY_SKILLS_REPO, or else the one that --repo names in the directory of the variable SKILLS_GROUP_DIR.\n\n\
                  The manifests are printed to stdout, findings to stderr. If there is an error, no manifest is written. What a Skill\n\
                  cannot express leads to a warning.\n\n\
                  Example: bloomery import skills-repo --script-image python:3.13-alpine | kubectl apply -f -"
)]
pub struct ImportArgs {
    /// The directory or the file to read, or - for stdin
    #[arg(value_name = "DIR|FILE", value_hint = ValueHint::AnyPath)]
    pub path: Option<PathBuf>,
    /// The name of the repository in the directory of the variable SKILLS_GROUP_DIR
    #[arg(long, value_name = "NAME", conflicts_with = "path")]
    pub repo: Option<String>,
    /// Write the manifests to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The namespace in the manifests
    #[arg(long, value_name = "NS", value_parser = namespace)]
    pub namespace: Option<String>,
    /// The name of the Model, instead of the file's `engine.model`
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub model: Option<String>,
    /// The image that runs the scripts of a repository
    #[arg(long, value_name = "IMAGE")]
    pub script_image: Option<String>,
    /// The operating system of that image. Windows uses script.ps1 in place of script.sh
    #[arg(long, value_enum, default_value_t)]
    pub os: ScriptOs,
    /// The name of the Skill, instead of the file's `id`
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub name: Option<String>,
    /// The purpose of the Skill in a sentence, instead of the file's `problem.statement`
    #[arg(long, value_name = "TEXT")]
    pub problem: Option<String>,
}

/// The operating systems of images for scripts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ScriptOs {
    /// Linux
    #[default]
    Linux,
    /// Windows
    Windows,
}

impl From<ScriptOs> for Os {
    fn from(os: ScriptOs) -> Self {
        match os {
            ScriptOs::Linux => Self::Linux,
            ScriptOs::Windows => Self::Windows,
        }
    }
}

/// The arguments of `export`.
#[derive(Debug, Args)]
#[command(
    after_help = "The name of a Skill becomes that of a directory. It must not exist. The paths of the new files are printed to stdout,\n\
                  and a warning to stderr for each field that the format does not keep. If there is an error, nothing is written.\n\n\
                  Example: bloomery export --format agent-skill skills.yaml -o skills"
)]
pub struct ExportArgs {
    /// The manifests: files, directories with files, or - for stdin
    #[arg(value_name = "FILE|DIR", required = true, value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// The format: agent-skill is a directory with a SKILL.md
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// The directory to write to
    #[arg(short, long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub output: PathBuf,
}

/// The formats of `export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// An Agent Skill
    AgentSkill,
}

/// The arguments of `new`.
#[derive(Debug, Args)]
#[command(
    after_help = "Creates skills/NAME in the repository: that of --dir, of the variable MY_SKILLS_REPO, or else the one that --repo names\n\
                  in the directory of the variable SKILLS_GROUP_DIR. An existing skill is never changed.\n\n\
                  Example: bloomery new use-skill/list --dir skills-repo"
)]
pub struct NewArgs {
    /// The name of the skill. A name such as use-skill/list is that of a nested skill
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The name of a directory in templates [default: the only one, or a minimal template if the repository has none]
    #[arg(long, value_name = "TEMPLATE")]
    pub template: Option<String>,
    /// The directory of the repository
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// The name of the repository in the directory of the variable SKILLS_GROUP_DIR
    #[arg(long, value_name = "NAME", conflicts_with = "dir")]
    pub repo: Option<String>,
}
