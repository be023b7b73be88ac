//! The diagnostics of the worker's code in this process.

use super::screen::Screen;
use bloomery_redact::Redactor;
use bloomery_worker::trace::Trace;
use std::io;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The modules that report failed tries. The screen shows what the Job waits for, and the outcome has the last failure.
const RETRIES: [&str; 2] = ["bloomery_models", "bloomery_worker::driver::wait"];

/// Prepares this process for conversations: selects the cryptography of its connections, and sends the worker's diagnostics to the
/// screen and the trace. Those about retries go only to the trace.
pub fn start(screen: &Screen, trace: &Trace, redactor: &Redactor) {
    bloomery_http::install_tls_provider();
    // rmcp logs each refused connection as an error. The MCP client itself reports the connections that matter.
    let levels = Targets::new().with_default(LevelFilter::WARN).with_target("rmcp", LevelFilter::OFF);
    let without_retries = levels.clone().with_targets(RETRIES.map(|module| (module, LevelFilter::OFF)));
    let lines = || fmt::layer().without_time().with_target(false).with_ansi(false).compact();
    let (screen, trace, redactor) = (screen.clone(), trace.clone(), redactor.clone());
    let secrets = redactor.clone();
    let to_trace = lines().with_writer(move || redactor.writer(trace.tee(io::sink())));
    let to_screen = lines().with_writer(move || secrets.writer(screen.clone()));
    let layers = vec![to_trace.with_filter(levels).boxed(), to_screen.with_filter(without_retries).boxed()];
    tracing_subscriber::registry().with(layers).init();
}
