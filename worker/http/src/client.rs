//! Builds HTTP clients, and checks the URLs that they are built for.

use crate::address::AddressPolicy;
use reqwest::{Certificate, Proxy, Url};
use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

/// The time limit for establishing a connection, including TLS.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time for which an idle connection is kept, for clients whose calls have effects. Servers close idle connections after 5 s
/// or later. The outcome of a call is unknown if its server closes the connection at the same time.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// The reason that no client can be built for a URL.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not a URL, or its scheme is neither http nor https.
    #[error("`{url}` is not an http or https URL: {message}")]
    Url {
        /// The text.
        url: String,
        /// The parser's reason.
        message: String,
    },
    /// The address policy does not allow the host of the URL.
    #[error("`{url}` may not be called: {message}")]
    AddressRefused {
        /// The URL.
        url: String,
        /// The rule that refuses it.
        message: String,
    },
    /// The client cannot be built. For https, the usual reason is an image without CA certificates.
    #[error("cannot build an HTTP client for `{url}`: {message}")]
    Build {
        /// The URL.
        url: String,
        /// The reason.
        message: String,
    },
}

/// The settings in which clients differ. By default: the system's certificates, no proxy, any address.
#[derive(Debug, Default)]
pub struct ClientOptions {
    /// The root certificates that are trusted instead of the system's.
    pub root_certificates: Option<Vec<Certificate>>,
    /// The URL of the proxy that requests go through. Proxies of the environment are never used.
    pub proxy: Option<String>,
    /// The addresses that the client may connect to. [`client`] checks the host of its URL and each host that is resolved later.
    /// A later request to a URL whose host is an IP address must be checked with [`check_address`].
    pub addresses: Option<AddressPolicy>,
}

/// Selects the TLS provider of this process. A provider that is installed already stays.
pub fn install_tls_provider() {
    // The only error is that the process has a provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Builds a client for the server of `url`: HTTP/1.1, no redirects, no retries, no proxy of the environment.
///
/// An idle connection is kept for `idle_timeout`. The system's root certificates are only read for https: they cost memory, and
/// an image for plain http may lack them.
///
/// # Panics
/// `reqwest` panics if the process has no default TLS provider: call [`install_tls_provider`] first.
pub fn client(url: &str, idle_timeout: Duration, options: ClientOptions) -> Result<reqwest::Client, Error> {
    let ClientOptions { root_certificates, proxy, addresses } = options;
    if let Some(addresses) = &addresses {
        check_address(url, addresses)?;
    }
    let uses_tls = is_https(url)? || proxy.as_deref().is_some_and(|proxy| proxy.starts_with("https:"));
    let failed = |error: reqwest::Error| Error::Build { url: url.to_owned(), message: root_cause(&error) };
    let builder = reqwest::Client::builder()
        .user_agent(concat!("bloomery-worker/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .http1_only()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(idle_timeout);
    let builder = match root_certificates {
        Some(certificates) => builder.tls_certs_only(certificates),
        None if uses_tls => builder,
        // Redirects are not followed, so this client never switches to https.
        None => builder.tls_certs_only([]),
    };
    let builder = match addresses {
        Some(addresses) => builder.dns_resolver(Arc::new(addresses)),
        None => builder,
    };
    let builder = match proxy {
        Some(proxy) => builder.proxy(Proxy::all(proxy).map_err(failed)?),
        None => builder,
    };
    builder.build().map_err(failed)
}

/// Checks that `addresses` allows the host of `url`, as far as that can be decided without resolving a name.
pub fn check_address(url: &str, addresses: &AddressPolicy) -> Result<(), Error> {
    let parsed = parse(url)?;
    match parsed.host_str().and_then(|host| addresses.refusal_before_lookup(host)) {
        Some(message) => Err(Error::AddressRefused { url: url.to_owned(), message }),
        None => Ok(()),
    }
}

/// Returns whether the scheme of `url` is https.
///
/// # Errors
/// [`Error::Url`] if it is not an http or https URL.
pub fn is_https(url: &str) -> Result<bool, Error> {
    Ok(parse(url)?.scheme() == "https")
}

/// Returns the origin of `url`, that is its scheme, host and port; `None` if it is not a URL.
pub fn origin(url: &str) -> Option<String> {
    Url::parse(url).ok().map(|url| url.origin().ascii_serialization())
}

/// Returns the innermost cause of an error, such as `Connection refused (os error 111)`. The outer errors only name the failed step
/// and repeat the URL.
pub fn root_cause(error: &reqwest::Error) -> String {
    if error.is_timeout() && !error.is_connect() {
        return "no answer in time".to_owned();
    }
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        reason = inner.to_string();
        source = inner.source();
    }
    reason
}

fn parse(url: &str) -> Result<Url, Error> {
    let invalid = |message: String| Error::Url { url: url.to_owned(), message };
    let parsed = Url::parse(url).map_err(|error| invalid(error.to_string()))?;
    match parsed.scheme() {
        "https" | "http" => Ok(parsed),
        other => Err(invalid(format!("its scheme is `{other}`"))),
    }
}
