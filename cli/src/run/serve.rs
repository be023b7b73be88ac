//! `bloomery serve`: serves the Jobs of a memory over HTTP, to programs of this machine.

use super::swallowed;
use crate::args::ServeArgs;
use crate::error::Error;
use crate::exit::Exit;
use crate::local::owner;
use crate::{terminal, text};
use bloomery_embed::run::options::{McpOptions, ModelOptions, RunOptions};
use bloomery_embed::run::{model, prepare, server};
use bloomery_embed::{Errors, LocalRuntime, LocalTenant, Runtime, Tenant};
use bloomery_gateway::{Gateway, Limits, LoopbackAccess, random_token, router};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The name of the only tenant.
const TENANT: &str = "local";

/// The most threads that read logs. More threads would cost memory when many clients connect, and read no faster.
const READERS: usize = 16;

/// Serves the Jobs of a memory until a signal stops it.
///
/// # Errors
/// If the arguments cannot be used, or the server fails.
pub fn run(args: &ServeArgs) -> Result<Exit, Error> {
    swallowed::report("serve", &args.mcp);
    // The check of the options creates a client.
    bloomery_http::install_tls_provider();
    let options = options(args)?;
    // Other diagnostics may contain secrets of Jobs. Each Job has a trace without them.
    let own = Targets::new().with_target("bloomery_embed", LevelFilter::WARN);
    let lines = fmt::layer().without_time().with_target(false).with_ansi(false).compact().with_writer(io::stderr);
    tracing_subscriber::registry().with(lines.with_filter(own)).init();
    let failed = |error: io::Error| Error::failed(format!("the runtime cannot be started: {error}"));
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().max_blocking_threads(READERS).build().map_err(failed)?;
    let exit = runtime.block_on(Box::pin(serve(args.port, options)));
    // Open connections must not delay the exit.
    runtime.shutdown_background();
    exit
}

/// Returns the options of all Jobs.
///
/// # Errors
/// All errors of the arguments, at once.
fn options(args: &ServeArgs) -> Result<RunOptions, Error> {
    let options = RunOptions {
        root: Some(args.root.clone()),
        model: ModelOptions::from(&args.model),
        mcp: McpOptions::from(&args.mcp),
        allow_scripts: args.allow_scripts,
        patience: Duration::from_secs(args.patience),
        ..RunOptions::new(&args.memory)
    };
    owner::check(&options.memory)?;
    let mut errors = Errors::default();
    if !args.root.is_dir() {
        errors.add(bloomery_embed::Error::invalid(format!("--root: {} is not a directory", args.root.display())));
    }
    // Each Job looks for its model and its server again.
    errors.collect(model::find(&options.model, None, &prepare::env));
    errors.collect(server::from_options(&options.mcp));
    Ok(errors.into_result(options)?)
}

/// Serves until a signal arrives, and then parks all Jobs.
async fn serve(port: u16, options: RunOptions) -> Result<Exit, Error> {
    let failed = |error: io::Error| Error::failed(format!("the server failed: {error}"));
    let unhandled = |_: io::Error| failed(io::Error::other("signals cannot be handled"));
    let [interrupt, terminate] = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
    let mut signals = [interrupt.map_err(unhandled)?, terminate.map_err(unhandled)?];
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(|error| Error::usage(format!("--port {port}: cannot be listened on: {error}. Choose another port")))?;
    let port = listener.local_addr().map_err(failed)?.port();
    let (token, user) = (random_token().map_err(failed)?, terminal::user_name());
    let runtime = LocalRuntime::new(BTreeMap::from([(TENANT.to_owned(), options)]))?;
    let tenant = runtime.open(TENANT, user.clone()).await?;
    let resumed = tenant.resume_jobs().await?;
    let access = LoopbackAccess::new(port, &token, user);
    let routes = router(Gateway { runtime, access, tenant: TENANT.to_owned() });
    // Browsers do not send the part after `#` to any server. The page removes it from the address.
    text::inform(&format!("Serving http://127.0.0.1:{port}/#token={token}\nAuthorization: Bearer {token}"));
    if !resumed.is_empty() {
        text::inform(&format!("Jobs that go on: {}", resumed.join(", ")));
    }
    tokio::select! {
        () = bloomery_gateway::serve(listener, routes, Limits::for_process()) => Err(Error::failed("the server ended")),
        () = next_signal(&mut signals) => Ok(park(&tenant, &mut signals).await),
    }
}

/// Parks all Jobs. The next signal stops the process at once.
async fn park(tenant: &LocalTenant, signals: &mut [Signal; 2]) -> Exit {
    text::inform(
        "The Jobs are parked after their current step, and go on at the next start. Press ^C again to stop at once.",
    );
    tokio::select! {
        () = tenant.close() => Exit::Success,
        () = next_signal(signals) => Exit::Interrupted,
    }
}

/// Waits for the next signal.
async fn next_signal(signals: &mut [Signal; 2]) {
    let [interrupt, terminate] = signals;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
