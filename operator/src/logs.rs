//! Log lines as JSON, one for each event.

use tracing_subscriber::EnvFilter;

/// Writes log lines that pass the filter to stdout as JSON, from now on.
pub fn init(filter: &str) {
    // The settings validated the filter; the fallback is its default value.
    let filter = filter.parse::<EnvFilter>().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().json().flatten_event(true).with_current_span(false).with_env_filter(filter).init();
}
