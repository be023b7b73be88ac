//! The CA of the report endpoint: reads it from its Secret, renews it, and signs certificates.
//!
//! A pod trusts the certificates that it was created with, and may run for a long time. So a new authority is created
//! when a third of the lifetime of the newest one is left, and all new pods trust it from then on. The new authority
//! signs only once the one before it is about to expire, because by then every pod trusts the new one.

mod pem;

use pem::{AuthorityPair, Validity};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::CertificateDer;
use std::time::Duration;

const DAY_SECONDS: u64 = 24 * 3600;

/// The lifetime of an authority, in seconds.
pub const AUTHORITY_LIFETIME_SECONDS: u64 = 360 * DAY_SECONDS;

/// The lifetime of a replica's certificate, in seconds.
pub const LEAF_LIFETIME_SECONDS: u64 = 14 * DAY_SECONDS;

/// The seconds by which the validity of a certificate begins in the past, for clocks that are behind.
const CLOCK_SKEW_SECONDS: u64 = 3600;

/// The reason why the CA cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The content of the Secret is not what the operator wrote.
    #[error(transparent)]
    Unreadable(#[from] pem::Error),
    /// A certificate cannot be created.
    #[error("a certificate cannot be created: {0}")]
    NotCreated(#[from] rcgen::Error),
    /// All authorities have expired.
    #[error("all certificates of the CA have expired, and the leader has not created a new one yet")]
    Expired,
}

/// The certificate authorities, oldest first. Their methods take times in seconds since the epoch.
#[derive(Debug, Clone, Default)]
pub struct Authorities(Vec<AuthorityPair>);

/// A replica's certificate and its key.
pub struct Leaf {
    /// The certificate.
    pub certificate: CertificateDer<'static>,
    /// Its key, as PKCS#8.
    pub key: Vec<u8>,
    /// The end of its validity, in seconds since the epoch.
    pub not_after: u64,
}

impl Authorities {
    /// Reads `ca.crt` and `ca.key`. Two empty texts are an empty CA.
    pub fn read(certificates: &str, keys: &str) -> Result<Self, Error> {
        Ok(Self(pem::read_pairs(certificates, keys)?))
    }

    /// Returns the contents of `ca.crt` and `ca.key`, in the form that [`Authorities::read`] expects.
    pub fn to_pem(&self) -> (String, String) {
        let certificates = self.0.iter().map(|pair| pair.certificate.as_str()).collect();
        let keys = self.0.iter().map(|pair| pair.key.as_str()).collect();
        (certificates, keys)
    }

    /// The keys of the authorities, oldest first, as PEM.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|pair| pair.key.as_str())
    }

    /// The certificates that a pod created now has to trust, as PEM.
    pub fn bundle(&self, now: u64) -> String {
        self.0.iter().filter(|pair| pair.validity.not_after > now).map(|pair| pair.certificate.as_str()).collect()
    }

    /// Returns whether a new authority is needed: there is none, or less than a third of the newest one's lifetime is
    /// left.
    pub fn needs_renewal(&self, now: u64) -> bool {
        self.0.last().is_none_or(|pair| {
            let Validity { not_before, not_after } = pair.validity;
            not_after.saturating_sub(now) < not_after.saturating_sub(not_before) / 3
        })
    }

    /// Returns the authorities with a new one and without the expired ones.
    pub fn renewed(&self, now: u64) -> Result<Self, Error> {
        let mut pairs: Vec<AuthorityPair> =
            self.0.iter().filter(|pair| pair.validity.not_after > now).cloned().collect();
        pairs.push(new_authority(now)?);
        Ok(Self(pairs))
    }

    /// Signs a certificate for these host names. The signer is the oldest authority that outlives the certificate, because
    /// all pods trust it. If there is none, the newest authority signs a certificate that expires together with it.
    pub fn issue(&self, names: &[String], now: u64) -> Result<Leaf, Error> {
        let valid = || self.0.iter().filter(|pair| pair.validity.not_after > now);
        let outlives = |pair: &&AuthorityPair| pair.validity.not_after > now.saturating_add(LEAF_LIFETIME_SECONDS);
        let signer = valid().find(outlives).or_else(|| valid().next_back()).ok_or(Error::Expired)?;
        let not_after = now.saturating_add(LEAF_LIFETIME_SECONDS).min(signer.validity.not_after);
        let mut params = CertificateParams::new(names.to_vec())?;
        params.distinguished_name = common_name("bloomery report endpoint");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        set_validity(&mut params, Validity { not_before: now.saturating_sub(CLOCK_SKEW_SECONDS), not_after });
        let key = KeyPair::generate()?;
        let issuer = Issuer::from_ca_cert_pem(&signer.certificate, KeyPair::from_pem(&signer.key)?)?;
        let certificate = params.signed_by(&key, &issuer)?;
        Ok(Leaf { certificate: certificate.der().clone(), key: key.serialize_der(), not_after })
    }
}

fn new_authority(now: u64) -> Result<AuthorityPair, Error> {
    let mut params = CertificateParams::default();
    // The name is unique: of two authorities with one name, a client may try only the wrong one.
    params.distinguished_name = common_name(&format!("bloomery report CA {now}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let validity = Validity {
        not_before: now.saturating_sub(CLOCK_SKEW_SECONDS),
        not_after: now.saturating_add(AUTHORITY_LIFETIME_SECONDS),
    };
    set_validity(&mut params, validity);
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(AuthorityPair { certificate: certificate.pem(), key: key.serialize_pem(), validity })
}

fn set_validity(params: &mut CertificateParams, validity: Validity) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + Duration::from_secs(validity.not_before);
    params.not_after = epoch + Duration::from_secs(validity.not_after);
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

#[cfg(test)]
mod tests;
