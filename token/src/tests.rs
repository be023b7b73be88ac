use super::*;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use ring::hmac;
use rstest::rstest;
use serde_json::{Value, json};

const NOW: u64 = 1_800_000_000;

const SUBJECT: Subject<'_> =
    Subject { namespace: "acme", skill: "orders", job: Some("refund"), uid: "0b0d6d6e-7a3c-4a5e-9f6a-3c1d7c1f2a11" };

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

fn verifier(keys: &[u8]) -> Verifier {
    let keys: Vec<PublicKey> = keys.iter().map(|seed| key(*seed).public()).collect();
    Verifier::new(&keys, audience("acme", "orders"))
}

fn token(seed: u8) -> String {
    key(seed).sign(&Claims::new(SUBJECT, NOW)).unwrap()
}

/// Returns a token with a changed header and changed claims, signed with key 1.
fn changed(header: impl Fn(&mut Value), claims: impl Fn(&mut Value)) -> String {
    let mut parts = [
        json!({ "alg": "EdDSA", "kid": key(1).public().id(), "typ": "JWT" }),
        serde_json::to_value(Claims::new(SUBJECT, NOW)).unwrap(),
    ];
    header(&mut parts[0]);
    claims(&mut parts[1]);
    key(1).sign_parts(parts[0].to_string().as_bytes(), parts[1].to_string().as_bytes())
}

#[test]
fn a_token_names_its_job_and_is_accepted_by_either_key_of_a_verifier() {
    let claims = verifier(&[1, 2]).verify(&token(1), NOW).unwrap();
    assert_eq!(claims, verifier(&[2, 1]).verify(&token(1), NOW).unwrap());
    assert_eq!((claims.job.as_deref(), claims.sub.as_str()), (Some("refund"), SUBJECT.uid));
    assert_eq!((claims.namespace.as_str(), claims.skill.as_str()), ("acme", "orders"));
    assert_eq!(verifier(&[2]).verify(&token(1), NOW), Err(Error::UnknownKey));
}

#[test]
fn a_token_is_the_same_until_it_is_renewed_and_then_valid_for_longer_than_a_renewal_takes() {
    let at = |now| Claims::new(SUBJECT, now);
    let first = NOW - NOW % RENEWAL_SECONDS;
    assert_eq!(at(first), at(first + RENEWAL_SECONDS - 1));
    assert_ne!(at(first), at(first + RENEWAL_SECONDS));
    assert_eq!(at(NOW).exp - at(NOW).iat, LIFETIME_SECONDS);
}

#[rstest]
#[case::at_once(0, Ok(()))]
#[case::behind_by_a_minute(-60, Ok(()))]
#[case::behind_by_more(-61, Err(Error::NotYetValid))]
#[case::until_its_end(599, Ok(()))]
#[case::within_the_skew(659, Ok(()))]
#[case::expired(660, Err(Error::Expired))]
fn a_token_is_valid_for_ten_minutes(#[case] after: i64, #[case] expected: Result<(), Error>) {
    let issued = NOW - NOW % RENEWAL_SECONDS;
    let verified = verifier(&[1]).verify(&token(1), issued.checked_add_signed(after).unwrap());
    assert_eq!(verified.map(drop), expected);
}

#[rstest]
#[case::none(|header: &mut Value| header["alg"] = "none".into(), Error::Algorithm)]
#[case::another_case(|header: &mut Value| header["alg"] = "eddsa".into(), Error::Algorithm)]
#[case::symmetric(|header: &mut Value| header["alg"] = "HS256".into(), Error::Algorithm)]
#[case::another_key(|header: &mut Value| header["kid"] = "other".into(), Error::UnknownKey)]
#[case::no_key(|header: &mut Value| { header.as_object_mut().unwrap().remove("kid"); }, Error::Form)]
#[case::own_key(|header: &mut Value| header["jwk"] = json!({ "kty": "OKP" }), Error::Form)]
#[case::critical(|header: &mut Value| header["crit"] = json!(["b64"]), Error::Form)]
#[case::another_type(|header: &mut Value| header["typ"] = "at+jwt".into(), Error::Form)]
fn a_header_of_another_kind_is_refused_whatever_the_signature(#[case] change: fn(&mut Value), #[case] error: Error) {
    assert_eq!(verifier(&[1]).verify(&changed(change, |_| ()), NOW), Err(error));
}

#[rstest]
#[case::another_server(|claims: &mut Value| claims["aud"] = "acme/payments".into(), Error::Audience("acme/orders".into()))]
#[case::several_servers(|claims: &mut Value| claims["aud"] = json!(["acme/orders"]), Error::Claims)]
#[case::another_issuer(|claims: &mut Value| claims["iss"] = "kubernetes".into(), Error::Claims)]
#[case::without_an_end(|claims: &mut Value| { claims.as_object_mut().unwrap().remove("exp"); }, Error::Claims)]
fn other_claims_are_refused(#[case] change: fn(&mut Value), #[case] error: Error) {
    assert_eq!(verifier(&[1]).verify(&changed(|_| (), change), NOW), Err(error));
}

/// The classic confusion: the public key is the secret of a symmetric signature.
#[test]
fn the_public_key_is_no_symmetric_secret() {
    let public = key(1).public();
    let header = json!({ "alg": "HS256", "kid": public.id(), "typ": "JWT" }).to_string();
    let claims = serde_json::to_string(&Claims::new(SUBJECT, NOW)).unwrap();
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, public.bytes()), signed.as_bytes());
    let forged = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag));
    assert_eq!(verifier(&[1]).verify(&forged, NOW), Err(Error::Algorithm));
}

#[rstest]
#[case::nothing("")]
#[case::no_parts("token")]
#[case::two_parts("e30.e30")]
#[case::no_signature("eyJhbGciOiJub25lIn0.e30.")]
#[case::no_json("x.y.z")]
fn other_texts_are_no_tokens(#[case] text: &str) {
    assert_eq!(verifier(&[1]).verify(text, NOW), Err(Error::Form));
}

#[test]
fn a_long_text_is_refused_before_it_is_read() {
    let long = "e".repeat(MAX_TOKEN_BYTES + 1);
    assert_eq!(verifier(&[1]).verify(&long, NOW), Err(Error::Form));
    assert!(token(1).len() < MAX_TOKEN_BYTES / 4);
}

/// The key and the thumbprint of RFC 8037, appendix A.
#[test]
fn the_id_of_a_key_is_its_thumbprint() {
    let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    let key: PublicKey = x.parse().unwrap();
    assert_eq!(key.id(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    assert_eq!(key.to_string(), x);
    let set: Value = serde_json::from_str(&jwks(&[key])).unwrap();
    assert_eq!(set["keys"][0]["x"], x);
    assert_eq!(set["keys"][0]["kid"], key.id().as_str());
}

#[rstest]
#[case::short("AAAA")]
#[case::padded("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo=")]
#[case::no_base64("?")]
fn other_texts_are_no_public_keys(#[case] text: &str) {
    assert_eq!(text.parse::<PublicKey>(), Err(KeyError::Public));
}

#[test]
fn the_private_key_is_not_in_debug_output() {
    assert_eq!(format!("{:?}", key(1)), format!("SigningKey {{ public: {:?}, .. }}", key(1).public()));
    assert!(matches!(SigningKey::from_pkcs8(b"no key"), Err(KeyError::Private(_))));
}

proptest! {
    #[test]
    fn a_token_with_any_other_byte_is_refused(position in 0_usize..1000, byte in "[A-Za-z0-9_.-]") {
        let token = token(1);
        let at = position % token.len();
        let mut tampered = token.clone();
        tampered.replace_range(at..=at, &byte);
        prop_assume!(tampered != token);
        prop_assert!(verifier(&[1]).verify(&tampered, NOW).is_err());
    }

    #[test]
    fn a_token_of_another_key_is_refused_even_if_it_names_the_right_one(seed in 2_u8..) {
        let header = json!({ "alg": "EdDSA", "kid": key(1).public().id(), "typ": "JWT" }).to_string();
        let claims = serde_json::to_string(&Claims::new(SUBJECT, NOW)).unwrap();
        let forged = key(seed).sign_parts(header.as_bytes(), claims.as_bytes());
        prop_assert_eq!(verifier(&[1]).verify(&forged, NOW), Err(Error::Signature));
    }

    #[test]
    fn a_token_is_accepted_only_by_the_server_that_it_names(namespace in "[a-z]{1,8}", skill in "[a-z]{1,8}") {
        let subject = Subject { namespace: &namespace, skill: &skill, ..SUBJECT };
        let token = key(1).sign(&Claims::new(subject, NOW)).unwrap();
        let is_named = (namespace.as_str(), skill.as_str()) == ("acme", "orders");
        prop_assert_eq!(verifier(&[1]).verify(&token, NOW).is_ok(), is_named);
        let own = Verifier::new(&[key(1).public()], audience(&namespace, &skill));
        prop_assert!(own.verify(&token, NOW).is_ok());
    }

    #[test]
    fn no_text_makes_the_verifier_fail(text in ".{0,200}") {
        prop_assert!(verifier(&[1]).verify(&text, NOW).is_err());
    }
}
