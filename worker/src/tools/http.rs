//! Calls of the APIs that a Job binds: each sent once, to an address that may be called, and answered with what came of it.

mod answer;

use super::Fault;
use crate::http::{self, IDLE, Route, cause};
use crate::model::key::{self, Key};
use crate::reach::Reach;
use bloomery_crds::run::BoundResource;
use bloomery_crds::v1alpha1::{Method, ResourceDeclaration};
use bloomery_engine::core_tools::http::{HTTP_GET, HTTP_REQUEST};
use bloomery_engine::endpoint::{self, Endpoint, PlannedRequest};
use bloomery_engine::step::ToolCall;
use bloomery_files::Marks;
use bloomery_redact::{MIN_VALUE_BYTES, Redactor};
use reqwest::{Client, RequestBuilder};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The endpoints of a Job, and how they are called.
#[derive(Debug, Default)]
pub(super) struct Http {
    endpoints: Vec<Endpoint>,
    reach: Reach,
    redactor: Redactor,
    /// One for https and one for http, made when they are needed: certificates take time and memory.
    clients: Mutex<BTreeMap<bool, Client>>,
}

/// Whether a tool is of this family.
pub(super) fn is_one(tool: &str) -> bool {
    matches!(tool, HTTP_GET | HTTP_REQUEST)
}

impl Http {
    /// The endpoints among what a Job binds, as its Skill declares them. `redactor` learns each credential before it is
    /// sent.
    pub(super) fn new(
        declared: &[ResourceDeclaration],
        bound: &[BoundResource],
        reach: Reach,
        redactor: Redactor,
    ) -> Self {
        Self { endpoints: endpoint::endpoints(declared, bound), reach, redactor, clients: Mutex::default() }
    }

    /// Makes a call, once. It is planned as it was ruled on.
    pub(super) async fn answer(&self, call: &ToolCall<'_>, within: Duration) -> Result<String, Fault> {
        let arguments = serde_json::from_str(call.arguments).map_err(|error| unsent(&error.to_string()))?;
        let planned = endpoint::plan(&self.endpoints, &arguments, call.tool == HTTP_GET)
            .map_err(|error| unsent(&error.to_string()))?;
        self.refuse_marks(planned.body.as_deref().unwrap_or_default()).map_err(|why| unsent(&why))?;
        let request = self.request(&planned, call).map_err(|why| unsent(&why))?;
        // Over before the call is, which could not tell what was proven.
        let sent = request.timeout(within.mul_f64(0.95)).send().await;
        match sent {
            Ok(response) => answer::of(response, planned.method, &self.redactor).await,
            Err(error) if error.is_connect() || error.is_builder() => Err(unsent(&cause(&error)).into()),
            Err(error) => Err(lost(planned.method, &cause(&error))),
        }
    }

    /// What stands in place of a secret would be kept there as if it were the value.
    fn refuse_marks(&self, body: &str) -> Result<(), String> {
        match Marks::new(self.redactor.marks()).brought(body.as_bytes(), b"") {
            Some(mark) => Err(format!(
                "the body holds `{mark}`, which stands for a secret that you cannot see: leave that part out"
            )),
            None => Ok(()),
        }
    }

    fn request(&self, planned: &PlannedRequest, call: &ToolCall<'_>) -> Result<RequestBuilder, String> {
        let url = reqwest::Url::parse(&planned.url).map_err(|error| error.to_string())?;
        if let Some(refusal) = url.host_str().and_then(|host| self.reach.refusal_unasked(host)) {
            return Err(refusal);
        }
        let method: &'static str = planned.method.into();
        let method = reqwest::Method::from_bytes(method.as_bytes()).map_err(|error| error.to_string())?;
        let mut request = self.client(&planned.url)?.request(method, url);
        for (name, value) in &planned.headers {
            request = request.header(name, value);
        }
        if !planned.method.is_read() && !planned.headers.iter().any(|(name, _)| name == IDEMPOTENCY_KEY) {
            request = request.header(IDEMPOTENCY_KEY, call.key.as_str());
        }
        if let Some((auth, file)) = &planned.auth {
            let key = Key::read(Some(file)).map_err(|error| told(error, &auth.credential))?;
            if key.secret().len() < MIN_VALUE_BYTES {
                return Err(format!(
                    "the credential `{}` has fewer than {MIN_VALUE_BYTES} bytes, and nobody could keep it out of what is told: it \
                     takes a longer one",
                    auth.credential
                ));
            }
            // It is in no text that comes back, even where the file holds another by then.
            self.redactor.learn(&auth.credential, key.secret().as_bytes());
            let header = key.header(&auth.prefix);
            request = request.header(&auth.header, header.ok_or("the credential cannot be sent")?);
        }
        Ok(match &planned.body {
            Some(body) => request.body(body.clone()),
            None => request,
        })
    }

    fn client(&self, url: &str) -> Result<Client, String> {
        let is_https = http::is_https(url).map_err(|error| error.to_string())?;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&is_https) {
            return Ok(client.clone());
        }
        let route = Route { reach: Some(self.reach.clone()), ..Route::default() };
        let client = http::routed(url, IDLE, route).map_err(|error| error.to_string())?;
        clients.insert(is_https, client.clone());
        Ok(client)
    }
}

fn told(error: key::Error, credential: &str) -> String {
    match error {
        key::Error::Missing(missing) => format!("the credential `{credential}` {missing}"),
        key::Error::Unusable { message } => format!("the credential `{credential}` {message}"),
    }
}

fn unsent(why: &str) -> String {
    format!("Nothing was sent: {why}.")
}

/// A call that was sent, and of which nobody knows what it did. One that changes nothing has failed.
fn lost(method: Method, why: &str) -> Fault {
    if method.is_read() {
        Fault::Failed(format!("There is no answer: {why}. A {method} changes nothing, so it may be made again."))
    } else {
        Fault::Indeterminate(format!("the endpoint did not say whether it took effect: {why}"))
    }
}

#[cfg(test)]
mod tests;
