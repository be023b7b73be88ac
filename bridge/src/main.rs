//! Serves an MCP server that speaks over its standard streams as streamable HTTP (`docs/explanation/mcp.md`).
//!
//! The operator copies this program into a pod of the server's own image, and starts the server with it. So the program is static, and
//! needs nothing of the image.

mod arguments;
mod await_files;
mod connection;
mod http;
mod install;
mod message;
mod process;
mod program;
mod sessions;
mod stop;

use arguments::{Arguments, Command, Serve};
use clap::Parser;
use program::Program;
use sessions::Sessions;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;

/// The reason that the bridge ends.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// The program cannot be copied.
    #[error("cannot copy this program to {path}: {error}")]
    Install {
        /// The target.
        path: String,
        /// The reason.
        error: std::io::Error,
    },
    /// The MCP server cannot be used.
    #[error("the MCP server `{program}` cannot be used: {error}")]
    Program {
        /// The command line.
        program: Program,
        /// The reason.
        error: connection::Error,
    },
    /// The address cannot be served.
    #[error("cannot serve {address}: {error}")]
    Serve {
        /// The address.
        address: std::net::SocketAddr,
        /// The reason.
        error: std::io::Error,
    },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let ended = match Arguments::parse().command {
        Command::Install { path } => {
            install::install(&path).map_err(|error| Error::Install { path: path.display().to_string(), error })
        }
        Command::AwaitFiles { dir, files } => {
            await_files::await_files(&dir, &files, stop::requested()).await;
            Ok(())
        }
        Command::Serve(serve) => Box::pin(run(serve)).await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            stop::log(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Serves the MCP server until the pod stops. Listens only after the server has answered, so a probe that connects is a probe of the
/// server.
async fn run(serve: Serve) -> Result<(), Error> {
    let Serve { listen, path, max_sessions, idle_seconds, command } = serve;
    let stopped = stop::requested();
    let program = Program::new(command);
    let era = tokio::select! {
        era = program.era() => era.map_err(|error| Error::Program { program: program.clone(), error })?,
        () = stopped.clone() => return Ok(()),
    };
    let failed = |error| Error::Serve { address: listen, error };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    stop::log(&format!("`{program}` answers, and is served at http://{listen}{path}"));
    let sessions = Arc::new(Sessions::new(program, era, max_sessions, idle_seconds));
    tokio::spawn(Arc::clone(&sessions).end_idle_sessions());
    let served =
        axum::serve(listener, http::router(&path, Arc::clone(&sessions))).with_graceful_shutdown(stopped.clone());
    tokio::select! {
        served = served => served.map_err(failed)?,
        () = stop::overdue(stopped) => stop::log("some calls did not end in time"),
    }
    sessions.end_all().await;
    Ok(())
}
