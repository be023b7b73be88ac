//! Recognizes the names of credentials: JSON fields, URL parameters, command-line options, environment variables and headers.

/// The rule by which a word in a name shows that the name is that of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// The word ends the name of an option or parameter, or occurs in the name of a field.
    Clear,
    /// The word is the whole name of a URL parameter, or occurs in the name of a field. Options use the word for other things, too:
    /// `--key server.pem`, `--auth none`.
    Ambiguous,
    /// The word is the whole name of a URL parameter. It is so short that it occurs in the names of harmless fields.
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
    let letters = letters(name);
    WORDS.iter().any(|(word, rule)| *rule != Rule::Short && letters.contains(word))
}

/// Returns whether the name of a program's option, a variable or a header is that of a credential: `--api-key`, `SLACK_BOT_TOKEN`.
/// Values of such options are refused on a command line. So `--token-file` and `--key`, which often have other values, do not count.
pub fn is_credential_option(name: &str) -> bool {
    let letters = letters(name);
    WORDS.iter().any(|(word, rule)| *rule == Rule::Clear && letters.ends_with(word))
}

/// Returns whether the name of a URL parameter is that of a credential: `access_token`, `key`.
pub fn is_credential_parameter(name: &str) -> bool {
    let letters = letters(name);
    is_credential_option(name) || WORDS.iter().any(|(word, _)| letters == *word)
}

/// Returns the letters and digits of a name, in lower case.
fn letters(name: &str) -> String {
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
