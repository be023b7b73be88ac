//! The enforced forms of sentences that are only text.

use super::Sentence;
use super::comparison::Compared;
use crate::rules::guardrail::{self, Comparison, RuleList, is_any_of};
use bloomery_crds::nearest::nearest;

impl Sentence<'_> {
    /// Returns the enforced form of a sentence about tools without a comparison.
    pub(super) fn hint_of_tools(&self) -> String {
        let each = |form: &dyn Fn(&str) -> String| {
            let forms: Vec<String> = self.tools.iter().map(|tool| format!("{:?}", form(tool))).collect();
            format!("to have it enforced, write {}", forms.join(" and "))
        };
        let orders = ["before", "after", "until", "first"];
        let is_order = self.words.iter().any(|word| is_any_of(word, &orders));
        if self.asks_for_approval() && self.tools.is_empty() {
            let near = self.words.iter().find_map(|word| nearest(word, self.known.tools.iter().copied()));
            let tool = near.unwrap_or("<tool>");
            format!("to have it enforced, name the tool: \"{tool} requires approval\"")
        } else if self.asks_for_approval() {
            format!(
                "{}; spec.policy.approvals can name the approver and a condition",
                each(&|t| format!("{t} requires approval"))
            )
        } else if self.list() == RuleList::Always || (self.tools.len() > 1 && is_order) {
            "to have an order of tools enforced, make it a workflow in spec.policy.workflows with required: true".into()
        } else {
            format!(
                "{}, which denies every call; for a condition, use spec.tools[].policy.condition",
                each(&|t| format!("Never use {t}"))
            )
        }
    }

    /// Returns the enforced form of a comparison.
    pub(super) fn hint_of_comparison(&self, compared: &Compared<'_>) -> String {
        // `amount must not exceed 500` is the required range in both lists.
        let is_requirement = self.words.iter().any(|word| is_any_of(word, &["must", "should", "shall"]));
        let list = if is_requirement { RuleList::Always } else { self.list() };
        let &Compared { field, operator, number } = compared;
        let Some(field) = field.filter(|field| self.known.may_be_input(field) && self.known.may_be_number(field))
        else {
            return Self::hint_of_form(list);
        };
        let allowed = match (operator, list) {
            ("==", RuleList::Never) | ("!=", RuleList::Always) => Some("!="),
            ("==", RuleList::Always) | ("!=", RuleList::Never) => Some("=="),
            _ => None,
        };
        if let Some(allowed) = allowed {
            return format!(
                "a guardrail compares with >, >=, < or <=: to have it enforced, write \"{field} {allowed} {number}\" in \
                 spec.tools[].policy.condition, with allowed: conditional"
            );
        }
        let (text, list) = if self.asks_for_approval() {
            (format!("{field} {operator} {number} requires approval"), self.rule.list)
        } else {
            let first = if list == RuleList::Never { "Never" } else { "Always" };
            (format!("{first} {field} {operator} {number}"), list)
        };
        // The number may be invalid, such as 10k: suggest the rule only if it compiles.
        let compiled = guardrail::compile(&text, list, &self.known.tools);
        if compiled.stays_text {
            return Self::hint_of_form(list);
        }
        if let Some(tool) = self.tools.first() {
            return self.hint_of_approval(tool, &format!("{field} {operator} {number}"), list);
        }
        format!("to have it enforced, write {text:?} under {list}, and nothing else in that rule")
    }

    /// Returns a rule of `policy.approvals` for a comparison that names a tool: as a guardrail, it would apply to every tool. `list` says
    /// whether the comparison is the forbidden or the required range.
    pub(super) fn hint_of_approval(&self, tool: &str, comparison: &str, list: RuleList) -> String {
        let (when, action) = match (self.asks_for_approval(), list) {
            (true, _) => (comparison.to_owned(), "require_approval"),
            (false, RuleList::Never) => (comparison.to_owned(), "deny"),
            (false, RuleList::Always) => (format!("!({comparison})"), "deny"),
        };
        format!(
            "to have it enforced for {tool}, write {{toolId: {tool}, when: \"{when}\", action: {action}}} in \
             spec.policy.approvals"
        )
    }

    /// Returns the form of every enforced comparison, with an example.
    fn hint_of_form(list: RuleList) -> String {
        let example = if list == RuleList::Never { "Never amount > 500" } else { "Always amount <= 500" };
        format!(
            "a comparison is enforced if the rule is only an argument's name, {}, {}, {} or {}, and a plain \
             number: {example:?}",
            Comparison::MoreThan,
            Comparison::AtLeast,
            Comparison::LessThan,
            Comparison::AtMost
        )
    }
}
