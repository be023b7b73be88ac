//! The limits of a condition, checked on its tokens (`docs/explanation/engine.md`, section 3, "Conditions").
//!
//! Everything that parses a condition runs this check before.

mod error;

use crate::token::{Token, Tokens};
pub use error::{Error, MAX_DEPTH, MAX_LENGTH_BYTES};

/// Checks the length and depth of a condition on its tokens, in one pass and without recursion.
///
/// The depth is an upper bound of the depth of the expression. Each open bracket counts. Within a bracket, each operator,
/// selection, call and sign since the last `,`, `&&`, `||`, `?` or `:` counts, and each `?` since the last `,`.
///
/// # Errors
/// If the condition is empty, is beyond a limit, or has an invalid token or unbalanced brackets. A text that passes may
/// still be invalid CEL.
pub fn check(text: &str) -> Result<(), Error> {
    if text.len() > MAX_LENGTH_BYTES {
        return Err(Error::TooLong { length: text.len() });
    }
    let mut nesting = Nesting::new();
    for token in Tokens::new(text) {
        let (at, token) = token?;
        nesting.add(at, &token)?;
    }
    nesting.finish()
}

/// One open bracket, and the operators chained in it so far.
#[derive(Debug, Default)]
struct Level {
    /// The closing bracket. `None` for the whole text.
    close: Option<char>,
    /// The byte offset of the opening bracket.
    at: usize,
    /// The number of operators, selections, calls and signs since the last `,`, `&&`, `||`, `?` or `:`.
    chain: usize,
    /// The number of `?` since the last comma.
    conditionals: usize,
}

/// The kind of the previous token. It distinguishes a call or an index from a bracket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Previous {
    Start,
    /// A word or a closing bracket.
    Operand,
    Other,
}

/// The open brackets at one position of the text.
struct Nesting {
    /// The whole text, followed by the open brackets, the outermost first.
    levels: Vec<Level>,
    /// The depth of all levels except the innermost.
    outer_depth: usize,
    previous: Previous,
}

impl Nesting {
    fn new() -> Self {
        Self { levels: vec![Level::default()], outer_depth: 0, previous: Previous::Start }
    }

    /// Adds the token at the byte offset `at`.
    fn add(&mut self, at: usize, token: &Token<'_>) -> Result<(), Error> {
        if let Token::Close(bracket) = *token {
            self.close(at, bracket)?;
        } else if let Some(level) = self.levels.last_mut() {
            match token {
                Token::Comma => (level.chain, level.conditionals) = (0, 0),
                Token::And | Token::Or | Token::Colon => level.chain = 0,
                Token::Question => (level.chain, level.conditionals) = (0, level.conditionals + 1),
                Token::Operator(_) | Token::Not | Token::Dot => level.chain += 1,
                Token::Open(_) if self.previous == Previous::Operand => level.chain += 1,
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
            self.open(at, bracket);
        }
        self.previous = match token {
            Token::Word(_) | Token::Close(_) => Previous::Operand,
            _ => Previous::Other,
        };
        if self.depth() > MAX_DEPTH { Err(Error::TooDeep { at }) } else { Ok(()) }
    }

    fn open(&mut self, at: usize, bracket: char) {
        self.outer_depth = self.depth();
        let close = match bracket {
            '(' => ')',
            '[' => ']',
            _ => '}',
        };
        self.levels.push(Level { close: Some(close), at, ..Level::default() });
    }

    fn close(&mut self, at: usize, bracket: char) -> Result<(), Error> {
        let closed = self.levels.pop_if(|level| level.close == Some(bracket));
        if closed.is_none() {
            return Err(Error::Unbalanced { bracket, at });
        }
        self.outer_depth = self.levels.iter().rev().skip(1).map(Level::depth).sum();
        Ok(())
    }

    fn depth(&self) -> usize {
        self.outer_depth + self.levels.last().map_or(0, Level::depth)
    }

    fn finish(self) -> Result<(), Error> {
        if self.previous == Previous::Start {
            return Err(Error::Empty);
        }
        match self.levels.last() {
            Some(Level { close: Some(close), at, .. }) => {
                let bracket = match close {
                    ')' => '(',
                    ']' => '[',
                    _ => '{',
                };
                Err(Error::Unbalanced { bracket, at: *at })
            }
            _ => Ok(()),
        }
    }
}

impl Level {
    fn depth(&self) -> usize {
        usize::from(self.close.is_some()) + self.chain + self.conditionals
    }
}

#[cfg(test)]
mod tests;
