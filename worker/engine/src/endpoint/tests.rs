use super::address::Path;
use super::*;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

fn file() -> KeyFile {
    KeyFile { path: "/etc/bloomery/secrets/shop/key".into(), secret: "shop".into(), key: "key".into() }
}

fn bound(name: &str, kind: ResourceType, source: ResourceSource) -> BoundResource {
    BoundResource { name: name.into(), kind, source }
}

/// Returns the endpoint `shop` at a URL. `more` are further fields of its declaration.
fn shop(url: &str, more: &Value) -> Vec<Endpoint> {
    let mut declared = json!({"name": "shop", "type": "api_endpoint"});
    declared.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let declared: Vec<ResourceDeclaration> =
        serde_json::from_value(json!([declared, {"name": "key", "type": "credential"}])).unwrap();
    let resources = [
        bound("shop", ResourceType::ApiEndpoint, ResourceSource::Value(url.into())),
        bound("key", ResourceType::Credential, ResourceSource::Secret(file())),
    ];
    endpoints(&declared, &resources)
}

fn url_of(base: &str, path: &str) -> Result<String, Error> {
    build_request(&shop(base, &json!({})), &json!({"path": path}), true).map(|request| request.url)
}

#[rstest]
#[case::below("https://x.example/v1", "/orders/7", "https://x.example/v1/orders/7")]
#[case::a_slash_at_the_end("https://x.example", "/orders/", "https://x.example/orders/")]
#[case::a_slash_at_the_end_of_the_base("https://x.example/v1/", "/orders", "https://x.example/v1/orders")]
#[case::no_path("https://x.example/v1", "/", "https://x.example/v1")]
#[case::a_port("http://[::1]:8080/a", "/b", "http://[::1]:8080/a/b")]
#[case::spaces_and_letters("https://x.example", "/a%20b/%C3%A4", "https://x.example/a%20b/%C3%A4")]
#[case::an_at_sign("https://x.example", "/@evil.example/x", "https://x.example/@evil.example/x")]
#[case::no_path_and_a_slash("https://x.example/v1/", "/", "https://x.example/v1/")]
#[case::no_path_at_all("https://x.example", "/", "https://x.example/")]
#[case::a_percent_sign("https://x.example", "/100%25", "https://x.example/100%25")]
#[case::a_colon("https://x.example", "/v1/things:batchGet", "https://x.example/v1/things:batchGet")]
#[case::escapes_of_the_base("https://x.example/a%2Bb+c/", "/d", "https://x.example/a%2Bb+c/d")]
#[case::letters_of_the_base("https://x.example/ä", "/d", "https://x.example/%C3%A4/d")]
#[case::dots_in_names("https://x.example", "/a..b/...", "https://x.example/a..b/...")]
fn a_path_goes_below_the_base(#[case] base: &str, #[case] path: &str, #[case] url: &str) {
    assert_eq!(url_of(base, path).as_deref(), Ok(url));
}

/// With several spellings, a call could evade a condition such as `path == '/orders'`.
#[rstest]
#[case::no_slash("orders", "/orders")]
#[case::nothing("", "/")]
#[case::an_escape_too_many("/%6frders", "/orders")]
#[case::lower_case_digits("/a%c3%A4", "/a%C3%A4")]
#[case::an_escaped_colon("/orders%3Acancel", "/orders:cancel")]
#[case::an_escaped_comma("/a%2cb", "/a,b")]
#[case::an_escaped_plus("/c%2B", "/c+")]
#[case::a_space("/a b", "/a%20b")]
#[case::letters("/ä", "/%C3%A4")]
#[case::an_at_sign("@evil.example/x", "/@evil.example/x")]
fn a_path_has_one_spelling(#[case] path: &str, #[case] spelling: &str) {
    let fault = url_of("https://x.example/v1", path).unwrap_err().to_string();
    assert_eq!(fault, format!("a path has one spelling only: write this one as {spelling}"));
    assert_eq!(url_of("https://x.example", spelling), Ok(format!("https://x.example{spelling}")));
}

#[rstest]
#[case::up("..")]
#[case::up_within("/a/../../b")]
#[case::here("/./a")]
#[case::up_encoded("/%2e%2e/a")]
#[case::up_half_encoded("/.%2E/a")]
#[case::up_encoded_twice("/%252e%252e/a")]
#[case::up_encoded_thrice("/%25252e./a")]
#[case::up_with_parameters("/..;x=1/a")]
#[case::up_with_a_space("/..%20/a")]
#[case::a_slash("/a%2f..%2fb")]
#[case::a_slash_encoded_twice("/a%252Fb")]
#[case::an_overlong_slash("/a%c0%afb")]
#[case::an_overlong_slash_encoded_twice("/a%25c0%25afb")]
#[case::a_backslash("/a\\..\\b")]
#[case::an_encoded_backslash("/a%5cb")]
#[case::two_slashes("//evil.example/a")]
#[case::two_slashes_within("/a//b")]
#[case::a_url("https://evil.example/")]
#[case::a_url_within("/https://evil.example/")]
#[case::a_fragment("/a#b")]
#[case::a_query("/a?b=c")]
#[case::a_line_break("/a\r\nHost: evil.example")]
#[case::an_encoded_line_break("/a%0d%0aHost:%20evil")]
#[case::a_nul("/a%00.json")]
#[case::a_line_break_encoded_twice("/a%250Ab")]
#[case::another_control("/a\u{85}b")]
#[case::a_bare_percent_sign("/100%")]
#[case::half_an_escape("/a%2")]
#[case::not_utf_8("/%ff%fe")]
fn a_path_that_may_leave_the_base_is_refused(#[case] path: &str) {
    let fault = url_of("https://x.example/v1", path).unwrap_err().to_string();
    assert!(fault.contains("path"), "{fault}");
}

#[test]
fn the_length_of_a_path_and_of_a_url_is_limited() {
    let of_length = |length: usize| url_of("https://x.example", &format!("/{}", "a".repeat(length - 1)));
    assert!(of_length(2048).is_ok() && of_length(2049).is_err());
    let query = json!({"query": {"q": "ä".repeat(4096)}});
    assert!(
        build_request(&shop("https://x.example", &json!({})), &query, true)
            .unwrap_err()
            .to_string()
            .contains("at most 8192")
    );
}

#[rstest]
#[case::a_query("https://x.example/v1?key=1")]
#[case::a_fragment("https://x.example/v1#a")]
#[case::a_user("https://user@x.example")]
#[case::a_step_up("https://x.example/a/../b")]
#[case::empty_segments("https://x.example//a")]
#[case::only_slashes("https://x.example//")]
#[case::another_scheme("ftp://x.example")]
#[case::no_host("https:///v1")]
#[case::a_backslash("https://x.example\\@evil.example")]
#[case::no_url("x.example")]
fn a_url_to_which_no_path_can_be_appended_cannot_be_called(#[case] url: &str) {
    let fault = url_of(url, "/a").unwrap_err().to_string();
    assert!(fault.starts_with("the URL of `shop` cannot be called with a path: "), "{fault}");
    assert_eq!(
        build_request(&[], &json!({}), true).unwrap_err().to_string(),
        "the Job binds no endpoint that this tool may call"
    );
}

/// If the endpoint did not count, a call without `resource` would go to the only other endpoint.
#[test]
fn an_endpoint_that_cannot_be_called_still_counts() {
    let declared: Vec<ResourceDeclaration> = serde_json::from_value(
        json!([{"name": "docs", "type": "api_endpoint"}, {"name": "wiki", "type": "api_endpoint"}]),
    )
    .unwrap();
    let at = |name, url: &str| bound(name, ResourceType::ApiEndpoint, ResourceSource::Value(url.into()));
    let bound = [at("docs", "https://docs.example/?lang=en"), at("wiki", "https://wiki.example")];
    let endpoints = endpoints(&declared, &bound);
    assert_eq!(
        build_request(&endpoints, &json!({}), true).unwrap_err().to_string(),
        "resource must name one of the endpoints docs, wiki"
    );
    let fault = "the URL of `docs` cannot be called with a path: it has a query or a fragment";
    assert_eq!(build_request(&endpoints, &json!({"resource": "docs"}), true).unwrap_err().to_string(), fault);
    assert_eq!(remarks(&declared, &bound), [format!("{fault}.")]);
}

#[test]
fn rules_compare_the_decoded_path() {
    let shop = shop("https://x.example/v1", &json!({"rules": [{"methods": ["GET", "POST"], "paths": ["/a b/*"]}]}));
    let request = |path: &str| build_request(&shop, &json!({"method": "POST", "path": path}), false);
    assert_eq!(request("/a%20b/c+").unwrap().url, "https://x.example/v1/a%20b/c+");
    assert_eq!(
        request("/A%20b/c").unwrap_err().to_string(),
        "the Skill's rules for `shop` allow no POST of /A%20b/c; they allow GET|POST /a b/*"
    );
    let deleted =
        build_request(&shop, &json!({"method": "DELETE", "path": "/a%20b/c"}), false).unwrap_err().to_string();
    assert!(deleted.contains("allow no DELETE of"), "{deleted}");
    assert_eq!(shop[0].methods(), [Method::Get, Method::Post]);
}

#[test]
fn without_rules_only_methods_that_read_are_allowed() {
    let shop = shop("https://x.example", &json!({}));
    assert_eq!(build_request(&shop, &json!({}), true).unwrap().method, Method::Get);
    assert_eq!(build_request(&shop, &json!({"method": "HEAD"}), true).unwrap().method, Method::Head);
    let posted = build_request(&shop, &json!({"method": "POST", "path": "/a"}), false).unwrap_err().to_string();
    assert_eq!(posted, "the Job binds no endpoint that this tool may call");
    assert!(
        build_request(&shop, &json!({"method": "POST"}), true)
            .unwrap_err()
            .to_string()
            .contains("this tool only reads")
    );
}

#[test]
fn a_call_may_omit_the_resource_if_there_is_one_endpoint() {
    let declared: Vec<ResourceDeclaration> = serde_json::from_value(json!([
        {"name": "docs", "type": "api_endpoint"},
        {"name": "shop", "type": "api_endpoint", "rules": [{"methods": ["POST"], "paths": ["/**"]}]},
    ]))
    .unwrap();
    let at =
        |name: &str| bound(name, ResourceType::ApiEndpoint, ResourceSource::Value(format!("https://{name}.example")));
    let endpoints = endpoints(&declared, &[at("docs"), at("shop")]);
    let url = |arguments, reads_only| build_request(&endpoints, &arguments, reads_only).map(|request| request.url);
    assert_eq!(url(json!({}), true).unwrap(), "https://docs.example/");
    assert_eq!(url(json!({"method": "POST"}), false).unwrap(), "https://shop.example/");
    assert_eq!(url(json!({}), false).unwrap_err().to_string(), "method is missing");
    let fault = "this tool has no such endpoint; it has shop";
    assert_eq!(url(json!({"method": "POST", "resource": "docs"}), false).unwrap_err().to_string(), fault);
}

#[test]
fn every_query_is_escaped() {
    let query = json!({"query": {"q": "a&b=c#d ä", "page": 2, "all": true, "tag": ["x", 1.5], "none": []}});
    let request = build_request(&shop("https://x.example", &json!({})), &query, true).unwrap();
    assert_eq!(request.url, "https://x.example/?all=true&page=2&q=a%26b%3Dc%23d%20%C3%A4&tag=x&tag=1.5");
    for value in [json!(null), json!({}), json!([[]])] {
        let fault = build_request(&shop("https://x.example", &json!({})), &json!({"query": {"q": value}}), true)
            .unwrap_err()
            .to_string();
        assert!(fault.contains("a value of query"), "{fault}");
    }
}

/// Returns the request of a POST to an endpoint that allows every path and needs a credential.
fn posted(more: &Value) -> Result<ApiRequest, Error> {
    let everything = json!({
        "rules": [{"methods": ["GET", "POST"], "paths": ["/**"]}],
        "auth": {"credential": "key", "header": "X-Api-Key", "scheme": "Token"},
    });
    let mut arguments = json!({"method": "POST", "path": "/a"});
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    build_request(&shop("https://x.example", &everything), &arguments, false)
}

#[test]
fn a_body_has_its_content_type_and_a_read_has_no_body() {
    let sent = |more: Value| posted(&more).map(|request| (request.headers, request.body.unwrap_or_default()));
    let header = |value: &str| vec![("content-type".to_owned(), value.to_owned())];
    assert_eq!(
        sent(json!({"json": {"b": 1, "a": [null]}})),
        Ok((header("application/json"), r#"{"a":[null],"b":1}"#.into()))
    );
    assert_eq!(sent(json!({"body": "x=1"})), Ok((header("text/plain; charset=utf-8"), "x=1".into())));
    let form = json!({"body": "x=1", "headers": {"Content-Type": "application/x-www-form-urlencoded"}});
    assert_eq!(sent(form), Ok((header("application/x-www-form-urlencoded"), "x=1".into())));
    assert_eq!(sent(json!({})), Ok((vec![], String::new())));
    assert_eq!(sent(json!({"json": null})), Ok((header("application/json"), "null".into())));
    assert!(sent(json!({"json": null, "body": "x"})).unwrap_err().to_string().contains("not both"));
    assert!(sent(json!({"json": 1, "body": "x"})).unwrap_err().to_string().contains("not both"));
    let read = build_request(&shop("https://x.example", &json!({})), &json!({"json": null}), true);
    assert_eq!(read.unwrap_err().to_string(), "GET must not have a body");
    assert!(sent(json!({"method": "GET"})).unwrap_err().to_string().ends_with("GET only reads: use http_get for it"));
}

#[rstest]
#[case::host(json!({"Host": "evil.example"}))]
#[case::the_auth_header(json!({"x-api-key": "mine"}))]
#[case::authorization(json!({"Authorization": "Bearer x"}))]
#[case::a_cookie(json!({"Cookie": "a=b"}))]
#[case::another_method(json!({"X-HTTP-Method-Override": "DELETE"}))]
#[case::a_length(json!({"Content-Length": "0"}))]
#[case::no_name(json!({"": "x"}))]
#[case::two_lines(json!({"Accept": "a\r\nX: y"}))]
#[case::letters(json!({"Accept": "ä"}))]
#[case::twice(json!({"Accept": "a", "accept": "b"}))]
#[case::too_long(json!({"Accept": "a".repeat(1025)}))]
#[case::not_a_text(json!({"Accept": 1}))]
fn headers_that_a_call_may_not_set_are_refused(#[case] headers: Value) {
    posted(&json!({"headers": headers})).unwrap_err().to_string();
}

#[test]
fn a_call_is_authenticated_by_the_bound_credential() {
    let (auth, value) = posted(&json!({"headers": {"If-Match": "\"1\""}})).unwrap().auth.unwrap();
    assert_eq!((auth.header.as_str(), auth.prefix.as_str(), auth.credential.as_str()), ("X-Api-Key", "Token ", "key"));
    assert_eq!(value, file());

    let declared: Vec<ResourceDeclaration> = serde_json::from_value(json!([
        {"name": "shop", "type": "api_endpoint", "auth": {"credential": "key"}},
        {"name": "wiki", "type": "api_endpoint", "auth": {"credential": "dsn", "header": "CONNECTION"}},
    ]))
    .unwrap();
    let at = |name| bound(name, ResourceType::ApiEndpoint, ResourceSource::Value("https://x.example".into()));
    // A secret of another type is not a credential.
    let other = bound("key", ResourceType::ConnectionString, ResourceSource::Secret(file()));
    let endpoints = endpoints(&declared, &[at("shop"), at("wiki"), other]);
    let fault = |name: &str| build_request(&endpoints, &json!({"resource": name}), true).unwrap_err().to_string();
    assert_eq!(fault("shop"), "`shop` is called with the credential `key`, which this Job does not bind");
    assert!(fault("wiki").contains("names the header CONNECTION"), "{}", fault("wiki"));
    assert_eq!(fault("docs"), "this tool has no such endpoint; it has shop, wiki");
    assert_eq!(
        build_request(&endpoints, &json!({}), true).unwrap_err().to_string(),
        "resource must name one of the endpoints shop, wiki"
    );
}

#[test]
fn only_a_declared_resource_is_an_endpoint() {
    let resources = [bound("shop", ResourceType::ApiEndpoint, ResourceSource::Value("https://x.example".into()))];
    assert_eq!(endpoints(&[], &resources), []);
}

fn is_below(url: &str, base: &str) -> bool {
    let Some(below) = url.strip_prefix(base) else { return false };
    let path = below.split('?').next().unwrap();
    let segments: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
    (path.is_empty() || path.starts_with('/'))
        && segments.iter().rev().skip(1).all(|segment| !segment.is_empty())
        && segments.iter().all(|segment| !matches!(*segment, "." | ".."))
        && url.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\#\"<>^`{|}".contains(&byte))
}

/// Returns the URL of a call, with the path in its valid spelling.
fn called(path: &str, query: &Value) -> Option<String> {
    let shop = shop("https://x.example/v1", &json!({}));
    let url =
        |path: &str| build_request(&shop, &json!({"path": path, "query": query}), true).map(|request| request.url);
    match url(path) {
        Ok(url) => Some(url),
        Err(fault) => fault
            .to_string()
            .strip_prefix("a path has one spelling only: write this one as ")
            .map(|path| url(path).unwrap()),
    }
}

proptest! {
    #[test]
    fn no_call_leaves_its_base(path in "\\PC{0,60}", name in "\\PC{0,8}", value in "\\PC{0,8}") {
        if let Some(url) = called(&path, &json!({name: value})) {
            prop_assert!(is_below(&url, "https://x.example/v1"), "{}", url);
        }
    }

    /// Like `no_call_leaves_its_base`, with paths that are likely to leave it.
    #[test]
    fn no_call_leaves_its_base_by_dots_and_slashes(path in "/?((\\.\\.|\\.|a|%2e|%25|%25|%5c|;|@|:|%0a| |2e){1,3}/){0,3}(\\.\\.|%2F|\\\\|\\?|#)?") {
        if let Some(url) = called(&path, &json!({})) {
            prop_assert!(is_below(&url, "https://x.example/v1"), "{}", url);
            let lower = url.to_lowercase();
            prop_assert!(!["%2e", "%2f", "%5c", "%0a"].iter().any(|escape| lower.contains(escape)), "{}", url);
        }
    }

    /// A server decodes the sent path to the segments that the gate compared.
    #[test]
    fn the_sent_path_decodes_to_the_compared_segments(path in "\\PC{0,40}") {
        if let Ok(read) = Path::parse(&path) {
            let again = Path::parse(&read.to_string()).unwrap();
            prop_assert_eq!(again.segments(), read.segments());
            prop_assert_eq!(again.to_string(), read.to_string());
        }
    }

    /// A condition compares the text of the path, and the rules compare its decoded segments.
    #[test]
    fn a_path_is_accepted_in_one_spelling_only(path in "[!-~]{0,8}", escaped in prop::collection::vec(0..3_u8, 8)) {
        let spelt = |(byte, how): (u8, u8)| match how {
            1 if byte != b'/' => format!("%{byte:02X}"),
            2 if byte != b'/' => format!("%{byte:02x}"),
            _ => char::from(byte).to_string(),
        };
        let other: String = path.bytes().zip(escaped).map(spelt).collect();
        let taken = |text: &str| Path::parse(text).ok().filter(|path| path.to_string() == text);
        for path in [path, other.clone()].into_iter().filter_map(|text| taken(&text)) {
            let spelt = Path::parse(&other).ok().filter(|other| other.segments() == path.segments());
            prop_assert!(spelt.is_none_or(|other| other.to_string() == path.to_string()));
        }
    }

    #[test]
    fn no_arguments_panic(text in "\\PC{0,80}", key in "(resource|path|method|query|headers|json|body|x)") {
        let _ = build_request(&shop("https://x.example", &json!({})), &json!({key.as_str(): text.as_str()}), true);
        let _ = posted(&json!({key: text}));
        let _ = build_request(&shop(&text, &json!({})), &json!({"path": "/a"}), true);
    }
}
