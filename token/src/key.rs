//! Public keys.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use std::fmt;
use std::str::FromStr;

/// The bytes of an Ed25519 public key.
const BYTES: usize = 32;

/// The reason that a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A text is no public key.
    #[error("a public key is the base64url text of 32 bytes, without padding")]
    Public,
    /// The bytes are no private key.
    #[error("the private key is no Ed25519 key in PKCS#8 ({0})")]
    Private(String),
}

/// An Ed25519 public key. Its text is base64url without padding, as the member `x` of a JWK.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; BYTES]);

impl PublicKey {
    /// Returns the key of these bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        bytes.try_into().map(Self).map_err(|_| KeyError::Public)
    }

    /// Returns the bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the id of the key: its thumbprint of RFC 7638.
    pub fn id(&self) -> String {
        let canonical = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{self}"}}"#);
        URL_SAFE_NO_PAD.encode(digest(&SHA256, canonical.as_bytes()))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| KeyError::Public)?;
        Self::from_bytes(&bytes)
    }
}
