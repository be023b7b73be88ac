//! The command line.

use bloomery_token::PublicKey;
use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Stands before an MCP server, and lets only workers with a token of the operator call it.
#[derive(Debug, Parser)]
#[command(name = "bloomery-bridge", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Copy this program to a file that every user may run
    Install {
        /// The file
        path: PathBuf,
    },
    /// Wait until files exist and are not empty
    AwaitFiles {
        /// The directory
        dir: PathBuf,
        /// The files, relative to the directory
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Start an MCP server and serve it over streamable HTTP
    Serve(Serve),
    /// Pass requests on to an MCP server that speaks streamable HTTP on the loopback address
    Guard(Guard),
    /// Be an MCP server over the standard input and output, whose tools are the scripts in a directory
    Scripts(Scripts),
}

/// The clients that are served.
#[derive(Debug, Args)]
pub(crate) struct Access {
    /// Public key of the tokens that are accepted. May be repeated
    #[arg(long = "token-key", required_unless_present = "open", conflicts_with = "open")]
    pub(crate) token_keys: Vec<PublicKey>,
    /// Server that the tokens must name, as namespace/skill
    #[arg(long, required_unless_present = "open", conflicts_with = "open")]
    pub(crate) audience: Option<String>,
    /// Serve every client, without a token
    #[arg(long)]
    pub(crate) open: bool,
}

/// The arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) access: Access,
    /// Address to listen on. `[::]` means all addresses of IPv6 and IPv4, or all of IPv4 if the node has no IPv6
    #[arg(long, default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Path of the MCP endpoint
    #[arg(long, default_value = "/mcp")]
    pub(crate) path: String,
    /// Largest number of sessions, each with its own process of the server
    #[arg(long, default_value_t = 16, value_parser = at_least_one)]
    pub(crate) max_sessions: usize,
    /// Seconds without a request after which a session ends
    #[arg(long, default_value_t = 900)]
    pub(crate) idle_seconds: u64,
    /// Command line of the MCP server
    #[arg(required = true, last = true)]
    pub(crate) command: Vec<String>,
}

/// The arguments of `guard`.
#[derive(Debug, Args)]
pub(crate) struct Guard {
    #[command(flatten)]
    pub(crate) access: Access,
    /// Address to listen on. `[::]` means all addresses of IPv6 and IPv4, or all of IPv4 if the node has no IPv6
    #[arg(long, default_value = "127.0.0.1:8081")]
    pub(crate) listen: SocketAddr,
    /// Path of the MCP endpoint. Other paths are not passed on
    #[arg(long, default_value = "/mcp")]
    pub(crate) path: String,
    /// Port of the MCP server on the loopback address
    #[arg(long)]
    pub(crate) port: u16,
    /// Path at which everybody can see whether the MCP server is healthy
    #[arg(long, default_value = "/.bloomery/health")]
    pub(crate) probe_path: String,
    /// Path of the health check of the MCP server. Without it, a connection to its port is the check
    #[arg(long)]
    pub(crate) health_path: Option<String>,
    /// Port of the health check, if it is another one
    #[arg(long)]
    pub(crate) health_port: Option<u16>,
}

/// The arguments of `scripts`.
#[derive(Debug, Args)]
pub(crate) struct Scripts {
    /// The directory of the scripts
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// The home and working directory of the scripts
    #[arg(long, default_value = "/tmp")]
    pub(crate) work_dir: PathBuf,
    /// Seconds that a script may take. It is killed after them
    #[arg(long, default_value_t = 60)]
    pub(crate) timeout_seconds: u64,
    /// Bytes of the standard output, and of the standard error, that are kept. The rest is cut
    #[arg(long, default_value_t = 1024 * 1024)]
    pub(crate) max_output: usize,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "must be a number from 1 on".to_owned())
}
