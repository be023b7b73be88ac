//! What every outgoing connection of ours has in common.

use crate::reach::Reach;
use futures::StreamExt;
use reqwest::Response;
use std::error::Error as _;
use std::time::Duration;
use tokio::time::timeout;

/// How long it may take until a connection stands, TLS included.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection is kept where a lost call costs much: servers close idle ones after 5 s and later, and of a call
/// that meets the closing nobody knows whether it took effect.
pub const IDLE: Duration = Duration::from_secs(4);

/// Why there can be no client for a URL.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL is none, or neither http nor https.
    #[error("`{url}` is not an http or https URL: {message}")]
    Url {
        /// What was to be a URL.
        url: String,
        /// Why it is none.
        message: String,
    },
    /// The URL is of an address that may not be called.
    #[error("`{url}` may not be called: {message}")]
    Refused {
        /// Which.
        url: String,
        /// Why.
        message: String,
    },
    /// The client cannot be built; for https, most likely because the image has no CA certificates.
    #[error("no HTTP client for `{url}`: {message}")]
    Client {
        /// For what.
        url: String,
        /// Why not.
        message: String,
    },
}

/// Builds a client for one server: no redirects, no proxies, nothing sent twice, HTTP/1.1.
///
/// `idle` is how long a connection is kept for the next request. The system's root certificates are read for
/// https only: for plain http they would cost memory, and an image without them could not run.
///
/// The process must have a default TLS provider; without one, this panics in `reqwest`.
pub fn client(url: &str, idle: Duration) -> Result<reqwest::Client, Error> {
    routed(url, idle, Route::default())
}

/// Whom a client trusts, and by which way it goes.
#[derive(Debug, Default)]
pub struct Route {
    /// The certificates that are trusted instead of the system's.
    pub certificates: Option<Vec<reqwest::Certificate>>,
    /// The proxy that requests go through; what the environment says of proxies never counts.
    pub proxy: Option<String>,
    /// The addresses that the server, and others that the client is used for, may be at. Of those others, the ones whose
    /// host is an address are asked nothing here.
    pub reach: Option<Reach>,
}

/// Checks that a URL may be called, as far as that is known before anybody is asked where it is.
pub fn check(url: &str, reach: &Reach) -> Result<(), Error> {
    is_https(url)?;
    let host = reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    let refused = |message| Error::Refused { url: url.to_owned(), message };
    host.and_then(|host| reach.refusal_unasked(&host)).map_or(Ok(()), |message| Err(refused(message)))
}

/// Checks what [`client`] needs of a URL, and says whether it is one of https.
pub fn is_https(url: &str) -> Result<bool, Error> {
    let invalid = |message: String| Error::Url { url: url.to_owned(), message };
    let parsed = reqwest::Url::parse(url).map_err(|error| invalid(error.to_string()))?;
    match parsed.scheme() {
        "https" => Ok(true),
        "http" => Ok(false),
        other => Err(invalid(format!("its scheme is `{other}`"))),
    }
}

/// The server of a URL: its scheme, host and port, as text. None of what is no URL.
pub fn server(url: &str) -> Option<String> {
    reqwest::Url::parse(url).ok().map(|url| url.origin().ascii_serialization())
}

/// Builds a client as [`client`] does, for a route.
pub fn routed(url: &str, idle: Duration, route: Route) -> Result<reqwest::Client, Error> {
    let Route { certificates, proxy, reach } = route;
    reach.iter().try_for_each(|reach| check(url, reach))?;
    let encrypts = is_https(url)? || proxy.as_deref().is_some_and(|proxy| proxy.starts_with("https:"));
    let failed = |error: reqwest::Error| Error::Client { url: url.to_owned(), message: cause(&error) };
    let builder = reqwest::Client::builder()
        .user_agent(concat!("bloomery-worker/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .http1_only()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(idle);
    let builder = match certificates {
        Some(certificates) => builder.tls_certs_only(certificates),
        None if encrypts => builder,
        // Nothing leads from here to https, since redirects are not followed.
        None => builder.tls_certs_only([]),
    };
    let builder = match reach {
        Some(reach) => builder.dns_resolver(std::sync::Arc::new(reach)),
        None => builder,
    };
    let builder = match proxy {
        Some(proxy) => builder.proxy(reqwest::Proxy::all(proxy).map_err(failed)?),
        None => builder,
    };
    builder.build().map_err(failed)
}

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is larger than allowed. The rest was not read.
    #[error("the answer is larger than {max} bytes")]
    TooLarge {
        /// What is allowed.
        max: usize,
    },
    /// Nothing more of it came.
    #[error("the answer stopped: nothing of it came for {} s", .silence.as_secs_f64().ceil())]
    Silent {
        /// For so long.
        silence: Duration,
    },
    /// It ended before its end.
    #[error("the answer was cut off: {message}")]
    Cut {
        /// What the transport said.
        message: String,
    },
}

/// Reads a body of at most `max` bytes, and not a byte more into memory.
pub async fn read_bounded(response: Response, max: usize) -> Result<Vec<u8>, BodyError> {
    read_steadily(response, max, Duration::MAX).await
}

/// Reads a body of at most `max` bytes, which is given up when nothing of it came for so long.
pub async fn read_steadily(response: Response, max: usize, silence: Duration) -> Result<Vec<u8>, BodyError> {
    if response.content_length().is_some_and(|length| length > max as u64) {
        return Err(BodyError::TooLarge { max });
    }
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = timeout(silence, chunks.next()).await.map_err(|_| BodyError::Silent { silence })? {
        let chunk = chunk.map_err(|error| BodyError::Cut { message: cause(&error) })?;
        if chunk.len() > max - body.len() {
            return Err(BodyError::TooLarge { max });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The reason at the bottom of an error, such as `Connection refused (os error 111)`. The errors above it say
/// only where it happened, and one of them repeats the URL.
pub fn cause(error: &reqwest::Error) -> String {
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
