//! The HTTP client that the servers and their tests use.

use std::time::Duration;

/// The time limit for connecting. Within a cluster, a connection takes milliseconds or fails.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns a client for plain HTTP within the cluster. It follows no redirects.
///
/// Requests have no timeout by default, because callers wait for holds that a test releases.
///
/// # Errors
/// The TLS library cannot be initialized.
pub fn client() -> Result<reqwest::Client, reqwest::Error> {
    // Fails if the process has already installed a provider. Any provider will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT).redirect(reqwest::redirect::Policy::none()).build()
}
