//! The parser: recursive descent, with a bounded depth of brackets and of the tree.

mod call;
mod operand;
mod refuse;
mod tree;

use crate::dialect::Dialect;
use crate::error::Error;
use crate::node::{Node, Operator};
use crate::token::{Token, Tokens};
use refuse::{MAX_TREE_DEPTH, too_deep};
use tree::Tree;

/// Parses a text, which must be one expression.
pub(crate) fn parse(text: &str, dialect: Dialect) -> Result<Node, Error> {
    let tokens = Tokens::new(text).collect::<Result<Vec<_>, _>>()?;
    let mut parser = Parser { text, dialect, tokens: &tokens, at: 0, nesting: 0, items: Vec::new() };
    let tree = parser.expression()?;
    if parser.peek().is_some() {
        return Err(parser.expected("the end of the expression"));
    }
    Ok(tree.node)
}

struct Parser<'a> {
    text: &'a str,
    dialect: Dialect,
    tokens: &'a [(usize, Token<'a>)],
    /// The index of the next token.
    at: usize,
    /// The number of nested calls of [`Parser::expression`].
    nesting: usize,
    /// The names of the items of the open macros, the outermost first.
    items: Vec<&'a str>,
}

impl<'a> Parser<'a> {
    /// Parses `a ? b : c`, where `c` may be another conditional.
    fn expression(&mut self) -> Result<Tree, Error> {
        if self.nesting == MAX_TREE_DEPTH {
            return too_deep();
        }
        self.nesting += 1;
        let condition = self.or_expression()?;
        let tree = if self.take(&Token::Question) {
            let yes = self.or_expression()?;
            self.expect(&Token::Colon)?;
            let no = self.expression()?;
            let depth = condition.depth.max(yes.depth).max(no.depth);
            Tree::parent(depth, Node::Conditional(Box::new([condition.node, yes.node, no.node])))
        } else {
            Ok(condition)
        };
        self.nesting -= 1;
        tree
    }

    /// Parses `a || b || c`.
    fn or_expression(&mut self) -> Result<Tree, Error> {
        let first = self.and_expression()?;
        let mut sides = vec![first];
        while self.take(&Token::Or) {
            sides.push(self.and_expression()?);
        }
        join_sides(sides, Node::Or)
    }

    /// Parses `a && b && c`.
    fn and_expression(&mut self) -> Result<Tree, Error> {
        let first = self.binary(LOWEST)?;
        let mut sides = vec![first];
        while self.take(&Token::And) {
            sides.push(self.binary(LOWEST)?);
        }
        join_sides(sides, Node::And)
    }

    /// Parses operators of at least the precedence `lowest`. All of them associate to the left.
    fn binary(&mut self, lowest: u8) -> Result<Tree, Error> {
        let mut left = self.unary()?;
        while let Some(Token::Operator(operator)) = self.peek()
            && precedence(*operator) >= lowest
        {
            let operator = *operator;
            self.at += 1;
            let right = self.binary(precedence(operator) + 1)?;
            left = left.join(right, |left, right| Node::Binary(operator, left, right))?;
        }
        Ok(left)
    }

    /// Parses `!a`, `!!a`, `-a` and `--a`. `!` and `-` cannot be mixed without brackets.
    fn unary(&mut self) -> Result<Tree, Error> {
        let nots = self.take_all(&Token::Not);
        let mut minuses = self.take_all(&Token::Operator(Operator::Subtract));
        let mut tree = match self.peek() {
            // The sign belongs to the number: the smallest integer has no positive counterpart.
            Some(Token::Int(_) | Token::Double(_)) if minuses > 0 => {
                minuses -= 1;
                let number = self.number(/*negative*/ true)?;
                self.member_of(number)?
            }
            _ if nots > 0 && minuses > 0 => {
                return Err(self.expected("a number after !-, or brackets around the operand"));
            }
            _ => self.member()?,
        };
        for _ in 0..minuses {
            tree = tree.wrap(Node::Negate)?;
        }
        for _ in 0..nots {
            tree = tree.wrap(Node::Not)?;
        }
        Ok(tree)
    }

    fn peek(&self) -> Option<&'a Token<'a>> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    /// Consumes the next token if it equals `token`. Returns whether it does.
    fn take(&mut self, token: &Token<'_>) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    /// Consumes the next tokens as long as they equal `token`. Returns their number.
    fn take_all(&mut self, token: &Token<'_>) -> usize {
        let mut count = 0;
        while self.take(token) {
            count += 1;
        }
        count
    }

    /// Consumes `token`, which is a closing bracket or `:`.
    ///
    /// # Errors
    /// If the next token is another one.
    fn expect(&mut self, token: &Token<'_>) -> Result<(), Error> {
        match token {
            _ if self.take(token) => Ok(()),
            Token::Close(bracket) => Err(self.expected(&format!("{bracket:?}"))),
            _ => Err(self.expected("':'")),
        }
    }

    /// Returns the error for a next token that is not `what`, such as `a comma or ']'`.
    fn expected(&self, what: &str) -> Error {
        let start = self.tokens.get(self.at).map_or(self.text.len(), |(at, _)| *at);
        let before = self.text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let rest = self.text.get(start..).unwrap_or_default();
        let found: String = rest.chars().take_while(|c| !c.is_whitespace()).take(16).collect();
        let found = if found.is_empty() { "the end".to_owned() } else { format!("{found:?}") };
        Error::Syntax {
            message: format!("expected {what}, found {found}"),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
        }
    }
}

/// The lowest precedence of a binary operator.
const LOWEST: u8 = 1;

fn precedence(operator: Operator) -> u8 {
    match operator {
        Operator::Equal
        | Operator::Unequal
        | Operator::Less
        | Operator::LessOrEqual
        | Operator::Greater
        | Operator::GreaterOrEqual
        | Operator::In => LOWEST,
        Operator::Add | Operator::Subtract => 2,
        Operator::Multiply | Operator::Divide | Operator::Remainder => 3,
    }
}

/// Returns the only side, or a node with several sides.
fn join_sides(mut sides: Vec<Tree>, make: impl FnOnce(Vec<Node>) -> Node) -> Result<Tree, Error> {
    match (sides.pop(), sides.is_empty()) {
        (Some(side), true) => Ok(side),
        (last, _) => {
            sides.extend(last);
            Tree::gather(sides, make)
        }
    }
}
