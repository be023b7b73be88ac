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
    let (known, start, token) = (TokenCache::default(), Instant::now(), Digest::of_bytes(b"token"));
    known.put(token.clone(), caller("a"), start);
    assert_eq!(known.get(&token, start + Duration::from_secs(59)), Some(caller("a")));
    assert_eq!(known.get(&token, start + TOKEN_TRUST_DURATION), None);
    assert_eq!(known.get(&Digest::of_bytes(b"other"), start), None);
}

#[test]
fn the_number_of_cached_tokens_is_bounded() {
    let (known, start) = (TokenCache::default(), Instant::now());
    for token in 0..=MAX_TOKENS {
        known.put(Digest::of_bytes(&token.to_be_bytes()), caller("a"), start);
    }
    assert_eq!(known.0.lock().unwrap().len(), 1);
}
