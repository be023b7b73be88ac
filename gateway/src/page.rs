//! The page for people: files without a build step.
//!
//! The files are public: they contain no data. All data come from the API, with the token of the person.

use crate::problem::{self, Problem};
use axum::Router;
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bloomery_crds::Digest;
use std::future::ready;

/// The content security policy. The page loads its own files only, talks to its own server only, and parses no markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
     base-uri 'none'; frame-ancestors 'none'; form-action 'self'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The number of hex digits of a digest in an entity tag.
const TAG_DIGITS: usize = 32;

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The page.
const INDEX: Asset = Asset::new("index.html", "text/html; charset=utf-8", include_bytes!("../page/index.html"));

/// The files of the page.
static FILES: [Asset; 15] = [
    Asset::new("api.mjs", SCRIPT, include_bytes!("../page/api.mjs")),
    Asset::new("app.mjs", SCRIPT, include_bytes!("../page/app.mjs")),
    Asset::new("aside.mjs", SCRIPT, include_bytes!("../page/aside.mjs")),
    Asset::new("dom.mjs", SCRIPT, include_bytes!("../page/dom.mjs")),
    Asset::new("events.mjs", SCRIPT, include_bytes!("../page/events.mjs")),
    Asset::new("fold.mjs", SCRIPT, include_bytes!("../page/fold.mjs")),
    Asset::new("format.mjs", SCRIPT, include_bytes!("../page/format.mjs")),
    Asset::new("icon.svg", "image/svg+xml", include_bytes!("../page/icon.svg")),
    Asset::new("job.mjs", SCRIPT, include_bytes!("../page/job.mjs")),
    Asset::new("jobs.mjs", SCRIPT, include_bytes!("../page/jobs.mjs")),
    Asset::new("people.mjs", SCRIPT, include_bytes!("../page/people.mjs")),
    Asset::new("skills.mjs", SCRIPT, include_bytes!("../page/skills.mjs")),
    Asset::new("start.mjs", SCRIPT, include_bytes!("../page/start.mjs")),
    Asset::new("style.css", "text/css; charset=utf-8", include_bytes!("../page/style.css")),
    Asset::new("timeline.mjs", SCRIPT, include_bytes!("../page/timeline.mjs")),
];

/// A file of the page.
#[derive(Debug, Clone, Copy)]
struct Asset {
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

impl Asset {
    const fn new(name: &'static str, content_type: &'static str, bytes: &'static [u8]) -> Self {
        Self { name, content_type, bytes }
    }

    /// Returns the response with the file; without its bytes if the client has this version.
    fn respond(self, request: &HeaderMap) -> Response {
        let tag = format!("\"{}\"", Digest::of_bytes(self.bytes).short(TAG_DIGITS));
        let known = request.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let has_it = known.flat_map(|value| value.split(',')).any(|known| known.trim().trim_start_matches("W/") == tag);
        let mut response = if has_it { StatusCode::NOT_MODIFIED.into_response() } else { self.bytes.into_response() };
        let headers = response.headers_mut();
        // Clients ask each time, so that all files are of one version.
        for (name, value) in [
            (CONTENT_TYPE, self.content_type),
            (CACHE_CONTROL, "no-cache"),
            (CONTENT_SECURITY_POLICY, POLICY),
            (REFERRER_POLICY, "no-referrer"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            headers.insert(ETAG, tag);
        }
        response
    }
}

/// Returns the routes of the page.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let index = |headers: HeaderMap| ready(INDEX.respond(&headers));
    let file = |Path(name): Path<String>, uri: Uri, headers: HeaderMap| ready(file(&name, &uri, &headers));
    Router::new().route("/", get(index)).route("/page/{file}", get(file))
}

/// Returns the response with a file.
///
/// # Errors
/// If there is no such file.
fn file(name: &str, uri: &Uri, headers: &HeaderMap) -> Result<Response, Problem> {
    let file = FILES.iter().find(|file| file.name == name);
    file.map(|file| file.respond(headers)).ok_or_else(|| problem::not_found(uri))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use rstest::rstest;
    use std::collections::BTreeSet;
    use std::fs;
    use tower::ServiceExt;

    /// The largest size of all files, in bytes.
    const MAX_BYTES: usize = 150 << 10;

    async fn respond(path: &str, tag: Option<&HeaderValue>) -> Response {
        let mut request = Request::get(path).body(Body::empty()).unwrap();
        if let Some(tag) = tag {
            request.headers_mut().insert(IF_NONE_MATCH, tag.clone());
        }
        routes::<()>().oneshot(request).await.unwrap()
    }

    fn text(asset: &Asset) -> &'static str {
        std::str::from_utf8(asset.bytes).unwrap()
    }

    #[rstest]
    #[case::index("/", "text/html; charset=utf-8")]
    #[case::script("/page/app.mjs", "text/javascript; charset=utf-8")]
    #[case::style("/page/style.css", "text/css; charset=utf-8")]
    #[case::icon("/page/icon.svg", "image/svg+xml")]
    #[tokio::test]
    async fn a_file_has_its_type_and_the_policy(#[case] path: &str, #[case] content_type: &str) {
        let response = respond(path, None).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[CONTENT_TYPE], content_type);
        assert_eq!(response.headers()[CONTENT_SECURITY_POLICY], POLICY);
        let tag = response.headers()[ETAG].clone();
        assert!(!to_bytes(response.into_body(), MAX_BYTES).await.unwrap().is_empty());

        let known = respond(path, Some(&tag)).await;
        assert_eq!((known.status(), &known.headers()[ETAG]), (StatusCode::NOT_MODIFIED, &tag));
        assert!(to_bytes(known.into_body(), MAX_BYTES).await.unwrap().is_empty());
        assert_eq!(respond(path, Some(&HeaderValue::from_static("\"other\""))).await.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn only_the_files_of_the_page_are_served() {
        for path in ["/page/other.mjs", "/page/..%2FCargo.toml", "/page/index.html"] {
            assert_eq!(respond(path, None).await.status(), StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[test]
    fn all_files_of_the_directory_are_served() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        let names = fs::read_dir(directory).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let served = FILES.iter().chain([&INDEX]).map(|file| file.name.to_owned());
        assert_eq!(names.collect::<BTreeSet<String>>(), served.collect::<BTreeSet<String>>());
    }

    #[test]
    fn each_import_is_a_file() {
        for file in FILES {
            let imports = text(&file).lines().filter_map(|line| line.split_once(" from './"));
            for (_, import) in imports {
                let name = import.trim_end_matches("';");
                assert!(FILES.iter().any(|file| file.name == name), "{} imports {name}", file.name);
            }
        }
    }

    #[test]
    fn the_page_is_small_and_parses_no_markup() {
        let size: usize = FILES.iter().chain([&INDEX]).map(|file| file.bytes.len()).sum();
        assert!(size <= MAX_BYTES, "{size}");
        let forbidden =
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "eval(", "new Function"];
        for file in FILES {
            for word in forbidden {
                assert!(!text(&file).contains(word), "{}: {word}", file.name);
            }
        }
    }
}
