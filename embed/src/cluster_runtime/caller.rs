//! The identities of callers, and the clients that act as them.

use crate::cluster::{Clients, Cluster, Impersonation};
use crate::error::Error;
use hyper::Request;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use kube::client::Body;
use kube::config::AuthInfo;
use kube::{Client, Config};
use std::fmt;
use tower::service_fn;

/// The name of this program as the writer of objects.
const FIELD_MANAGER: &str = "bloomery-gateway";

/// The hint in errors of an API server that cannot be reached.
const HINT: &str = "Try again later";

const IMPERSONATE_USER: &str = "impersonate-user";
const IMPERSONATE_GROUP: &str = "impersonate-group";

/// The credentials of a caller on a cluster.
#[derive(Clone, PartialEq, Eq)]
pub enum Caller {
    /// The caller's own bearer token. All requests have it, and no other credentials.
    Token(String),
    /// A user that this program impersonates. The API server checks whether this program may do so.
    Impersonated {
        /// The name of the user.
        user: String,
        /// The groups of the user.
        groups: Vec<String>,
    },
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(_) => f.write_str("Token"),
            Self::Impersonated { user, groups } => {
                f.debug_struct("Impersonated").field("user", user).field("groups", groups).finish()
            }
        }
    }
}

/// The connections to an API server. All callers share them; credentials are headers of each request.
pub(super) struct Connections {
    server: String,
    /// Without credentials.
    anonymous: Clients,
    /// With the credentials of this program.
    own: Clients,
}

impl Connections {
    /// Creates the clients. Sends no request.
    ///
    /// # Errors
    /// If the configuration cannot be used.
    pub(super) fn new(config: &Config) -> Result<Self, Error> {
        let mut anonymous = config.clone();
        anonymous.auth_info = AuthInfo::default();
        let clients = |config| {
            let unusable =
                |error: kube::Error| Error::failed(format!("no client of the API server can be created: {error}"));
            Clients::new(config).map_err(unusable)
        };
        let server = config.cluster_url.to_string();
        Ok(Self { server, anonymous: clients(anonymous)?, own: clients(config.clone())? })
    }

    /// Returns the access of a caller to a namespace.
    ///
    /// # Errors
    /// If the credentials cannot be sent in a header.
    pub(super) fn cluster(&self, namespace: &str, caller: &Caller) -> Result<Cluster, Error> {
        let (clients, impersonation) = match caller {
            Caller::Token(_) => (&self.anonymous, None),
            Caller::Impersonated { user, groups } => {
                let (own, user, groups) = (self.own.requests.clone(), user.clone(), groups.clone());
                (&self.own, Some(Impersonation { own, user, groups }))
            }
        };
        let headers = headers(caller)?;
        Ok(Cluster {
            client: with_headers(&clients.requests, headers.clone(), namespace),
            watch_client: with_headers(&clients.streams, headers, namespace),
            namespace: namespace.to_owned(),
            server: self.server.clone(),
            field_manager: FIELD_MANAGER,
            hint: HINT,
            impersonation,
        })
    }
}

/// Returns the headers with the credentials of a caller.
fn headers(caller: &Caller) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    match caller {
        Caller::Token(token) => {
            let mut value = header_value(&format!("Bearer {token}"), "the token")?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Caller::Impersonated { user, groups } => {
            headers.insert(IMPERSONATE_USER, header_value(user, "the name of the user")?);
            for group in groups {
                headers.append(IMPERSONATE_GROUP, header_value(group, "the name of a group")?);
            }
        }
    }
    Ok(headers)
}

fn header_value(text: &str, what: &str) -> Result<HeaderValue, Error> {
    let invalid = |_| Error::invalid(format!("{what} has other characters than visible ASCII"));
    HeaderValue::from_str(text).map_err(invalid)
}

/// Returns a client that sends its requests through another one, with further headers.
fn with_headers(client: &Client, headers: HeaderMap, namespace: &str) -> Client {
    let client = client.clone();
    let service = service_fn(move |mut request: Request<Body>| {
        let client = client.clone();
        for (name, value) in &headers {
            request.headers_mut().append(name.clone(), value.clone());
        }
        async move { client.send(request).await }
    });
    Client::new(service, namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_headers() {
        let token = headers(&Caller::Token("t-1".into())).unwrap();
        assert_eq!((token[AUTHORIZATION].to_str().unwrap(), token.len()), ("Bearer t-1", 1));
        assert!(token[AUTHORIZATION].is_sensitive());
        let groups = vec!["a".to_owned(), "b".to_owned()];
        let impersonated = headers(&Caller::Impersonated { user: "ada".into(), groups }).unwrap();
        assert_eq!(impersonated[IMPERSONATE_USER], "ada");
        assert_eq!(impersonated.get_all(IMPERSONATE_GROUP).iter().collect::<Vec<_>>(), ["a", "b"]);
        assert!(headers(&Caller::Token("a\nb".into())).is_err());
    }

    #[test]
    fn a_token_is_not_shown() {
        assert!(!format!("{:?}", Caller::Token("secret".into())).contains("secret"));
    }
}
