//! Recognizes the names of credentials: JSON fields, URL parameters, command-line options, environment variables and headers.

/// How a word must occur in a name, so that the name counts as that of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// At the end of the name of an option or URL parameter, or anywhere in the name of a field.
    Clear,
    /// As the whole name of a URL parameter, or anywhere in the name of a field. It does not count in the name of an option, where it
    /// has other meanings, too: `--key server.pem`, `--auth none`.
    Ambiguous,
    /// As the whole name of a URL parameter. The word is so short that it also occurs in the names of harmless fields.
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
/// The values of such fields are redacted, so in doubt the field counts as a credential.
pub fn may_be_credential_field(name: &str) -> bool {
    let letters = letters_and_digits(name);
    WORDS.iter().any(|(word, rule)| *rule != Rule::Short && letters.contains(word))
}

/// Returns whether the name of a program's option, a variable or a header is that of a credential: `--api-key`, `SLACK_BOT_TOKEN`.
/// Values of such options are refused on a command line. So `--token-file` and `--key`, which often have other values, do not count.
pub fn is_credential_option(name: &str) -> bool {
    let letters = letters_and_digits(name);
    WORDS.iter().any(|(word, rule)| *rule == Rule::Clear && letters.ends_with(word))
}

/// Returns whether the name of a URL parameter is that of a credential: `access_token`, `key`.
pub fn is_credential_parameter(name: &str) -> bool {
    let letters = letters_and_digits(name);
    is_credential_option(name) || WORDS.iter().any(|(word, _)| letters == *word)
}

/// Returns the letters and digits of a name, in lower case.
fn letters_and_digits(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_options_and_parameters_have_their_own_rules() {
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
            let results = (may_be_credential_field(name), is_credential_option(name), is_credential_parameter(name));
            assert_eq!(results, (field, option, parameter), "{name}");
        }
    }
}
