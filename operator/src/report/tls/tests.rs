use super::*;
use crate::job::fixtures::api::FakeApi;
use rstest::rstest;
use serde_json::{Value, json};

const SECRET: &str = "/api/v1/namespaces/bloomery/secrets/bloomery-report-ca";

/// An API server with the empty Secret of the chart.
fn shipped() -> FakeApi {
    let api = FakeApi::default();
    let metadata = json!({ "namespace": "bloomery", "name": "bloomery-report-ca" });
    api.put(SECRET, json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata }));
    api
}

fn token_keys() -> TokenKeys {
    TokenKeys { current: String::new(), next: String::new() }.complete().unwrap()
}

#[tokio::test]
async fn the_leader_fills_the_secret_once_and_every_replica_uses_it() {
    let api = shipped();
    let (leader, follower) = (api.replica(/* leads */ true).await, api.replica(/* leads */ false).await);
    let served = ServedCertificate::default();
    assert!(matches!(renew(&follower, &served).await, Err(Error::Empty)));
    renew(&leader, &served).await.unwrap();
    renew(&follower, &served).await.unwrap();
    renew(&leader, &served).await.unwrap();
    assert_eq!(api.writes(), [format!("replace {SECRET}")]);
    assert!(leader.report_ca_bundle.pem().is_some());
    assert_eq!(leader.report_ca_bundle.pem(), follower.report_ca_bundle.pem());
    assert!(follower.readiness.report_ca.is_set());
    assert!(leader.server_tokens.public_keys().is_some());
    assert_eq!(leader.server_tokens.public_keys(), follower.server_tokens.public_keys());
}

#[tokio::test]
async fn a_replica_replaces_a_deleted_token_key_by_the_next_one_also_below_a_leader_of_an_earlier_version() {
    let api = shipped();
    let leader = api.replica(/* leads */ true).await;
    renew(&leader, &ServedCertificate::default()).await.unwrap();
    let [_, next] = leader.server_tokens.public_keys().unwrap();
    let authority = api.get(SECRET)["data"]["ca.crt"].clone();
    api.change(SECRET, |secret| {
        secret["data"].as_object_mut().unwrap().remove(CURRENT_ENTRY);
    });
    let follower = api.replica(/* leads */ false).await;
    renew(&follower, &ServedCertificate::default()).await.unwrap();
    assert_eq!(follower.server_tokens.public_keys().unwrap()[0], next);
    assert_eq!(api.get(SECRET)["data"]["ca.crt"], authority);
    renew(&leader, &ServedCertificate::default()).await.unwrap();
    assert_eq!(leader.server_tokens.public_keys(), follower.server_tokens.public_keys());
}

#[tokio::test]
async fn an_unreadable_secret_is_left_unchanged() {
    let api = shipped();
    api.change(SECRET, |secret| {
        secret["data"] = json!({ "ca.crt": "bm9uZQ==", "ca.key": "LS0tLS1CRUdJTiBLRVktLS0tLQ==" });
    });
    let leader = api.replica(/* leads */ true).await;
    let error = renew(&leader, &ServedCertificate::default()).await.unwrap_err();
    assert!(matches!(error, Error::Ca(ca::Error::Unreadable(_))), "{error}");
    assert_eq!(api.writes(), [""; 0]);
    assert!(!leader.readiness.report_ca.is_set());
}

#[tokio::test]
async fn only_one_of_two_leaders_fills_the_secret() {
    let api = shipped();
    let stale: Secret = serde_json::from_value(api.get(SECRET)).unwrap();
    let first = api.replica(/* leads */ true).await;
    renew(&first, &ServedCertificate::default()).await.unwrap();
    let filled_first: Value = api.get(SECRET);
    let secrets: Api<Secret> = Api::namespaced(api.client(), "bloomery");
    let other = with_entries(stale, &Authorities::default().renewed(1_800_000_000).unwrap(), &token_keys());
    assert!(secrets.replace("bloomery-report-ca", &PostParams::default(), &other).await.is_err());
    assert_eq!(api.get(SECRET), filled_first);
}

#[rstest]
#[case("https://bloomery.ops.svc:8443", &["bloomery.ops.svc", "bloomery.ops.svc.cluster.local"])]
#[case("https://reports.example.com", &["reports.example.com"])]
#[case("https://10.0.0.7:8443", &["10.0.0.7"])]
#[case("https://[fd00::7]:8443", &["fd00::7"])]
fn the_certificate_has_the_host_names_of_the_url(#[case] url: &str, #[case] names: &[&str]) {
    assert_eq!(host_names(url), names);
}

#[test]
fn filling_the_secret_keeps_its_version_and_its_other_keys() {
    let mut secret = Secret::default();
    secret.metadata.resource_version = Some("7".into());
    secret.data = Some(BTreeMap::from([("note".to_owned(), ByteString(b"keep".to_vec()))]));
    let authorities = Authorities::default().renewed(1_800_000_000).unwrap();
    let filled = with_entries(secret, &authorities, &token_keys());
    assert_eq!(filled.metadata.resource_version.as_deref(), Some("7"));
    assert!(filled.data.as_ref().unwrap().contains_key("note"));
    let (certificates, keys) = (entry_text(&filled, CERTIFICATES_ENTRY), entry_text(&filled, KEYS_ENTRY));
    assert!(!Authorities::read(&certificates, &keys).unwrap().needs_renewal(1_800_000_000));
}
