//! Guardrails as an author may read them: as a rule that a machine holds, where only models are told of it.
//!
//! A rule reads so where it names a tool, compares with a number, or says `requires approval`. All else is prose,
//! and prose is what text guardrails are for.

use crate::rules::guardrail::{self, Comparison, Rule, RuleList, asks_for_approval, plain, split_side};
use bloomery_crds::nearest::nearest;
use bloomery_crds::v1alpha1::SkillSpec;
use std::collections::BTreeSet;

/// Why a sentence reads as if it were enforced, and what to write to have it so.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// The end of a sentence on the rule: it "names the tool a".
    pub why: String,
    /// What to write instead.
    pub hint: String,
}

/// The names that a rule can mean.
pub(super) struct Known<'a> {
    /// Tools: those that the Skill declares, and the worker's own.
    pub tools: BTreeSet<&'a str>,
    /// The inputs that the Skill declares of any tool. None: they are not known.
    inputs: BTreeSet<&'a str>,
}

impl<'a> Known<'a> {
    pub(super) fn of(spec: &'a SkillSpec) -> Self {
        let inputs = spec.tools.iter().flat_map(|tool| &tool.inputs).map(|input| input.name.as_str());
        Self { tools: super::names::tools(spec).into_iter().collect(), inputs: inputs.collect() }
    }

    /// A word before a comparison need be no argument: of `give away >50 percent` none is.
    fn may_be_input(&self, name: &str) -> bool {
        if self.inputs.is_empty() { !self.tools.contains(name) } else { self.inputs.contains(name) }
    }
}

/// Reads a rule that stays text as an author may. Nothing where it is plain prose.
pub(super) fn of(rule: &Rule, known: &Known<'_>) -> Option<Reading> {
    let sentence = Sentence::new(rule, known);
    let compared = compared(&rule.text);
    let why = match (sentence.tools.as_slice(), &compared) {
        ([], Some(_)) => "compares with a number".to_owned(),
        ([], None) if sentence.asks_for_approval() => "asks for approval".to_owned(),
        ([], None) => return None,
        ([tool], _) => format!("names the tool {tool}"),
        (tools, _) => format!("names the tools {}", tools.join(", ")),
    };
    let hint = match compared {
        Some(compared) => sentence.hint_of_comparison(&compared),
        None => sentence.hint_of_tools(),
    };
    Some(Reading { why, hint })
}

struct Sentence<'a> {
    rule: &'a Rule,
    known: &'a Known<'a>,
    words: Vec<&'a str>,
    /// The tools that it names, each once, in its order.
    tools: Vec<&'a str>,
}

impl<'a> Sentence<'a> {
    fn new(rule: &'a Rule, known: &'a Known<'a>) -> Self {
        let words: Vec<&str> = rule.text.split_whitespace().map(plain).collect();
        let mut tools = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|before| words.get(before));
            if known.tools.contains(word)
                && !tools.contains(word)
                && is_meant_as_tool(word, before.copied(), words.get(at + 1).copied())
            {
                tools.push(word);
            }
        }
        Self { rule, known, words, tools }
    }

    fn asks_for_approval(&self) -> bool {
        let says = self.words.iter().any(|word| word.eq_ignore_ascii_case("approval"));
        let asks = |pair: &[&str]| matches!(pair, [verb, approval] if asks_for_approval(verb, approval));
        says && !self.tools.is_empty() || self.words.windows(2).any(asks)
    }

    /// What it wants, by its first word and else by its list.
    fn side(&self) -> RuleList {
        let says_not = match self.words.as_slice() {
            [first, second, ..] if first.eq_ignore_ascii_case("do") => second.eq_ignore_ascii_case("not"),
            [first, ..] => first.eq_ignore_ascii_case("don't"),
            [] => false,
        };
        if says_not { RuleList::Never } else { split_side(&self.words).0.unwrap_or(self.rule.side) }
    }

    fn hint_of_tools(&self) -> String {
        let each = |form: &dyn Fn(&str) -> String| {
            let forms: Vec<String> = self.tools.iter().map(|tool| format!("{:?}", form(tool))).collect();
            format!("to have it enforced, write {}", forms.join(" and "))
        };
        let orders = ["before", "after", "until", "first"];
        let is_order = self.words.iter().any(|word| orders.iter().any(|order| word.eq_ignore_ascii_case(order)));
        if self.asks_for_approval() && self.tools.is_empty() {
            let near = self.words.iter().find_map(|word| nearest(word, self.known.tools.iter().copied()));
            let tool = near.unwrap_or("<tool>");
            format!("to have it enforced, name the tool: \"{tool} requires approval\"")
        } else if self.asks_for_approval() {
            format!(
                "{}; who approves, and when, spec.policy.approvals says",
                each(&|t| format!("{t} requires approval"))
            )
        } else if self.side() == RuleList::Always || (self.tools.len() > 1 && is_order) {
            "to have an order of tools enforced, make it a workflow in spec.policy.workflows with required: true".into()
        } else {
            format!(
                "{}, which denies every call; when, spec.tools[].policy.condition can say",
                each(&|t| format!("Never use {t}"))
            )
        }
    }

    fn hint_of_comparison(&self, compared: &Compared<'_>) -> String {
        let side = self.side();
        let &Compared { field, operator, number } = compared;
        let Some(field) = field.filter(|field| self.known.may_be_input(field)) else {
            return Self::any_comparison(side);
        };
        let allowed = match (operator, side) {
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
            (format!("{field} {operator} {number} requires approval"), self.rule.side)
        } else {
            let first = if side == RuleList::Never { "Never" } else { "Always" };
            (format!("{first} {field} {operator} {number}"), side)
        };
        // Never advised unless it would do: the number may be none, such as 10k.
        let compiled = guardrail::compile(&text, list, &self.known.tools);
        if compiled.stays_text {
            return Self::any_comparison(side);
        }
        format!("to have it enforced, write {text:?} under {list}, and nothing else in that rule")
    }

    fn any_comparison(side: RuleList) -> String {
        let example = if side == RuleList::Never { "Never amount > 500" } else { "Always amount <= 500" };
        format!(
            "a comparison is enforced where the rule is nothing but an argument's name, {}, {}, {} or {}, and a plain \
             number: {example:?}",
            Comparison::MoreThan,
            Comparison::AtLeast,
            Comparison::LessThan,
            Comparison::AtMost
        )
    }
}

/// Whether a word that is a tool's name is meant as one. `process_refund` always is; `search` only where the words
/// round it say so, else a rule on searching would be doubted.
fn is_meant_as_tool(word: &str, before: Option<&str>, after: Option<&str>) -> bool {
    let may_be_prose = word.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_any = |word: Option<&str>, of: &[&str]| {
        word.is_some_and(|word| of.iter().any(|known| word.eq_ignore_ascii_case(known)))
    };
    !may_be_prose
        || is_any(before, &["use", "using", "call", "calling", "run", "invoke", "tool"])
        || is_any(after, &["tool", "need", "needs", "require", "requires"])
}

/// A comparison with a number within a sentence.
#[derive(Debug, PartialEq, Eq)]
struct Compared<'a> {
    /// What is compared, where it is a name.
    field: Option<&'a str>,
    /// As CEL writes it.
    operator: &'static str,
    number: &'a str,
}

/// The first comparison with a number, such as `amount > 500`, `>500` or `500 <= amount`.
fn compared(text: &str) -> Option<Compared<'_>> {
    let is_sign = |c: char| "<>=!≤≥≠".contains(c);
    let mut from = 0;
    while let Some(rest) = text.get(from..) {
        let start = from + rest.find(is_sign)?;
        let (before, rest) = text.split_at_checked(start)?;
        let signs = rest.find(|c: char| !is_sign(c)).unwrap_or(rest.len());
        let (signs, after) = rest.split_at_checked(signs)?;
        from = start + signs.len();
        // An arrow, `->`, compares nothing, and `?id=5` is an address.
        let Some(operator) = operator(signs).filter(|_| !before.ends_with('-')) else { continue };
        if signs == "=" && !after.starts_with(char::is_whitespace) {
            continue;
        }
        let field = before.split_whitespace().next_back().map(plain);
        let number = after.split_whitespace().next().map(plain).unwrap_or_default();
        if begins_a_number(number) {
            return Some(Compared { field: field.filter(|field| is_name(field)), operator, number });
        }
        if field.is_some_and(begins_a_number) && is_name(number) {
            return Some(Compared {
                field: Some(number),
                operator: turned(operator),
                number: field.unwrap_or_default(),
            });
        }
    }
    None
}

fn operator(signs: &str) -> Option<&'static str> {
    Some(match signs {
        ">" => ">",
        "<" => "<",
        ">=" | "≥" => ">=",
        "<=" | "≤" => "<=",
        "==" | "=" => "==",
        "!=" | "≠" => "!=",
        _ => return None,
    })
}

fn turned(operator: &'static str) -> &'static str {
    match operator {
        ">" => "<",
        "<" => ">",
        ">=" => "<=",
        "<=" => ">=",
        other => other,
    }
}

fn begins_a_number(word: &str) -> bool {
    word.trim_start_matches(['-', '$', '€', '£']).starts_with(|c: char| c.is_ascii_digit())
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
