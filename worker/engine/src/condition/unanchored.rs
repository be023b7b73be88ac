//! Finds patterns without anchors of which a match lets a call pass: `!url.matches('own.com')` lets `https://evil.org/own.com` pass.

use super::Condition;
use super::sources::{part_of_argument, visit};
use bloomery_cel::{Function, Node};
use std::collections::BTreeSet;

impl Condition {
    /// Returns the patterns that let a call pass if a part of an argument matches, whatever the rest of it is. The name of a host must match
    /// from its beginning or from a dot: `own[.]com$` matches `evil-own.com`. `allows` says whether calls
    /// pass if the condition is true. Otherwise, they pass if it is false.
    pub(crate) fn passing_by_a_part(&self, allows: bool) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        visit(self.program.root(), allows, &mut Vec::new(), &mut |node, passes, items| {
            if let Node::Matches(value, pattern) = node
                && passes
                && (!pattern.is_anchored() || is_host(value) && pattern.begins_within_a_word())
                && value.parts().into_iter().any(|part| part_of_argument(part, items).is_some())
            {
                found.insert(pattern.as_str().to_owned());
            }
        });
        found
    }
}

/// Returns whether a value is the name of a host, of a URL or of an address.
fn is_host(value: &Node) -> bool {
    value.parts().into_iter().any(|part| matches!(part, Node::Call(Function::Host | Function::Domain, _)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::to_hold_all_others("!url.matches('own[.]com')", false, &["own[.]com"])]
    #[case::to_allow("url.matches('own[.]com')", true, &["own[.]com"])]
    #[case::in_lower_case("!url.lowerAscii().matches('own[.]com')", false, &["own[.]com"])]
    #[case::of_each_item("!urls.all(u, u.matches('own[.]com'))", false, &["own[.]com"])]
    #[case::one_end_of_each_alternative("!url.matches('^a|b$')", false, &["^a|b$"])]
    #[case::the_end_of_a_host("!host(url).matches('own[.]com$')", false, &["own[.]com$"])]
    #[case::the_end_of_a_domain("!to.all(t, domain(t).matches('own[.]com$'))", false, &["own[.]com$"])]
    #[case::the_end_of_a_host_after_a_dot("!host(url).matches('(^|[.])own[.]com$')", false, &[])]
    #[case::the_end_of_hosts_to_hold("host(url).matches('evil[.]com$')", false, &[])]
    #[case::the_end_of_a_text("!url.matches('own[.]com$')", false, &[])]
    #[case::to_hold("url.matches('evil[.]com')", false, &[])]
    #[case::to_hold_items("urls.exists(u, u.matches('evil[.]com'))", false, &[])]
    #[case::with_an_anchor("!url.matches('^https://own[.]com/')", false, &[])]
    #[case::of_results("results('x').exists(r, r.state.matches('ok'))", true, &[])]
    #[case::of_no_known_direction("url.matches('own') == b", false, &[])]
    fn a_pattern_without_anchors_lets_calls_pass(#[case] text: &str, #[case] allows: bool, #[case] expected: &[&str]) {
        let found = Condition::compile(text).unwrap().passing_by_a_part(allows);
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }
}
