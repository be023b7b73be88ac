//! Runs a router until the process gets a signal or the test stops the server.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use clap::Args;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The time that open connections have to end after a stop begins.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// The flags for the address of a server.
#[derive(Args, Clone, Copy, Debug)]
pub struct Listen {
    /// Address to listen on
    #[arg(long, env = "LISTEN_ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    address: IpAddr,
    /// Port to listen on
    #[arg(long, env = "PORT", default_value_t = 8080)]
    port: u16,
}

impl Listen {
    /// Returns the socket address that the flags name.
    pub fn addr(self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }
}

/// A server in this process. Dropping it stops the server, but does not wait until it has stopped.
#[derive(Debug)]
#[must_use = "a server stops when its handle is dropped"]
pub struct Running {
    addr: SocketAddr,
    stop: CancellationToken,
    task: Option<JoinHandle<io::Result<()>>>,
}

impl Running {
    /// Listens on `addr` and serves `router` in the background.
    ///
    /// Cancelling `stop` stops the server. A handler that waits for an event must also watch `stop`. Otherwise it delays
    /// the stop.
    ///
    /// # Errors
    /// The server cannot listen on `addr`.
    pub async fn start(addr: SocketAddr, router: Router, stop: CancellationToken) -> io::Result<Self> {
        let listener = TcpListener::bind(addr)
            .await
            .map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {addr}: {error}")))?;
        let addr = listener.local_addr()?;
        tracing::info!(%addr, "listening");
        let task = Some(tokio::spawn(serve(listener, router, stop.clone())));
        Ok(Self { addr, stop, task })
    }

    /// Returns the address of the server. It has the real port, also if the requested port was 0.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the base URL, without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Stops the server. Waits until the port is free and all open requests have ended.
    ///
    /// # Errors
    /// Requests were still open after the grace period of 5 seconds (`TimedOut`), or the server failed.
    pub async fn stop(self) -> io::Result<()> {
        self.stop.cancel();
        self.wait_for_end().await
    }

    /// Serves until SIGTERM or SIGINT, then stops gracefully.
    ///
    /// # Errors
    /// The signals cannot be watched, or the server failed.
    pub async fn until_terminated(self) -> io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            _ = terminate.recv() => tracing::info!("SIGTERM: stopping"),
            _ = interrupt.recv() => tracing::info!("SIGINT: stopping"),
            () = self.stop.cancelled() => {}
        }
        match self.stop().await {
            Err(late) if late.kind() == io::ErrorKind::TimedOut => {
                tracing::warn!("{late}: exiting anyway");
                Ok(())
            }
            ended => ended,
        }
    }

    async fn wait_for_end(mut self) -> io::Result<()> {
        match self.task.take() {
            Some(task) => task.await.map_err(io::Error::other)?,
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) -> io::Result<()> {
    // Cancels the token also if the server fails.
    let _ended = stop.clone().drop_guard();
    // Without `TCP_NODELAY`, an answer that is written in two parts waits 40 ms for the acknowledgement of the first part.
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    let serving = axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
    let overdue = async {
        stop.cancelled().await;
        tokio::time::sleep(GRACE_PERIOD).await;
    };
    tokio::select! {
        ended = serving => ended,
        () = overdue => Err(io::Error::new(io::ErrorKind::TimedOut, format!("connections are still open after {GRACE_PERIOD:?}"))),
    }
}

/// Returns the exit code of a server. Prints an error to stderr.
pub fn exit_code(ended: Result<(), Box<dyn std::error::Error>>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not through the log, because setting up the log may have failed.
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
