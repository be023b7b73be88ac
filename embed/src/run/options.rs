//! The options of a Job on this machine. The options of `bloomery run` have the same names.

use bloomery_crds::v1alpha1::CoreNote;
use std::iter::once;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The options of a Job: the memory, the programs and servers that it uses, and its parameters.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The goal.
    pub goal: Option<String>,
    /// The Skill: a file (`FILE#NAME` if it has several), or the name of a Skill in the memory or of a template.
    pub skill: Option<String>,
    /// The values of the Skill's resources: a path (`PATH:ro` is read-only), a URL, or a secret in a file (`@FILE`).
    pub resources: Vec<(String, String)>,
    /// The directory in which the files and directories of all resources must be. Without one, a resource can be any of them.
    pub root: Option<PathBuf>,
    /// The directory of the resource `codebase`.
    pub project_path: Option<String>,
    /// Whether a minimal Skill is created if neither the memory nor the templates have a Skill of that name.
    pub bootstrap: bool,
    /// The directory of the memory.
    pub memory: PathBuf,
    /// The memories of other tenants, or directories with memories. No Job can bind a path in them, or read one with its file tools.
    pub other_memories: Vec<PathBuf>,
    /// The model.
    pub model: ModelOptions,
    /// The MCP server, instead of that of the Skill.
    pub mcp: McpOptions,
    /// Whether the scripts of the Skill run on this machine, as the user of this process.
    pub allow_scripts: bool,
    /// Limits that are lower than those of the Skill, by name, as text.
    pub limits: Vec<(String, String)>,
    /// The key of the Job. A Job that has ended is not run again.
    pub run_key: Option<String>,
    /// The key of the ended Job of the Skill that the Job continues.
    pub continues: Option<String>,
    /// The core notes of the memory bank that the Job reads at the start. If empty, those of the Skill.
    pub memory_scope: Vec<CoreNote>,
    /// The time for which a failing model or MCP server is retried.
    pub patience: Duration,
}

impl RunOptions {
    /// The default of [`RunOptions::patience`].
    pub const DEFAULT_PATIENCE: Duration = Duration::from_mins(1);

    /// Returns the options of the Jobs of a memory: the model comes from the environment, and there are no other options.
    pub fn new(memory: impl Into<PathBuf>) -> Self {
        Self {
            goal: None,
            skill: None,
            resources: Vec::new(),
            root: None,
            project_path: None,
            bootstrap: false,
            memory: memory.into(),
            other_memories: Vec::new(),
            model: ModelOptions::default(),
            mcp: McpOptions::default(),
            allow_scripts: false,
            limits: Vec::new(),
            run_key: None,
            continues: None,
            memory_scope: Vec::new(),
            patience: Self::DEFAULT_PATIENCE,
        }
    }

    /// Returns the memory, and those of other tenants.
    pub fn all_memories(&self) -> impl Iterator<Item = &Path> {
        once(&self.memory).chain(&self.other_memories).map(PathBuf::as_path)
    }
}

/// The model, and how to reach it.
#[derive(Debug, Clone, Default)]
pub struct ModelOptions {
    /// The name of the model at its provider, or a file with Model manifests.
    pub model: Option<String>,
    /// The wire protocol: `openai` or `anthropic`.
    pub provider: Option<String>,
    /// The URL of the API.
    pub model_url: Option<String>,
    /// The files with API keys, as `FILE` or `MODEL=FILE`.
    pub api_key_file: Vec<String>,
}

/// The MCP server, and how to reach it.
#[derive(Debug, Clone, Default)]
pub struct McpOptions {
    /// The URL of an MCP server (streamable HTTP).
    pub url: Option<String>,
    /// The program to run as the MCP server (stdio), and its arguments.
    pub command: Vec<String>,
    /// The variables of the environment that the program gets.
    pub env: Vec<String>,
}
