//! The connections of a Job's Models: one client for all that trust the same certificates and go the same way.
//!
//! Certificates are read anew for each request, so that those of a rotated or mended object count at once.

use super::IDLE;
use super::trouble::{Pace, Trouble};
use crate::http::{self, Route};
use bloomery_crds::Digest;
use bloomery_crds::run::{CaFile, ModelEndpoint};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::sync::{Mutex, PoisonError};

/// The most bytes of certificates: a `ConfigMap` and a Secret hold no more.
const MAX_CERTIFICATES: u64 = 1024 * 1024;

/// What the clients differ by: https or not, the file of the certificates, the proxy.
type Way = (bool, Option<String>, Option<String>);

/// The clients that were needed so far.
#[derive(Debug, Default)]
pub(super) struct Transports(Mutex<BTreeMap<Way, Made>>);

#[derive(Debug)]
struct Made {
    certificates: Option<Digest>,
    client: reqwest::Client,
}

impl Transports {
    /// The client for an endpoint. It is made when it is needed: reading the system's certificates takes time and memory.
    pub(super) fn client(&self, endpoint: &ModelEndpoint) -> Result<reqwest::Client, Trouble> {
        let url = &endpoint.base_url;
        let refused = |error: http::Error| Trouble::Refused { message: format!("cannot be asked: {error}") };
        let way = (
            http::is_https(url).map_err(refused)?,
            endpoint.ca.as_ref().map(|ca| ca.path.clone()),
            endpoint.proxy.clone(),
        );
        let pem = endpoint.ca.as_ref().map(read).transpose()?;
        let certificates = pem.as_deref().map(Digest::of_bytes);
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = made.get(&way).filter(|made| made.certificates == certificates) {
            return Ok(made.client.clone());
        }
        let trusted = endpoint.ca.as_ref().zip(pem).map(|(ca, pem)| parsed(ca, &pem)).transpose()?;
        let route = Route { certificates: trusted, proxy: endpoint.proxy.clone(), reach: None };
        let client = http::routed(url, IDLE, route).map_err(refused)?;
        made.insert(way, Made { certificates, client: client.clone() });
        Ok(client)
    }
}

fn read(ca: &CaFile) -> Result<Vec<u8>, Trouble> {
    let CaFile { path, object, key } = ca;
    let mut pem = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_CERTIFICATES).read_to_end(&mut pem));
    match read {
        Ok(length) if length > 0 => Ok(pem),
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(unusable(ca, &error.to_string()))
        }
        Ok(_) | Err(_) => {
            let message = format!("needs the key `{key}` of the {object}, which is missing or empty: put it there");
            Err(Trouble::Passing { pace: Pace::Missing, message })
        }
    }
}

fn parsed(ca: &CaFile, pem: &[u8]) -> Result<Vec<reqwest::Certificate>, Trouble> {
    match reqwest::Certificate::from_pem_bundle(pem) {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(unusable(ca, "it holds no certificate in PEM form")),
        Err(error) => Err(unusable(ca, &http::cause(&error))),
    }
}

fn unusable(CaFile { object, key, .. }: &CaFile, why: &str) -> Trouble {
    let message = format!("needs the certificates in the key `{key}` of the {object}, which cannot be used: {why}");
    Trouble::Passing { pace: Pace::Slow, message }
}

#[cfg(test)]
mod tests;
