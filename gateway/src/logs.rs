//! Sets up the gateway's own log.

use tracing_subscriber::EnvFilter;

/// Starts logging: each event that passes the filter becomes a line of JSON on stdout.
pub fn init(filter: EnvFilter) {
    tracing_subscriber::fmt().json().flatten_event(true).with_current_span(false).with_env_filter(filter).init();
}
