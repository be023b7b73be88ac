//! Finds guardrails that read as if they were enforced, but are only text in the prompt. Such a rule names a tool, nearly names one,
//! compares with a number, is a CEL expression, or contains `requires approval`.

mod comparison;
mod expression;
mod misspelt;

use super::known_tools::KnownTools;
use crate::core_tools::{self, ASK_USER};
use crate::rules::guardrail::{
    self, Comparison, Rule, RuleList, after_prohibition, asks_for_approval, is_any_of, is_filler, is_use, plain,
    split_list, split_words,
};
use bloomery_crds::nearest::{has_same_letters, is_near, nearest};
use bloomery_crds::tool_pattern::matches;
use comparison::{Compared, find_comparison, find_comparison_in_words};
use misspelt::{Misspelt, is_prefix};
use std::collections::BTreeSet;

/// Words of a sentence that asks for approval.
const APPROVALS: [&str; 4] = ["approval", "approvals", "approve", "approved"];

/// Units of amounts of money.
const CURRENCIES: [&str; 8] = ["eur", "euro", "euros", "usd", "dollar", "dollars", "gbp", "chf"];

/// Words that may come before the tool in a sentence that forbids it.
const NEUTRAL_WORDS: [&str; 9] = ["please", "never", "access", "permit", "let", "any", "a", "of", "to"];

/// The reason why a rule reads as if it were enforced, and the remedy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotEnforced {
    /// The reason as a predicate: "names the tool a".
    pub why: String,
    /// The enforced form to write instead.
    pub hint: String,
    /// Whether the author probably means it to be enforced. Otherwise, it may be prose.
    pub is_meant: bool,
}

/// The names that a rule can use.
pub(super) struct Known<'a> {
    /// The known tools.
    tools: BTreeSet<&'a str>,
    /// The arguments of all known tools. Empty if none is known.
    inputs: BTreeSet<&'a str>,
}

impl<'a> Known<'a> {
    pub(super) fn new(known: &'a KnownTools) -> Self {
        Self { tools: known.names(), inputs: known.fields().iter().map(String::as_str).collect() }
    }

    /// Returns whether a word in a comparison may be an argument: a known one, or, if none is known, any word that is not a tool.
    fn may_be_input(&self, name: &str) -> bool {
        if self.inputs.is_empty() { !self.tools.contains(name) } else { self.inputs.contains(name) }
    }

    /// Returns whether a word in a comparison means an argument: it may be one, or is nearly one.
    fn is_meant_as_input(&self, name: &str) -> bool {
        self.may_be_input(name) || self.inputs.iter().any(|input| is_near(name, input))
    }

    /// Returns whether a word is the name of a tool, or a prefix of names.
    fn is_tool(&self, word: &str) -> bool {
        self.tools.contains(word) || is_prefix(word) && self.tools.iter().any(|tool| matches(word, tool))
    }

    /// Returns whether a name differs from that of a tool only in its case and its punctuation.
    pub(super) fn has_same_letters(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| has_same_letters(name, tool))
    }
}

/// Returns whether a rule compares an argument with a number.
pub(super) fn compares_an_argument(rule: &Rule, known: &Known<'_>) -> bool {
    let compared = find_comparison(&rule.text);
    compared.and_then(|compared| compared.field).is_some_and(|field| known.is_meant_as_input(field))
}

/// Returns the reason why a text rule reads as if it were enforced, or nothing if it is plain prose.
pub(super) fn not_enforced(rule: &Rule, known: &Known<'_>) -> Option<NotEnforced> {
    let sentence = Sentence::new(rule, known);
    if let Some((hint, is_meant)) = expression::remedy(&rule.text, sentence.list(), sentence.tools.first().copied()) {
        return Some(NotEnforced { why: "is a CEL expression".to_owned(), hint, is_meant });
    }
    let compared = find_comparison(&rule.text)
        .or_else(|| find_comparison_in_words(&sentence.words, |at| sentence.argument_at(at)));
    let names_tool = !sentence.tools.is_empty();
    let misspelt =
        misspelt::find(&sentence.words, &known.tools, |word| known.is_tool(word) || known.inputs.contains(word));
    let is_threshold = |compared: &Compared<'_>| {
        sentence.ends_with_number(compared.number) && compared.field.is_some_and(|field| known.is_meant_as_input(field))
    };
    let is_meant = compared.as_ref().is_some_and(is_threshold)
        || sentence.forbids_a_tool()
        || sentence.holds_a_tool()
        || misspelt.as_ref().is_some_and(|misspelt| misspelt.is_certain);
    let why = match (sentence.tools.as_slice(), &misspelt, &compared) {
        ([], Some(Misspelt { word, .. }), _) => format!("seems to name a tool ({word:?})"),
        ([], None, Some(_)) => "compares with a number".to_owned(),
        ([], None, None) if sentence.asks_for_approval() => "asks for approval".to_owned(),
        ([], None, None) => return None,
        ([tool], ..) => format!("names the tool {tool}"),
        (tools, ..) => format!("names the tools {}", tools.join(", ")),
    };
    let hint = match (compared, misspelt) {
        (None, Some(misspelt)) if !names_tool => misspelt.hint(),
        (Some(compared), _) => sentence.hint_of_comparison(&compared),
        (None, _) => sentence.hint_of_tools(),
    };
    Some(NotEnforced { why, hint, is_meant })
}

struct Sentence<'a> {
    rule: &'a Rule,
    known: &'a Known<'a>,
    words: Vec<&'a str>,
    /// The tools in the sentence, without duplicates.
    tools: Vec<&'a str>,
}

impl<'a> Sentence<'a> {
    fn new(rule: &'a Rule, known: &'a Known<'a>) -> Self {
        let words: Vec<&str> = split_words(&rule.text).into_iter().map(plain).collect();
        let mut tools = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|before| words.get(before));
            let is_meant = is_meant_as_tool(word, before.copied(), words.get(at + 1).copied());
            if known.is_tool(word) && !tools.contains(word) && (is_meant || is_only_word(word, &words)) {
                tools.push(word);
            }
        }
        Self { rule, known, words, tools }
    }

    /// Returns the argument that the word at a position means. The first word of a sentence may be in the plural, or begin with a capital
    /// letter.
    fn argument_at(&self, at: usize) -> Option<&'a str> {
        let word = *self.words.get(at)?;
        let inputs = &self.known.inputs;
        let before = self.words.get(..at)?;
        let is_first = before
            .iter()
            .all(|word| is_filler(word) || is_any_of(word, &["never", "always", "any", "an", "a", "each"]));
        let is_variant = |input: &str| {
            word.eq_ignore_ascii_case(input)
                || word.strip_suffix('s').is_some_and(|singular| singular.eq_ignore_ascii_case(input))
        };
        inputs.get(word).or_else(|| inputs.iter().find(|input| is_first && is_variant(input))).copied()
    }

    /// Returns whether a sentence ends with a number. After the number of prose comes its unit, such as `lines over 100 characters`. A
    /// currency and `requires approval` are no such units.
    fn ends_with_number(&self, number: &str) -> bool {
        let number = plain(number);
        let Some(at) = self.words.iter().rposition(|word| *word == number) else { return false };
        let after = self.words.get(at + 1..).unwrap_or_default();
        after.iter().all(|word| is_any_of(word, &CURRENCIES)) || after.iter().any(|word| is_any_of(word, &APPROVALS))
    }

    /// Returns whether the sentence contains `requires approval` or a variant of it, or names a tool and contains `approval`.
    fn asks_for_approval(&self) -> bool {
        let has_word = self.words.iter().any(|word| is_any_of(word, &APPROVALS));
        let asks = |pair: &[&str]| matches!(pair, [verb, approval] if asks_for_approval(verb, approval));
        (has_word && !self.tools.is_empty()) || self.words.windows(2).any(asks)
    }

    /// Returns whether the sentence says that a tool of a server needs approval.
    fn holds_a_tool(&self) -> bool {
        let needs = ["need", "needs", "require", "requires"];
        let is_rule = self.list() == RuleList::Always || self.words.iter().any(|word| is_any_of(word, &needs));
        is_rule && self.asks_for_approval() && self.tools.iter().any(|tool| !core_tools::names().contains(tool))
    }

    /// Returns whether a tool comes first in a sentence that forbids something: `Never use a on Fridays`. `Never guess: use a` and
    /// `Never use a before b` guide the model, and so does a sentence about questions to people.
    fn forbids_a_tool(&self) -> bool {
        let words = after_prohibition(&self.words).unwrap_or(&self.words);
        let is_neutral = |word: &str| is_use(word) || is_filler(word) || is_any_of(word, &NEUTRAL_WORDS);
        let start = words.iter().position(|word| !is_neutral(word)).unwrap_or_default();
        let words = words.get(start..).unwrap_or_default();
        let guides = |word: &&str| is_any_of(word, &["before", "first", "instead"]);
        self.list() == RuleList::Never
            && words.first().is_some_and(|tool| *tool != ASK_USER && self.tools.contains(tool))
            && !words.iter().any(guides)
            && !self.words.iter().any(|word| may_be_prose(word) && is_only_word(word, &self.words))
    }

    /// Returns the list that the first words of the rule name, such as `Never` or `Do not`. If they name none, returns the list that
    /// contains the rule.
    fn list(&self) -> RuleList {
        match after_prohibition(&self.words) {
            Some(_) => RuleList::Never,
            None => split_list(&self.words).0.unwrap_or(self.rule.list),
        }
    }

    fn hint_of_tools(&self) -> String {
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

    fn hint_of_comparison(&self, compared: &Compared<'_>) -> String {
        // `amount must not exceed 500` is the required range in both lists.
        let is_requirement = self.words.iter().any(|word| is_any_of(word, &["must", "should", "shall"]));
        let list = if is_requirement { RuleList::Always } else { self.list() };
        let &Compared { field, operator, number } = compared;
        let Some(field) = field.filter(|field| self.known.may_be_input(field)) else {
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
            return self.hint_of_approval(tool, &format!("{field} {operator} {number}"));
        }
        format!("to have it enforced, write {text:?} under {list}, and nothing else in that rule")
    }

    /// Returns a rule of `policy.approvals` for a comparison that names a tool: as a guardrail, it would apply to every tool.
    fn hint_of_approval(&self, tool: &str, comparison: &str) -> String {
        let (when, action) = match (self.asks_for_approval(), self.list()) {
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

/// Returns whether a word that equals a tool's name means the tool. `process_refund` always does; `search` only next to words
/// such as `use` or `tool`.
fn is_meant_as_tool(word: &str, before: Option<&str>, after: Option<&str>) -> bool {
    let is_any = |word: Option<&str>, of: &[&str]| word.is_some_and(|word| is_any_of(word, of));
    !may_be_prose(word)
        || before.is_some_and(is_use)
        || is_any(before, &["using", "calling", "tool"])
        || is_any(after, &["tool", "need", "needs", "require", "requires"])
}

/// Returns whether a word may be no name, also if a tool has this name.
fn may_be_prose(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Returns whether a word is all that a sentence forbids: `Never search`. It may be about a tool of that name, or about searching.
fn is_only_word(word: &str, words: &[&str]) -> bool {
    matches!(after_prohibition(words), Some([only]) if *only == word)
}
