//! Refuses requests that another site sends in the browser of a person. Browsers attach the cookies of an authenticating proxy to them.

use crate::problem::Problem;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};

/// The header in which a browser says where a request comes from. No page can set it.
const FETCH_SITE: &str = "sec-fetch-site";

/// Refuses a request that changes something and that another site has sent, as the browser says.
///
/// # Errors
/// If it is such a request.
pub(super) fn refuse_other_sites(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    if method.is_safe() || said_by_browser(headers) != Some(false) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "A request of another site, as its header Sec-Fetch-Site says, may change nothing.",
    ))
}

/// Checks that a request which changes something comes from the page of this server, or from the person directly.
///
/// # Errors
/// If it comes from elsewhere, or does not say where it comes from.
pub(super) fn require_same_origin(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    if method.is_safe() || said_by_browser(headers).unwrap_or_else(|| has_own_origin(headers)) {
        return Ok(());
    }
    let detail = "A request by the proxy that changes something must come from the page of this server: it needs the header \
                  `Sec-Fetch-Site: same-origin` of a browser, or an Origin whose host is that of the header Host.";
    Err(Problem::new(StatusCode::FORBIDDEN, detail))
}

/// Returns whether a browser says that a request comes from this server's page or from the person. Returns `None` if it says nothing.
fn said_by_browser(headers: &HeaderMap) -> Option<bool> {
    headers.get(FETCH_SITE).map(|site| site == "same-origin" || site == "none")
}

fn has_own_origin(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(origin), Some(host)) = (text(ORIGIN), text(HOST)) else { return false };
    origin.split_once("://").is_some_and(|(_, of_page)| of_page.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use rstest::rstest;

    #[rstest]
    #[case::reading(Method::GET, &[("sec-fetch-site", "cross-site")], true)]
    #[case::the_page(Method::POST, &[("sec-fetch-site", "same-origin")], true)]
    #[case::the_person(Method::POST, &[("sec-fetch-site", "none")], true)]
    #[case::another_site(Method::POST, &[("sec-fetch-site", "cross-site")], false)]
    #[case::a_sibling(Method::POST, &[("sec-fetch-site", "same-site"), ("origin", "https://a.example")], false)]
    #[case::origin(Method::POST, &[("origin", "https://a.example")], true)]
    #[case::another_origin(Method::POST, &[("origin", "https://evil.example")], false)]
    #[case::another_port(Method::POST, &[("origin", "https://a.example:8443")], false)]
    #[case::no_origin(Method::POST, &[("origin", "null")], false)]
    #[case::nothing(Method::POST, &[], false)]
    fn only_the_page_of_this_server_changes_something(
        #[case] method: Method,
        #[case] named: &[(&'static str, &'static str)],
        #[case] is_allowed: bool,
    ) {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("a.example"));
        for &(name, value) in named {
            headers.insert(name, HeaderValue::from_static(value));
        }
        assert_eq!(require_same_origin(&method, &headers).is_ok(), is_allowed);
        // Without the proxy, only the word of a browser counts.
        let is_other_site = named.iter().any(|(name, site)| *name == FETCH_SITE && site.ends_with("-site"));
        assert_eq!(refuse_other_sites(&method, &headers).is_ok(), method.is_safe() || !is_other_site);
    }
}
