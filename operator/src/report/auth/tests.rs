use super::*;
use rstest::rstest;
use serde_json::json;

fn review(name: &str, audience: &str, extra: &serde_json::Value) -> TokenReviewStatus {
    serde_json::from_value(json!({
        "authenticated": true,
        "audiences": [audience],
        "user": { "username": name, "extra": extra },
    }))
    .unwrap()
}

const WORKER: &str = "system:serviceaccount:acme:cs-tier-1-worker";

fn bound() -> serde_json::Value {
    json!({ "authentication.kubernetes.io/pod-uid": ["pod-uid-1"], "authentication.kubernetes.io/pod-name": ["refund-1"] })
}

#[test]
fn a_projected_token_identifies_the_namespace_and_the_pod() {
    let caller = identify(&review(WORKER, "bloomery", &bound())).unwrap();
    assert_eq!(caller, Caller { namespace: "acme".into(), pod_uid: "pod-uid-1".into() });
}

#[rstest]
#[case::for_the_api_server(review(WORKER, "https://kubernetes.default.svc", &bound()), "audience")]
#[case::without_a_pod(review(WORKER, "bloomery", &json!({})), "not bound to a pod")]
#[case::of_a_person(review("jane", "bloomery", &bound()), "ServiceAccount")]
#[case::without_a_user(TokenReviewStatus { user: None, ..review(WORKER, "bloomery", &bound()) }, "no user")]
#[case::without_an_audience(TokenReviewStatus { audiences: None, ..review(WORKER, "bloomery", &bound()) }, "audience")]
#[case::refused(TokenReviewStatus { authenticated: Some(false), ..review(WORKER, "bloomery", &bound()) }, "not valid")]
#[case::empty(TokenReviewStatus::default(), "not valid")]
fn any_other_token_is_refused(#[case] review: TokenReviewStatus, #[case] why: &str) {
    let refusal = identify(&review).unwrap_err();
    assert!(matches!(&refusal, Refusal::Unauthorized(message) if message.contains(why)), "{refusal:?}");
}

fn caller(pod_uid: &str) -> Caller {
    Caller { namespace: "acme".into(), pod_uid: pod_uid.into() }
}

#[test]
fn a_token_is_trusted_for_a_minute() {
    let (known, start) = (TokenCache::new(TOKEN_TRUST_DURATION), Instant::now());
    let token = Digest::of_bytes(b"token");
    known.put(token.clone(), caller("a"), start);
    assert_eq!(known.get(&token, start + Duration::from_secs(59)), Some(caller("a")));
    assert_eq!(known.get(&token, start + TOKEN_TRUST_DURATION), None);
    assert_eq!(known.get(&Digest::of_bytes(b"other"), start), None);
}

#[test]
fn the_number_of_cached_tokens_is_bounded() {
    let (known, start) = (TokenCache::new(TOKEN_TRUST_DURATION), Instant::now());
    for token in 0..=MAX_TOKENS {
        known.put(Digest::of_bytes(&token.to_be_bytes()), caller("a"), start);
    }
    assert_eq!(known.results.lock().unwrap().len(), 1);
}

fn jwt(claims: &str) -> String {
    format!("e30.{}.c2lnbmF0dXJl", URL_SAFE_NO_PAD.encode(claims))
}

#[rstest]
#[case::of_a_worker(&jwt(r#"{"aud":["bloomery"]}"#), None)]
#[case::with_one_audience(&jwt(r#"{"aud":"bloomery"}"#), None)]
#[case::with_more_audiences(&jwt(r#"{"aud":["other","bloomery"]}"#), None)]
#[case::for_the_api_server(&jwt(r#"{"aud":["https://kubernetes.default.svc"]}"#), Some("audience bloomery"))]
#[case::without_an_audience(&jwt("{}"), Some("audience bloomery"))]
#[case::without_claims(&jwt("[]"), Some("audience bloomery"))]
#[case::not_json(&jwt("{"), Some("cannot be read"))]
#[case::not_base64("e30.{}.x", Some("cannot be read"))]
#[case::two_parts("e30.e30", Some("not a JWT"))]
#[case::four_parts("e30.e30.e30.e30", Some("not a JWT"))]
#[case::empty("", Some("not a JWT"))]
fn the_form_of_a_token_is_checked_without_a_review(#[case] token: &str, #[case] why: Option<&str>) {
    match (check_form(token), why) {
        (Ok(()), None) => {}
        (Err(Refusal::Unauthorized(message)), Some(why)) if message.contains(why) => {}
        (result, why) => panic!("{result:?}, expected {why:?}"),
    }
}
