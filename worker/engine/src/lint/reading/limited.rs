//! Sentences that limit the use of a tool: `Never refund over 500`, `Never pay above the limit with send_money`.

use super::comparison::{Compared, begins_a_number, read_words};
use super::{CURRENCIES, NotEnforced, Sentence};
use crate::rules::guardrail::{RuleList, is_any_of};

/// Words after an amount that are no unit. A number with a unit is prose: `Never search more than 5 pages`.
const CONTINUATIONS: [&str; 16] = [
    "with", "using", "via", "by", "through", "to", "for", "per", "without", "unless", "if", "when", "before", "after",
    "until", "first",
];

/// Words for an amount without a number.
const LIMITS: [&str; 6] = ["limit", "limits", "maximum", "threshold", "budget", "cap"];

/// The most words from a comparison to such a word, as in `above the allowed limit`.
const MAX_WORDS_TO_LIMIT: usize = 4;

/// The limit of a tool in a sentence.
struct Limit<'a> {
    /// The operator in CEL.
    operator: &'static str,
    number: Option<&'a str>,
    /// Whether the number is that of the calls.
    counts_calls: bool,
}

impl<'a> Sentence<'a> {
    /// Returns why a sentence that forbids the use of a tool beyond a limit reads as if it were enforced. `compared` is its comparison by
    /// signs, whose field is no argument. A tool whose name is a plain word counts only as that which the sentence forbids: `refund` in
    /// `Never refund over 500`, and not in `Never promise a refund over 500`.
    pub(super) fn limited_use(&self, compared: Option<&Compared<'a>>) -> Option<NotEnforced> {
        if self.list() != RuleList::Never {
            return None;
        }
        let tool = self.forbidden_tool().or_else(|| self.tools.first().copied())?;
        let limit = match compared {
            Some(&Compared { operator, number, .. }) => {
                self.ends_with_number(number).then_some(Limit { operator, number: Some(number), counts_calls: false })
            }
            None => (0..self.words.len()).find_map(|at| read_limit(self.words.get(at..)?)),
        };
        Some(NotEnforced {
            why: format!("limits the use of the tool {tool}"),
            hint: self.hint_of_limit(tool, &limit?),
            is_meant: !self.is_guidance(),
        })
    }

    fn hint_of_limit(&self, tool: &str, limit: &Limit<'_>) -> String {
        let number = limit.number.and_then(plain_number).unwrap_or("<number>");
        if limit.counts_calls {
            return format!(
                "to have it enforced, write {{tool: {tool}, count: true, per: job, max: {number}}} in spec.policy.limits"
            );
        }
        let argument = self.known.only_number(tool).unwrap_or("<argument>");
        self.hint_of_approval(tool, &format!("{argument} {} {number}", limit.operator), RuleList::Never)
    }
}

/// Returns the limit with which words begin: `over 500`, `more than 3 times`, `above the limit`.
fn read_limit<'a>(words: &[&'a str]) -> Option<Limit<'a>> {
    let (operator, rest) = read_words(words)?;
    match rest {
        [number, after @ ..] if begins_a_number(number) => {
            let unit = after.first();
            let counts_calls = operator == ">" && unit.is_some_and(|unit| is_any_of(unit, &["times", "calls"]));
            let is_amount = unit.is_none_or(|unit| is_any_of(unit, &CURRENCIES) || is_any_of(unit, &CONTINUATIONS));
            (counts_calls || is_amount).then_some(Limit { operator, number: Some(*number), counts_calls })
        }
        _ => {
            let names_limit = rest.iter().take(MAX_WORDS_TO_LIMIT).any(|word| is_any_of(word, &LIMITS));
            names_limit.then_some(Limit { operator, number: None, counts_calls: false })
        }
    }
}

/// Returns a number without the sign of its currency, if CEL can read it.
fn plain_number(word: &str) -> Option<&str> {
    let number = word.trim_matches(['$', '€', '£']);
    number.parse::<f64>().is_ok().then_some(number)
}
