//! The tenant of a request, opened for its caller.

use crate::access::{Access, Identity};
use crate::problem::Problem;
use crate::rate::RateLimits;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use bloomery_embed::Runtime;
use std::sync::Arc;
use std::time::Instant;

/// The parts of a gateway.
#[derive(Debug)]
pub struct Gateway<R, A> {
    /// The runtime.
    pub runtime: R,
    /// Finds the identity of a caller.
    pub access: A,
    /// The name of the tenant.
    pub tenant: String,
}

/// The tenant of a request. It is extracted before the body is read. A request of a user who has sent too many is refused.
#[derive(Debug)]
pub(crate) struct Session<R: Runtime> {
    /// The tenant, opened for the caller.
    pub(crate) tenant: R::Tenant,
    /// The name of the caller.
    pub(crate) user: String,
}

impl<R: Runtime, A: Access<Caller = R::Caller>> FromRequestParts<Arc<Gateway<R, A>>> for Session<R> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Arc<Gateway<R, A>>) -> Result<Self, Problem> {
        let Identity { caller, user } = gateway.access.identify(&parts.headers)?;
        let Some(limits) = parts.extensions.get::<Arc<RateLimits>>() else {
            return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "The server has no rate limits."));
        };
        limits.admit(&user, &parts.method, Instant::now()).map_err(Problem::too_many_requests)?;
        let tenant = gateway.runtime.open(&gateway.tenant, caller).await?;
        Ok(Self { tenant, user })
    }
}
