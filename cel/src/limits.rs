//! The limits of a condition, checked on its tokens (`docs/explanation/engine.md`, section 3, "Conditions are CEL").
//!
//! The operator runs this check for the conditions of every tenant. The worker and the lint run it before they parse.

mod error;

use crate::token::{Token, Tokens};
pub use error::{LimitError, MAX_DEPTH, MAX_LENGTH};

/// The macros: functions that evaluate their argument once for each item of a list.
pub const MACROS: [&str; 6] = ["all", "exists", "exists_one", "existsOne", "filter", "map"];

/// Checks the length, depth and nesting of a condition on its tokens, in one pass and without recursion.
///
/// The depth is an upper bound of the depth of the expression. Each open bracket counts. Within a bracket, each operator,
/// selection, call and sign since the last `,`, `&&` or `||` counts, and each `?`.
///
/// # Errors
/// If the condition is empty, is beyond a limit, or has an invalid token or unbalanced brackets. A text that passes may
/// still be invalid CEL.
pub fn check(text: &str) -> Result<(), LimitError> {
    if text.len() > MAX_LENGTH {
        return Err(LimitError::TooLong { length: text.len() });
    }
    let mut nesting = Nesting::new();
    for token in Tokens::new(text) {
        let (at, token) = token?;
        nesting.take(at, &token)?;
    }
    nesting.finish()
}

/// One open bracket, and the operators chained in it so far.
#[derive(Debug, Default)]
struct Level {
    /// The closing bracket; none for the whole text.
    close: Option<char>,
    at: usize,
    chain: usize,
    ternaries: usize,
    is_macro: bool,
}

/// The tokens before the current one that matter for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before<'a> {
    Start,
    Dot,
    Word { name: &'a str, after_dot: bool },
    Close,
    Other,
}

struct Nesting<'a> {
    levels: Vec<Level>,
    /// The sum over all levels but the innermost.
    outer: usize,
    before: Before<'a>,
}

impl<'a> Nesting<'a> {
    fn new() -> Self {
        Self { levels: vec![Level::default()], outer: 0, before: Before::Start }
    }

    fn take(&mut self, at: usize, token: &Token<'a>) -> Result<(), LimitError> {
        let macro_name = self.macro_called_by(token);
        if let Token::Close(bracket) = *token {
            self.close(at, bracket)?;
        } else if let Some(level) = self.levels.last_mut() {
            match token {
                Token::Comma => (level.chain, level.ternaries) = (0, 0),
                Token::And | Token::Or | Token::Colon => level.chain = 0,
                Token::Question => (level.chain, level.ternaries) = (0, level.ternaries + 1),
                Token::Operator(_) | Token::Not | Token::Dot => level.chain += 1,
                Token::Open(_) if matches!(self.before, Before::Word { .. } | Before::Close) => level.chain += 1,
                Token::Open(_)
                | Token::Close(_)
                | Token::Word(_)
                | Token::Int(_)
                | Token::Uint(_)
                | Token::Double(_)
                | Token::Text(_)
                | Token::Bytes => {}
            }
        }
        if let Token::Open(bracket) = *token {
            self.open(at, bracket, macro_name)?;
        }
        self.before = match *token {
            Token::Dot => Before::Dot,
            Token::Word(name) => Before::Word { name, after_dot: self.before == Before::Dot },
            Token::Close(_) => Before::Close,
            _ => Before::Other,
        };
        if self.depth() > MAX_DEPTH { Err(LimitError::TooDeep { at }) } else { Ok(()) }
    }

    /// Returns the macro that an opening bracket calls, such as `.all(`. The name alone is a field.
    fn macro_called_by(&self, token: &Token<'a>) -> Option<&'a str> {
        match (token, self.before) {
            (Token::Open('('), Before::Word { name, after_dot: true }) if MACROS.contains(&name) => Some(name),
            _ => None,
        }
    }

    fn open(&mut self, at: usize, bracket: char, macro_name: Option<&str>) -> Result<(), LimitError> {
        if let Some(name) = macro_name
            && self.levels.iter().any(|level| level.is_macro)
        {
            return Err(LimitError::NestedMacro { name: name.to_owned() });
        }
        self.outer = self.depth();
        let close = match bracket {
            '(' => ')',
            '[' => ']',
            _ => '}',
        };
        self.levels.push(Level { close: Some(close), at, is_macro: macro_name.is_some(), ..Level::default() });
        Ok(())
    }

    fn close(&mut self, at: usize, bracket: char) -> Result<(), LimitError> {
        let closed = self.levels.pop_if(|level| level.close == Some(bracket));
        if closed.is_none() {
            return Err(LimitError::Unbalanced { bracket, at });
        }
        self.outer = self.levels.iter().rev().skip(1).map(Level::depth).sum();
        Ok(())
    }

    fn depth(&self) -> usize {
        self.outer + self.levels.last().map_or(0, Level::depth)
    }

    fn finish(self) -> Result<(), LimitError> {
        if self.before == Before::Start {
            return Err(LimitError::Empty);
        }
        match self.levels.last() {
            Some(Level { close: Some(close), at, .. }) => {
                let bracket = match close {
                    ')' => '(',
                    ']' => '[',
                    _ => '{',
                };
                Err(LimitError::Unbalanced { bracket, at: *at })
            }
            _ => Ok(()),
        }
    }
}

impl Level {
    fn depth(&self) -> usize {
        usize::from(self.close.is_some()) + self.chain + self.ternaries
    }
}

#[cfg(test)]
mod tests;
