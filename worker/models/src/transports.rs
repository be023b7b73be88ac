//! The HTTP clients of a Job's Models. All Models with the same certificates and the same proxy share one client.
//!
//! Certificates are read again for each request, so a rotated or corrected certificate takes effect with the next request.

use crate::request_error::{Error, RetryDelay};
use bloomery_crds::Digest;
use bloomery_crds::run::{CaFile, ModelEndpoint};
use bloomery_http::{self as http, ClientOptions, root_cause};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The time for which an idle connection is kept. It is shorter than the 60 s after which load balancers of providers close it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(50);

/// The largest size of certificates, in bytes. A `ConfigMap` or a Secret cannot hold more.
const MAX_CERTIFICATE_BYTES: u64 = 1024 * 1024;

/// The settings that require separate clients.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TransportKey {
    is_https: bool,
    certificate_path: Option<String>,
    proxy: Option<String>,
}

/// The clients that were built so far.
#[derive(Debug, Default)]
pub(crate) struct Transports(Mutex<BTreeMap<TransportKey, Transport>>);

#[derive(Debug)]
struct Transport {
    /// The digest of the certificates with which the client was built.
    certificates: Option<Digest>,
    client: reqwest::Client,
}

impl Transports {
    /// Returns the client for an endpoint. A client is built on first use, because reading the system's certificates costs time and
    /// memory.
    pub(crate) fn client(&self, endpoint: &ModelEndpoint) -> Result<reqwest::Client, Error> {
        let url = &endpoint.base_url;
        let refused = |error: http::Error| Error::Refused { message: format!("was not asked: {error}") };
        let key = TransportKey {
            is_https: http::is_https(url).map_err(refused)?,
            certificate_path: endpoint.ca.as_ref().map(|ca| ca.path.clone()),
            proxy: endpoint.proxy.clone(),
        };
        let pem = endpoint.ca.as_ref().map(read_certificates).transpose()?;
        let certificates = pem.as_deref().map(Digest::of_bytes);
        let mut transports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(transport) = transports.get(&key).filter(|transport| transport.certificates == certificates) {
            return Ok(transport.client.clone());
        }
        let root_certificates =
            endpoint.ca.as_ref().zip(pem).map(|(ca, pem)| parse_certificates(ca, &pem)).transpose()?;
        let options = ClientOptions { root_certificates, proxy: endpoint.proxy.clone(), addresses: None };
        let client = http::client(url, IDLE_TIMEOUT, options).map_err(refused)?;
        transports.insert(key, Transport { certificates, client: client.clone() });
        Ok(client)
    }
}

fn read_certificates(ca: &CaFile) -> Result<Vec<u8>, Error> {
    let CaFile { path, object, key } = ca;
    let mut pem = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_CERTIFICATE_BYTES).read_to_end(&mut pem));
    match read {
        Ok(length) if length > 0 => Ok(pem),
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(unusable(ca, &error.to_string()))
        }
        Ok(_) | Err(_) => {
            let message = format!("needs the key `{key}` of the {object}, which is missing or empty. Add the key");
            Err(Error::Temporary { delay: RetryDelay::SecretMissing, message })
        }
    }
}

fn parse_certificates(ca: &CaFile, pem: &[u8]) -> Result<Vec<reqwest::Certificate>, Error> {
    match reqwest::Certificate::from_pem_bundle(pem) {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(unusable(ca, "it holds no PEM certificate")),
        Err(error) => Err(unusable(ca, &root_cause(&error))),
    }
}

fn unusable(CaFile { object, key, .. }: &CaFile, reason: &str) -> Error {
    let message = format!("needs the certificates in the key `{key}` of the {object}, which cannot be used: {reason}");
    Error::Temporary { delay: RetryDelay::Long, message }
}

#[cfg(test)]
mod tests;
