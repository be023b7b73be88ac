//! The keys of the tokens for MCP servers, as the Secret has them.
//!
//! A person deletes the current key to replace it. The next key then becomes the current one, and a new next one is created.

use crate::server_tokens::Keys;
use bloomery_token::{KeyError, SigningKey};
use rcgen::{KeyPair, PKCS_ED25519};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;

/// The entry of the key that signs.
pub const CURRENT_ENTRY: &str = "token.key";

/// The entry of the key that signs after the current one is deleted.
pub const NEXT_ENTRY: &str = "token-next.key";

/// The reason that the keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An entry is not PEM.
    #[error("{entry} cannot be read: {why}")]
    Pem {
        /// The entry.
        entry: &'static str,
        /// The message of the parser.
        why: String,
    },
    /// An entry is no key of tokens.
    #[error("{entry} cannot be used: {source}")]
    Key {
        /// The entry.
        entry: &'static str,
        /// The reason.
        source: KeyError,
    },
    /// A key cannot be created.
    #[error("a key cannot be created: {0}")]
    NotCreated(#[from] rcgen::Error),
}

/// Both entries of the Secret, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenKeys {
    /// The content of [`CURRENT_ENTRY`].
    pub current: String,
    /// The content of [`NEXT_ENTRY`].
    pub next: String,
}

impl TokenKeys {
    /// Returns both entries without gaps: a missing key is replaced by the next one, and the next one by a new one.
    pub fn complete(self) -> Result<Self, Error> {
        let Self { current, next } = self;
        let (current, next) = if current.is_empty() { (next, String::new()) } else { (current, next) };
        let or_new = |key: String| if key.is_empty() { new_key() } else { Ok(key) };
        Ok(Self { current: or_new(current)?, next: or_new(next)? })
    }

    /// Parses both keys.
    pub fn parse(&self) -> Result<Keys, Error> {
        Ok(Keys { current: parse(CURRENT_ENTRY, &self.current)?, next: parse(NEXT_ENTRY, &self.next)? })
    }
}

fn new_key() -> Result<String, Error> {
    Ok(KeyPair::generate_for(&PKCS_ED25519)?.serialize_pem())
}

fn parse(entry: &'static str, pem: &str) -> Result<SigningKey, Error> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes());
    let der = der.map_err(|error| Error::Pem { entry, why: error.to_string() })?;
    SigningKey::from_pkcs8(der.secret_pkcs8_der()).map_err(|source| Error::Key { entry, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(current: &str, next: &str) -> TokenKeys {
        TokenKeys { current: current.to_owned(), next: next.to_owned() }
    }

    #[test]
    fn an_empty_secret_gets_two_keys_and_keeps_them() {
        let created = keys("", "").complete().unwrap();
        let Keys { current, next } = created.parse().unwrap();
        assert_ne!(current.public(), next.public());
        assert!(created.clone().complete().unwrap() == created);
    }

    #[test]
    fn after_the_current_key_is_deleted_the_next_one_signs() {
        let before = keys("", "").complete().unwrap();
        let after = keys("", &before.next).complete().unwrap();
        assert!(after.current == before.next && after.next != before.next);
        let without_next = keys(&before.current, "").complete().unwrap();
        assert!(without_next.current == before.current && !without_next.next.is_empty());
    }

    #[test]
    fn an_unreadable_key_is_named() {
        let valid = keys("", "").complete().unwrap();
        let error = keys("none", &valid.next).parse().unwrap_err().to_string();
        assert!(error.starts_with("token.key cannot be read: "), "{error}");
        let of_another_kind = KeyPair::generate().unwrap().serialize_pem();
        let error = keys(&valid.current, &of_another_kind).parse().unwrap_err().to_string();
        assert!(error.starts_with("token-next.key cannot be used: the private key is no Ed25519 key"), "{error}");
    }
}
