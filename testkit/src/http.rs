//! The HTTP client that the servers use among themselves.

use std::time::Duration;

/// How long a connection may take to come about: inside a cluster it is there at once or not at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Builds a client for plain HTTP within the cluster: no redirects, no overall time-out.
///
/// There is no overall time-out because callers wait for holds that a test releases; a caller that
/// needs one sets it on its request.
///
/// # Errors
/// The TLS parts could not be initialised; the sentence says why.
pub fn client() -> Result<reqwest::Client, reqwest::Error> {
    // Idempotent for our purpose: when another part installed a provider first, that one serves.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT).redirect(reqwest::redirect::Policy::none()).build()
}
