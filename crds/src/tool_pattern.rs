//! The names of tools in a Skill: the name of one tool, or a prefix of names that ends in `*`. All fields that name tools have this
//! grammar.

/// The longest pattern, in bytes.
const MAX_BYTES: usize = 128;

/// Returns whether a text is a pattern.
pub fn is_pattern(text: &str) -> bool {
    let name = text.strip_suffix('*').unwrap_or(text);
    (1..=MAX_BYTES).contains(&text.len()) && !name.contains(|c: char| c == '*' || c.is_whitespace())
}

/// Returns whether a pattern matches the name of a tool.
pub fn matches(pattern: &str, tool: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => tool.starts_with(prefix),
        None => pattern == tool,
    }
}

/// Returns whether a word can only be the name of a tool, or a prefix of names: it has `_` or `*`, or begins with a small letter and has
/// a capital letter within. Other words may be prose, also `JavaScript`.
pub fn reads_as_tool(word: &str) -> bool {
    let is_hump = |pair: &[u8]| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase());
    let is_camel_case = word.starts_with(|c: char| c.is_ascii_lowercase()) && word.as_bytes().windows(2).any(is_hump);
    may_be_name(word) && (word.contains(['_', '*']) || is_camel_case)
}

/// Returns whether a tool may have this name, or one that a pattern with `*` matches.
pub fn may_be_name(word: &str) -> bool {
    word.chars().all(is_part_of_name)
}

/// Returns whether a name, or a pattern with `*`, may have this character.
pub fn is_part_of_name(c: char) -> bool {
    c.is_alphanumeric() || "_-./*".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("send_money", true)]
    #[case("send_*", true)]
    #[case("*", true)]
    #[case("", false)]
    #[case("*_money", false)]
    #[case("send**", false)]
    #[case("send money", false)]
    fn a_star_is_only_at_the_end(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(is_pattern(text), expected);
        assert!(!is_pattern(&"a".repeat(MAX_BYTES + 1)));
    }

    #[rstest]
    #[case::the_name("send_money", true)]
    #[case::a_prefix("send_*", true)]
    #[case::every_tool("*", true)]
    #[case::the_name_and_a_star("send_money*", true)]
    #[case::another_name("send_mail", false)]
    #[case::another_prefix("sent_*", false)]
    #[case::a_prefix_without_star("send_", false)]
    #[case::a_star_elsewhere("*_money", false)]
    fn a_pattern_is_a_name_or_a_prefix_with_a_star(#[case] pattern: &str, #[case] expected: bool) {
        assert_eq!(matches(pattern, "send_money"), expected);
    }
}
