//! The tenant of a request, opened for its caller.

use crate::access::{Access, Identity};
use crate::namespace;
use crate::problem::Problem;
use crate::rate::RateLimits;
use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use bloomery_embed::Runtime;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;

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

impl<R, A: Access> Gateway<R, A> {
    /// Returns the namespace that a request names, which is the name of its tenant. Returns `None` if it names none.
    ///
    /// # Errors
    /// If it names several, or another one than the only one.
    fn named(&self, uri: &Uri, headers: &HeaderMap) -> Result<Option<String>, Problem> {
        match namespace::named(uri, headers)? {
            Some(named) if !A::CHOOSES_TENANT && named != self.tenant => {
                Err(Problem::new(StatusCode::NOT_FOUND, format!("This server has only the namespace {}.", self.tenant)))
            }
            named => Ok(named),
        }
    }
}

/// The tenant of a request. It is extracted before the body is read. A request of a user who has sent too many is refused.
#[derive(Debug)]
pub(crate) struct Session<R: Runtime> {
    /// The tenant, opened for the caller.
    pub(crate) tenant: R::Tenant,
    /// The name of the caller.
    pub(crate) user: String,
    /// The name of the tenant.
    namespace: String,
    /// Whether the request names the tenant.
    is_named: bool,
}

impl<R: Runtime> Session<R> {
    /// Returns the location of a Job for further requests of the client.
    pub(crate) fn location(&self, job: &str) -> String {
        let query = if self.is_named { format!("?{}={}", namespace::PARAMETER, self.namespace) } else { String::new() };
        format!("/api/jobs/{job}{query}")
    }
}

impl<R: Runtime, A: Access<Caller = R::Caller>> FromRequestParts<Arc<Gateway<R, A>>> for Session<R> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Arc<Gateway<R, A>>) -> Result<Self, Problem> {
        let Identity { caller, user } = gateway.access.identify(&parts.method, &parts.headers).await?;
        let Some(limits) = parts.extensions.get::<Arc<RateLimits>>() else {
            return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "The server has no rate limits."));
        };
        limits.admit(&user, &parts.method, Instant::now()).map_err(Problem::too_many_requests)?;
        let named = gateway.named(&parts.uri, &parts.headers)?;
        let is_named = named.is_some();
        let namespace = named.unwrap_or_else(|| gateway.tenant.clone());
        let tenant = gateway.runtime.open(&namespace, caller).await?;
        Ok(Self { tenant, user, namespace, is_named })
    }
}

/// The session of a caller, which the page shows.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionInfo {
    /// The name of the caller.
    user: String,
    /// The namespace of the request.
    namespace: String,
    /// Whether requests may name another namespace.
    chooses_namespace: bool,
}

/// Returns the caller and the namespace.
pub(crate) async fn show<R: Runtime, A: Access<Caller = R::Caller>>(session: Session<R>) -> Json<SessionInfo> {
    let Session { user, namespace, .. } = session;
    Json(SessionInfo { user, namespace, chooses_namespace: A::CHOOSES_TENANT })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Method;
    use rstest::rstest;

    /// An access with or without a choice of the tenant.
    struct Anyone<const CHOOSES: bool>;

    impl<const CHOOSES: bool> Access for Anyone<CHOOSES> {
        type Caller = ();

        const CHOOSES_TENANT: bool = CHOOSES;

        async fn identify(&self, _: &Method, _: &HeaderMap) -> Result<Identity<()>, Problem> {
            Ok(Identity { caller: (), user: "ada".into() })
        }
    }

    fn named<const CHOOSES: bool>(uri: &'static str) -> Result<Option<String>, StatusCode> {
        let gateway = Gateway { runtime: (), access: Anyone::<CHOOSES>, tenant: "one".into() };
        gateway.named(&Uri::from_static(uri), &HeaderMap::new()).map_err(|problem| problem.status())
    }

    #[rstest]
    #[case::none("/api/jobs", Ok(None), Ok(None))]
    #[case::the_same("/api/jobs?namespace=one", Ok(Some("one")), Ok(Some("one")))]
    #[case::another("/api/jobs?namespace=two", Err(StatusCode::NOT_FOUND), Ok(Some("two")))]
    fn a_request_names_its_tenant_where_it_may(
        #[case] uri: &'static str,
        #[case] without_choice: Result<Option<&str>, StatusCode>,
        #[case] with_choice: Result<Option<&str>, StatusCode>,
    ) {
        assert_eq!(named::<false>(uri), without_choice.map(|name| name.map(str::to_owned)));
        assert_eq!(named::<true>(uri), with_choice.map(|name| name.map(str::to_owned)));
    }
}
