//! Stands before an MCP server, and lets only workers with a token of the operator call it (`docs/explanation/mcp.md`).
//!
//! - `serve` serves a server that speaks over its standard streams as streamable HTTP. The operator copies this program into a pod of
//!   the server's own image, and starts the server with it. So the program is static, and needs nothing of the image.
//! - `guard` passes requests on to a server that speaks streamable HTTP on the loopback address of its pod.
//! - `scripts` is a server that speaks over its standard streams. Its tools are the scripts of a Skill.

mod arguments;
mod await_files;
mod connection;
mod gate;
mod guard;
mod http;
mod install;
mod message;
mod process;
mod program;
mod scripts;
mod sessions;
mod stop;

use arguments::{Arguments, Command, Guard, Serve};
use axum::Router;
use clap::Parser;
use gate::Gate;
use program::Program;
use sessions::Sessions;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use stop::Stopped;
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
    /// The scripts cannot be read.
    #[error("cannot read the scripts in {dir}: {error}")]
    Scripts {
        /// The directory.
        dir: String,
        /// The reason.
        error: std::io::Error,
    },
    /// The address cannot be served.
    #[error("cannot serve {address}: {error}")]
    Serve {
        /// The address.
        address: SocketAddr,
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
        Command::Guard(guard) => Box::pin(stand_guard(guard)).await,
        Command::Scripts(scripts) => {
            let dir = scripts.dir.display().to_string();
            Box::pin(scripts::serve(scripts)).await.map_err(|error| Error::Scripts { dir, error })
        }
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
    let Serve { access, listen, path, max_sessions, idle_seconds, command } = serve;
    let stopped = stop::requested();
    let program = Program::new(command);
    let era = tokio::select! {
        era = program.era() => era.map_err(|error| Error::Program { program: program.clone(), error })?,
        () = stopped.clone() => return Ok(()),
    };
    let sessions = Arc::new(Sessions::new(program.clone(), era, max_sessions, idle_seconds));
    tokio::spawn(Arc::clone(&sessions).end_idle_sessions());
    let router = gate::before(http::router(&path, Arc::clone(&sessions)), Gate::new(access));
    listen_until_stopped(listen, &path, router, stopped, &format!("`{program}` answers, and")).await?;
    sessions.end_all().await;
    Ok(())
}

/// Passes requests on to the MCP server until the pod stops.
async fn stand_guard(guard: Guard) -> Result<(), Error> {
    let (listen, path) = (guard.listen, guard.path.clone());
    let server = format!("the server at 127.0.0.1:{}", guard.port);
    listen_until_stopped(listen, &path, guard::router(guard), stop::requested(), &server).await
}

/// Serves a router until the pod stops, and then lets calls end for a limited time. Logs the address at which it serves
/// `server`. With port 0, the system chooses the port.
async fn listen_until_stopped(
    address: SocketAddr,
    path: &str,
    router: Router,
    stopped: Stopped,
    server: &str,
) -> Result<(), Error> {
    let failed = |error| Error::Serve { address, error };
    let listener = TcpListener::bind(addresses(address).as_slice()).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    stop::log(&format!("{server} is served at http://{bound}{path}"));
    let serving = axum::serve(listener, router).with_graceful_shutdown(stopped.clone());
    tokio::select! {
        ended = serving => ended.map_err(failed)?,
        () = stop::overdue(stopped) => stop::log("some calls did not end in time"),
    }
    Ok(())
}

/// Returns the addresses to try, in their order. A node may have no IPv6.
fn addresses(address: SocketAddr) -> Vec<SocketAddr> {
    let of_ipv4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
    [address].into_iter().chain((address.ip() == Ipv6Addr::UNSPECIFIED).then_some(of_ipv4)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_without_ipv6_listens_at_all_addresses_of_ipv4() {
        let tried = |address: &str| addresses(address.parse().unwrap()).len();
        assert_eq!((tried("[::]:8080"), tried("127.0.0.1:8080")), (2, 1));
    }
}
