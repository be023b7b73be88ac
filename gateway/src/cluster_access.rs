//! The identity of callers on a cluster: their own bearer tokens, or the users that an authenticating proxy names.

mod reviews;
mod same_origin;

use crate::access::{Access, Identity, bearer_token};
use crate::problem::Problem;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use bloomery_embed::Caller;
use kube::Client;
use reviews::Reviews;

/// The prefix of the names of users and groups of Kubernetes itself. No proxy may name them.
const SYSTEM_PREFIX: &str = "system:";

/// The access to a cluster. The bearer token of a request is passed on to the API server, which authorizes each operation.
pub struct ClusterAccess {
    reviews: Reviews,
    trust: ProxyTrust,
}

/// The authenticating proxies whose headers name the users of requests.
#[derive(Debug, Clone)]
pub struct ProxyTrust {
    /// The names of the proxies at the API server, such as `system:serviceaccount:auth:oauth2-proxy`. A request of a proxy has the bearer
    /// token of the proxy. If there are none, the headers have no effect.
    pub proxies: Vec<String>,
    /// The header with the name of the user.
    pub user_header: HeaderName,
    /// The header with the groups of the user, separated by commas.
    pub groups_header: HeaderName,
    /// The groups whose users may be impersonated. Users have no other groups.
    pub groups: Vec<String>,
}

impl ClusterAccess {
    /// Creates the access. `client` has the rights of this program to create `TokenReview` objects.
    pub fn new(client: Client, trust: ProxyTrust) -> Self {
        Self { reviews: Reviews::new(client), trust }
    }
}

impl Access for ClusterAccess {
    type Caller = Caller;

    const CHOOSES_TENANT: bool = true;

    async fn identify(&self, method: &Method, headers: &HeaderMap) -> Result<Identity<Caller>, Problem> {
        let Some(token) = bearer_token(headers) else {
            let detail = "The header Authorization must be `Bearer` and a token for the API server of the cluster.";
            return Err(Problem::new(StatusCode::UNAUTHORIZED, detail));
        };
        let user = self.reviews.user(token).await?;
        if self.trust.proxies.contains(&user) {
            same_origin::require_same_origin(method, headers)?;
            return self.trust.identify(&user, headers);
        }
        // A proxy may pass on the person's own token.
        same_origin::refuse_other_sites(method, headers)?;
        Ok(Identity { caller: Caller::Token(token.to_owned()), user })
    }
}

impl ProxyTrust {
    /// Returns the user that a proxy names.
    ///
    /// # Errors
    /// If it names none, one of Kubernetes itself, or one who is in no listed group.
    fn identify(&self, proxy: &str, headers: &HeaderMap) -> Result<Identity<Caller>, Problem> {
        let refused = |detail: String| Problem::new(StatusCode::FORBIDDEN, detail);
        let Self { user_header, groups_header, groups: listed, .. } = self;
        let mut users = headers.get_all(user_header).iter().map(|value| value.to_str().unwrap_or_default());
        let (Some(user), None) = (users.next().filter(|user| !user.is_empty()), users.next()) else {
            return Err(refused(format!("A request of the proxy {proxy} must have one header {user_header}.")));
        };
        if user.starts_with(SYSTEM_PREFIX) {
            return Err(refused(format!(
                "The proxy {proxy} must not name {user}, which is a user of Kubernetes itself."
            )));
        }
        let named = headers.get_all(groups_header).iter().filter_map(|value| value.to_str().ok());
        let named: Vec<&str> = named.flat_map(|value| value.split(',')).map(str::trim).collect();
        let groups: Vec<String> = listed.iter().filter(|group| named.contains(&group.as_str())).cloned().collect();
        if groups.is_empty() {
            return Err(refused(format!(
                "The user {user} is in no group that may use this server by the proxy {proxy}: the administrator lists the groups."
            )));
        }
        let user = user.to_owned();
        Ok(Identity { caller: Caller::Impersonated { user: user.clone(), groups }, user })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use axum::http::header::AUTHORIZATION;
    use bloomery_testkit::api_server::ApiServer;
    use kube::Config;
    use rstest::rstest;
    use serde_json::json;

    const PROXY: &str = "system:serviceaccount:auth:proxy";

    /// Returns the access to an API server that knows the tokens of a user and of the proxy.
    async fn access(api: &ApiServer) -> ClusterAccess {
        api.review_tokens(json!({"authenticated": false}));
        for (token, user) in [("of-ada", "ada"), ("of-proxy", PROXY)] {
            api.review_token(token, json!({"authenticated": true, "user": {"username": user}}));
        }
        let config = Config::new(api.serve().await.parse().unwrap());
        let trust = ProxyTrust {
            proxies: vec![PROXY.to_owned()],
            user_header: HeaderName::from_static("x-forwarded-user"),
            groups_header: HeaderName::from_static("x-forwarded-groups"),
            groups: vec!["support".to_owned(), "finance".to_owned()],
        };
        ClusterAccess::new(Client::try_from(config).unwrap(), trust)
    }

    fn request(token: &'static str, forwarded: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).unwrap());
        for &(name, value) in forwarded {
            headers.append(name, HeaderValue::from_static(value));
        }
        headers
    }

    fn impersonated(groups: &[&str]) -> Caller {
        Caller::Impersonated { user: "eve".into(), groups: groups.iter().map(|&group| group.to_owned()).collect() }
    }

    #[rstest]
    #[case::own_token(request("of-ada", &[]), Ok(("ada", Caller::Token("of-ada".into()))))]
    #[case::headers_of_a_user(
        request("of-ada", &[("x-forwarded-user", "eve"), ("x-forwarded-groups", "support")]),
        Ok(("ada", Caller::Token("of-ada".into())))
    )]
    #[case::a_proxy(
        request("of-proxy", &[("x-forwarded-user", "eve"), ("x-forwarded-groups", "all, support")]),
        Ok(("eve", impersonated(&["support"])))
    )]
    #[case::no_user(request("of-proxy", &[("x-forwarded-groups", "support")]), Err(StatusCode::FORBIDDEN))]
    #[case::two_users(
        request(
            "of-proxy",
            &[("x-forwarded-user", "eve"), ("x-forwarded-user", "ada"), ("x-forwarded-groups", "support")]
        ),
        Err(StatusCode::FORBIDDEN)
    )]
    #[case::no_listed_group(
        request("of-proxy", &[("x-forwarded-user", "eve"), ("x-forwarded-groups", "system:masters")]),
        Err(StatusCode::FORBIDDEN)
    )]
    #[case::a_system_user(
        request("of-proxy", &[("x-forwarded-user", "system:admin"), ("x-forwarded-groups", "support")]),
        Err(StatusCode::FORBIDDEN)
    )]
    #[case::an_unknown_token(request("of-nobody", &[]), Err(StatusCode::UNAUTHORIZED))]
    #[case::no_token(HeaderMap::new(), Err(StatusCode::UNAUTHORIZED))]
    #[tokio::test]
    async fn a_caller_is_its_token_or_the_user_of_a_trusted_proxy(
        #[case] headers: HeaderMap,
        #[case] expected: Result<(&str, Caller), StatusCode>,
    ) {
        let found = access(&ApiServer::default()).await.identify(&Method::GET, &headers).await;
        let expected = expected.map(|(user, caller)| Identity { caller, user: user.to_owned() });
        assert_eq!(found.map_err(|problem| problem.status()), expected);
    }

    #[tokio::test]
    async fn another_site_changes_nothing() {
        let access = access(&ApiServer::default()).await;
        let by_proxy = |site| {
            let named = [("x-forwarded-user", "eve"), ("x-forwarded-groups", "support"), ("sec-fetch-site", site)];
            request("of-proxy", &named)
        };
        assert!(access.identify(&Method::POST, &by_proxy("same-origin")).await.is_ok());
        let refused = access.identify(&Method::POST, &by_proxy("cross-site")).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
        assert!(access.identify(&Method::POST, &request("of-ada", &[])).await.is_ok());
        let with_own_token = request("of-ada", &[("sec-fetch-site", "cross-site")]);
        let refused = access.identify(&Method::POST, &with_own_token).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    }

    #[tokio::test]
    async fn a_token_is_reviewed_once() {
        let api = ApiServer::default();
        let access = access(&api).await;
        for token in ["of-ada", "of-ada", "of-nobody", "of-nobody"] {
            let _ = access.identify(&Method::GET, &request(token, &[])).await;
        }
        assert_eq!(api.reviews(), 2);
    }
}
