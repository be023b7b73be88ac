//! Parses the two PEM texts of the Secret into pairs of certificate and key.

use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// The reason why the texts of the Secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The numbers of certificates and keys differ.
    #[error("ca.crt has {certificates} certificates and ca.key {keys} keys")]
    Count {
        /// The number of certificates in `ca.crt`.
        certificates: usize,
        /// The number of keys in `ca.key`.
        keys: usize,
    },
    /// A text cannot be parsed.
    #[error("{file} cannot be read: {why}")]
    Unreadable {
        /// `ca.crt` or `ca.key`.
        file: &'static str,
        /// The message of the parser.
        why: String,
    },
    /// A key and the certificate at its position do not belong together.
    #[error("a key of ca.key does not belong to the certificate at its position in ca.crt")]
    Mismatch,
}

/// A certificate authority: a certificate and its key, both as PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct AuthorityPair {
    /// The certificate.
    pub(super) certificate: String,
    /// The key.
    pub(super) key: String,
    /// The validity of the certificate.
    pub(super) validity: Validity,
}

impl std::fmt::Debug for AuthorityPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key is left out, so that it never reaches a log.
        f.debug_struct("AuthorityPair")
            .field("certificate", &self.certificate)
            .field("validity", &self.validity)
            .finish_non_exhaustive()
    }
}

/// The validity of a certificate, in seconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    /// The first second.
    pub(super) not_before: u64,
    /// The last second.
    pub(super) not_after: u64,
}

/// Reads all pairs, in order.
pub(super) fn read_pairs(certificates: &str, keys: &str) -> Result<Vec<AuthorityPair>, Error> {
    let (certificates, keys) = (sections(certificates), sections(keys));
    if certificates.len() != keys.len() {
        return Err(Error::Count { certificates: certificates.len(), keys: keys.len() });
    }
    certificates.into_iter().zip(keys).map(|(certificate, key)| read_pair(certificate, key)).collect()
}

fn read_pair(certificate: String, key: String) -> Result<AuthorityPair, Error> {
    let unreadable = |file: &'static str, why: String| Error::Unreadable { file, why };
    let der = CertificateDer::from_pem_slice(certificate.as_bytes());
    let der = der.map_err(|error| unreadable("ca.crt", error.to_string()))?;
    let parsed = x509_parser::parse_x509_certificate(&der);
    let (_, parsed) = parsed.map_err(|error| unreadable("ca.crt", error.to_string()))?;
    let key_pair = KeyPair::from_pem(&key).map_err(|error| unreadable("ca.key", error.to_string()))?;
    let public_key_of_pair = key_pair.der_bytes();
    if parsed.public_key().subject_public_key.data != public_key_of_pair {
        return Err(Error::Mismatch);
    }
    let seconds = |timestamp: i64| u64::try_from(timestamp).unwrap_or(0);
    let validity = parsed.validity();
    let validity = Validity {
        not_before: seconds(validity.not_before.timestamp()),
        not_after: seconds(validity.not_after.timestamp()),
    };
    Ok(AuthorityPair { certificate, key, validity })
}

/// Splits a PEM text into its sections, without the lines between them.
fn sections(text: &str) -> Vec<String> {
    let mut sections: Vec<String> = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines().map(str::trim_end) {
        if line.starts_with("-----BEGIN ") {
            open = Some(String::new());
        }
        let Some(section) = &mut open else { continue };
        section.push_str(line);
        section.push('\n');
        if line.starts_with("-----END ") {
            sections.extend(open.take());
        }
    }
    // A section without an end is kept, so that it fails to parse.
    sections.extend(open);
    sections
}
