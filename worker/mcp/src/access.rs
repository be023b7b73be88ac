//! How a server is reached: the HTTP client, and the headers with secret values.
//!
//! Secrets and certificates are read again for each request, so a rotated or corrected Secret takes effect at once. A request without
//! them is not sent.

use crate::delivery::Retry;
use crate::server_tokens::ServerTokens;
use bloomery_crds::Digest;
use bloomery_crds::run::{ExternalMcp, SecretHeader};
use bloomery_http::address::AddressPolicy;
use bloomery_http::credential::Credential;
use bloomery_http::{ClientOptions, IDLE_TIMEOUT, certificates};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;

/// The way to a server. Clones share the connections.
#[derive(Debug, Clone)]
pub(crate) enum Access {
    /// With this client, and without credentials.
    Plain(reqwest::Client),
    /// With this client, from outside of a cluster. No credentials will ever exist.
    Local(reqwest::Client),
    /// With this client, and the token for a server that the operator runs.
    Token(reqwest::Client, ServerTokens),
    /// With the credentials and certificates of a server outside of the cluster.
    External(Arc<External>),
}

/// A server outside of the cluster.
#[derive(Debug)]
pub(crate) struct External {
    url: String,
    addresses: AddressPolicy,
    settings: ExternalMcp,
    /// The last client, and the digest of its certificates.
    built: Mutex<Option<(Option<Digest>, reqwest::Client)>>,
}

impl Access {
    /// Returns the way to a server outside of the cluster, at an address that `addresses` allows.
    pub(crate) fn external(url: &str, addresses: AddressPolicy, settings: &ExternalMcp) -> Self {
        let (url, settings) = (url.to_owned(), settings.clone());
        Self::External(Arc::new(External { url, addresses, settings, built: Mutex::default() }))
    }

    /// Returns the same way, for a client that will never get credentials.
    pub(crate) fn without_credentials(self) -> Self {
        match self {
            Self::Plain(client) => Self::Local(client),
            other @ (Self::Local(_) | Self::Token(..) | Self::External(_)) => other,
        }
    }

    /// Returns the client and the headers of the next request. An error is a clause about the server.
    pub(crate) fn open(&self) -> Result<(reqwest::Client, HeaderMap), String> {
        match self {
            Self::Plain(client) | Self::Local(client) => Ok((client.clone(), HeaderMap::new())),
            Self::Token(client, tokens) => {
                let header = tokens.header()?.map(|value| (AUTHORIZATION, value));
                Ok((client.clone(), header.into_iter().collect()))
            }
            Self::External(external) => Ok((external.client()?, external.headers()?)),
        }
    }

    /// Returns what a person can do if the server requires other credentials, as a sentence without its full stop.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::Plain(_) => "Let it accept requests without credentials, or correct its own credentials",
            Self::Local(_) => {
                "Only a program can send it credentials: see --mcp-command and --mcp-env of `bloomery run`"
            }
            Self::Token(..) => "Let it accept the operator's token without other credentials, or correct its own ones",
            Self::External(_) => "Set or correct the credentials in `spec.mcpServer.headers`",
        }
    }

    /// Returns when the retry of a request may succeed if the server requires other credentials.
    pub(crate) fn retry_after_refusal(&self) -> Retry {
        match self {
            Self::Local(_) => Retry::Never,
            Self::Plain(_) | Self::Token(..) | Self::External(_) => Retry::AfterCorrection,
        }
    }

    /// Returns whether the requests carry a token of the operator, and no credentials of a person.
    pub(crate) fn is_with_token(&self) -> bool {
        matches!(self, Self::Token(..))
    }

    /// Returns whether a bridge certainly stands before the server, so that the server cannot send the headers of the bridge itself.
    pub(crate) fn is_behind_bridge(&self) -> bool {
        matches!(self, Self::Token(_, tokens) if !tokens.is_optional())
    }

    /// Waits until a token is there, if the server needs one, at the longest until `until`.
    pub(crate) async fn wait(&self, until: Instant) {
        if let Self::Token(_, tokens) = self {
            tokens.wait(until).await;
        }
    }
}

impl External {
    fn client(&self) -> Result<reqwest::Client, String> {
        let ca = self.settings.ca.as_ref();
        let pem = ca.map(certificates::read).transpose().map_err(clause)?;
        let digest = pem.as_deref().map(Digest::of_bytes);
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = built.as_ref().filter(|(of, _)| *of == digest) {
            return Ok(client.clone());
        }
        let root_certificates =
            ca.zip(pem).map(|(ca, pem)| certificates::parse(ca, &pem)).transpose().map_err(clause)?;
        let options =
            ClientOptions { root_certificates, addresses: Some(self.addresses.clone()), ..ClientOptions::default() };
        let client = bloomery_http::client(&self.url, IDLE_TIMEOUT, options).map_err(|error| error.to_string())?;
        *built = Some((digest, client.clone()));
        Ok(client)
    }

    fn headers(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for SecretHeader { name, scheme, file } in &self.settings.headers {
            let prefix = scheme.as_ref().map(|scheme| format!("{scheme} ")).unwrap_or_default();
            let value = Credential::read(Some(file)).map_err(clause)?.header(&prefix);
            let name =
                HeaderName::try_from(name).map_err(|error| format!("the header `{name}` cannot be sent: {error}"))?;
            headers.extend(value.map(|value| (name, value)));
        }
        Ok(headers)
    }
}

/// Returns an error about a Secret as a clause about the server.
fn clause(error: impl std::fmt::Display) -> String {
    format!("it {error}")
}
