//! The keys of Jobs. A key is the name of a directory in the memory.

/// The maximum length of a key, in bytes.
const MAX_BYTES: usize = 63;

/// Returns the fault of the key of a Job, as the rest of a sentence that begins with the key.
pub fn key_fault(key: &str) -> Option<&'static str> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_valid = (1..=MAX_BYTES).contains(&key.len()) && key.chars().all(is_allowed);
    (!is_valid).then_some("must be at most 63 lower-case letters, digits and '-'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::key("20260101-120000-ab12c", true)]
    #[case::empty("", false)]
    #[case::path("../x", false)]
    #[case::hidden(".x", false)]
    #[case::upper_case("A", false)]
    #[case::long(&"a".repeat(64), false)]
    fn a_key_is_the_name_of_a_directory(#[case] key: &str, #[case] is_valid: bool) {
        assert_eq!(key_fault(key).is_none(), is_valid);
    }
}
