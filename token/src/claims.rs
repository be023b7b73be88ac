//! The content of a token.

use serde::{Deserialize, Serialize};

/// The issuer in each token.
pub const ISSUER: &str = "bloomery";

/// The seconds for which a token is valid after the time in `iat`.
pub const LIFETIME_SECONDS: u64 = 600;

/// The seconds after which the operator signs another token. `iat` is a multiple of it, so all replicas sign the same token for a
/// subject, and a worker gets another one at most once in this time.
pub const RENEWAL_SECONDS: u64 = 300;

/// The seconds by which the clocks of two nodes may differ.
pub const CLOCK_SKEW_SECONDS: u64 = 60;

/// The claims of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The issuer, [`ISSUER`].
    pub iss: String,
    /// The server that the token is for ([`audience`]).
    pub aud: String,
    /// The UID of the Job, or of the pod of a probe.
    pub sub: String,
    /// The name of the Job. `None` for a probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The namespace of the Skill.
    pub namespace: String,
    /// The name of the Skill.
    pub skill: String,
    /// The time of issue, in seconds since 1970.
    pub iat: u64,
    /// The time until which the token is valid, in seconds since 1970.
    pub exp: u64,
}

/// The caller that a token identifies, and the Skill whose server it may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The namespace of the Skill.
    pub namespace: &'a str,
    /// The name of the Skill.
    pub skill: &'a str,
    /// The name of the Job. `None` for a probe.
    pub job: Option<&'a str>,
    /// The UID of the Job, or of the pod of a probe.
    pub uid: &'a str,
}

impl Claims {
    /// Returns the claims of a token that is issued at `now`, in seconds since 1970.
    pub fn new(subject: Subject<'_>, now: u64) -> Self {
        let Subject { namespace, skill, job, uid } = subject;
        let iat = now - now % RENEWAL_SECONDS;
        Self {
            iss: ISSUER.to_owned(),
            aud: audience(namespace, skill),
            sub: uid.to_owned(),
            job: job.map(str::to_owned),
            namespace: namespace.to_owned(),
            skill: skill.to_owned(),
            iat,
            exp: iat.saturating_add(LIFETIME_SECONDS),
        }
    }
}

/// Returns the audience of the tokens for the server of a Skill. Neither name contains a slash.
pub fn audience(namespace: &str, skill: &str) -> String {
    format!("{namespace}/{skill}")
}
