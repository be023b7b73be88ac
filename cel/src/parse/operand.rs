//! Operands: literals, names, lists and brackets, with the selections, indexes and method calls that follow them.

use super::Parser;
use super::refuse::{shorten, unsupported};
use super::tree::Tree;
use crate::dialect::Dialect;
use crate::error::Error;
use crate::node::Node;
use crate::token::Token;

/// The names of types and functions of CEL. An argument with one of these names must be written with the prefix `args.`:
/// `args.type`.
pub(super) const CEL_WORDS: [&str; 15] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "list",
    "map",
    "null_type",
    "optional",
    "optional_type",
    "string",
    "timestamp",
    "type",
    "uint",
];

/// Words that CEL reserves. A bare name cannot be one of them, but the name of a field can: `args.if`.
pub(super) const RESERVED: [&str; 16] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
];

impl<'a> Parser<'a> {
    /// Parses an operand with the selections, indexes and method calls after it.
    pub(super) fn member(&mut self) -> Result<Tree, Error> {
        let primary = self.primary()?;
        self.member_of(primary)
    }

    /// Parses the selections, indexes and method calls after an operand.
    pub(super) fn member_of(&mut self, primary: Tree) -> Result<Tree, Error> {
        match self.selection(primary)? {
            (tree, Some(name)) => tree.select(name),
            (tree, None) => Ok(tree),
        }
    }

    /// Parses the selections, indexes and method calls after an operand. Returns the name of a final selection separately,
    /// because `has()` needs it.
    pub(super) fn selection(&mut self, primary: Tree) -> Result<(Tree, Option<&'a str>), Error> {
        let mut tree = primary;
        let mut field: Option<&'a str> = None;
        loop {
            let is_dot = self.peek() == Some(&Token::Dot);
            let is_index = self.peek() == Some(&Token::Open('['));
            if self.peek() == Some(&Token::Open('{')) {
                return unsupported("maps and messages cannot be written in a condition");
            }
            if !is_dot && !is_index {
                return Ok((tree, field));
            }
            self.at += 1;
            if let Some(name) = field.take() {
                tree = tree.select(name)?;
            }
            if is_index {
                let index = self.expression()?;
                self.expect(&Token::Close(']'))?;
                tree = match (tree.node, index.node) {
                    (Node::Arguments, Node::Text(name)) => Tree::leaf(Node::Argument(name)),
                    (operand, index_node) => {
                        Tree::parent(tree.depth.max(index.depth), Node::Index(Box::new(operand), Box::new(index_node)))
                    }?,
                };
                continue;
            }
            let name = self.field_name()?;
            if self.take(&Token::Open('(')) {
                tree = self.method(tree, name)?;
            } else {
                field = Some(name);
            }
        }
    }

    /// Consumes the name of a field: any word except `true`, `false` and `null`. `in` is not a word but an operator.
    fn field_name(&mut self) -> Result<&'a str, Error> {
        match self.peek() {
            Some(Token::Word(name)) if !matches!(*name, "true" | "false" | "null") => {
                let name = *name;
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.expected("the name of a field")),
        }
    }

    /// Parses an operand without the selections, indexes and method calls after it.
    pub(super) fn primary(&mut self) -> Result<Tree, Error> {
        let Some(token) = self.peek() else { return Err(self.expected("an expression")) };
        match token {
            Token::Int(_) | Token::Uint(_) | Token::Double(_) => self.number(/*negative*/ false),
            Token::Text(text) => {
                let node = Node::Text(text.clone());
                self.at += 1;
                Ok(Tree::leaf(node))
            }
            Token::Word(name) => {
                let name = *name;
                self.word(name)
            }
            Token::Open('(') => {
                self.at += 1;
                let tree = self.expression()?;
                self.expect(&Token::Close(')'))?;
                Ok(tree)
            }
            Token::Open('[') => {
                self.at += 1;
                Tree::gather(self.expressions_until(']', /*allows_trailing_comma*/ true)?, Node::List)
            }
            Token::Open(_) => unsupported("maps and messages cannot be written in a condition"),
            Token::Bytes => unsupported("bytes cannot be used: arguments are JSON"),
            Token::Dot => {
                self.at += 1;
                let name = shorten(self.field_name()?);
                unsupported(format!(".{name} begins with a dot: write the name of an argument, or args.name"))
            }
            Token::Close(_)
            | Token::Comma
            | Token::Colon
            | Token::Question
            | Token::And
            | Token::Or
            | Token::Not
            | Token::Operator(_) => Err(self.expected("an expression")),
        }
    }

    /// Parses a number. `negative` is true if the `-` before the number is part of it.
    pub(super) fn number(&mut self, negative: bool) -> Result<Tree, Error> {
        let sign = if negative { "-" } else { "" };
        let node = match self.peek() {
            Some(Token::Int(digits)) => match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
                Some(hex) => i64::from_str_radix(&format!("{sign}{hex}"), 16).ok().map(Node::Int),
                None => format!("{sign}{digits}").parse().ok().map(Node::Int),
            },
            Some(Token::Uint(digits)) => match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
                Some(hex) => u64::from_str_radix(hex, 16).ok().map(Node::Uint),
                None => digits.parse().ok().map(Node::Uint),
            },
            Some(Token::Double(value)) => Some(Node::Double(if negative { -value } else { *value })),
            _ => None,
        };
        let Some(node) = node else { return Err(self.expected("a number of 64 bits")) };
        self.at += 1;
        Ok(Tree::leaf(node))
    }

    /// Parses an operand that begins with a word: a constant, a function call or a variable.
    fn word(&mut self, name: &'a str) -> Result<Tree, Error> {
        if RESERVED.contains(&name) {
            return Err(self.expected("an expression"));
        }
        self.at += 1;
        match name {
            "true" => return Ok(Tree::leaf(Node::Bool(true))),
            "false" => return Ok(Tree::leaf(Node::Bool(false))),
            "null" => return Ok(Tree::leaf(Node::Null)),
            _ => {}
        }
        if self.take(&Token::Open('(')) {
            return if name == "has" { self.has() } else { self.function(None, name) };
        }
        if self.peek() == Some(&Token::Open('{')) {
            return unsupported("maps and messages cannot be written in a condition");
        }
        if !self.items.contains(&name)
            && let Some(node) = self.fact(name)?
        {
            return Ok(Tree::leaf(node));
        }
        self.variable(name).map(Tree::leaf)
    }

    /// Parses the rest of an operand that begins with `lists`, and in a condition of a step with `result` or `steps`. Returns nothing for
    /// another word.
    fn fact(&mut self, word: &str) -> Result<Option<Node>, Error> {
        let is_step = self.dialect == Dialect::Step;
        match word {
            "lists" if self.take(&Token::Dot) => Ok(Some(Node::NamedList(self.field_name()?.to_owned()))),
            "lists" => unsupported(
                "lists are those of spec.policy.lists: write lists.name, or args.lists for the argument of that name",
            ),
            "result" if is_step => Ok(Some(Node::Result)),
            "steps" if is_step && self.take(&Token::Dot) => Ok(Some(Node::Step(self.field_name()?.to_owned()))),
            "steps" if is_step && self.take(&Token::Open('[')) => {
                let Some(Token::Text(name)) = self.peek() else { return Err(self.expected("the name of a step")) };
                self.at += 1;
                self.expect(&Token::Close(']'))?;
                Ok(Some(Node::Step(name.clone())))
            }
            "steps" if is_step => unsupported(
                "steps are those of the workflow: write steps.name, or args.steps for the argument of that name",
            ),
            _ => Ok(None),
        }
    }

    /// Returns the item of an enclosing macro, or else the variable, that `name` means.
    fn variable(&self, name: &str) -> Result<Node, Error> {
        if let Some(position) = self.items.iter().rposition(|item| *item == name) {
            Ok(Node::Item(position))
        } else if name == "args" {
            Ok(Node::Arguments)
        } else if CEL_WORDS.contains(&name) {
            unsupported(format!("{name} is a word of CEL: for the argument of that name write args.{name}"))
        } else {
            Ok(Node::Argument(name.to_owned()))
        }
    }
}
