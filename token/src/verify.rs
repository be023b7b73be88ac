//! Verifies tokens.

use crate::claims::{CLOCK_SKEW_SECONDS, Claims, ISSUER};
use crate::key::PublicKey;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The longest token, in bytes. The operator's tokens have less than a quarter of it.
pub const MAX_TOKEN_BYTES: usize = 4096;

/// The reason that a token is refused, as a clause about the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is no compact JWT with the header of the operator's tokens.
    #[error("it is not a token of the operator")]
    Form,
    /// Its header names another algorithm than `EdDSA`.
    #[error("its algorithm is not EdDSA")]
    Algorithm,
    /// Its header names a key that the verifier does not have.
    #[error("its key is not one of this server")]
    UnknownKey,
    /// Its signature is wrong.
    #[error("its signature is wrong")]
    Signature,
    /// It was issued by another issuer, or its claims cannot be read.
    #[error("its claims are not those of the operator's tokens")]
    Claims,
    /// It was issued for another server.
    #[error("it was not issued for this server, which is {0}")]
    Audience(String),
    /// It has expired.
    #[error("it has expired")]
    Expired,
    /// It is not valid yet.
    #[error("it was issued in the future: the clocks of the nodes differ by more than a minute")]
    NotYetValid,
}

/// The header of a token. Any other member, such as `crit`, may change the meaning of the token and is refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    alg: String,
    kid: String,
    typ: Option<String>,
}

/// Verifies the tokens for one server.
#[derive(Debug, Clone)]
pub struct Verifier {
    keys: Vec<(String, PublicKey)>,
    audience: String,
}

impl Verifier {
    /// Creates a verifier that accepts tokens of any of these keys for this audience.
    pub fn new(keys: &[PublicKey], audience: String) -> Self {
        Self { keys: keys.iter().map(|key| (key.id(), *key)).collect(), audience }
    }

    /// Returns the claims of a token that is valid at `now`, in seconds since 1970.
    ///
    /// # Errors
    /// If the token is not valid. The signature is checked before the claims are read.
    pub fn verify(&self, token: &str, now: u64) -> Result<Claims, Error> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Error::Form);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(Error::Form)?;
        let (header, payload) = signed.split_once('.').ok_or(Error::Form)?;
        let Header { alg, kid, typ } = read(header).ok_or(Error::Form)?;
        if typ.is_some_and(|typ| typ != "JWT") {
            return Err(Error::Form);
        }
        if alg != "EdDSA" {
            return Err(Error::Algorithm);
        }
        let (_, key) = self.keys.iter().find(|(id, _)| *id == kid).ok_or(Error::UnknownKey)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| Error::Form)?;
        let verified = UnparsedPublicKey::new(&ED25519, key.bytes()).verify(signed.as_bytes(), &signature);
        verified.map_err(|_| Error::Signature)?;
        let claims: Claims = read(payload).ok_or(Error::Claims)?;
        self.check(&claims, now)?;
        Ok(claims)
    }

    fn check(&self, claims: &Claims, now: u64) -> Result<(), Error> {
        if claims.iss != ISSUER {
            return Err(Error::Claims);
        }
        if claims.aud != self.audience {
            return Err(Error::Audience(self.audience.clone()));
        }
        if claims.iat > now.saturating_add(CLOCK_SKEW_SECONDS) {
            return Err(Error::NotYetValid);
        }
        if claims.exp.saturating_add(CLOCK_SKEW_SECONDS) <= now {
            return Err(Error::Expired);
        }
        Ok(())
    }
}

/// Reads a part of a token.
fn read<T: DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}
