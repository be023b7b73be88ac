//! The namespace of a request, which is the name of its tenant.

use crate::problem::Problem;
use axum::http::{HeaderMap, StatusCode, Uri};

/// The query parameter with the namespace.
pub(crate) const PARAMETER: &str = "namespace";

/// The header with the namespace.
const HEADER: &str = "bloomery-namespace";

/// Returns the namespace that a request names: in its query, or in its header.
///
/// # Errors
/// If it names several.
pub(crate) fn named(uri: &Uri, headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let parameters = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let in_query = parameters.filter(|(name, _)| *name == PARAMETER).map(|(_, value)| value.to_owned());
    let in_header = headers.get_all(HEADER).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let mut named: Vec<String> = in_query.chain(in_header).collect();
    named.dedup();
    if named.len() > 1 {
        let detail =
            "The query parameter namespace and the header Bloomery-Namespace name several namespaces: name one.";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    Ok(named.pop())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use rstest::rstest;

    #[rstest]
    #[case::nothing("/api/jobs", None, Ok(None))]
    #[case::another_parameter("/api/jobs?x=1&in-namespace=acme", None, Ok(None))]
    #[case::in_the_query("/api/jobs?x=1&namespace=acme", None, Ok(Some("acme")))]
    #[case::in_the_header("/api/jobs", Some("acme"), Ok(Some("acme")))]
    #[case::in_both("/api/jobs?namespace=acme", Some("acme"), Ok(Some("acme")))]
    #[case::several("/api/jobs?namespace=acme", Some("beta"), Err(StatusCode::BAD_REQUEST))]
    fn a_request_names_one_namespace(
        #[case] uri: &'static str,
        #[case] header: Option<&'static str>,
        #[case] expected: Result<Option<&str>, StatusCode>,
    ) {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(HEADER, HeaderValue::from_static(header));
        }
        let found = named(&Uri::from_static(uri), &headers);
        assert_eq!(found.map_err(|problem| problem.status()), expected.map(|name| name.map(str::to_owned)));
    }
}
