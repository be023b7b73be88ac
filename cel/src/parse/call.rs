//! Calls of functions and macros.

use super::Parser;
use super::operand::{CEL_WORDS, RESERVED};
use super::refuse::{shorten, unsupported};
use super::tree::Tree;
use crate::error::Error;
use crate::node::{Earlier, Function, Macro, Node};
use crate::pattern::Pattern;
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
        let has_target = target.is_some();
        let count = arguments.len();
        let operands: Vec<Tree> = target.into_iter().chain(arguments).collect();
        if SPECIAL_FUNCTIONS.contains(&name) {
            return special_function(name, has_target, operands);
        }
        let Ok(function) = name.parse::<Function>() else { return unknown_function(name) };
        let has_valid_operands = match function {
            Function::Size => operands.len() == 1,
            Function::Contains | Function::StartsWith | Function::EndsWith => has_target && count == 1,
            Function::LowerAscii => has_target && count == 0,
            Function::Int
            | Function::Uint
            | Function::Double
            | Function::String
            | Function::Bytes
            | Function::Host
            | Function::Domain => !has_target && count == 1,
        };
        if !has_valid_operands {
            return invalid_operands(name);
        }
        Tree::gather(operands, |operands| Node::Call(function, operands))
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

/// The functions that need a literal or read facts.
const SPECIAL_FUNCTIONS: [&str; 5] = ["matches", "fromUser", "fromTool", "calls", "results"];

/// Returns the call of one of the [`SPECIAL_FUNCTIONS`].
fn special_function(name: &str, has_target: bool, operands: Vec<Tree>) -> Result<Tree, Error> {
    let mut operands = operands.into_iter();
    match (name, has_target, operands.next(), operands.next(), operands.next()) {
        ("matches", true, Some(text), Some(pattern), None) => {
            let pattern = literal(name, pattern)?;
            let compiled = Pattern::compile(&pattern)
                .or_else(|error| unsupported(format!("the pattern {:?} cannot be used: {error}", shorten(&pattern))))?;
            text.wrap(|text| Node::Matches(text, compiled))
        }
        ("fromUser", false, Some(value), None, _) => value.wrap(Node::FromUser),
        ("fromTool", false, Some(value), Some(tool), None) => {
            let tool = literal(name, tool)?;
            value.wrap(|value| Node::FromTool(value, tool))
        }
        ("calls", false, Some(tool), None, _) => Ok(Tree::leaf(Node::Earlier(Earlier::Calls, literal(name, tool)?))),
        ("results", false, Some(tool), None, _) => {
            Ok(Tree::leaf(Node::Earlier(Earlier::Results, literal(name, tool)?)))
        }
        _ => invalid_operands(name),
    }
}

/// Returns the text of a string literal. Patterns are compiled, and tools looked up, before any call.
fn literal(function: &str, tree: Tree) -> Result<String, Error> {
    match tree.node {
        Node::Text(text) => Ok(text),
        _ => unsupported(format!("the last argument of {function}() must be a string in quotes")),
    }
}

fn invalid_operands<T>(name: &str) -> Result<T, Error> {
    unsupported(format!("{name}() does not take these arguments"))
}

fn unknown_function<T>(name: &str) -> Result<T, Error> {
    unsupported(format!(
        "there is no function {}(): size, contains, startsWith, endsWith, matches, lowerAscii, host, domain, fromUser, fromTool, \
         calls, results, int, uint, double, string, bytes, has, all, exists, exists_one, filter and map can be used",
        shorten(name)
    ))
}
