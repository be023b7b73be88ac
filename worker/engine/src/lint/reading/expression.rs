//! CEL expressions in the place of sentences. A condition belongs into a rule of `policy.approvals`.

use crate::condition::{Condition, Node};
use crate::rules::guardrail::{RuleList, split_list};
use bloomery_cel::Operator;
use bloomery_crds::text::bounded;

/// Texts that only conditions contain.
const CONDITION_TEXTS: [&str; 3] = ["fromUser(", "fromTool(", "has(args."];

/// Texts that CEL expressions contain, and also prose about commands and code.
const CEL_TEXTS: [&str; 4] = ["&&", "||", ".exists(", ".all("];

/// The longest expression in a hint, in bytes.
const MAX_EXPRESSION_BYTES: usize = 160;

/// Returns the enforced form of a rule that is a CEL expression, or contains one, and whether it cannot be prose. `tool` is the tool that
/// the rule names.
pub(super) fn remedy(text: &str, list: RuleList, tool: Option<&str>) -> Option<(String, bool)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let expression = split_list(&words).1.join(" ");
    let expression = expression.trim_end_matches('.');
    let is_whole = Condition::compile(expression).is_ok_and(|condition| is_expression(&condition));
    let contains = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    let is_certain = is_whole || contains(&CONDITION_TEXTS);
    if !is_certain && !contains(&CEL_TEXTS) {
        return None;
    }
    let tool = tool.unwrap_or("<tool>");
    let when = match (is_whole, list) {
        (false, _) => "...".to_owned(),
        (true, RuleList::Never) => expression.to_owned(),
        (true, RuleList::Always) => format!("!({expression})"),
    };
    let when = bounded(&when, MAX_EXPRESSION_BYTES);
    let hint = format!(
        "a condition is enforced in spec.policy.approvals: write {{toolId: {tool}, when: {when:?}, action: deny}}"
    );
    Some((hint, is_certain))
}

/// Returns whether a text that CEL accepts cannot be prose. `Lie`, `24/7`, `work-life` and `Payments in advance` are prose.
fn is_expression(condition: &Condition) -> bool {
    let is_sign = |node: &&Node| match node {
        Node::Binary(operator, ..) => matches!(
            operator,
            Operator::Equal
                | Operator::Unequal
                | Operator::Less
                | Operator::LessOrEqual
                | Operator::Greater
                | Operator::GreaterOrEqual
        ),
        Node::And(_)
        | Node::Or(_)
        | Node::Not(_)
        | Node::Conditional(_)
        | Node::List(_)
        | Node::NamedList(_)
        | Node::Has(..)
        | Node::Call(..)
        | Node::Matches(..)
        | Node::FromUser(_)
        | Node::FromTool(..)
        | Node::Earlier(..)
        | Node::Macro(..) => true,
        Node::Null
        | Node::Bool(_)
        | Node::Int(_)
        | Node::Uint(_)
        | Node::Double(_)
        | Node::Text(_)
        | Node::Arguments
        | Node::Argument(_)
        | Node::Result
        | Node::Step(_)
        | Node::Item(_)
        | Node::Select(..)
        | Node::Index(..)
        | Node::Negate(_) => false,
    };
    condition.nodes().iter().any(is_sign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::a_source("!fromUser(recipient)", Some("!fromUser(recipient)"))]
    #[case::after_the_first_word("Never recipient != 'ada'.", Some("recipient != 'ada'"))]
    #[case::a_list("recipient in ['ada']", Some("recipient in ['ada']"))]
    #[case::within_a_sentence("Never pay if !fromUser(recipient)", Some("..."))]
    #[case::a_word("Lie", None)]
    #[case::words_with_signs("24/7", None)]
    #[case::words_with_a_word_of_cel("Payments in advance", None)]
    #[case::a_sentence("Never promise a refund (or two).", None)]
    fn expressions_are_not_prose(#[case] text: &str, #[case] when: Option<&str>) {
        let remedy = remedy(text, RuleList::Never, None);
        match when {
            None => assert_eq!(remedy, None),
            Some(when) => {
                let (hint, is_certain) = remedy.unwrap();
                assert!(hint.contains(&format!("when: {when:?}, action: deny")));
                assert!(is_certain);
            }
        }
    }
}
