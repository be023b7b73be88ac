//! The tokens of a condition, as far as depth and nesting need them.

use super::fault::Fault;

/// What a piece of a condition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    /// A number or a string.
    Literal,
    Open(char),
    Close(char),
    Comma,
    Colon,
    Question,
    /// `&&` or `||`, which parsers balance.
    Logic,
    Dot,
    /// Any other operator, `in` included.
    Operator,
}

/// Reads a condition token by token.
///
/// Where CEL's own lexer would drop a bad string and go on with what is inside, this one refuses the text: else
/// brackets could hide in what looks like a string.
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blank(&mut self) {
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

    fn word(&mut self) -> Result<Token<'a>, Fault> {
        let rest = self.rest();
        let word = leading(rest, |c| c.is_ascii_alphanumeric() || c == '_');
        let after = rest.get(word.len()..).unwrap_or_default();
        let is_prefix = matches!(word.to_ascii_lowercase().as_str(), "r" | "b" | "rb" | "br");
        if is_prefix && after.starts_with(['"', '\'']) {
            let raw = word.contains(['r', 'R']);
            return self.string(word.len(), raw);
        }
        self.at += word.len();
        Ok(if word == "in" { Token::Operator } else { Token::Word(word) })
    }

    fn number(&mut self) -> Token<'a> {
        let digits = |text: &'a str| leading(text, |c| c.is_ascii_alphanumeric() || c == '_').len();
        self.at += digits(self.rest());
        if let Some(fraction) = self.rest().strip_prefix('.')
            && fraction.starts_with(|c: char| c.is_ascii_digit())
        {
            self.at += 1 + digits(fraction);
        }
        Token::Literal
    }

    /// Reads a string whose quote stands `prefix` bytes further on.
    fn string(&mut self, prefix: usize, raw: bool) -> Result<Token<'a>, Fault> {
        let fault = Fault::BadString { at: self.at };
        let body = self.rest().get(prefix..).unwrap_or_default();
        let Some(quote) = body.chars().next() else { return Err(fault) };
        let triple: String = [quote; 3].iter().collect();
        let (end, lines) = if body.starts_with(&triple) { (triple, true) } else { (quote.to_string(), false) };
        let mut inner = body.get(end.len()..).unwrap_or_default();
        loop {
            if let Some(after) = inner.strip_prefix(&end) {
                self.at += self.rest().len() - after.len();
                return Ok(Token::Literal);
            }
            let Some(next) = inner.chars().next() else { return Err(fault) };
            let length = match next {
                '\n' | '\r' if !lines => return Err(fault),
                '\\' if !raw => escape(inner).ok_or_else(|| fault.clone())?,
                _ => next.len_utf8(),
            };
            inner = inner.get(length..).unwrap_or_default();
        }
    }

    fn operator(&mut self, first: char) -> Result<Token<'a>, Fault> {
        let rest = self.rest();
        let (length, token) = match first {
            '&' | '|' if rest.starts_with("&&") || rest.starts_with("||") => (2, Token::Logic),
            '=' | '!' | '<' | '>' if rest.get(1..2) == Some("=") => (2, Token::Operator),
            '+' | '-' | '*' | '/' | '%' | '<' | '>' | '!' => (1, Token::Operator),
            '(' | '[' | '{' => (1, Token::Open(first)),
            ')' | ']' | '}' => (1, Token::Close(first)),
            ',' => (1, Token::Comma),
            ':' => (1, Token::Colon),
            '?' => (1, Token::Question),
            '.' => (1, Token::Dot),
            _ => return Err(Fault::Character { character: first, at: self.at }),
        };
        self.at += length;
        Ok(token)
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Result<(usize, Token<'a>), Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_blank();
        let at = self.at;
        let first = self.rest().chars().next()?;
        let token = match first {
            'a'..='z' | 'A'..='Z' | '_' => self.word(),
            '0'..='9' => Ok(self.number()),
            '"' | '\'' => self.string(0, false),
            _ => self.operator(first),
        };
        Some(token.map(|token| (at, token)))
    }
}

fn leading(text: &str, holds: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c: char| !holds(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// The length of the escape that `text` begins with, if CEL knows it.
fn escape(text: &str) -> Option<usize> {
    let kind = text.chars().nth(1)?;
    let digits = |count: usize, radix: u32| {
        let found = text.chars().skip(2).take(count).filter(|c| c.is_digit(radix)).count();
        (found == count).then_some(2 + count)
    };
    match kind {
        'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '\\' | '?' | '"' | '\'' | '`' => Some(2),
        'x' | 'X' => digits(2, 16),
        'u' => digits(4, 16),
        'U' => digits(8, 16),
        '0'..='3' => digits(2, 8),
        _ => None,
    }
}
