//! Finds credentials in options by their names. The parameters of a Job are stored in clear text, so that it can be
//! resumed. Therefore a URL or an argument with a credential is refused.

use bloomery_crds::resources::has_user_info;
use bloomery_redact::credential_names::{is_credential_option, is_credential_parameter};

/// Returns the fault of a URL with a credential: a user, a password, or a parameter of its query or fragment with the name of a
/// credential. The fault continues a sentence that begins with "the URL". It does not contain the value.
pub fn in_url(url: &str) -> Option<String> {
    if has_user_info(url) {
        return Some("names a user or a password".to_owned());
    }
    let (_, parameters) = url.split_once(['?', '#'])?;
    let pairs = parameters.split(['?', '#', '&']).filter_map(|pair| pair.split_once('='));
    let mut names = pairs.filter(|(_, value)| is_value(value)).map(|(name, _)| name);
    let credential = names.find(|name| is_credential_parameter(name))?;
    Some(format!("has the parameter `{credential}`, which is a credential by its name"))
}

/// Returns the fault of the first argument of a program that contains a credential. The fault continues a sentence that begins
/// with "the argument". It does not contain the value.
pub fn in_arguments(arguments: &[String]) -> Option<String> {
    let mut rest = arguments.iter().zip(1..).peekable();
    while let Some((argument, position)) = rest.next() {
        let (name, value) = match argument.split_once(['=', ':']) {
            Some((name, value)) => (name, Some(value)),
            None if argument.starts_with('-') => (argument.as_str(), rest.peek().map(|(next, _)| next.as_str())),
            None => (argument.as_str(), None),
        };
        let value = value.filter(|value| is_value(value) && !value.starts_with('-'));
        if value.is_some() && may_be_option(name) && is_credential_option(name) {
            return Some(format!("`{name}` passes a credential"));
        }
        let urls =
            argument.split(|c: char| c.is_whitespace() || "\"'`".contains(c)).filter(|word| word.contains("://"));
        if let Some(fault) = urls.filter(|url| !names_only_a_user(url)).find_map(in_url) {
            return Some(format!("{position} {fault}"));
        }
    }
    None
}

/// Returns whether a text may be a value. A text with `$` is a reference that a program or a shell expands.
fn is_value(text: &str) -> bool {
    !text.is_empty() && !text.contains('$')
}

/// Returns whether a text may be the name of an option, a variable or a header. An option such as `--no-password` has no value.
fn may_be_option(name: &str) -> bool {
    !name.starts_with("--no-") && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Returns whether a URL has a user without a password (`ssh://git@host`), or with a reference as the password.
fn names_only_a_user(url: &str) -> bool {
    let user = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next()?.rsplit_once('@'));
    user.is_some_and(|(user, _)| user.split_once(':').is_none_or(|(_, password)| !is_value(password)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("http://h/mcp", None)]
    #[case("http://h/mcp?", None)]
    #[case("http://h/mcp?api-version=2024-10-21&max_tokens=5&page=2", None)]
    #[case("http://h/mcp?token=", None)]
    #[case("http://h/mcp?token=$TOKEN", None)]
    #[case("http://h/token=x", None)]
    #[case("http://h/mcp?monkey=x&sortkey=x", None)]
    #[case("http://u@h/mcp", Some("names a user or a password"))]
    #[case("http://h/mcp?token=x", Some("has the parameter `token`, which is a credential by its name"))]
    #[case("http://h?a=b&Access-Token=x", Some("has the parameter `Access-Token`, which is a credential by its name"))]
    #[case("http://h/#key=x", Some("has the parameter `key`, which is a credential by its name"))]
    #[case("http://h/?a#x?clientSecret=x", Some("has the parameter `clientSecret`, which is a credential by its name"))]
    #[case("http://h/?sv=1&sig=x", Some("has the parameter `sig`, which is a credential by its name"))]
    fn a_credential_in_a_url_is_found_by_its_name(#[case] url: &str, #[case] says: Option<&str>) {
        assert_eq!(in_url(url).as_deref(), says);
    }

    #[rstest]
    #[case(&["--verbose", "--port", "80", "--key", "server.pem", "--auth", "none"], None)]
    #[case(&["--token-file", "x", "--password-stdin", "x", "--no-password", "x"], None)]
    #[case(&["-e", "GITHUB_TOKEN", "image"], None)]
    #[case(&["--token", "--verbose"], None)]
    #[case(&["--token"], None)]
    #[case(&["--header", "Authorization:${AUTH}", "--token=$TOKEN"], None)]
    #[case(&["-c", "exec server --token \"$TOKEN\""], None)]
    #[case(&["-c", "answer '{\"token\":\"x\"}'"], None)]
    #[case(&["--from", "git+ssh://git@github.com/a/b"], None)]
    #[case(&["postgres://me:${PASSWORD}@db/orders"], None)]
    #[case(&["-c", "exec curl \"https://h/mcp?token=$TOKEN\""], None)]
    #[case(&["--token", "x"], Some("`--token` passes a credential"))]
    #[case(&["a", "--apiKey=x"], Some("`--apiKey` passes a credential"))]
    #[case(&["-e", "SLACK_BOT_TOKEN=x"], Some("`SLACK_BOT_TOKEN` passes a credential"))]
    #[case(&["--header", "X-Api-Key: x"], Some("`X-Api-Key` passes a credential"))]
    #[case(&["a", "postgres://me:x@db/orders"], Some("2 names a user or a password"))]
    #[case(&["-c", "exec curl 'https://h/mcp?token=x'"], Some("2 has the parameter `token`, which is a credential by its name"))]
    fn a_credential_in_an_argument_is_found_by_its_name(#[case] arguments: &[&str], #[case] says: Option<&str>) {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        assert_eq!(in_arguments(&arguments).as_deref(), says);
    }

    #[test]
    fn no_fault_contains_the_value() {
        let value = "hunter22".to_owned();
        for name in ["api_key", "TOKEN", "X-Auth-Token", "password"] {
            let faults = [
                in_url(&format!("https://h/mcp?{name}={value}")),
                in_arguments(&[format!("--{name}"), value.clone()]),
                in_arguments(&[format!("{name}={value}")]),
                in_arguments(&[format!("x://{name}:{value}@h")]),
            ];
            for fault in faults {
                assert!(fault.as_ref().is_some_and(|fault| !fault.contains(&value)), "{name}: {fault:?}");
            }
        }
    }
}
