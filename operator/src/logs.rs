//! Sets up the operator's own log.

use tracing_subscriber::EnvFilter;

/// Starts logging: each event that passes the filter becomes a line of JSON on stdout.
pub fn init(filter: &str) {
    // The settings have validated the filter, so the fallback is never needed.
    let filter = filter.parse::<EnvFilter>().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().json().flatten_event(true).with_current_span(false).with_env_filter(filter).init();
}
