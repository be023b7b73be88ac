//! The tokens with which workers authenticate to the MCP servers that the operator runs (`docs/explanation/mcp.md`).
//!
//! A token is a compact JWT with an Ed25519 signature (`EdDSA`). The operator signs it for one Job and the server of one Skill. The bridge
//! verifies it before it passes a request on.
//!
//! All functions depend only on their arguments: the caller passes the time and the keys.

mod claims;
mod jwks;
mod key;
mod sign;
mod verify;

pub use claims::{CLOCK_SKEW_SECONDS, Claims, ISSUER, LIFETIME_SECONDS, RENEWAL_SECONDS, Subject, audience};
pub use jwks::jwks;
pub use key::{KeyError, PublicKey};
pub use sign::SigningKey;
pub use verify::{Error, MAX_TOKEN_BYTES, Verifier};

#[cfg(test)]
mod tests;
