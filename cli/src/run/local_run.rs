//! A Job that `bloomery run` runs, and the options of its command line.

use super::screen::Screen;
use crate::args::{McpArgs, ModelArgs, RunArgs};
use bloomery_embed::run::options::{McpOptions, ModelOptions, RunOptions};
use bloomery_embed::run::prepare::PreparedJob;
use std::time::Duration;

/// A run.
#[derive(Debug, Clone, Copy)]
pub struct LocalRun<'a> {
    /// The command line.
    pub args: &'a RunArgs,
    /// The Job.
    pub job: &'a PreparedJob<'a>,
    /// The output on stderr.
    pub screen: &'a Screen,
}

impl From<&RunArgs> for RunOptions {
    fn from(args: &RunArgs) -> Self {
        Self {
            goal: args.goal.clone(),
            skill: args.skill.clone(),
            resources: args.resources.clone(),
            root: None,
            project_path: args.project_path.clone(),
            bootstrap: args.bootstrap,
            memory: args.memory.clone(),
            other_memories: Vec::new(),
            model: ModelOptions::from(&args.model),
            mcp: McpOptions::from(&args.mcp),
            allow_scripts: args.allow_scripts,
            limits: args.limits.clone(),
            run_key: args.run_key.clone(),
            continues: args.continues.clone(),
            memory_scope: args.memory_scope.clone(),
            patience: Duration::from_secs(args.patience),
        }
    }
}

impl From<&ModelArgs> for ModelOptions {
    fn from(args: &ModelArgs) -> Self {
        let ModelArgs { model, provider, model_url, api_key_file } = args;
        Self {
            model: model.clone(),
            provider: provider.clone(),
            model_url: model_url.clone(),
            api_key_file: api_key_file.clone(),
        }
    }
}

impl From<&McpArgs> for McpOptions {
    fn from(args: &McpArgs) -> Self {
        let McpArgs { url, command, env } = args;
        Self { url: url.clone(), command: command.clone(), env: env.clone() }
    }
}
