//! Sets up the operator's own log.

use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging: each event that passes the filter becomes a line of JSON on stdout.
pub fn init(filter: &str) {
    // The settings have validated the filter, so the fallback is never needed.
    let filter = filter.parse::<EnvFilter>().unwrap_or_else(|_| EnvFilter::new("info"));
    json_lines(filter, std::io::stdout).init();
}

/// Returns the log that writes each event that passes the filter to `out`, as a line of JSON.
pub(crate) fn json_lines<W>(filter: EnvFilter, out: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_env_filter(filter)
        .with_writer(out)
        .finish()
}
