//! One guardrail: the sentence that a person wrote, and what of it can be enforced without a model.
//!
//! Seed 002 compiles three patterns, by regular expressions that match anywhere in a sentence; `docs/explanation/engine.md` decides
//! that a rule is compiled only where the *whole* sentence is such a pattern. Whatever else it says stays text, for
//! the prompt and the finalization gate.

use bloomery_cel::number::{Numeric, compare};
use bloomery_crds::v1alpha1::Verdict;
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Which list of `policy.guardrails` a rule is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum RuleList {
    /// What must never be done: a comparison is the forbidden range.
    Never,
    /// What must always be done: a comparison is the required range.
    Always,
}

/// A guardrail as it was written, and what is enforced of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The sentence.
    pub text: String,
    /// Its list.
    pub side: RuleList,
    /// What the pre-tool gate enforces. Empty for most rules.
    pub effects: Vec<Effect>,
    /// Whether it (also) goes into the prompt: nothing of it is compiled, or not all.
    pub stays_text: bool,
    /// Why a rule that looks as if it could be compiled was not. For lint.
    pub lint: Option<String>,
}

impl Rule {
    /// Whether the sentence makes an exception: when it applies no machine can tell.
    pub fn has_exception(&self) -> bool {
        Sentence::new(&self.text, self.side).has_exception()
    }
}

/// What the pre-tool gate enforces of a rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// No call of the tool.
    ToolDeny {
        /// A tool of the catalogue.
        tool: String,
    },
    /// A range of one field of the arguments, whatever the tool.
    Threshold(Threshold),
    /// Each call of the tool waits for a person.
    RequiresApproval {
        /// A tool of the catalogue.
        tool: String,
    },
}

/// A comparison of one field with one number.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// The field, wherever in the arguments it stands.
    pub field: String,
    /// How it is compared.
    pub operator: Comparison,
    /// With what.
    pub value: Number,
    /// Whether the rule is broken when the comparison is true, or when it is false.
    pub broken_when: bool,
    /// What happens to a call that breaks it.
    pub verdict: Verdict,
}

/// The comparisons that guardrails know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum Comparison {
    /// At least.
    #[strum(serialize = ">=")]
    AtLeast,
    /// At most.
    #[strum(serialize = "<=")]
    AtMost,
    /// More than.
    #[strum(serialize = ">")]
    MoreThan,
    /// Less than.
    #[strum(serialize = "<")]
    LessThan,
}

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::AtLeast => order != Ordering::Less,
            Self::AtMost => order != Ordering::Greater,
            Self::MoreThan => order == Ordering::Greater,
            Self::LessThan => order == Ordering::Less,
        }
    }
}

impl Threshold {
    /// Why a value of the field breaks the rule, if it does. What cannot be compared breaks it.
    pub fn broken_by(&self, value: &Value) -> Option<String> {
        let Value::Number(number) = value else {
            return Some(format!("{} is not a number", self.field));
        };
        let Some(order) = compare(Numeric::from_json(number), Numeric::from_json(&self.value)) else {
            return Some(format!("{} cannot be compared", self.field));
        };
        (self.operator.holds(order) == self.broken_when).then(|| format!("{} is {number}", self.field))
    }
}

/// Compiles one rule against the names of the catalogue.
pub fn compile(text: &str, side: RuleList, catalogue: &BTreeSet<&str>) -> Rule {
    let sentence = Sentence::new(text, side);
    let attempt = sentence
        .with_an_exception(catalogue)
        .or_else(|| sentence.tool_deny(catalogue))
        .or_else(|| sentence.threshold())
        .or_else(|| sentence.approval(catalogue))
        .unwrap_or_default();
    Rule {
        text: text.to_owned(),
        side,
        stays_text: attempt.stays_text || attempt.effects.is_empty(),
        effects: attempt.effects,
        lint: attempt.lint,
    }
}

/// What a pattern made of a sentence that it recognises.
#[derive(Default)]
struct Attempt {
    effects: Vec<Effect>,
    stays_text: bool,
    lint: Option<String>,
}

impl Attempt {
    fn compiled(effect: Effect) -> Self {
        Self { effects: vec![effect], ..Self::default() }
    }

    fn text(lint: String) -> Self {
        Self { lint: Some(lint), ..Self::default() }
    }
}

/// A rule's words, without the full stop at its end.
struct Sentence<'a> {
    side: RuleList,
    words: Vec<&'a str>,
}

impl<'a> Sentence<'a> {
    fn new(text: &'a str, side: RuleList) -> Self {
        let text = text.trim();
        Self { side, words: text.strip_suffix(['.', '!']).unwrap_or(text).split_whitespace().collect() }
    }

    fn says(&self, wanted: &[&str]) -> bool {
        self.words.iter().any(|word| wanted.iter().any(|wanted| plain(word).eq_ignore_ascii_case(wanted)))
    }

    fn has_exception(&self) -> bool {
        self.says(&["unless", "without", "except"])
    }

    /// `Never call process_refund without approval`: what the exception is worth no machine can tell, so the rule
    /// stays text; where it says approval and names a tool, that tool waits for a person on every call.
    fn with_an_exception(&self, catalogue: &BTreeSet<&str>) -> Option<Attempt> {
        if !self.has_exception() {
            return None;
        }
        let tools: BTreeSet<&str> = if self.says(&["approval"]) {
            self.words.iter().map(|word| plain(word)).filter(|word| catalogue.contains(word)).collect()
        } else {
            BTreeSet::new()
        };
        let effects = tools.into_iter().map(|tool| Effect::RequiresApproval { tool: tool.to_owned() }).collect();
        Some(Attempt { effects, stays_text: true, lint: None })
    }

    /// `Never use deleteFile`.
    fn tool_deny(&self, catalogue: &BTreeSet<&str>) -> Option<Attempt> {
        let [never, usage, tool] = self.words.as_slice() else { return None };
        if !never.eq_ignore_ascii_case("never") || !usage.eq_ignore_ascii_case("use") {
            return None;
        }
        Some(if catalogue.contains(tool) {
            Attempt::compiled(Effect::ToolDeny { tool: (*tool).to_owned() })
        } else {
            Attempt::text(format!("{tool:?} is no tool of the catalogue, so the rule is only told to the model"))
        })
    }

    /// `amount > 500`, `amount > 500 needs approval`.
    fn threshold(&self) -> Option<Attempt> {
        let (rest, needs_approval) = self.without_approval();
        let (prefix, rest) = split_side(rest);
        let (field, operator, number) = comparison(&rest.join(" "))?;
        let contradicts = match prefix {
            Some(prefix) => prefix != if needs_approval { RuleList::Always } else { self.side },
            None => false,
        };
        if contradicts {
            return Some(Attempt::text(
                "its first word contradicts what it asks for, so the rule is only told to the model".into(),
            ));
        }
        let Some(value) = full_number(&number) else {
            return Some(Attempt::text(format!(
                "{number:?} is not a plain number, so the rule is only told to the model"
            )));
        };
        Some(Attempt::compiled(Effect::Threshold(Threshold {
            field,
            operator,
            value,
            broken_when: needs_approval || self.side == RuleList::Never,
            verdict: if needs_approval { Verdict::Hold } else { Verdict::Deny },
        })))
    }

    /// `process_refund requires approval`.
    fn approval(&self, catalogue: &BTreeSet<&str>) -> Option<Attempt> {
        let (rest, needs_approval) = self.without_approval();
        let (prefix, rest) = split_side(rest);
        let ([tool], true, None | Some(RuleList::Always)) = (rest, needs_approval, prefix) else { return None };
        Some(if catalogue.contains(tool) {
            Attempt::compiled(Effect::RequiresApproval { tool: (*tool).to_owned() })
        } else {
            Attempt::text(format!("{tool:?} is no tool of the catalogue, so the rule is only told to the model"))
        })
    }

    fn without_approval(&self) -> (&[&'a str], bool) {
        if let [rest @ .., needs, approval] = self.words.as_slice()
            && asks_for_approval(needs, approval)
        {
            return (rest, true);
        }
        (&self.words, false)
    }
}

/// Whether two words are `needs approval`, or the like.
pub(crate) fn asks_for_approval(verb: &str, approval: &str) -> bool {
    approval.eq_ignore_ascii_case("approval")
        && ["need", "needs", "require", "requires"].iter().any(|known| verb.eq_ignore_ascii_case(known))
}

/// A word without quotes and punctuation round it.
pub(crate) fn plain(word: &str) -> &str {
    word.trim_matches(['.', ',', ';', ':', '!', '?', '"', '\'', '`', '(', ')'])
}

/// The list that a sentence's first word means, and the words after it.
pub(crate) fn split_side<'w, 'a>(words: &'w [&'a str]) -> (Option<RuleList>, &'w [&'a str]) {
    match words {
        [first, rest @ ..] if first.eq_ignore_ascii_case("never") => (Some(RuleList::Never), rest),
        [first, rest @ ..] if first.eq_ignore_ascii_case("always") => (Some(RuleList::Always), rest),
        _ => (None, words),
    }
}

/// Splits `amount > 500` in field, comparison, and what stands for a number.
fn comparison(text: &str) -> Option<(String, Comparison, String)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
    let (field, rest) = text.split_at_checked(end)?;
    let rest = rest.trim_start();
    let operators = [Comparison::AtLeast, Comparison::AtMost, Comparison::MoreThan, Comparison::LessThan];
    let (operator, number) =
        operators.into_iter().find_map(|op| Some((op, rest.strip_prefix(op.to_string().as_str())?)))?;
    let begins_a_name = field.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_amount = number.contains(|c: char| c.is_ascii_digit());
    (begins_a_name && is_amount).then(|| (field.to_owned(), operator, number.trim_start().to_owned()))
}

/// A number that is all of the token and exact: `500`, `-3`, `500.50`.
fn full_number(token: &str) -> Option<Number> {
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
