//! Access to one namespace of a cluster, with the rights of a user: of the person at a terminal, or of the caller of a gateway.

pub mod approvals;
pub mod compose_reply;
pub mod follow;
mod impersonation;
pub mod jobs;
pub mod pods;
pub mod reader;
pub mod reply;
mod right;
pub mod state;
pub mod watch;

pub use impersonation::Impersonation;
pub use right::Right;

use crate::error::{Error, ErrorKind};
use crate::text;
use bloomery_crds::v1alpha1::Approval;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{ListParams, PatchParams, PostParams};
use kube::{Api, Client, Config};
use right::missing_rights;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

/// The number of objects in one page of a list.
const PAGE_SIZE: u32 = 500;

/// The timeout of a request to the API server.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The clients of an API server.
pub struct Clients {
    /// The client for requests.
    pub requests: Client,
    /// The client without a read timeout, for watches and followed logs.
    pub streams: Client,
}

impl Clients {
    /// Creates the clients. Sends no request.
    ///
    /// # Errors
    /// If the configuration cannot be used.
    pub fn new(mut config: Config) -> kube::Result<Self> {
        bloomery_http::install_tls_provider();
        config.read_timeout = None;
        let streams = Client::try_from(config.clone())?;
        config.read_timeout = Some(REQUEST_TIMEOUT);
        // The timeout starts again with each request.
        config.reset_reader_on_write = true;
        Ok(Self { requests: Client::try_from(config)?, streams })
    }
}

/// A cluster, one namespace of it, and the user. Clones share the connections.
#[derive(Clone)]
pub struct Cluster {
    /// The client for requests.
    pub client: Client,
    /// The client without a read timeout, for watches and followed logs.
    pub watch_client: Client,
    /// The namespace.
    pub namespace: String,
    /// The address of the API server.
    pub server: String,
    /// The name of this program as the writer of objects.
    pub field_manager: &'static str,
    /// The hint in errors of an API server that cannot be reached: a sentence without a full stop.
    pub hint: &'static str,
    /// The impersonation of the user by this program. `None` if the clients have the credentials of the user.
    pub impersonation: Option<Impersonation>,
}

impl Cluster {
    /// Returns the parameters of a patch by this program.
    pub fn patch_params(&self) -> PatchParams {
        PatchParams { field_manager: Some(self.field_manager.to_owned()), ..PatchParams::default() }
    }

    /// Returns the name of this user at the API server.
    ///
    /// # Errors
    /// If the API server does not return it.
    pub async fn user(&self) -> Result<String, Error> {
        let api = Api::<SelfSubjectReview>::all(self.client.clone());
        let review = api.create(&PostParams::default(), &SelfSubjectReview::default()).await;
        let review = review.map_err(|error| self.request_error("asking who you are", &error))?;
        let user = review.status.and_then(|status| status.user_info).and_then(|info| info.username);
        user.ok_or_else(|| Error::failed("the API server does not return your user name"))
    }

    /// Returns the rights that this user lacks.
    ///
    /// # Errors
    /// If the API server does not answer.
    pub async fn missing_rights(&self, rights: Vec<Right>) -> Result<Vec<Right>, Error> {
        self.missing_rights_in(Some(&self.namespace), rights).await
    }

    /// Returns the rights that this user lacks in a namespace, or in all namespaces for `None`.
    async fn missing_rights_in(&self, namespace: Option<&str>, rights: Vec<Right>) -> Result<Vec<Right>, Error> {
        let missing = missing_rights(&self.client, namespace, rights).await;
        missing.map_err(|error| self.request_error("asking what you may do", &error))
    }

    /// Lists the Approvals of the namespace that `keep` accepts. Use their specs to find their Jobs, not their labels:
    /// everybody who can patch an Approval can change its labels.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub async fn approvals(&self, keep: impl FnMut(&Approval) -> bool) -> kube::Result<Vec<Approval>> {
        list_all(&Api::namespaced(self.client.clone(), &self.namespace), ListParams::default(), keep).await
    }

    /// Returns the error of a failed request. `doing` describes the request, such as `reading Jobs`.
    pub fn request_error(&self, doing: &str, error: &kube::Error) -> Error {
        match error {
            kube::Error::Api(status) if status.code == 401 => Error::new(
                ErrorKind::Unauthenticated,
                format!(
                    "{doing}: the API server does not accept the credentials, which may have expired: use new ones"
                ),
            ),
            kube::Error::Api(status) => {
                Error::new(refusal_kind(status.code), format!("{doing}: the API server says: {}", status.message))
            }
            kube::Error::SerdeError(error) => {
                Error::failed(format!("{doing}: the API server's answer cannot be read: {error}"))
            }
            other => Error::new(
                ErrorKind::Unavailable,
                format!(
                    "{doing}: the API server {} cannot be reached: {}. {}",
                    self.server,
                    with_causes(other),
                    self.hint
                ),
            ),
        }
    }

    /// Returns the error of a failed request in the namespace. If the API server refused the request, the error lists which of
    /// the `rights` are missing.
    pub async fn refusal_error(&self, doing: &str, error: &kube::Error, rights: Vec<Right>) -> Error {
        self.refusal_error_in(Some(&self.namespace), doing, error, rights).await
    }

    /// Does the same as [`Self::refusal_error`], for a request in all namespaces.
    pub async fn refusal_error_everywhere(&self, doing: &str, error: &kube::Error, rights: Vec<Right>) -> Error {
        self.refusal_error_in(None, doing, error, rights).await
    }

    /// Returns the error of a failed request in a namespace, or in all namespaces for `None`.
    async fn refusal_error_in(
        &self,
        namespace: Option<&str>,
        doing: &str,
        error: &kube::Error,
        rights: Vec<Right>,
    ) -> Error {
        let failure = self.request_error(doing, error);
        let kube::Error::Api(status) = error else { return failure };
        if status.code != 403 {
            return failure;
        }
        let missing = match self.missing_rights_in(namespace, rights).await {
            Ok(missing) => missing,
            Err(refused) => {
                // Each user may ask for its own rights, so this program may not act as the user.
                let impersonation = self.impersonation.as_ref().filter(|_| refused.kind == ErrorKind::Forbidden);
                let Some(impersonation) = impersonation else { return failure };
                return impersonation.refusal_error(doing).await.unwrap_or(failure);
            }
        };
        // Without missing rights, the refusal has another reason.
        if missing.is_empty() {
            return failure;
        }
        let rules: Vec<String> = missing.iter().map(|right| format!("\n  {}", right.rule())).collect();
        let (place, role) = match namespace {
            Some(namespace) => (format!("in the namespace {namespace}"), "A Role with these rules grants it"),
            None => {
                ("in all namespaces".to_owned(), "A ClusterRole with these rules and a ClusterRoleBinding grant it")
            }
        };
        let (message, descriptions, rules) = (failure.message, Right::descriptions(&missing), rules.concat());
        Error::new(ErrorKind::Forbidden, format!("{message}\nMissing {place}: {descriptions}. {role}:{rules}"))
    }
}

/// Returns the kind of the error for the status of a refused request.
fn refusal_kind(status: u16) -> ErrorKind {
    match status {
        403 => ErrorKind::Forbidden,
        429 | 500.. => ErrorKind::Unavailable,
        _ => ErrorKind::Failed,
    }
}

/// Lists all objects that `keep` accepts, page by page.
///
/// # Errors
/// If they cannot be listed.
pub async fn list_all<K>(api: &Api<K>, params: ListParams, mut keep: impl FnMut(&K) -> bool) -> kube::Result<Vec<K>>
where
    K: Clone + DeserializeOwned + Debug,
{
    let (mut kept, mut params) = (Vec::new(), params.limit(PAGE_SIZE));
    loop {
        let page = api.list(&params).await?;
        kept.extend(page.items.into_iter().filter(&mut keep));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(kept),
        }
    }
}

/// Joins an error and its causes, without repetition.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        next = error.source();
    }
    text::sanitized_line(&text)
}
