//! The names of credentials: of fields in JSON, of parameters in URLs, of options, variables and headers.

/// Where a word marks a name as that of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// At the end of any name.
    Clear,
    /// As the whole name of a URL's parameter. Options of programs use it for other things: `--key server.pem`, `--auth none`.
    Ambiguous,
    /// The same; and it is too short to be searched within the names of fields.
    Short,
}

/// The words in the names of credentials, in lower case and without separators.
const WORDS: [(&str, Rule); 22] = [
    ("token", Rule::Clear),
    ("secret", Rule::Clear),
    ("password", Rule::Clear),
    ("passwd", Rule::Clear),
    ("passphrase", Rule::Clear),
    ("credential", Rule::Clear),
    ("credentials", Rule::Clear),
    ("authorization", Rule::Clear),
    ("signature", Rule::Clear),
    ("jwt", Rule::Clear),
    ("bearer", Rule::Clear),
    ("apikey", Rule::Clear),
    ("accesskey", Rule::Clear),
    ("secretkey", Rule::Clear),
    ("subscriptionkey", Rule::Clear),
    ("key", Rule::Ambiguous),
    ("passw", Rule::Ambiguous),
    ("auth", Rule::Ambiguous),
    ("sig", Rule::Short),
    ("pass", Rule::Short),
    ("pwd", Rule::Short),
    ("code", Rule::Short),
];

/// Returns whether a field of a secret's JSON may hold a credential: `private_key`, `SecretAccessKey`, `identitytoken`, `auth`.
/// Such a value is redacted, so this errs on the side of a credential.
pub fn may_be_of_field(name: &str) -> bool {
    let letters = letters(name);
    WORDS.iter().any(|(word, rule)| *rule != Rule::Short && letters.contains(word))
}

/// Returns whether a program's option, a variable or a header names a credential: `--api-key`, `SLACK_BOT_TOKEN`. Such a value
/// is refused on a command line, so `--token-file` and `--key` are none.
pub fn is_of_option(name: &str) -> bool {
    let letters = letters(name);
    WORDS.iter().any(|(word, rule)| *rule == Rule::Clear && letters.ends_with(word))
}

/// Returns whether a parameter of a URL names a credential: `access_token`, `key`.
pub fn is_of_parameter(name: &str) -> bool {
    let letters = letters(name);
    is_of_option(name) || WORDS.iter().any(|(word, _)| letters == *word)
}

/// Returns a name in lower case, without what separates its words.
fn letters(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_its_rule() {
        for (name, field, option, parameter) in [
            ("Access-Token", true, true, true),
            ("clientSecret", true, true, true),
            ("SLACK_BOT_TOKEN", true, true, true),
            ("api.key", true, true, true),
            ("private_key", true, false, false),
            ("key", true, false, true),
            ("passwords", true, false, false),
            ("max_tokens", true, false, false),
            ("sig", false, false, true),
            ("country_code", false, false, false),
            ("project", false, false, false),
        ] {
            let found = (may_be_of_field(name), is_of_option(name), is_of_parameter(name));
            assert_eq!(found, (field, option, parameter), "{name}");
        }
    }
}
