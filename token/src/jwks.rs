//! The public keys in the form that libraries for JWT read.

use crate::key::PublicKey;
use serde_json::json;

/// Returns a JSON Web Key Set (RFC 7517, RFC 8037) with these keys.
pub fn jwks(keys: &[PublicKey]) -> String {
    let keys: Vec<_> = keys
        .iter()
        .map(|key| {
            let (id, x) = (key.id(), key.to_string());
            json!({ "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": id, "x": x })
        })
        .collect();
    json!({ "keys": keys }).to_string()
}
