//! CA certificates from a Secret or a `ConfigMap`. They are read again for each request, so a rotated or corrected certificate takes
//! effect with the next request.

use crate::root_cause;
use bloomery_crds::run::CaFile;
use reqwest::Certificate;
use std::io::{ErrorKind, Read};

/// The largest size of certificates, in bytes. A `ConfigMap` or a Secret cannot hold more.
const MAX_CERTIFICATE_BYTES: u64 = 1024 * 1024;

/// The reason that certificates cannot be used. Each message continues a clause that begins with what needs them, such as
/// "the Model `main`".
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The key does not exist yet.
    #[error("{0}")]
    Missing(String),
    /// The key exists, but its value cannot be used.
    #[error("{0}")]
    Unusable(String),
}

/// Reads certificates as PEM.
pub fn read(ca: &CaFile) -> Result<Vec<u8>, Error> {
    let CaFile { path, object, key } = ca;
    let mut pem = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_CERTIFICATE_BYTES).read_to_end(&mut pem));
    match read {
        Ok(length) if length > 0 => Ok(pem),
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(unusable(ca, &error.to_string()))
        }
        Ok(_) | Err(_) => Err(Error::Missing(format!(
            "needs the key `{key}` of the {object}, which is missing or empty. Add the key"
        ))),
    }
}

/// Parses the certificates that [`read`] has returned.
pub fn parse(ca: &CaFile, pem: &[u8]) -> Result<Vec<Certificate>, Error> {
    match Certificate::from_pem_bundle(pem) {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(unusable(ca, "it holds no PEM certificate")),
        Err(error) => Err(unusable(ca, &root_cause(&error))),
    }
}

fn unusable(CaFile { object, key, .. }: &CaFile, reason: &str) -> Error {
    let message = format!("needs the certificates in the key `{key}` of the {object}, which cannot be used: {reason}");
    Error::Unusable(message)
}
