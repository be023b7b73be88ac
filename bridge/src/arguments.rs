//! The command line.

use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Serves an MCP server that speaks over its standard streams as streamable HTTP.
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
}

/// The arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen on
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

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "must be a number from 1 on".to_owned())
}
