//! The guardrails in the system prompt (seed 002, section 4.2). Each one costs tokens in every step.

use super::guardrail::{Rule, RuleList};

/// The most rules that the prompt carries.
pub const MAX_RULES: usize = 10;

/// About how many tokens they may take together.
pub const MAX_TOKENS: usize = 100;

/// The text guardrails of a Skill, parted by what the prompt has room for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextGuardrails {
    /// What the model reads in every step, never before always.
    pub in_prompt: Vec<String>,
    /// What only the finalization gate checks. A condition names it.
    pub left_over: Vec<String>,
}

/// Parts the rules that stay text: never before always, each as long as there is room for it.
///
/// A rule that is too long for what is left goes over, and a shorter one after it may still find room: one long rule
/// must not push out all others.
pub fn split(rules: &[Rule]) -> TextGuardrails {
    let mut parted = TextGuardrails::default();
    let mut left = MAX_TOKENS;
    let of_side = |side| rules.iter().filter(move |rule| rule.stays_text && rule.side == side);
    for rule in of_side(RuleList::Never).chain(of_side(RuleList::Always)) {
        match left.checked_sub(estimated_tokens(&rule.text)) {
            Some(rest) if parted.in_prompt.len() < MAX_RULES => {
                left = rest;
                parted.in_prompt.push(rule.text.clone());
            }
            _ => parted.left_over.push(rule.text.clone()),
        }
    }
    parted
}

/// About how many tokens a rule takes: one for four bytes, a begun one counted.
///
/// English measures a little less with the tokenizers of the large providers; other scripts have more bytes to a
/// character, as they have more tokens to it.
fn estimated_tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(never: &[&str], always: &[&str]) -> Vec<Rule> {
        let none = std::collections::BTreeSet::new();
        let of = |side, texts: &[&str]| -> Vec<Rule> {
            texts.iter().map(|text| crate::rules::guardrail::compile(text, side, &none)).collect()
        };
        // The other way round, so that the order of the result is its own.
        [of(RuleList::Always, always), of(RuleList::Never, never)].concat()
    }

    #[test]
    fn the_rules_of_the_seed_all_fit_never_before_always() {
        let parted = split(&rules(
            &[
                "Never share customer payment information",
                "Never process refunds over $500 without supervisor approval",
                "Never be dismissive to frustrated customers",
            ],
            &["Always verify customer identity before account access", "Always confirm before making changes"],
        ));
        assert_eq!(parted.left_over, Vec::<String>::new());
        assert_eq!(parted.in_prompt.first().unwrap(), "Never share customer payment information");
        assert_eq!(parted.in_prompt.last().unwrap(), "Always confirm before making changes");
    }

    #[test]
    fn at_most_ten_rules_are_told() {
        let texts: Vec<String> = (0..14).map(|n| format!("Rule {n}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let parted = split(&rules(&texts[..7], &texts[7..]));
        assert_eq!(parted.in_prompt, texts[..10]);
        assert_eq!(parted.left_over, texts[10..]);
    }

    #[test]
    fn about_a_hundred_tokens_are_told_and_a_long_rule_pushes_nothing_else_out() {
        let long = "x".repeat(401);
        let parted = split(&rules(&[&long, "Never lie"], &["Always greet"]));
        assert_eq!(parted.in_prompt, ["Never lie", "Always greet"]);
        assert_eq!(parted.left_over, [long]);
    }

    #[test]
    fn what_is_compiled_is_not_told() {
        assert_eq!(split(&rules(&["amount > 500"], &["amount > 0 needs approval"])), TextGuardrails::default());
    }

    #[test]
    fn a_script_of_other_kinds_is_counted_by_its_bytes() {
        assert_eq!(estimated_tokens("Never lie"), 3);
        assert_eq!(estimated_tokens("嘘をつかない"), 5);
    }
}
