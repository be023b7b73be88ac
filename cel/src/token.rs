//! The lexer.

use crate::limits::Error;
use crate::node::Operator;

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token<'a> {
    /// A name or a word of CEL.
    Word(&'a str),
    /// An integer, decimal or with `0x`. The parser checks its range, since a `-` before it is part of the number.
    Int(&'a str),
    /// An unsigned integer, without its `u`.
    Uint(&'a str),
    /// A number with a fraction or an exponent.
    Double(f64),
    /// The content of a string literal: without quotes, and with its escapes decoded.
    Text(String),
    /// A bytes literal. The parser refuses it, so its content is not kept.
    Bytes,
    Open(char),
    Close(char),
    Comma,
    Colon,
    Question,
    Dot,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `!`
    Not,
    /// An operator with two sides. `-` may be a sign, too.
    Operator(Operator),
}

/// The tokens of a text, each with its byte offset.
///
/// An invalid string is an error. If the lexer skipped the quote instead, it would read brackets in the string as tokens.
pub(crate) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks_and_comments(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn word(&mut self) -> Result<Token<'a>, Error> {
        let rest = self.rest();
        let word = leading(rest, is_word_char);
        let after = rest.get(word.len()..).unwrap_or_default();
        if after.starts_with(['"', '\'']) {
            let is_raw = word.contains(['r', 'R']);
            match word.to_ascii_lowercase().as_str() {
                "r" => return self.string(word.len(), is_raw).map(Token::Text),
                "b" | "rb" | "br" => return self.string(word.len(), is_raw).map(|_| Token::Bytes),
                _ => {}
            }
        }
        self.at += word.len();
        Ok(if word == "in" { Token::Operator(Operator::In) } else { Token::Word(word) })
    }

    /// Reads `12`, `12u`, `0x1F`, `0x1Fu`, `1.5`, `.5`, `1e3` or `1.5e-3`.
    fn number(&mut self) -> Result<Token<'a>, Error> {
        let rest = self.rest();
        let bad = Error::BadNumber { at: self.at };
        let hex = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X"));
        let (length, is_double) = match hex {
            Some(hex) => (2 + leading(hex, |c| c.is_ascii_hexdigit()).len(), false),
            None => decimal_length(rest),
        };
        let number = rest.get(..length).unwrap_or_default();
        let after = rest.get(length..).unwrap_or_default();
        let is_unsigned = !is_double && after.starts_with(['u', 'U']);
        let after = if is_unsigned { after.get(1..).unwrap_or_default() } else { after };
        if after.starts_with(is_word_char) || number.eq_ignore_ascii_case("0x") {
            return Err(bad);
        }
        self.at += rest.len() - after.len();
        if is_double {
            let value = number.parse::<f64>().ok().filter(|value| value.is_finite());
            return value.map(Token::Double).ok_or(bad);
        }
        Ok(if is_unsigned { Token::Uint(number) } else { Token::Int(number) })
    }

    /// Reads a string whose quote is `prefix` bytes ahead. Returns its content.
    fn string(&mut self, prefix: usize, is_raw: bool) -> Result<String, Error> {
        let bad = Error::BadString { at: self.at };
        let body = self.rest().get(prefix..).unwrap_or_default();
        let Some(quote) = body.chars().next() else { return Err(bad) };
        let triple: String = [quote; 3].iter().collect();
        let (end, may_span_lines) = if body.starts_with(&triple) { (triple, true) } else { (quote.to_string(), false) };
        let mut inner = body.get(end.len()..).unwrap_or_default();
        let mut content = String::new();
        loop {
            if let Some(after) = inner.strip_prefix(&end) {
                self.at += self.rest().len() - after.len();
                return Ok(content);
            }
            let Some(next) = inner.chars().next() else { return Err(bad) };
            let (length, character) = match next {
                '\n' | '\r' if !may_span_lines => return Err(bad),
                '\\' if !is_raw => escape(inner).ok_or_else(|| bad.clone())?,
                _ => (next.len_utf8(), next),
            };
            content.push(character);
            inner = inner.get(length..).unwrap_or_default();
        }
    }

    fn symbol(&mut self, first: char) -> Result<Token<'a>, Error> {
        let rest = self.rest();
        let two_character_token = match rest.get(..2).unwrap_or_default() {
            "&&" => Some(Token::And),
            "||" => Some(Token::Or),
            "==" => Some(Token::Operator(Operator::Equal)),
            "!=" => Some(Token::Operator(Operator::Unequal)),
            "<=" => Some(Token::Operator(Operator::LessOrEqual)),
            ">=" => Some(Token::Operator(Operator::GreaterOrEqual)),
            "=>" => return Err(Error::Swapped { operator: "=>", write: ">=", at: self.at }),
            "=<" => return Err(Error::Swapped { operator: "=<", write: "<=", at: self.at }),
            _ => None,
        };
        if let Some(token) = two_character_token {
            self.at += 2;
            return Ok(token);
        }
        let token = match first {
            '<' => Token::Operator(Operator::Less),
            '>' => Token::Operator(Operator::Greater),
            '+' => Token::Operator(Operator::Add),
            '-' => Token::Operator(Operator::Subtract),
            '*' => Token::Operator(Operator::Multiply),
            '/' => Token::Operator(Operator::Divide),
            '%' => Token::Operator(Operator::Remainder),
            '!' => Token::Not,
            '(' | '[' | '{' => Token::Open(first),
            ')' | ']' | '}' => Token::Close(first),
            ',' => Token::Comma,
            ':' => Token::Colon,
            '?' => Token::Question,
            '.' => Token::Dot,
            _ => return Err(Error::Character { character: first, at: self.at }),
        };
        self.at += 1;
        Ok(token)
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Result<(usize, Token<'a>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_blanks_and_comments();
        let at = self.at;
        let mut characters = self.rest().chars();
        let first = characters.next()?;
        let token = match first {
            'a'..='z' | 'A'..='Z' | '_' => self.word(),
            '0'..='9' => self.number(),
            '.' if characters.next().is_some_and(|c| c.is_ascii_digit()) => self.number(),
            '"' | '\'' => self.string(0, false).map(Token::Text),
            _ => self.symbol(first),
        };
        Some(token.map(|token| (at, token)))
    }
}

pub(crate) fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the part of a text before the first character that is not `wanted`.
fn leading(text: &str, wanted: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c: char| !wanted(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Returns the length of the decimal number that `text` begins with, and whether it is a double.
fn decimal_length(text: &str) -> (usize, bool) {
    let digits = |at: usize| leading(text.get(at..).unwrap_or_default(), |c| c.is_ascii_digit()).len();
    let byte = |at: usize| text.as_bytes().get(at).copied().unwrap_or_default();
    let (mut length, mut is_double) = (digits(0), false);
    if byte(length) == b'.' && digits(length + 1) > 0 {
        length += 1 + digits(length + 1);
        is_double = true;
    }
    if matches!(byte(length), b'e' | b'E') {
        let sign = usize::from(matches!(byte(length + 1), b'+' | b'-'));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
            is_double = true;
        }
    }
    (length, is_double)
}

/// Returns the length and the character of the escape that `text` begins with.
fn escape(text: &str) -> Option<(usize, char)> {
    let kind = text.chars().nth(1)?;
    let code = |from: usize, count: usize, radix: u32| {
        let digits = text.get(from..from + count).filter(|digits| digits.chars().all(|c| c.is_digit(radix)))?;
        Some((from + count, char::from_u32(u32::from_str_radix(digits, radix).ok()?)?))
    };
    let character = match kind {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' | '?' | '"' | '\'' | '`' => kind,
        'x' | 'X' => return code(2, 2, 16),
        'u' => return code(2, 4, 16),
        'U' => return code(2, 8, 16),
        '0'..='3' => return code(1, 3, 8),
        _ => return None,
    };
    Some((2, character))
}
