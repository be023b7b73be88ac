//! Calls of functions and macros.

use super::Parser;
use super::operand::{CEL_WORDS, RESERVED};
use super::refuse::{shorten, unsupported};
use super::tree::Tree;
use crate::error::Error;
use crate::node::{Function, Macro, Node};
use crate::token::Token;

impl<'a> Parser<'a> {
    /// Parses `has(operand.name)` after its opening bracket.
    pub(super) fn has(&mut self) -> Result<Tree, Error> {
        let primary = self.primary()?;
        let (operand, name) = self.selection(primary)?;
        match name {
            Some(name) if self.take(&Token::Close(')')) => operand.wrap(|operand| Node::Has(operand, name.to_owned())),
            _ => unsupported("has() asks for a field: write has(args.name)"),
        }
    }

    /// Parses a method call after its opening bracket.
    pub(super) fn method(&mut self, target: Tree, name: &'a str) -> Result<Tree, Error> {
        match name.parse() {
            Ok(kind) => self.macro_call(target, kind),
            Err(_) => self.function(Some(target), name),
        }
    }

    /// Parses the arguments of a macro: a name for the item, and the body.
    fn macro_call(&mut self, range: Tree, kind: Macro) -> Result<Tree, Error> {
        let item = match (self.peek(), self.tokens.get(self.at + 1)) {
            (Some(Token::Word(name)), Some((_, Token::Comma))) => *name,
            _ => return unsupported(format!("{kind}() takes a name for the item first: list.{kind}(item, ...)")),
        };
        let has_other_meaning =
            CEL_WORDS.contains(&item) || RESERVED.contains(&item) || matches!(item, "true" | "false" | "null");
        if has_other_meaning || item == "args" {
            return unsupported(format!("{kind}() cannot call its item {}: choose another name", shorten(item)));
        }
        self.at += 2;
        self.items.push(item);
        let body = self.expression()?;
        self.items.pop();
        if !self.take(&Token::Close(')')) {
            return Err(self.expected(&format!("the end of {kind}(item, ...)")));
        }
        range.join(body, |range, body| Node::Macro(kind, range, body))
    }

    /// Parses a function call after its opening bracket.
    pub(super) fn function(&mut self, target: Option<Tree>, name: &str) -> Result<Tree, Error> {
        let arguments = self.expressions_until(')', /*allows_trailing_comma*/ false)?;
        if name == "matches" {
            return unsupported("matches() is not supported: use startsWith, endsWith or contains");
        }
        let Ok(function) = name.parse::<Function>() else { return unknown_function(name) };
        let has_valid_operands = match function {
            Function::Size => arguments.len() + usize::from(target.is_some()) == 1,
            Function::Contains | Function::StartsWith | Function::EndsWith => target.is_some() && arguments.len() == 1,
            Function::Int | Function::Uint | Function::Double | Function::String | Function::Bytes => {
                target.is_none() && arguments.len() == 1
            }
        };
        if !has_valid_operands {
            return unsupported(format!("{name}() does not take these arguments"));
        }
        Tree::gather(target.into_iter().chain(arguments).collect(), |operands| Node::Call(function, operands))
    }

    /// Parses a comma-separated list of expressions up to the closing bracket.
    pub(super) fn expressions_until(&mut self, close: char, allows_trailing_comma: bool) -> Result<Vec<Tree>, Error> {
        let mut trees = Vec::new();
        if self.take(&Token::Close(close)) {
            return Ok(trees);
        }
        loop {
            trees.push(self.expression()?);
            let has_comma = self.take(&Token::Comma);
            if (!has_comma || allows_trailing_comma) && self.take(&Token::Close(close)) {
                return Ok(trees);
            }
            if !has_comma {
                return Err(self.expected(&format!("a comma or {close:?}")));
            }
        }
    }
}

fn unknown_function<T>(name: &str) -> Result<T, Error> {
    unsupported(format!(
        "there is no function {}(): size, contains, startsWith, endsWith, int, uint, double, string, bytes, has, all, \
         exists, exists_one, filter and map can be used",
        shorten(name)
    ))
}
