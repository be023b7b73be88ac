//! The patterns of the CRDs, and their descriptions for people.

use regex_lite::Regex;

/// The pattern of durations.
pub(crate) const DURATION: &str = r"^([1-9][0-9]{0,5}(h|m|s))+$";

/// The pattern of approvers' names.
pub(crate) const APPROVER: &str = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$";

/// Returns the description of a pattern, or the pattern itself if it has none.
pub(crate) fn description(pattern: &str) -> String {
    let description = match pattern {
        r"^[a-z]([-a-z0-9]*[a-z0-9])?$" => {
            "lower-case letters, digits and '-', beginning with a letter and not ending with '-'"
        }
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" => {
            "lower-case letters, digits and '-', beginning and ending with a letter or a digit"
        }
        APPROVER => "lower-case letters, digits, '-' and '.', beginning and ending with a letter or a digit",
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" => {
            "a name of Kubernetes: lower-case letters, digits, '-' and '.'"
        }
        r"^(\*|[a-z]([-a-z0-9]*[a-z0-9])?)$" => {
            "'*', or lower-case letters, digits and '-', beginning with a letter and not ending with '-'"
        }
        r"^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$" => {
            "letters, digits, '-', '_' and '.', beginning and ending with a letter or a digit"
        }
        r"^[A-Za-z0-9_][-_.A-Za-z0-9]*$" => "letters, digits, '-', '_' and '.', not beginning with '-' or '.'",
        r"^#" => "a text that begins with '#'",
        r"^[a-z][a-z0-9_]*$" => "lower-case letters, digits and '_', beginning with a letter",
        r"^[A-Za-z][-A-Za-z0-9_]*$" => "letters, digits, '-' and '_', beginning with a letter",
        r"^[^*]*\*?$" => "a name, or the beginning of names with one '*' at its end",
        r"^/[^?#\s]*$" => "a path that begins with '/', without '?', '#' and blanks",
        DURATION => "a duration such as 30s, 10m or 1h30m",
        r"^[1-9][0-9]{0,12}(k|M|G|T|Ki|Mi|Gi|Ti)?$" => "a size such as 500Mi or 2Gi",
        r"^[-._a-zA-Z0-9]+$" => "letters, digits, '-', '_' and '.'",
        r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" => "the name of a header: letters, digits and !#$%&'*+.^_`|~-",
        r"^(/(\*\*|(\*?[^*/?#%\\\s])*\*?))+$" => {
            "a path that begins with '/', without '?', '#', '%', '\\' and blanks, and with '**' as a whole segment only"
        }
        r"^[A-Za-z_][A-Za-z0-9_]*$" => "letters, digits and '_', not beginning with a digit",
        r"^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$" => {
            "an absolute path of letters, digits, '-', '_' and '.', without a segment that begins with '.'"
        }
        r"^[A-Za-z0-9:]([-A-Za-z0-9.:]*[A-Za-z0-9:])?$" => {
            "the name or the address of a host, without scheme, port and brackets"
        }
        r"^sha256:[0-9a-f]{64}$" => "a digest: 'sha256:' and 64 hexadecimal digits",
        other => return format!("something that matches {other}"),
    };
    description.to_owned()
}

/// Returns whether a text matches a pattern, or `None` if the pattern is invalid.
pub(crate) fn matches(pattern: &str, text: &str) -> Option<bool> {
    Some(Regex::new(pattern).ok()?.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::{description, matches};
    use bloomery_crds::v1alpha1::definitions;

    /// Without a description, people would have to read the regular expression.
    #[test]
    fn every_pattern_of_the_crds_is_valid_and_has_a_description() {
        fn visit(value: &serde_json::Value, patterns: &mut Vec<String>) {
            match value {
                serde_json::Value::Object(map) => {
                    if let Some(pattern) = map.get("pattern").and_then(|pattern| pattern.as_str()) {
                        patterns.push(pattern.to_owned());
                    }
                    map.values().for_each(|value| visit(value, patterns));
                }
                serde_json::Value::Array(values) => values.iter().for_each(|value| visit(value, patterns)),
                _ => {}
            }
        }
        let mut patterns = Vec::new();
        visit(&serde_json::to_value(definitions().collect::<Vec<_>>()).unwrap(), &mut patterns);
        assert!(patterns.len() > 5);
        for pattern in patterns {
            assert!(matches(&pattern, "").is_some(), "{pattern} cannot be read");
            let quantity_or_digest = pattern.contains("KMGTPE") || pattern.contains("sha256");
            assert!(quantity_or_digest || !description(&pattern).contains(&pattern), "{pattern} has no description");
        }
    }
}
