//! The tenant of a request, opened for its caller.

use crate::access::{Access, Identity};
use crate::namespace;
use crate::problem::Problem;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use bloomery_embed::Runtime;
use std::sync::Arc;

/// The parts of a gateway.
#[derive(Debug)]
pub struct Gateway<R, A> {
    /// The runtime.
    pub runtime: R,
    /// Finds the identity of a caller.
    pub access: A,
    /// The name of the tenant of requests that name none.
    pub tenant: String,
}

/// The tenant of a request. It is extracted before the body is read.
#[derive(Debug)]
pub(crate) struct Session<R: Runtime> {
    /// The tenant, opened for the caller.
    pub(crate) tenant: R::Tenant,
    /// The name of the caller.
    pub(crate) user: String,
    /// The name of the tenant, if the request names it.
    namespace: Option<String>,
}

impl<R: Runtime> Session<R> {
    /// Returns the location of a Job for further requests of the client.
    pub(crate) fn location(&self, job: &str) -> String {
        let query = self.namespace.as_ref().map(|name| format!("?{}={name}", namespace::PARAMETER));
        format!("/api/jobs/{job}{}", query.unwrap_or_default())
    }
}

impl<R: Runtime, A: Access<Caller = R::Caller>> FromRequestParts<Arc<Gateway<R, A>>> for Session<R> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Arc<Gateway<R, A>>) -> Result<Self, Problem> {
        let Identity { caller, user } = gateway.access.identify(&parts.headers).await?;
        let namespace = namespace::named(&parts.uri, &parts.headers)?;
        let tenant = gateway.runtime.open(namespace.as_deref().unwrap_or(&gateway.tenant), caller).await?;
        Ok(Self { tenant, user, namespace })
    }
}
