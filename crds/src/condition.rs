//! What can be said of a condition without parsing it (`docs/explanation/engine.md`, section 3, "Conditions are CEL").
//!
//! The operator runs only this: a parser recurses, and one Skill must not be able to stop the operator of all
//! tenants. Worker and lint run it first, then parse.

mod fault;
mod tokens;

pub use fault::{Fault, MAX_DEPTH, MAX_LENGTH};
use tokens::{Token, Tokens};

/// The functions that evaluate their argument once for each item of a list.
pub const MACROS: [&str; 6] = ["all", "exists", "exists_one", "existsOne", "filter", "map"];

/// Checks length, depth and nesting of a condition on its tokens, in one pass and without recursion.
///
/// What passes may still be no CEL; what is refused here must not reach a parser. The depth is an upper bound of
/// what parser and evaluator recurse: each open bracket counts, and in it each operator, selection, call and sign
/// since the last `,`, `&&` or `||`, and each `?`.
pub fn check(text: &str) -> Result<(), Fault> {
    if text.len() > MAX_LENGTH {
        return Err(Fault::TooLong { length: text.len() });
    }
    let mut nesting = Nesting::new();
    for token in Tokens::new(text) {
        let (at, token) = token?;
        nesting.take(at, token)?;
    }
    nesting.finish()
}

/// One open bracket: what is chained within it so far.
#[derive(Debug, Default)]
struct Level {
    /// The closing bracket that ends the level; none for the whole text.
    close: Option<char>,
    at: usize,
    chain: usize,
    ternaries: usize,
    is_macro: bool,
}

struct Nesting<'a> {
    levels: Vec<Level>,
    /// The sum over all levels but the innermost.
    outer: usize,
    before: Option<Token<'a>>,
    /// Whether the token before `before` was a dot.
    after_dot: bool,
}

impl<'a> Nesting<'a> {
    fn new() -> Self {
        Self { levels: vec![Level::default()], outer: 0, before: None, after_dot: false }
    }

    fn take(&mut self, at: usize, token: Token<'a>) -> Result<(), Fault> {
        let macro_name = self.macro_called_by(token);
        if let Token::Close(bracket) = token {
            self.close(at, bracket)?;
        } else if let Some(level) = self.levels.last_mut() {
            match token {
                Token::Comma => (level.chain, level.ternaries) = (0, 0),
                Token::Logic | Token::Colon => level.chain = 0,
                Token::Question => (level.chain, level.ternaries) = (0, level.ternaries + 1),
                Token::Operator | Token::Dot => level.chain += 1,
                Token::Open(_) if matches!(self.before, Some(Token::Word(_) | Token::Close(_))) => level.chain += 1,
                Token::Open(_) | Token::Close(_) | Token::Word(_) | Token::Literal => {}
            }
        }
        if let Token::Open(bracket) = token {
            self.open(at, bracket, macro_name)?;
        }
        self.after_dot = self.before == Some(Token::Dot);
        self.before = Some(token);
        if self.depth() > MAX_DEPTH { Err(Fault::TooDeep { at }) } else { Ok(()) }
    }

    /// The macro that an opening bracket calls: `.all(`. A name alone is a field that happens to be called so.
    fn macro_called_by(&self, token: Token<'a>) -> Option<&'a str> {
        match (token, self.before) {
            (Token::Open('('), Some(Token::Word(name))) if self.after_dot && MACROS.contains(&name) => Some(name),
            _ => None,
        }
    }

    fn open(&mut self, at: usize, bracket: char, macro_name: Option<&str>) -> Result<(), Fault> {
        if let Some(name) = macro_name
            && self.levels.iter().any(|level| level.is_macro)
        {
            return Err(Fault::NestedMacro { name: name.to_owned() });
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

    fn close(&mut self, at: usize, bracket: char) -> Result<(), Fault> {
        let closed = self.levels.pop_if(|level| level.close == Some(bracket));
        if closed.is_none() {
            return Err(Fault::Unbalanced { bracket, at });
        }
        self.outer = self.levels.iter().rev().skip(1).map(Level::depth).sum();
        Ok(())
    }

    fn depth(&self) -> usize {
        self.outer + self.levels.last().map_or(0, Level::depth)
    }

    fn finish(self) -> Result<(), Fault> {
        if self.before.is_none() {
            return Err(Fault::Empty);
        }
        match self.levels.last() {
            Some(Level { close: Some(close), at, .. }) => {
                let bracket = match close {
                    ')' => '(',
                    ']' => '[',
                    _ => '{',
                };
                Err(Fault::Unbalanced { bracket, at: *at })
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
