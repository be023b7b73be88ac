//! The HTTP clients of a Job's Models. All Models with the same certificates and the same proxy share one client.
//!
//! Certificates are read again for each request, so a rotated or corrected certificate takes effect with the next request.

use crate::request_error::{Error, RetryDelay};
use bloomery_crds::Digest;
use bloomery_crds::run::ModelEndpoint;
use bloomery_http::address::AddressPolicy;
use bloomery_http::{self as http, ClientOptions, certificates};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The time for which an idle connection is kept. It is shorter than the 60 s after which load balancers of providers close it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(50);

/// The settings that require separate clients.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TransportKey {
    is_https: bool,
    certificate_path: Option<String>,
    proxy: Option<String>,
}

/// The clients that were built so far, and the addresses that they may connect to.
#[derive(Debug)]
pub(crate) struct Transports {
    clients: Mutex<BTreeMap<TransportKey, Transport>>,
    addresses: AddressPolicy,
}

#[derive(Debug)]
struct Transport {
    /// The digest of the certificates with which the client was built.
    certificates: Option<Digest>,
    client: reqwest::Client,
}

impl Transports {
    pub(crate) fn new(addresses: AddressPolicy) -> Self {
        Self { clients: Mutex::default(), addresses }
    }

    /// Returns the client for an endpoint. A client is built on first use, because reading the system's certificates costs time and
    /// memory. The hosts of the URL and of the proxy are checked for each endpoint, because endpoints share clients.
    pub(crate) fn client(&self, endpoint: &ModelEndpoint) -> Result<reqwest::Client, Error> {
        let url = &endpoint.base_url;
        let refused = |error: http::Error| Error::Refused { message: format!("was not asked: {error}") };
        for called in [Some(url), endpoint.proxy.as_ref()].into_iter().flatten() {
            http::check_address(called, &self.addresses).map_err(refused)?;
        }
        let key = TransportKey {
            is_https: http::is_https(url).map_err(refused)?,
            certificate_path: endpoint.ca.as_ref().map(|ca| ca.path.clone()),
            proxy: endpoint.proxy.clone(),
        };
        let pem = endpoint.ca.as_ref().map(certificates::read).transpose().map_err(refused_certificates)?;
        let digest = pem.as_deref().map(Digest::of_bytes);
        let mut transports = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(transport) = transports.get(&key).filter(|transport| transport.certificates == digest) {
            return Ok(transport.client.clone());
        }
        let root_certificates = endpoint.ca.as_ref().zip(pem).map(|(ca, pem)| certificates::parse(ca, &pem));
        let root_certificates = root_certificates.transpose().map_err(refused_certificates)?;
        let addresses = Some(self.addresses.clone());
        let options = ClientOptions { root_certificates, proxy: endpoint.proxy.clone(), addresses };
        let client = http::client(url, IDLE_TIMEOUT, options).map_err(refused)?;
        transports.insert(key, Transport { certificates: digest, client: client.clone() });
        Ok(client)
    }
}

/// Returns the error of a request whose certificates cannot be used.
fn refused_certificates(error: certificates::Error) -> Error {
    match error {
        certificates::Error::Missing(message) => Error::Temporary { delay: RetryDelay::SecretMissing, message },
        certificates::Error::Unusable(message) => Error::Temporary { delay: RetryDelay::Long, message },
    }
}

#[cfg(test)]
mod tests;
