//! Calls the HTTP APIs that a Job binds. Each call is sent once, to an address that the policy allows.

mod response;

use super::error::{Error, unanswered};
use bloomery_crds::run::BoundResource;
use bloomery_crds::v1alpha1::ResourceDeclaration;
use bloomery_engine::core_tools::http::{HTTP_GET, HTTP_REQUEST};
use bloomery_engine::endpoint::{self, ApiRequest, Endpoint};
use bloomery_engine::step::ToolCall;
use bloomery_files::Marks;
use bloomery_http::address::AddressPolicy;
use bloomery_http::credential::{self, Credential};
use bloomery_http::{self as http, ClientOptions, IDLE_TIMEOUT, root_cause};
use bloomery_redact::{MIN_VALUE_BYTES, Redactor};
use reqwest::{Client, RequestBuilder};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The header by which an API recognizes a repeated request. It has the key of the call, unless the model sets the header.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The endpoints of a Job, with the clients that call them.
#[derive(Debug, Default)]
pub(super) struct Http {
    endpoints: Vec<Endpoint>,
    addresses: AddressPolicy,
    redactor: Redactor,
    /// The clients for https (`true`) and http (`false`). Each is built on first use, because reading certificates costs time and memory.
    clients: Mutex<BTreeMap<bool, Client>>,
}

/// Returns whether a tool calls endpoints.
pub(super) fn is_http_tool(tool: &str) -> bool {
    matches!(tool, HTTP_GET | HTTP_REQUEST)
}

impl Http {
    /// Selects the endpoints among the `bound` resources, as the Skill declares them. Each credential is registered with `redactor`
    /// before it is sent.
    pub(super) fn new(
        declared: &[ResourceDeclaration],
        bound: &[BoundResource],
        addresses: AddressPolicy,
        redactor: Redactor,
    ) -> Self {
        Self { endpoints: endpoint::endpoints(declared, bound), addresses, redactor, clients: Mutex::default() }
    }

    /// Sends a call that the gate has allowed, once.
    pub(super) async fn perform(&self, call: &ToolCall<'_>, within: Duration) -> Result<String, Error> {
        let arguments = serde_json::from_str(call.arguments).map_err(NotSent::new)?;
        let planned =
            endpoint::build_request(&self.endpoints, &arguments, call.tool == HTTP_GET).map_err(NotSent::new)?;
        self.refuse_marks(planned.body.as_deref().unwrap_or_default())?;
        let request = self.request(&planned, call)?;
        // The request times out before the call does, so that the outcome distinguishes a failed connection from a lost answer.
        let sent = request.timeout(within.mul_f64(0.95)).send().await;
        match sent {
            Ok(response) => response::read(response, planned.method, &self.redactor).await,
            Err(error) if error.is_connect() || error.is_builder() => Err(NotSent(root_cause(&error)).into()),
            Err(error) => Err(unanswered(planned.method, &root_cause(&error))),
        }
    }

    /// Refuses a body with the mark of a redacted secret, because the endpoint would take the mark for the value.
    fn refuse_marks(&self, body: &str) -> Result<(), NotSent> {
        match Marks::new(self.redactor.marks()).first_added(body.as_bytes(), b"") {
            Some(mark) => Err(NotSent(format!(
                "the body contains `{mark}`, the mark of a secret that you cannot see: leave that part out"
            ))),
            None => Ok(()),
        }
    }

    /// Builds the request of a call, with its headers and its credential.
    fn request(&self, planned: &ApiRequest, call: &ToolCall<'_>) -> Result<RequestBuilder, NotSent> {
        let url = reqwest::Url::parse(&planned.url).map_err(NotSent::new)?;
        if let Some(refusal) = url.host_str().and_then(|host| self.addresses.refusal_before_lookup(host)) {
            return Err(NotSent(refusal));
        }
        let method: &'static str = planned.method.into();
        let method = reqwest::Method::from_bytes(method.as_bytes()).map_err(NotSent::new)?;
        let mut request = self.client(&planned.url)?.request(method, url);
        for (name, value) in &planned.headers {
            request = request.header(name, value);
        }
        if !planned.method.is_read() && !planned.headers.iter().any(|(name, _)| name == IDEMPOTENCY_KEY) {
            request = request.header(IDEMPOTENCY_KEY, call.key.as_str());
        }
        if let Some((auth, file)) = &planned.auth {
            let key = Credential::read(Some(file)).map_err(|error| NotSent::credential(&error, &auth.credential))?;
            if key.secret().len() < MIN_VALUE_BYTES {
                return Err(NotSent(format!(
                    "the credential `{}` has fewer than {MIN_VALUE_BYTES} bytes, which is too short to redact: use a longer one",
                    auth.credential
                )));
            }
            // Registered before it is sent, because the file may change before the answer is redacted.
            self.redactor.learn(&auth.credential, key.secret().as_bytes());
            let header = key.header(&auth.prefix);
            request = request.header(
                &auth.header,
                header.ok_or_else(|| {
                    NotSent("the credential contains characters that a header cannot have".to_owned())
                })?,
            );
        }
        Ok(match &planned.body {
            Some(body) => request.body(body.clone()),
            None => request,
        })
    }

    fn client(&self, url: &str) -> Result<Client, NotSent> {
        let is_https = http::is_https(url).map_err(NotSent::new)?;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&is_https) {
            return Ok(client.clone());
        }
        let options = ClientOptions { addresses: Some(self.addresses.clone()), ..ClientOptions::default() };
        let client = http::client(url, IDLE_TIMEOUT, options).map_err(NotSent::new)?;
        clients.insert(is_https, client.clone());
        Ok(client)
    }
}

/// The reason why nothing was sent, as a clause.
#[derive(Debug, thiserror::Error)]
#[error("Nothing was sent: {0}.")]
struct NotSent(String);

impl NotSent {
    #[expect(clippy::needless_pass_by_value, reason = "`map_err` passes errors by value")]
    fn new(reason: impl ToString) -> Self {
        Self(reason.to_string())
    }

    fn credential(error: &credential::Error, credential: &str) -> Self {
        Self(format!("the credential `{credential}` {error}"))
    }
}

impl From<NotSent> for Error {
    fn from(error: NotSent) -> Self {
        Self::Failed(error.to_string())
    }
}

#[cfg(test)]
mod tests;
