//! Log lines as JSON, one an event.

use tracing_subscriber::EnvFilter;

/// Writes log lines as JSON to stdout from now on, those that the filter lets pass.
pub fn init(filter: &str) {
    // Settings were read, so the filter is good; an unreadable one would be the default.
    let filter = filter.parse::<EnvFilter>().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().json().flatten_event(true).with_current_span(false).with_env_filter(filter).init();
}
