//! Signs tokens.

use crate::claims::Claims;
use crate::key::{KeyError, PublicKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::json;
use std::fmt;

/// A private key. Its debug output has the public key only.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
}

impl SigningKey {
    /// Reads a key in the form PKCS#8, with or without the public key.
    ///
    /// # Errors
    /// If it is no Ed25519 key.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        Self::new(Ed25519KeyPair::from_pkcs8_maybe_unchecked(der))
    }

    /// Returns the key of a seed of 32 bytes.
    ///
    /// # Errors
    /// If the seed has another length.
    pub fn from_seed(seed: &[u8]) -> Result<Self, KeyError> {
        Self::new(Ed25519KeyPair::from_seed_unchecked(seed))
    }

    fn new(pair: Result<Ed25519KeyPair, ring::error::KeyRejected>) -> Result<Self, KeyError> {
        let pair = pair.map_err(|error| KeyError::Private(error.to_string()))?;
        let public = PublicKey::from_bytes(pair.public_key().as_ref())?;
        Ok(Self { pair, public })
    }

    /// Returns the public key.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// Returns the signed token with these claims. Ed25519 is deterministic: the same claims give the same token.
    ///
    /// # Errors
    /// If the claims cannot be serialized.
    pub fn sign(&self, claims: &Claims) -> Result<String, serde_json::Error> {
        let header = json!({ "alg": "EdDSA", "kid": self.public.id(), "typ": "JWT" });
        Ok(self.sign_parts(&serde_json::to_vec(&header)?, &serde_json::to_vec(claims)?))
    }

    /// Returns the token of a header and a payload.
    pub(crate) fn sign_parts(&self, header: &[u8], payload: &[u8]) -> String {
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
        let signature = URL_SAFE_NO_PAD.encode(self.pair.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SigningKey").field("public", &self.public).finish_non_exhaustive()
    }
}
