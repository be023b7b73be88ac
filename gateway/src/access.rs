//! The identity of callers.

use crate::problem::Problem;
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode};
use bloomery_crds::Digest;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt::Write;
use std::io;

/// Finds the identity of a caller in the method and the headers of a request.
pub trait Access: Send + Sync + 'static {
    /// The identity, for the runtime.
    type Caller;

    /// Whether a request may name its tenant.
    const CHOOSES_TENANT: bool = false;

    /// Returns the identity of the caller.
    ///
    /// # Errors
    /// If the request has no valid identity, or was not meant for this server.
    fn identify(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> impl Future<Output = Result<Identity<Self::Caller>, Problem>> + Send;
}

/// The identity of a caller.
#[derive(Debug, PartialEq, Eq)]
pub struct Identity<C> {
    /// The identity, for the runtime.
    pub caller: C,
    /// The name of the user. It separates the idempotency keys of users.
    pub user: String,
}

/// The access to a server of one user, on the loopback interface of the user's machine: one token, which only the user knows.
///
/// There is no cookie, so a page of another site cannot act for the user. The check of `Host` stops pages of a name that resolves to this
/// machine.
#[derive(Debug)]
pub struct LoopbackAccess {
    hosts: [String; 3],
    /// The digest of the token. The time of a comparison of digests says nothing about the token.
    token: Digest,
    user: String,
}

impl LoopbackAccess {
    /// Creates the access to a server on a port.
    pub fn new(port: u16, token: &str, user: impl Into<String>) -> Self {
        let hosts = ["127.0.0.1", "[::1]", "localhost"].map(|host| format!("{host}:{port}"));
        Self { hosts, token: Digest::of_bytes(token.as_bytes()), user: user.into() }
    }

    /// Checks that no page of another site has sent the request. Programs send no `Origin`.
    ///
    /// # Errors
    /// If the page is of another site, or its site is not known.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
        let host = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
        if host.is_some_and(|host| self.hosts.iter().any(|known| known == host)) {
            return Ok(());
        }
        let detail = "The header Origin names another site, and pages of other sites may not use this server.";
        Err(Problem::new(StatusCode::FORBIDDEN, detail))
    }
}

impl Access for LoopbackAccess {
    type Caller = String;

    async fn identify(&self, _: &Method, headers: &HeaderMap) -> Result<Identity<String>, Problem> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        if !host.is_some_and(|host| self.hosts.iter().any(|known| known == host)) {
            let hosts = self.hosts.join(", ");
            return Err(Problem::new(StatusCode::FORBIDDEN, format!("The header Host must be one of {hosts}.")));
        }
        self.check_origin(headers)?;
        if bearer_token(headers).is_none_or(|token| Digest::of_bytes(token.as_bytes()) != self.token) {
            let detail =
                "The header Authorization must be `Bearer` and the token that the server printed at its start.";
            return Err(Problem::new(StatusCode::UNAUTHORIZED, detail));
        }
        Ok(Identity { caller: self.user.clone(), user: self.user.clone() })
    }
}

/// Returns the bearer token of a request.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    // The scheme has no case.
    Some(token.trim()).filter(|token| scheme.eq_ignore_ascii_case("Bearer") && !token.is_empty())
}

/// Returns a random token of 256 bits.
///
/// # Errors
/// If the system has no random numbers.
pub fn random_token() -> io::Result<String> {
    let mut bytes = [0_u8; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("the system has no random numbers"))?;
    let mut token = String::new();
    for byte in bytes {
        // Writing to a `String` cannot fail.
        let _ = write!(token, "{byte:02x}");
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use rstest::rstest;

    #[rstest]
    #[case::by_address(Some("127.0.0.1:80"), Some("Bearer t-1"), None)]
    #[case::by_name(Some("localhost:80"), Some("bearer t-1"), None)]
    #[case::no_host(None, Some("Bearer t-1"), Some(StatusCode::FORBIDDEN))]
    #[case::rebound(Some("evil.example:80"), Some("Bearer t-1"), Some(StatusCode::FORBIDDEN))]
    #[case::other_port(Some("127.0.0.1:81"), Some("Bearer t-1"), Some(StatusCode::FORBIDDEN))]
    #[case::no_token(Some("localhost:80"), None, Some(StatusCode::UNAUTHORIZED))]
    #[case::other_token(Some("localhost:80"), Some("Bearer t-2"), Some(StatusCode::UNAUTHORIZED))]
    #[case::empty_token(Some("localhost:80"), Some("Bearer "), Some(StatusCode::UNAUTHORIZED))]
    #[case::other_scheme(Some("localhost:80"), Some("Basic t-1"), Some(StatusCode::UNAUTHORIZED))]
    #[tokio::test]
    async fn only_the_user_of_the_machine_has_access(
        #[case] host: Option<&'static str>,
        #[case] token: Option<&'static str>,
        #[case] refused: Option<StatusCode>,
    ) {
        let mut headers = HeaderMap::new();
        headers.extend(host.map(|host| (HOST, HeaderValue::from_static(host))));
        headers.extend(token.map(|token| (AUTHORIZATION, HeaderValue::from_static(token))));
        let found = LoopbackAccess::new(80, "t-1", "ada").identify(&Method::GET, &headers).await;
        match refused {
            None => assert_eq!(found.unwrap(), Identity { caller: "ada".to_owned(), user: "ada".to_owned() }),
            Some(status) => assert_eq!(found.unwrap_err().status(), status),
        }
    }

    #[rstest]
    #[case::program(None, true)]
    #[case::own_page(Some("http://127.0.0.1:80"), true)]
    #[case::own_page_by_name(Some("http://localhost:80"), true)]
    #[case::other_site(Some("https://evil.example"), false)]
    #[case::other_port(Some("http://localhost:81"), false)]
    #[case::longer_name(Some("http://localhost:80.evil.example"), false)]
    #[case::unknown_site(Some("null"), false)]
    fn pages_of_other_sites_have_no_access(#[case] origin: Option<&'static str>, #[case] allowed: bool) {
        let headers: HeaderMap = origin.map(|origin| (ORIGIN, HeaderValue::from_static(origin))).into_iter().collect();
        let found = LoopbackAccess::new(80, "t-1", "ada").check_origin(&headers);
        assert_eq!(
            found.map_err(|problem| problem.status()),
            if allowed { Ok(()) } else { Err(StatusCode::FORBIDDEN) }
        );
    }

    #[test]
    fn each_token_is_new() {
        let (one, other) = (random_token().unwrap(), random_token().unwrap());
        assert!(one != other && one.len() == 64, "{one}");
    }
}
