//! The guardrails in the system prompt (`docs/explanation/engine.md`, section 2). They cost tokens in every request, so they are
//! limited.

use super::guardrail::{Rule, RuleList};

/// The most rules in the prompt.
pub const MAX_RULES: usize = 10;

/// The most tokens of the rules in the prompt, by estimate.
pub const MAX_TOKENS: usize = 100;

/// The text guardrails of a Skill: those in the prompt, and those without room in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextGuardrails {
    /// The rules in the prompt: first `never`, then `always`.
    pub in_prompt: Vec<String>,
    /// The rules for which the prompt has no room. Only the finalization gate checks them, and a remark in the Job's status names them.
    pub without_room: Vec<String>,
}

/// Takes the guardrails that stay text, wholly or in part, and separates those that fit into the prompt from the others. `never`
/// rules come first.
///
/// A rule that is too long for the remaining room does not fit. A later, shorter rule may still fit.
pub fn split(rules: &[Rule]) -> TextGuardrails {
    let mut split = TextGuardrails::default();
    let mut room = MAX_TOKENS;
    let of_list = |list| rules.iter().filter(move |rule| rule.stays_text && rule.list == list);
    for rule in of_list(RuleList::Never).chain(of_list(RuleList::Always)) {
        match room.checked_sub(estimated_tokens(&rule.text)) {
            Some(rest) if split.in_prompt.len() < MAX_RULES => {
                room = rest;
                split.in_prompt.push(rule.text.clone());
            }
            _ => split.without_room.push(rule.text.clone()),
        }
    }
    split
}

/// Estimates the tokens of a rule: one for each four bytes, rounded up.
///
/// For English text, this is slightly more than the tokenizers of the large providers count. Characters of other scripts have
/// more bytes and more tokens.
fn estimated_tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(never: &[&str], always: &[&str]) -> Vec<Rule> {
        let no_tools = std::collections::BTreeSet::new();
        let compile = |list, texts: &[&str]| -> Vec<Rule> {
            texts.iter().map(|text| crate::rules::guardrail::compile(text, list, &no_tools)).collect()
        };
        // In the opposite order of the expected result.
        [compile(RuleList::Always, always), compile(RuleList::Never, never)].concat()
    }

    #[test]
    fn a_few_rules_fit_with_never_before_always() {
        let split = split(&rules(
            &[
                "Never share customer payment information",
                "Never process refunds over $500 without supervisor approval",
                "Never be dismissive to frustrated customers",
            ],
            &["Always verify customer identity before account access", "Always confirm before making changes"],
        ));
        assert_eq!(split.without_room, Vec::<String>::new());
        assert_eq!(split.in_prompt.first().unwrap(), "Never share customer payment information");
        assert_eq!(split.in_prompt.last().unwrap(), "Always confirm before making changes");
    }

    #[test]
    fn at_most_ten_rules_are_in_the_prompt() {
        let texts: Vec<String> = (0..14).map(|n| format!("Rule {n}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let split = split(&rules(&texts[..7], &texts[7..]));
        assert_eq!(split.in_prompt, texts[..10]);
        assert_eq!(split.without_room, texts[10..]);
    }

    #[test]
    fn about_a_hundred_tokens_fit_and_a_rule_that_is_too_long_displaces_no_other() {
        let long = "x".repeat(401);
        let split = split(&rules(&[&long, "Never lie"], &["Always greet"]));
        assert_eq!(split.in_prompt, ["Never lie", "Always greet"]);
        assert_eq!(split.without_room, [long]);
    }

    #[test]
    fn compiled_rules_are_not_in_the_prompt() {
        assert_eq!(split(&rules(&["amount > 500"], &["amount > 0 needs approval"])), TextGuardrails::default());
    }

    #[test]
    fn text_in_other_scripts_is_counted_by_its_bytes() {
        assert_eq!(estimated_tokens("Never lie"), 3);
        assert_eq!(estimated_tokens("嘘をつかない"), 5);
    }
}
