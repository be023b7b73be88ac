//! The part of CEL that conditions have, and how the parser's tree becomes it.

use super::fault::Fault;
use bloomery_crds::text::bounded;
use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, LiteralValue, operators};

/// Deeper than any tree that the check of tokens lets through: what it counts, and a balanced tree of `&&`.
const MAX_DEPTH: usize = 64;

/// Names that CEL itself gives a meaning. As a bare name such an argument would silently be something else.
const OWN_WORDS: [&str; 15] = [
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

/// A condition as it is evaluated.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    /// All arguments: `args`.
    Arguments,
    /// One argument, by its bare name or as a field of `args`.
    Argument(String),
    /// The item that a macro looks at.
    Item,
    List(Vec<Node>),
    Select(Box<Node>, String),
    Has(Box<Node>, String),
    Index(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Choice(Box<[Node; 3]>),
    Binary(Operator, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
    Macro(Macro, Box<Node>, Box<Node>),
}

/// An operator that takes the values of both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub(super) enum Operator {
    #[strum(serialize = "==")]
    Equal,
    #[strum(serialize = "!=")]
    Unequal,
    #[strum(serialize = "<")]
    Less,
    #[strum(serialize = "<=")]
    LessOrEqual,
    #[strum(serialize = ">")]
    Greater,
    #[strum(serialize = ">=")]
    GreaterOrEqual,
    #[strum(serialize = "in")]
    In,
    #[strum(serialize = "+")]
    Add,
    #[strum(serialize = "-")]
    Subtract,
    #[strum(serialize = "*")]
    Multiply,
    #[strum(serialize = "/")]
    Divide,
    #[strum(serialize = "%")]
    Remainder,
}

/// A function of CEL's standard library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "camelCase")]
pub(super) enum Function {
    Size,
    Contains,
    StartsWith,
    EndsWith,
    Int,
    Uint,
    Double,
    String,
}

/// A function that evaluates its second argument once for each item of a list, or key of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Macro {
    All,
    Exists,
    #[strum(to_string = "exists_one", serialize = "existsOne")]
    ExistsOne,
    Filter,
    Map,
}

/// Lowers the parser's tree.
pub(super) fn lower(expression: &IdedExpr) -> Result<Node, Fault> {
    Scope { item: None, depth: 0 }.lower(expression)
}

fn unsupported<T>(sentence: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Unsupported(sentence.into()))
}

/// Where a part of the tree stands: in which macro, and how deep.
#[derive(Clone, Copy)]
struct Scope<'a> {
    item: Option<&'a str>,
    depth: usize,
}

impl<'a> Scope<'a> {
    fn lower(self, expression: &'a IdedExpr) -> Result<Node, Fault> {
        if self.depth > MAX_DEPTH {
            return unsupported("the condition is nested too deep");
        }
        let inner = Self { depth: self.depth + 1, ..self };
        match &expression.expr {
            Expr::Literal(literal) => literal_node(literal),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => {
                let of = inner.lower(&select.operand)?;
                Ok(if select.test { Node::Has(Box::new(of), select.field.clone()) } else { field(of, &select.field) })
            }
            Expr::List(list) if list.optional_indices.is_empty() => Ok(Node::List(inner.all(&list.elements)?)),
            Expr::Call(call) => inner.call(call),
            Expr::Map(_) | Expr::Struct(_) => unsupported("maps and messages cannot be written in a condition"),
            Expr::List(_) | Expr::Comprehension(_) | Expr::Unspecified => {
                unsupported("the condition uses a form of CEL that is not supported")
            }
        }
    }

    fn all(self, expressions: &'a [IdedExpr]) -> Result<Vec<Node>, Fault> {
        expressions.iter().map(|expression| self.lower(expression)).collect()
    }

    fn boxed(self, expression: &'a IdedExpr) -> Result<Box<Node>, Fault> {
        self.lower(expression).map(Box::new)
    }

    fn name(self, name: &str) -> Result<Node, Fault> {
        if self.item == Some(name) {
            Ok(Node::Item)
        } else if name == "args" {
            Ok(Node::Arguments)
        } else if OWN_WORDS.contains(&name) {
            unsupported(format!("{name} is a word of CEL: for the argument of that name write args.{name}"))
        } else if name.starts_with('.') {
            unsupported(format!("{} begins with a dot: write the name of an argument, or args.name", short(name)))
        } else {
            Ok(Node::Argument(name.to_owned()))
        }
    }

    fn call(self, call: &'a CallExpr) -> Result<Node, Fault> {
        match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
            (operators::LOGICAL_NOT, None, [of]) => Ok(Node::Not(self.boxed(of)?)),
            (operators::NEGATE, None, [of]) => Ok(Node::Negate(self.boxed(of)?)),
            (operators::LOGICAL_AND, None, [left, right]) => Ok(Node::And(self.boxed(left)?, self.boxed(right)?)),
            (operators::LOGICAL_OR, None, [left, right]) => Ok(Node::Or(self.boxed(left)?, self.boxed(right)?)),
            (operators::CONDITIONAL, None, [condition, yes, no]) => {
                Ok(Node::Choice(Box::new([self.lower(condition)?, self.lower(yes)?, self.lower(no)?])))
            }
            (operators::INDEX, None, [of, at]) => Ok(match (self.lower(of)?, self.lower(at)?) {
                (Node::Arguments, Node::Text(name)) => Node::Argument(name),
                (of, at) => Node::Index(Box::new(of), Box::new(at)),
            }),
            (operators::HAS, None, [of]) => match &of.expr {
                Expr::Select(select) if !select.test => {
                    Ok(Node::Has(self.boxed(&select.operand)?, select.field.clone()))
                }
                _ => unsupported("has() asks for a field: write has(args.name)"),
            },
            (name, None, operands @ [left, right]) => match operator(name) {
                Some(operator) => Ok(Node::Binary(operator, self.boxed(left)?, self.boxed(right)?)),
                None => self.function(name, None, operands),
            },
            (name, Some(over), arguments @ [item, body]) => match name.parse() {
                Ok(kind) => self.macro_call(kind, over, item, body),
                Err(_) => self.function(name, Some(over), arguments),
            },
            (name, target, arguments) => self.function(name, target, arguments),
        }
    }

    fn macro_call(
        self,
        kind: Macro,
        over: &'a IdedExpr,
        item: &'a IdedExpr,
        body: &'a IdedExpr,
    ) -> Result<Node, Fault> {
        if self.item.is_some() {
            return unsupported(format!("{kind}() stands within another macro: macros cannot be nested"));
        }
        let Expr::Ident(name) = &item.expr else {
            return unsupported(format!("{kind}() takes a name for the item first: list.{kind}(item, ...)"));
        };
        if name == "args" || OWN_WORDS.contains(&name.as_str()) || name.starts_with('.') {
            return unsupported(format!("{kind}() cannot call its item {}: choose another name", short(name)));
        }
        let over = self.boxed(over)?;
        let body = Scope { item: Some(name), ..self }.boxed(body)?;
        Ok(Node::Macro(kind, over, body))
    }

    fn function(self, name: &str, target: Option<&'a IdedExpr>, arguments: &'a [IdedExpr]) -> Result<Node, Fault> {
        if name == "matches" {
            return unsupported("matches() is not supported: use startsWith, endsWith or contains");
        }
        let Ok(function) = name.parse::<Function>() else { return unknown(name) };
        let fits = match function {
            Function::Size => arguments.len() + usize::from(target.is_some()) == 1,
            Function::Contains | Function::StartsWith | Function::EndsWith => target.is_some() && arguments.len() == 1,
            Function::Int | Function::Uint | Function::Double | Function::String => {
                target.is_none() && arguments.len() == 1
            }
        };
        if !fits {
            return unsupported(format!("{name}() is not called like this"));
        }
        let operands = target.into_iter().chain(arguments).map(|operand| self.lower(operand));
        Ok(Node::Call(function, operands.collect::<Result<_, _>>()?))
    }
}

fn field(of: Node, name: &str) -> Node {
    match of {
        Node::Arguments => Node::Argument(name.to_owned()),
        of => Node::Select(Box::new(of), name.to_owned()),
    }
}

fn unknown<T>(name: &str) -> Result<T, Fault> {
    unsupported(format!(
        "there is no function {}(): size, contains, startsWith, endsWith, int, uint, double, string, has, all, \
         exists, exists_one, filter and map can be used",
        short(name)
    ))
}

fn short(name: &str) -> String {
    bounded(name, 64)
}

fn operator(name: &str) -> Option<Operator> {
    Some(match name {
        operators::EQUALS => Operator::Equal,
        operators::NOT_EQUALS => Operator::Unequal,
        operators::LESS => Operator::Less,
        operators::LESS_EQUALS => Operator::LessOrEqual,
        operators::GREATER => Operator::Greater,
        operators::GREATER_EQUALS => Operator::GreaterOrEqual,
        operators::IN => Operator::In,
        operators::ADD => Operator::Add,
        operators::SUBSTRACT => Operator::Subtract,
        operators::MULTIPLY => Operator::Multiply,
        operators::DIVIDE => Operator::Divide,
        operators::MODULO => Operator::Remainder,
        _ => return None,
    })
}

fn literal_node(literal: &LiteralValue) -> Result<Node, Fault> {
    Ok(match literal {
        LiteralValue::Null => Node::Null,
        LiteralValue::Boolean(of) => Node::Bool(*of.inner()),
        LiteralValue::Int(of) => Node::Int(*of.inner()),
        LiteralValue::UInt(of) => Node::Uint(*of.inner()),
        LiteralValue::Double(of) => Node::Double(*of.inner()),
        LiteralValue::String(of) => Node::Text(of.inner().to_owned()),
        LiteralValue::Bytes(_) => return unsupported("bytes cannot be used: arguments are JSON"),
    })
}
