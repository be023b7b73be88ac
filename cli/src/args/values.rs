//! Parsers of values that several commands take.

/// The reason why a value is invalid, without the name of the option. clap adds the name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

/// Parses the name of an object, such as a Job or a Skill.
pub(super) fn name(text: &str) -> Result<String, Error> {
    match bloomery_skills::names::name_fault(text) {
        None => Ok(text.to_owned()),
        Some(fault) => Err(Error(fault)),
    }
}

/// Parses the name of a namespace.
pub(super) fn namespace(text: &str) -> Result<String, Error> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_valid =
        (1..=63).contains(&text.len()) && text.chars().all(allowed) && !text.starts_with('-') && !text.ends_with('-');
    if is_valid {
        Ok(text.to_owned())
    } else {
        Err(Error("must be at most 63 lower-case letters, digits and '-'".to_owned()))
    }
}

/// Parses `NAME=VALUE`.
pub(super) fn pair(text: &str) -> Result<(String, String), Error> {
    let (name, value) = text.split_once('=').ok_or_else(|| Error("must be NAME=VALUE".to_owned()))?;
    if name.is_empty() || value.is_empty() {
        return Err(Error("must be NAME=VALUE, and neither may be empty".to_owned()));
    }
    Ok((name.to_owned(), value.to_owned()))
}
