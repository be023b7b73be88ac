use super::*;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{ServerName, UnixTime};
use std::sync::Arc;

const NOW: u64 = 1_800_000_000;

fn names() -> Vec<String> {
    vec!["bloomery-operator.bloomery.svc".to_owned()]
}

/// Returns whether a client that trusts `bundle` accepts this certificate for this server name at this time.
fn is_trusted(bundle: &str, leaf: &Leaf, name: &'static str, now: u64) -> bool {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let time = UnixTime::since_unix_epoch(Duration::from_secs(now));
    verifier.verify_server_cert(&leaf.certificate, &[], &ServerName::try_from(name).unwrap(), &[], time).is_ok()
}

fn first() -> Authorities {
    Authorities::default().renewed(NOW).unwrap()
}

#[test]
fn a_certificate_is_trusted_only_for_its_name_and_time() {
    let ca = first();
    let leaf = ca.issue(&names(), NOW).unwrap();
    let bundle = ca.bundle(NOW);
    assert!(is_trusted(&bundle, &leaf, "bloomery-operator.bloomery.svc", NOW + 5));
    assert!(!is_trusted(&bundle, &leaf, "bloomery-operator.other.svc", NOW + 5));
    assert!(!is_trusted(&bundle, &leaf, "bloomery-operator.bloomery.svc", leaf.not_after + 5));
    assert!(!is_trusted(&first().bundle(NOW), &leaf, "bloomery-operator.bloomery.svc", NOW + 5));
}

#[test]
fn written_authorities_can_be_read_again() {
    let ca = first().renewed(NOW + 5).unwrap();
    let (certificates, keys) = ca.to_pem();
    let read = Authorities::read(&certificates, &keys).unwrap();
    assert_eq!(read.0, ca.0);
    assert!(Authorities::read("", "").unwrap().needs_renewal(NOW));
}

#[test]
fn foreign_contents_of_the_secret_are_refused() {
    let (certificates, keys) = first().to_pem();
    let (_, other_keys) = first().to_pem();
    for (certificates, keys) in [
        (certificates.as_str(), ""),
        (certificates.as_str(), other_keys.as_str()),
        ("-----BEGIN CERTIFICATE-----\nMIIB", keys.as_str()),
        ("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", keys.as_str()),
    ] {
        let error = Authorities::read(certificates, keys).unwrap_err();
        assert!(matches!(error, Error::Unreadable(_)), "{error}");
    }
}

#[test]
fn an_authority_is_renewed_when_a_third_of_its_lifetime_is_left() {
    let ca = first();
    let third = AUTHORITY_LIFETIME_SECONDS / 3;
    assert!(!ca.needs_renewal(NOW + 2 * third - CLOCK_SKEW_SECONDS));
    assert!(ca.needs_renewal(NOW + 2 * third + CLOCK_SKEW_SECONDS));
}

#[test]
fn pods_of_every_age_trust_the_endpoint_through_a_rotation() {
    let name = "bloomery-operator.bloomery.svc";
    let old = first();
    let rotation = NOW + AUTHORITY_LIFETIME_SECONDS * 2 / 3 + DAY_SECONDS;
    let both = old.renewed(rotation).unwrap();
    let end_of_old = NOW + AUTHORITY_LIFETIME_SECONDS;
    let (old_pod, new_pod) = (old.bundle(NOW), both.bundle(rotation));
    // The old authority signs until shortly before it expires. Old and new pods trust it.
    for now in [rotation, rotation + 60 * DAY_SECONDS, end_of_old - LEAF_LIFETIME_SECONDS - DAY_SECONDS] {
        let leaf = both.issue(&names(), now).unwrap();
        assert!(is_trusted(&old_pod, &leaf, name, now) && is_trusted(&new_pod, &leaf, name, now));
    }
    let late = end_of_old - LEAF_LIFETIME_SECONDS + DAY_SECONDS;
    let leaf = both.issue(&names(), late).unwrap();
    assert!(is_trusted(&new_pod, &leaf, name, late) && !is_trusted(&old_pod, &leaf, name, late));
    // The next rotation drops the expired authority.
    let next = both.renewed(end_of_old + DAY_SECONDS).unwrap();
    assert_eq!(next.0.len(), 2);
    assert!(matches!(both.issue(&names(), rotation + 2 * AUTHORITY_LIFETIME_SECONDS), Err(Error::Expired)));
}

#[test]
fn keys_are_not_printed() {
    let ca = first();
    assert!(!format!("{ca:?}").contains("PRIVATE KEY"));
}
