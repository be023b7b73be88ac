//! Sentences for people, made of the clauses that errors are.

/// Begins a clause with a capital letter, and ends it with one full stop.
pub fn sentence(clause: &str) -> String {
    let clause = clause.trim();
    let mut letters = clause.chars();
    let first = letters.next().map(char::to_uppercase).into_iter().flatten();
    let stop = if clause.is_empty() || clause.ends_with(['.', '!', '?', '…']) { "" } else { "." };
    first.chain(letters).chain(stop.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("it is so", "It is so.")]
    #[case(" it is so. ", "It is so.")]
    #[case("It is cut…", "It is cut…")]
    #[case("élan", "Élan.")]
    #[case("", "")]
    fn a_clause_becomes_one_sentence(#[case] clause: &str, #[case] expected: &str) {
        assert_eq!(sentence(clause), expected);
    }
}
