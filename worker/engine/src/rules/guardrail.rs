//! Compiles a guardrail, a sentence of the Skill's author, to the effects that the gate enforces without a model.
//!
//! A rule is compiled only if the *whole* sentence is a known pattern (`docs/explanation/engine.md`, section 3): other words can
//! change its meaning. Other rules stay text, for the prompt and the finalization gate.

mod denial;
mod threshold;
mod words;

pub(crate) use denial::{after_prohibition, is_filler};
pub use threshold::{Comparison, Threshold};
pub(crate) use words::{is_any_of, plain, split_words};

pub(crate) use bloomery_crds::tool_pattern::{is_part_of_name, may_be_name, reads_as_tool};

use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::Verdict;
use serde_json::Number;
use std::collections::BTreeSet;

/// A list of `policy.guardrails`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum RuleList {
    /// Rules about what must never be done. A comparison is the forbidden range.
    Never,
    /// Rules about what must always be done. A comparison is the required range.
    Always,
}

/// A guardrail as written, and its enforced part.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The sentence.
    pub text: String,
    /// The list of the rule.
    pub list: RuleList,
    /// The effects that the pre-tool gate enforces. Empty for most rules.
    pub effects: Vec<RuleEffect>,
    /// Whether the rule goes into the prompt, because it is not compiled completely.
    pub stays_text: bool,
    /// The reason why a rule that looks enforceable was not compiled, for the lint.
    pub fault: Option<Fault>,
}

impl Rule {
    /// Returns whether the sentence has an exception, which cannot be checked without a model.
    pub fn has_exception(&self) -> bool {
        Sentence::new(&self.text, self.list).has_exception()
    }
}

/// The reason why a sentence that looks like a pattern is not compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The catalogue has no tool of this name.
    #[error("there is no tool {0:?}")]
    NoTool(String),
    /// A `*` alone stands where the name of a tool is expected.
    #[error("a \"*\" alone is not the name of a tool")]
    EveryTool,
    /// The sentence is about tools, but does not name one.
    #[error("it does not name a tool")]
    NoName,
    /// The first word names the other list.
    #[error("its first word contradicts the rest")]
    Contradiction,
    /// The value of a comparison is not a plain number.
    #[error("{0:?} is not a plain number")]
    NoNumber(String),
}

/// An effect of a rule, which the pre-tool gate enforces.
#[derive(Debug, Clone, PartialEq)]
pub enum RuleEffect {
    /// Every call of the tool is denied.
    ToolDeny {
        /// The tool.
        tool: String,
    },
    /// A field of the arguments is compared with a number, for every tool.
    Threshold(Threshold),
    /// Every call of the tool is held.
    RequiresApproval {
        /// The tool.
        tool: String,
    },
}

/// Compiles a rule. `catalogue` has the names of the tools.
pub fn compile(text: &str, list: RuleList, catalogue: &BTreeSet<&str>) -> Rule {
    let sentence = Sentence::new(text, list);
    let compiled = sentence
        .compile_exception(catalogue)
        .or_else(|| sentence.compile_tool_deny(catalogue))
        .or_else(|| sentence.compile_softer_deny(catalogue))
        .or_else(|| sentence.compile_threshold())
        .or_else(|| sentence.compile_approval(catalogue))
        .unwrap_or_default();
    Rule {
        text: text.to_owned(),
        list,
        stays_text: compiled.stays_text || compiled.effects.is_empty(),
        effects: compiled.effects,
        fault: compiled.fault,
    }
}

/// The result of compiling a sentence that looks like a pattern.
#[derive(Default)]
struct Compiled {
    effects: Vec<RuleEffect>,
    stays_text: bool,
    fault: Option<Fault>,
}

impl Compiled {
    fn enforced(effect: RuleEffect) -> Self {
        Self { effects: vec![effect], ..Self::default() }
    }

    fn not_enforced(fault: Fault) -> Self {
        Self { fault: Some(fault), ..Self::default() }
    }

    /// Returns an effect for each tool that a pattern matches.
    fn of_tools(pattern: &str, catalogue: &BTreeSet<&str>, effect: impl Fn(String) -> RuleEffect) -> Self {
        let tools = catalogue.iter().filter(|tool| matches(pattern, tool));
        let effects: Vec<RuleEffect> = tools.map(|tool| effect((*tool).to_owned())).collect();
        let fault = effects.is_empty().then(|| Fault::NoTool(pattern.to_owned()));
        Self { effects, fault, ..Self::default() }
    }

    /// Returns an effect for each tool that a word of a sentence names.
    fn of_word(word: &str, catalogue: &BTreeSet<&str>, effect: impl Fn(String) -> RuleEffect) -> Self {
        match plain(word) {
            "*" => Self::not_enforced(Fault::EveryTool),
            pattern => Self::of_tools(pattern, catalogue, effect),
        }
    }
}

/// The words of a rule, without marks of emphasis and its full stop.
struct Sentence<'a> {
    list: RuleList,
    words: Vec<&'a str>,
}

impl<'a> Sentence<'a> {
    fn new(text: &'a str, list: RuleList) -> Self {
        let mut words = split_words(text);
        let end = words.pop().map(|word| word.strip_suffix(['.', '!']).unwrap_or(word));
        words.extend(end.filter(|word| !word.is_empty()));
        Self { list, words }
    }

    fn has_any(&self, wanted: &[&str]) -> bool {
        self.words.iter().any(|word| is_any_of(plain(word), wanted))
    }

    fn has_exception(&self) -> bool {
        self.has_any(&["unless", "without", "except"])
    }

    /// Compiles `Never call process_refund without approval`. The exception cannot be checked, so the rule stays text. If it
    /// contains "approval" and names a tool, every call of the tool is held.
    fn compile_exception(&self, catalogue: &BTreeSet<&str>) -> Option<Compiled> {
        if !self.has_exception() {
            return None;
        }
        let tools: BTreeSet<&str> = if self.has_any(&["approval"]) {
            let words = || self.words.iter().map(|word| plain(word));
            // A `*` alone is prose, such as the sign of a list.
            let is_named = |tool: &&str| words().any(|word| word != "*" && matches(word, tool));
            catalogue.iter().copied().filter(is_named).collect()
        } else {
            BTreeSet::new()
        };
        let effects = tools.into_iter().map(|tool| RuleEffect::RequiresApproval { tool: tool.to_owned() }).collect();
        Some(Compiled { effects, stays_text: true, fault: None })
    }

    /// Compiles `amount > 500` and `amount > 500 needs approval`.
    fn compile_threshold(&self) -> Option<Compiled> {
        let (rest, needs_approval) = self.split_approval();
        let (first_word, rest) = split_list(rest);
        let (field, operator, number) = split_comparison(&rest.join(" "))?;
        // `Always amount > 500 needs approval` makes sense in both lists. `Never amount > 500 needs approval` makes sense in none.
        let expected = if needs_approval { RuleList::Always } else { self.list };
        if first_word.is_some_and(|list| list != expected) {
            return Some(Compiled::not_enforced(Fault::Contradiction));
        }
        let Some(value) = exact_number(&number) else {
            return Some(Compiled::not_enforced(Fault::NoNumber(number)));
        };
        Some(Compiled::enforced(RuleEffect::Threshold(Threshold {
            field,
            operator,
            value,
            broken_when: needs_approval || self.list == RuleList::Never,
            verdict: if needs_approval { Verdict::Hold } else { Verdict::Deny },
        })))
    }

    /// Compiles `process_refund requires approval`.
    fn compile_approval(&self, catalogue: &BTreeSet<&str>) -> Option<Compiled> {
        let (rest, needs_approval) = self.split_approval();
        let (first_word, rest) = split_list(rest);
        let ([tool], true, None | Some(RuleList::Always)) = (rest, needs_approval, first_word) else { return None };
        Some(Compiled::of_word(tool, catalogue, |tool| RuleEffect::RequiresApproval { tool }))
    }

    /// Returns the words before `needs approval`, and whether the sentence ends with it.
    fn split_approval(&self) -> (&[&'a str], bool) {
        if let [rest @ .., needs, approval] = self.words.as_slice()
            && asks_for_approval(needs, approval)
        {
            return (rest, true);
        }
        (&self.words, false)
    }
}

/// Returns whether a verb says that a tool is used, or may be: `call`, `run`, `allow`.
pub(crate) fn is_use(verb: &str) -> bool {
    is_any_of(verb, &["use", "call", "invoke", "run", "execute", "allow"])
}

/// Returns whether two words are `needs approval` or a variant of it.
pub(crate) fn asks_for_approval(verb: &str, approval: &str) -> bool {
    is_any_of(approval, &["approval"]) && is_any_of(verb, &["need", "needs", "require", "requires"])
}

/// Returns the list that the first word of a sentence names, and the other words.
pub(crate) fn split_list<'w, 'a>(words: &'w [&'a str]) -> (Option<RuleList>, &'w [&'a str]) {
    match words {
        [first, rest @ ..] if first.eq_ignore_ascii_case("never") => (Some(RuleList::Never), rest),
        [first, rest @ ..] if first.eq_ignore_ascii_case("always") => (Some(RuleList::Always), rest),
        _ => (None, words),
    }
}

/// Splits `amount > 500` into field, comparison and number.
fn split_comparison(text: &str) -> Option<(String, Comparison, String)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
    let (field, rest) = text.split_at_checked(end)?;
    let rest = rest.trim_start();
    // `>=` comes before `>`, which is a prefix of it.
    let operators = [Comparison::AtLeast, Comparison::AtMost, Comparison::MoreThan, Comparison::LessThan];
    let (operator, number) =
        operators.into_iter().find_map(|op| Some((op, rest.strip_prefix(op.to_string().as_str())?)))?;
    let begins_a_name = field.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let has_digit = number.contains(|c: char| c.is_ascii_digit());
    (begins_a_name && has_digit).then(|| (field.to_owned(), operator, number.trim_start().to_owned()))
}

/// Reads a token that is an exact number: `500`, `-3`, `500.50`.
fn exact_number(token: &str) -> Option<Number> {
    let digits = token.strip_prefix('-').unwrap_or(token);
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(whole, fraction)| (whole, Some(fraction)));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !fraction.is_none_or(all_digits) {
        return None;
    }
    match fraction {
        Some(_) => Number::from_f64(token.parse().ok()?),
        None => token.parse::<i64>().ok().map(Number::from).or_else(|| token.parse::<u64>().ok().map(Number::from)),
    }
}

#[cfg(test)]
mod tests;
