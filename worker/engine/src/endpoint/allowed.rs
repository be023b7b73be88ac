//! The rules of an endpoint.

use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{EndpointRule, Method};

/// The longest summary of rules, in bytes.
const MAX_SUMMARY_BYTES: usize = 1024;

/// Returns whether a method is allowed on at least one path. Without rules, the methods that read are allowed.
pub(super) fn allows_some_path(rules: Option<&[EndpointRule]>, method: Method) -> bool {
    match rules {
        None => method.is_read(),
        Some(rules) => rules.iter().any(|rule| rule.methods.contains(&method) && !rule.paths.is_empty()),
    }
}

/// Returns whether a call is allowed.
pub(super) fn allows(rules: Option<&[EndpointRule]>, method: Method, segments: &[String]) -> bool {
    match rules {
        None => method.is_read(),
        Some(rules) => rules
            .iter()
            .any(|rule| rule.methods.contains(&method) && rule.paths.iter().any(|path| matches(path, segments))),
    }
}

/// Returns the rules in a line, such as `GET /orders/*; POST /orders`.
pub fn summary(rules: Option<&[EndpointRule]>) -> String {
    let Some(rules) = rules else { return "GET and HEAD of every path".to_owned() };
    let lines: Vec<String> = rules
        .iter()
        .map(|rule| {
            let methods: Vec<&str> = rule.methods.iter().map(Into::into).collect();
            format!("{} {}", methods.join("|"), rule.paths.join(" "))
        })
        .collect();
    if lines.is_empty() { "nothing".to_owned() } else { bounded(&lines.join("; "), MAX_SUMMARY_BYTES) }
}

/// Returns whether a pattern matches a path. An invalid pattern matches none.
fn matches(pattern: &str, segments: &[String]) -> bool {
    let Some(pattern) = pattern.strip_prefix('/') else { return false };
    // `/` is the base itself, which has no segments.
    let parts = if pattern.is_empty() { Vec::new() } else { pattern.split('/').collect() };
    // Item `n`: whether the parts so far match the first `n` segments. Before the first part, they match none.
    let mut matched = vec![false; segments.len() + 1];
    if let Some(first) = matched.first_mut() {
        *first = true;
    }
    for part in parts {
        let mut next = vec![false; matched.len()];
        let mut has_match = false;
        for (n, is_match) in next.iter_mut().enumerate() {
            if part == "**" {
                // It matches any number of segments after an earlier match.
                has_match |= matched.get(n) == Some(&true);
                *is_match = has_match;
            } else if let Some(before) = n.checked_sub(1) {
                let fits = segments.get(before).is_some_and(|segment| matches_segment(part, segment));
                *is_match = matched.get(before) == Some(&true) && fits;
            }
        }
        matched = next;
    }
    matched.last() == Some(&true)
}

fn matches_segment(pattern: &str, segment: &str) -> bool {
    // `**` is valid only as a whole segment of a pattern.
    if pattern.contains("**") {
        return false;
    }
    let Some((prefix, rest)) = pattern.split_once('*') else { return pattern == segment };
    if pattern == "*" {
        return !segment.is_empty();
    }
    let Some(mut remaining) = segment.strip_prefix(prefix) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, after)) = remaining.split_once(part) else { return false };
        remaining = after;
    }
    remaining.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn segments(path: &str) -> Vec<String> {
        let below = path.strip_prefix('/').unwrap();
        if below.is_empty() { Vec::new() } else { below.split('/').map(str::to_owned).collect() }
    }

    #[rstest]
    #[case::itself("/orders", &["/orders"], &["/orders/", "/order", "/orders/7", "/Orders", "/"])]
    #[case::the_base("/", &["/"], &["/orders", "//"])]
    #[case::one_segment("/orders/*", &["/orders/7", "/orders/a b"], &["/orders", "/orders/", "/orders/7/items"])]
    #[case::within("/orders/v*-*.json", &["/orders/v1-a.json", "/orders/v-.json"], &["/orders/v1.json", "/orders/v1-a.jso"])]
    #[case::a_tail("/v*", &["/v", "/v2"], &["/w", "/v/2"])]
    #[case::across("/orders/**", &["/orders", "/orders/", "/orders/7", "/orders/7/items"], &["/order", "/orders7"])]
    #[case::in_between("/a/**/z", &["/a/z", "/a/b/z", "/a/b/c/z"], &["/a", "/z", "/a/b/z/y"])]
    #[case::everything("/**", &["/", "/a", "/a/b/"], &[])]
    #[case::no_pattern("orders", &[], &["/orders", "/"])]
    #[case::stars_within("/a**", &[], &["/a", "/ab", "/a**"])]
    fn a_pattern_matches_only_some_paths(#[case] pattern: &str, #[case] matching: &[&str], #[case] others: &[&str]) {
        for path in matching {
            assert!(matches(pattern, &segments(path)), "{pattern} {path}");
        }
        for path in others {
            assert!(!matches(pattern, &segments(path)), "{pattern} {path}");
        }
    }

    #[test]
    fn no_rules_allow_all_reads_and_an_empty_list_allows_nothing() {
        assert!(allows(None, Method::Head, &segments("/a/b")) && !allows(None, Method::Post, &segments("/a")));
        assert!(!allows(Some(&[]), Method::Get, &[]));
        assert_eq!((summary(None).as_str(), summary(Some(&[])).as_str()), ("GET and HEAD of every path", "nothing"));
    }

    #[test]
    fn each_rule_is_for_its_own_methods() {
        let rules = [
            EndpointRule { methods: vec![Method::Get], paths: vec!["/orders/*".into()] },
            EndpointRule { methods: vec![Method::Post, Method::Put], paths: vec!["/orders".into(), "/notes".into()] },
        ];
        let allowed = |method, path| allows(Some(&rules), method, &segments(path));
        assert!(allowed(Method::Get, "/orders/7") && allowed(Method::Put, "/notes"));
        assert!(
            !allowed(Method::Get, "/notes") && !allowed(Method::Post, "/orders/7") && !allowed(Method::Head, "/notes")
        );
        assert_eq!(summary(Some(&rules)), "GET /orders/*; POST|PUT /orders /notes");
    }

    proptest! {
        /// Compares patterns without `**` with a backtracking matcher.
        #[test]
        fn a_segment_matches_as_a_backtracking_matcher_decides(pattern in "[ab*]{0,8}", segment in "[ab]{0,8}") {
            prop_assume!(!pattern.contains("**") && pattern != "*");
            prop_assert_eq!(matches_segment(&pattern, &segment), matches_slowly(pattern.as_bytes(), segment.as_bytes()));
        }

        #[test]
        fn no_pattern_panics(pattern in "\\PC{0,40}", path in "\\PC{0,40}") {
            let segments: Vec<String> = path.split('/').map(str::to_owned).collect();
            let _ = matches(&pattern, &segments);
        }
    }

    fn matches_slowly(pattern: &[u8], segment: &[u8]) -> bool {
        match pattern.split_first() {
            None => segment.is_empty(),
            Some((b'*', rest)) => (0..=segment.len()).any(|n| matches_slowly(rest, &segment[n..])),
            Some((first, rest)) => segment.first() == Some(first) && matches_slowly(rest, &segment[1..]),
        }
    }
}
