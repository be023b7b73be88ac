//! Lets only clients with a valid token pass.

use crate::arguments::Access;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use bloomery_token::{Error, Verifier};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The header of a response to a request that has not reached the MCP server. A worker may send the request again.
pub(crate) const NOT_DELIVERED: HeaderName = HeaderName::from_static("bloomery-not-delivered");

/// Decides on requests.
#[derive(Debug)]
pub(crate) struct Gate {
    /// `None` serves every client.
    verifier: Option<Verifier>,
}

impl Gate {
    /// Creates a gate. Without `--open`, it has at least one key: the command line refuses other arguments.
    pub(crate) fn new(access: Access) -> Self {
        let Access { token_keys, audience, open } = access;
        let verifier = (!open).then(|| Verifier::new(&token_keys, audience.unwrap_or_default()));
        Self { verifier }
    }

    /// Returns why a request is refused at `now`, in seconds since 1970; `None` if it may pass.
    fn refusal(&self, headers: &HeaderMap, now: u64) -> Option<String> {
        let verifier = self.verifier.as_ref()?;
        let Some(token) = bearer_token(headers) else {
            return Some("a request needs the token of a worker: Authorization: Bearer ...".to_owned());
        };
        verifier.verify(token, now).err().map(|error: Error| format!("the token is refused: {error}"))
    }
}

/// Puts a gate before all routes of a router.
pub(crate) fn before(router: Router, gate: Gate) -> Router {
    router.layer(middleware::from_fn_with_state(Arc::new(gate), check))
}

async fn check(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    match gate.refusal(request.headers(), seconds_since_1970()) {
        None => next.run(request).await,
        Some(why) => {
            let mut response = not_delivered(StatusCode::UNAUTHORIZED, why);
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            response
        }
    }
}

/// Returns the response to a request that has not reached the MCP server.
pub(crate) fn not_delivered(status: StatusCode, why: String) -> Response {
    (status, [(NOT_DELIVERED, "true")], why).into_response()
}

/// Returns the token of a request that has exactly one.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// A clock before 1970 makes every token one of the future.
fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_token::{Claims, SigningKey, Subject};
    use rstest::rstest;

    const NOW: u64 = 1_800_000_000;

    fn key() -> SigningKey {
        SigningKey::from_seed(&[1; 32]).unwrap()
    }

    fn token() -> String {
        let subject = Subject { namespace: "acme", skill: "orders", job: None, uid: "u" };
        key().sign(&Claims::new(subject, NOW)).unwrap()
    }

    fn gate() -> Gate {
        let (token_keys, audience) = (vec![key().public()], Some("acme/orders".to_owned()));
        Gate::new(Access { token_keys, audience, open: false })
    }

    fn headers(values: Vec<String>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::try_from(value).unwrap());
        }
        headers
    }

    #[rstest]
    #[case::valid(vec![format!("Bearer {}", token())], None)]
    #[case::lower_case(vec![format!("bearer  {}", token())], None)]
    #[case::absent(vec![], Some("a request needs the token"))]
    #[case::another_scheme(vec![format!("Basic {}", token())], Some("a request needs the token"))]
    #[case::two(vec![format!("Bearer {}", token()), format!("Bearer {}", token())], Some("a request needs the token"))]
    #[case::empty(vec!["Bearer ".to_owned()], Some("it is not a token of the operator"))]
    fn a_request_needs_one_bearer_token(#[case] values: Vec<String>, #[case] refusal: Option<&str>) {
        let said = gate().refusal(&headers(values), NOW);
        assert_eq!(said.is_some(), refusal.is_some(), "{said:?}");
        assert!(said.unwrap_or_default().contains(refusal.unwrap_or_default()));
    }

    #[test]
    fn an_open_gate_asks_for_no_token() {
        let gate = Gate::new(Access { token_keys: vec![], audience: None, open: true });
        assert_eq!(gate.refusal(&HeaderMap::new(), NOW), None);
    }
}
