use super::*;
use rstest::rstest;

#[rstest]
#[case("https://bloomery.ops.svc:8443", &["bloomery.ops.svc", "bloomery.ops.svc.cluster.local"])]
#[case("https://reports.example.com", &["reports.example.com"])]
#[case("https://10.0.0.7:8443", &["10.0.0.7"])]
#[case("https://[fd00::7]:8443", &["fd00::7"])]
fn the_certificate_has_the_names_that_workers_know(#[case] url: &str, #[case] names: &[&str]) {
    assert_eq!(host_names(url), names);
}

#[test]
fn filling_the_secret_keeps_its_version_and_what_others_put_there() {
    let mut secret = Secret::default();
    secret.metadata.resource_version = Some("7".into());
    secret.data = Some(BTreeMap::from([("note".to_owned(), ByteString(b"keep".to_vec()))]));
    let authorities = Authorities::default().renewed(1_800_000_000).unwrap();
    let filled = filled(secret, &authorities);
    assert_eq!(filled.metadata.resource_version.as_deref(), Some("7"));
    assert!(filled.data.as_ref().unwrap().contains_key("note"));
    let (certificates, keys) = (text(&filled, CERTIFICATES), text(&filled, KEYS));
    assert!(!Authorities::read(&certificates, &keys).unwrap().is_due(1_800_000_000));
}
