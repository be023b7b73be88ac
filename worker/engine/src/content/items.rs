//! Counts the numbers, URLs, e-mail addresses and code spans of a text, in linear time.

use super::difference::{Difference, IsChange};
use bloomery_crds::text::bounded;
use std::collections::BTreeMap;

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
enum Kind {
    #[strum(serialize = "number")]
    Number,
    /// A percent or currency sign. Equal numbers with different units are different.
    #[strum(serialize = "sign")]
    Sign,
    #[strum(serialize = "URL")]
    Url,
    #[strum(serialize = "e-mail address")]
    Email,
    #[strum(serialize = "code span")]
    Code,
}

/// The items of a text, with their counts.
pub(super) struct Items(BTreeMap<(Kind, String), usize>);

/// The placeholder of a code span that was cut out of its text.
const CUT: char = '\u{1}';

impl Items {
    pub(super) fn count_in(text: &str) -> Self {
        let mut items = Self(BTreeMap::new());
        let rest = items.cut_code(text);
        let mut ordinals = Ordinals::default();
        for line in rest.lines() {
            let line = ordinals.strip(line);
            items.count_targets(line);
            for chunk in line.split(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '[' | ']' | '|' | CUT))
            {
                items.count_chunk(chunk);
            }
        }
        items
    }

    /// Returns the first item whose count in the other text is a change of the content.
    pub(super) fn difference(&self, other: &Self, is_change: IsChange) -> Option<Difference> {
        let difference = |item: &(Kind, String)| {
            let (before, after) = (self.count_of(item), other.count_of(item));
            let name = format!("{} {:?}", item.0, bounded(&item.1, 120));
            is_change(before, after).then_some(Difference { item: name, before, after })
        };
        self.0.keys().chain(other.0.keys()).find_map(difference)
    }

    fn count_of(&self, item: &(Kind, String)) -> usize {
        self.0.get(item).copied().unwrap_or_default()
    }

    fn add(&mut self, kind: Kind, text: impl Into<String>) {
        *self.0.entry((kind, text.into())).or_default() += 1;
    }

    /// Counts code spans and blocks, and returns the text without them. A span ends at the next run of backticks of the same
    /// length; without one, it is text.
    fn cut_code(&mut self, text: &str) -> String {
        let runs = backtick_runs(text);
        let mut next_of_length: BTreeMap<usize, usize> = BTreeMap::new();
        // For each run, the index of the next run of the same length.
        let mut closing: Vec<Option<usize>> =
            runs.iter().enumerate().rev().map(|(index, (_, length))| next_of_length.insert(*length, index)).collect();
        closing.reverse();
        let mut rest = String::with_capacity(text.len());
        let (mut copied, mut index) = (0, 0);
        while let Some((start, length)) = runs.get(index) {
            let close = closing.get(index).copied().flatten();
            let Some((close, (end, _))) = close.and_then(|close| Some((close, runs.get(close)?))) else {
                index += 1;
                continue;
            };
            rest.push_str(text.get(copied..*start).unwrap_or_default());
            rest.push(CUT);
            self.add(Kind::Code, text.get(start + length..*end).unwrap_or_default());
            copied = end + length;
            index = close + 1;
        }
        rest.push_str(text.get(copied..).unwrap_or_default());
        rest
    }

    /// Counts the targets of Markdown links that are not complete URLs: `[here](evil.example)`.
    fn count_targets(&mut self, line: &str) {
        for after in line.split("](").skip(1) {
            let target = after.split([')', ' ']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") {
                self.add(Kind::Url, target);
            }
        }
    }

    /// Counts the items of a text without white space: a URL and the items before it, or the items of a text without a URL.
    fn count_chunk(&mut self, chunk: &str) {
        let Some(at) = chunk.find("://") else { return self.count_plain(chunk) };
        let (before, _) = chunk.split_at_checked(at).unwrap_or_default();
        let scheme_start =
            before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-')).len();
        let url = without_punctuation(chunk.get(scheme_start..).unwrap_or_default());
        self.add(Kind::Url, url);
        self.count_plain(chunk.get(..scheme_start).unwrap_or_default());
    }

    /// Counts the items of a text without a scheme: an e-mail address, a host, or numbers and signs.
    fn count_plain(&mut self, chunk: &str) {
        let core = chunk.trim_matches(|c: char| !c.is_alphanumeric());
        if core.contains('@') {
            self.add(Kind::Email, core.trim_start_matches("mailto:"));
        } else if is_host(core) {
            self.add(Kind::Url, core);
        } else {
            self.count_numbers(chunk);
        }
    }

    fn count_numbers(&mut self, chunk: &str) {
        let mut rest = chunk;
        let mut before = None;
        while let Some(c) = rest.chars().next() {
            let mut length = c.len_utf8();
            if c.is_ascii_digit() {
                let (number, digits) = read_number(rest);
                let minus = if is_negative(before, chunk, rest) { "-" } else { "" };
                self.add(Kind::Number, format!("{minus}{number}"));
                length = digits;
            } else if c.is_numeric() {
                self.add(Kind::Number, c);
            } else if is_unit(c) {
                self.add(Kind::Sign, c);
            }
            before = Some(c);
            rest = rest.get(length..).unwrap_or_default();
        }
    }
}

fn is_unit(c: char) -> bool {
    matches!(c, '%' | '‰' | '°' | '$' | '¢'..='¥' | '₠'..='⃀')
}

/// Returns the runs of backticks, as position and length.
fn backtick_runs(text: &str) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in text.match_indices('`') {
        match runs.last_mut() {
            Some((start, length)) if *start + *length == at => *length += 1,
            _ => runs.push((at, 1)),
        }
    }
    runs
}

/// Returns a URL without the punctuation after it. A closing bracket stays if the URL opens it.
fn without_punctuation(mut url: &str) -> &str {
    let mut open = url.matches('(').count();
    let mut close = url.matches(')').count();
    while let Some(last) = url.chars().last() {
        match last {
            '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '*' | '_' | '~' | '”' | '’' | '»' | '…' => {}
            ')' if close > open => close -= 1,
            '(' => open -= 1,
            _ => break,
        }
        url = url.get(..url.len() - last.len_utf8()).unwrap_or_default();
    }
    url
}

/// Returns whether a word is a host with a dot, perhaps with a path: mail readers and chats make it a link.
fn is_host(word: &str) -> bool {
    let host = word.split(['/', ':', '?', '#']).next().unwrap_or_default();
    let Some((rest, last)) = host.rsplit_once('.') else { return false };
    rest.ends_with(char::is_alphanumeric) && last.len() >= 2 && last.chars().all(char::is_alphabetic)
}

/// Reads the number at the beginning. Returns its normal form and its length in bytes.
fn read_number(text: &str) -> (String, usize) {
    let digits = |from: &str| from.bytes().take_while(u8::is_ascii_digit).count();
    let tail = |at: usize| text.get(at..).unwrap_or_default();
    let mut at = digits(text);
    let mut whole = text.get(..at).unwrap_or_default().to_owned();
    // Groups of thousands, as in `12,345`: the first group has one to three digits.
    let mut grouped = false;
    while (1..=3).contains(&at) || grouped {
        let Some(group) = tail(at).strip_prefix(',') else { break };
        if digits(group) != 3 {
            break;
        }
        whole.push_str(group.get(..3).unwrap_or_default());
        at += 4;
        grouped = true;
    }
    let mut fractions = Vec::new();
    while let Some(fraction) = tail(at).strip_prefix('.') {
        let length = digits(fraction);
        if length == 0 {
            break;
        }
        fractions.push(fraction.get(..length).unwrap_or_default());
        at += 1 + length;
    }
    (normal_form(&whole, &fractions, grouped), at)
}

/// Returns the normal form of a number: `2.50` is `2.5`. A possible version, date, or thousand of another country (`1.000`) is
/// unchanged.
fn normal_form(whole: &str, fractions: &[&str], grouped: bool) -> String {
    match fractions {
        [] => whole.to_owned(),
        [fraction] if grouped || whole.len() > 3 || whole == "0" || fraction.len() != 3 => {
            match fraction.trim_end_matches('0') {
                "" => whole.to_owned(),
                fraction => format!("{whole}.{fraction}"),
            }
        }
        several => format!("{whole}.{}", several.join(".")),
    }
}

/// Returns whether a number is negative: a minus is before it, or before its currency sign, and no word is before the minus.
fn is_negative(before: Option<char>, chunk: &str, rest: &str) -> bool {
    if !before.is_some_and(|c| matches!(c, '-' | '−') || is_unit(c)) {
        return false;
    }
    let head = chunk.get(..chunk.len() - rest.len()).unwrap_or_default();
    let mut head = head.chars().rev().skip_while(|c| is_unit(*c));
    matches!(head.next(), Some('-' | '−')) && !head.next().is_some_and(char::is_alphanumeric)
}

/// The ordinals of list items: 1, or one more than the previous item of the same indent.
#[derive(Default)]
struct Ordinals(BTreeMap<usize, u32>);

impl Ordinals {
    /// Returns a line without its ordinal.
    fn strip<'a>(&mut self, line: &'a str) -> &'a str {
        let text = line.trim_start_matches([' ', '\t', '>', '#', '*', '_']);
        let indent = line.len() - text.len();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = text.split_at_checked(digits).unwrap_or_default();
        let Some(rest) = rest.strip_prefix(['.', ')']) else { return line };
        let rest = rest.trim_start_matches(['*', '_']);
        let Ok(number) = number.parse::<u32>() else { return line };
        let follows = number == 1 || self.0.get(&indent).is_some_and(|last| last.checked_add(1) == Some(number));
        if digits > 3 || !follows || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
            return line;
        }
        self.0.insert(indent, number);
        rest
    }
}
