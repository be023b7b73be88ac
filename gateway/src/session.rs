//! The tenant of a request, opened for its caller.

use crate::access::{Access, Identity};
use crate::problem::Problem;
use crate::rate::RateLimits;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use bloomery_embed::Runtime;
use std::sync::Arc;
use std::time::Instant;

/// The header with the name of the tenant, where requests may name theirs.
const TENANT: &str = "bloomery-tenant";

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
    /// Returns the name of the tenant of a request.
    ///
    /// # Errors
    /// If the request names another tenant than the only one.
    pub(crate) fn tenant_of<'a>(&'a self, headers: &'a HeaderMap) -> Result<&'a str, Problem> {
        let Some(named) = headers.get(TENANT) else { return Ok(&self.tenant) };
        match named.to_str() {
            Ok(named) if A::CHOOSES_TENANT || named == self.tenant => Ok(named),
            _ => Err(Problem::new(StatusCode::NOT_FOUND, "There is no tenant of that name.")),
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
}

impl<R: Runtime, A: Access<Caller = R::Caller>> FromRequestParts<Arc<Gateway<R, A>>> for Session<R> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Arc<Gateway<R, A>>) -> Result<Self, Problem> {
        let Identity { caller, user } = gateway.access.identify(&parts.headers)?;
        let Some(limits) = parts.extensions.get::<Arc<RateLimits>>() else {
            return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "The server has no rate limits."));
        };
        limits.admit(&user, &parts.method, Instant::now()).map_err(Problem::too_many_requests)?;
        let tenant = gateway.runtime.open(gateway.tenant_of(&parts.headers)?, caller).await?;
        Ok(Self { tenant, user })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};
    use rstest::rstest;

    /// An access with or without a choice of the tenant.
    struct Anyone<const CHOOSES: bool>;

    impl<const CHOOSES: bool> Access for Anyone<CHOOSES> {
        type Caller = ();

        const CHOOSES_TENANT: bool = CHOOSES;

        fn identify(&self, _: &HeaderMap) -> Result<Identity<()>, Problem> {
            Ok(Identity { caller: (), user: "ada".into() })
        }
    }

    #[rstest]
    #[case::none(None, Ok("one"), Ok("one"))]
    #[case::the_same(Some("one"), Ok("one"), Ok("one"))]
    #[case::another(Some("two"), Err(StatusCode::NOT_FOUND), Ok("two"))]
    fn a_request_names_its_tenant_where_it_may(
        #[case] named: Option<&'static str>,
        #[case] without_choice: Result<&str, StatusCode>,
        #[case] with_choice: Result<&str, StatusCode>,
    ) {
        let headers =
            HeaderMap::from_iter(named.map(|name| (HeaderName::from_static(TENANT), HeaderValue::from_static(name))));
        let fixed = Gateway { runtime: (), access: Anyone::<false>, tenant: "one".into() };
        assert_eq!(fixed.tenant_of(&headers).map_err(|problem| problem.status()), without_choice);
        let open = Gateway { runtime: (), access: Anyone::<true>, tenant: "one".into() };
        assert_eq!(open.tenant_of(&headers).map_err(|problem| problem.status()), with_choice);
    }
}
