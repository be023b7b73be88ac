//! Finds guardrails that read as if they were enforced, but are only text in the prompt. Such a rule names a tool, nearly names one,
//! compares with a number, is a CEL expression, or contains `requires approval`.

mod comparison;
mod expression;
mod hints;
mod limited;
mod misspelt;

use super::known_tools::KnownTools;
use crate::condition::Kinds;
use crate::core_tools::{self, ASK_USER};
use crate::rules::guardrail::{
    Rule, RuleList, after_prohibition, asks_for_approval, is_any_of, is_filler, is_part_of_name, is_use, may_be_name,
    plain, split_list, split_words,
};
use bloomery_crds::nearest::{has_same_letters, is_near};
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

/// The shortest beginning of a tool's name by which a word is recognized that is no name, in bytes.
const MIN_BEGINNING_BYTES: usize = 3;

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
    /// The known tools with their arguments.
    catalogue: &'a KnownTools,
}

impl<'a> Known<'a> {
    pub(super) fn new(known: &'a KnownTools) -> Self {
        Self { tools: known.names(), inputs: known.fields().iter().map(String::as_str).collect(), catalogue: known }
    }

    /// Returns whether a word in a comparison may be an argument: a known one, or, if none is known, any word that is not a tool.
    fn may_be_input(&self, name: &str) -> bool {
        if self.inputs.is_empty() { !self.tools.contains(name) } else { self.inputs.contains(name) }
    }

    /// Returns whether an argument may be a number in any tool that has it.
    fn may_be_number(&self, name: &str) -> bool {
        let mut kinds = self.catalogue.matching("*").filter_map(|(_, signature)| signature.kinds(name)).peekable();
        kinds.peek().is_none() || kinds.any(|kinds| kinds.may_be(Kinds::NUMBER))
    }

    /// Returns whether a word in a comparison means an argument: it may be one, or is nearly one.
    fn is_meant_as_input(&self, name: &str) -> bool {
        self.may_be_input(name) || self.inputs.iter().any(|input| is_near(name, input))
    }

    /// Returns whether a word is the name of a tool, or a prefix of names.
    fn is_tool(&self, word: &str) -> bool {
        self.tools.contains(word) || is_prefix(word) && self.tools.iter().any(|tool| matches(word, tool))
    }

    /// Returns the argument of a tool that is a number, if there is only one.
    fn only_number(&self, tool: &str) -> Option<&'a str> {
        let (_, signature) = self.catalogue.matching(tool).next()?;
        let mut numbers = signature.names().filter(|name| signature.kinds(name) == Some(Kinds::NULL | Kinds::NUMBER));
        numbers.next().filter(|_| numbers.next().is_none())
    }

    /// Returns whether a word is no name, and begins as that of a tool: `send_money,send_email`, `send_[a-z]+`, `^send`.
    pub(super) fn begins_as_tool(&self, word: &str) -> bool {
        let mut names = word.split(|c: char| !is_part_of_name(c)).filter(|name| !name.is_empty());
        let begins =
            |name: &str| name.len() >= MIN_BEGINNING_BYTES && self.tools.iter().any(|tool| tool.starts_with(name));
        !may_be_name(word) && names.next().is_some_and(|name| begins(name.trim_end_matches('*')))
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
    let mut sentence = Sentence::new(rule, known);
    if let Some((hint, is_meant)) = expression::remedy(&rule.text, sentence.list(), sentence.tools.first().copied()) {
        return Some(NotEnforced { why: "is a CEL expression".to_owned(), hint, is_meant });
    }
    let compared = find_comparison(&rule.text)
        .or_else(|| find_comparison_in_words(&sentence.words, |at| sentence.argument_at(at)));
    let is_input = |compared: &&Compared<'_>| compared.field.is_some_and(|field| known.is_meant_as_input(field));
    if compared.as_ref().is_none_or(|compared| !is_input(&compared))
        && let Some(limited) = sentence.limited_use(compared.as_ref())
    {
        return Some(limited);
    }
    let is_known = |word: &str| known.is_tool(word) || known.inputs.contains(word);
    let forbids = sentence.list() == RuleList::Never;
    let misspelt = misspelt::several(&sentence.words, |word| known.begins_as_tool(word))
        .or_else(|| misspelt::find(&sentence.words, &known.tools, forbids, is_known));
    let input = compared.as_ref().filter(is_input);
    let is_meant = input.is_some_and(|compared| sentence.ends_with_number(compared.number))
        || sentence.forbids_a_tool()
        || sentence.holds_a_tool()
        || misspelt.as_ref().is_some_and(|misspelt| misspelt.is_certain);
    if input.is_some() && sentence.tools.is_empty() {
        let tool = sentence.plain_tool();
        sentence.tools.extend(tool);
    }
    let names_tool = !sentence.tools.is_empty();
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
        is_rule && self.asks_for_approval() && self.tools.iter().any(|tool| !core_tools::NAMES.contains(tool))
    }

    /// Returns whether a tool comes first in a sentence that forbids something: `Never use a on Fridays`. `Never guess: use a` guides the
    /// model, and so does a sentence about questions to people, or about one purpose of a tool: `Never use a for links in mails`.
    fn forbids_a_tool(&self) -> bool {
        let (tool, after) = (self.forbidden().first(), self.forbidden().get(1));
        self.list() == RuleList::Never
            && tool.is_some_and(|tool| *tool != ASK_USER && self.tools.contains(tool))
            && !after.is_some_and(|after| is_any_of(after, &["for"]))
            && !self.is_guidance()
            && !self.words.iter().any(|word| may_be_prose(word) && is_only_word(word, &self.words))
    }

    /// Returns the words from that which the sentence forbids: `a on Fridays` of `Never use the tool a on Fridays`.
    fn forbidden(&self) -> &[&'a str] {
        let words = after_prohibition(&self.words).unwrap_or(&self.words);
        let is_neutral = |word: &str| is_use(word) || is_filler(word) || is_any_of(word, &NEUTRAL_WORDS);
        let start = words.iter().position(|word| !is_neutral(word)).unwrap_or_default();
        words.get(start..).unwrap_or_default()
    }

    /// Returns whether the sentence guides the model: `Never use a before b`.
    fn is_guidance(&self) -> bool {
        self.forbidden().iter().any(|word| is_any_of(word, &["before", "first", "instead"]))
    }

    /// Returns the tool that the sentence forbids by its first word, also if its name is a plain word: `refund` of `Never refund over 500`.
    fn forbidden_tool(&self) -> Option<&'a str> {
        self.forbidden().first().copied().filter(|word| self.known.is_tool(word))
    }

    /// Returns the first tool of a comparison whose name is a plain word: `refund` of `The refund amount must not exceed 500`.
    fn plain_tool(&self) -> Option<&'a str> {
        let is_tool = |word: &&str| self.known.tools.contains(word) && !self.known.inputs.contains(word);
        self.forbidden_tool().or_else(|| self.words.iter().copied().find(is_tool))
    }

    /// Returns the list that the first words of the rule name, such as `Never` or `Do not`. If they name none, returns the list that
    /// contains the rule.
    fn list(&self) -> RuleList {
        match after_prohibition(&self.words) {
            Some(_) => RuleList::Never,
            None => split_list(&self.words).0.unwrap_or(self.rule.list),
        }
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
