//! The arguments of `serve`.

use super::local::{McpArgs, ModelArgs};
use crate::local::DEFAULT_MEMORY;
use bloomery_embed::run::options::RunOptions;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// The arguments of `serve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Serves the Jobs of a memory to programs and browsers of this machine, over HTTP on the loopback interface. Open the\n\
                  address that is printed at the start in a browser. Each request of a program needs the token that is printed there, as\n\
                  the header `Authorization: Bearer TOKEN`. ^C parks all Jobs, so that they can be resumed. A second ^C stops at once.\n\n\
                  Exit codes: 0 stopped, 1 the server failed, 2 invalid arguments or input, 130 stopped at once."
)]
pub struct ServeArgs {
    /// The port to listen on; 0 for any free one
    #[arg(long, value_name = "PORT", default_value_t = 8420)]
    pub port: u16,
    /// The directory in which all files and directories that requests bind must be
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub root: PathBuf,
    /// The directory of the memory, with one directory for each Skill
    #[arg(long, value_name = "DIR", default_value = DEFAULT_MEMORY)]
    pub memory: PathBuf,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// The MCP server, instead of that of each Skill
    #[command(flatten)]
    pub mcp: McpArgs,
    /// Run the scripts of Skills on this machine, as your user. By default, Skills run without them
    #[arg(long)]
    pub allow_scripts: bool,
    /// How long a failing model or MCP server is retried, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = RunOptions::DEFAULT_PATIENCE.as_secs())]
    pub patience: u64,
}
