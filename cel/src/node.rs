//! The tree of an expression.

use crate::pattern::Pattern;

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A double.
    Double(f64),
    /// A string.
    Text(String),
    /// All variables: `args`.
    Arguments,
    /// A variable, by its bare name (`amount`) or as a field of `args` (`args.amount`).
    Argument(String),
    /// A named list of the policy: `lists.name`.
    NamedList(String),
    /// The result of the call: `result`. Only conditions of workflow steps have it.
    Result,
    /// The arguments and the result of an earlier workflow step: `steps.name`. Only conditions of workflow steps have it.
    Step(String),
    /// The current item of an enclosing macro. 0 is the outermost macro.
    Item(usize),
    /// A list.
    List(Vec<Node>),
    /// `operand.name`
    Select(Box<Node>, String),
    /// `has(operand.name)`
    Has(Box<Node>, String),
    /// `operand[index]`
    Index(Box<Node>, Box<Node>),
    /// `!operand`
    Not(Box<Node>),
    /// `-operand`
    Negate(Box<Node>),
    /// `a && b && c`
    And(Vec<Node>),
    /// `a || b || c`
    Or(Vec<Node>),
    /// `condition ? yes : no`
    Conditional(Box<[Node; 3]>),
    /// An operator and its two sides.
    Binary(Operator, Box<Node>, Box<Node>),
    /// A function call. The target of a method call is the first operand.
    Call(Function, Vec<Node>),
    /// `text.matches('pattern')`
    Matches(Box<Node>, Pattern),
    /// `fromUser(value)`
    FromUser(Box<Node>),
    /// `fromTool(value, 'tool')`
    FromTool(Box<Node>, String),
    /// `calls('tool')` or `results('tool')`
    Earlier(Earlier, String),
    /// A macro call: the list or object over which it iterates, and the body.
    Macro(Macro, Box<Node>, Box<Node>),
}

/// An operator that needs the values of both sides, unlike `&&` and `||`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum Operator {
    /// `==`
    #[strum(serialize = "==")]
    Equal,
    /// `!=`
    #[strum(serialize = "!=")]
    Unequal,
    /// `<`
    #[strum(serialize = "<")]
    Less,
    /// `<=`
    #[strum(serialize = "<=")]
    LessOrEqual,
    /// `>`
    #[strum(serialize = ">")]
    Greater,
    /// `>=`
    #[strum(serialize = ">=")]
    GreaterOrEqual,
    /// `in`
    #[strum(serialize = "in")]
    In,
    /// `+`
    #[strum(serialize = "+")]
    Add,
    /// `-`
    #[strum(serialize = "-")]
    Subtract,
    /// `*`
    #[strum(serialize = "*")]
    Multiply,
    /// `/`
    #[strum(serialize = "/")]
    Divide,
    /// `%`
    #[strum(serialize = "%")]
    Remainder,
}

/// A function over the earlier calls of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "camelCase")]
pub enum Earlier {
    /// The arguments of the calls that were started.
    Calls,
    /// The results of the calls that completed.
    Results,
}

/// A function of CEL's libraries, or one that conditions add.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "camelCase")]
pub enum Function {
    /// The length of a string in characters, or the number of items.
    Size,
    /// True if a string contains another.
    Contains,
    /// True if a string starts with another.
    StartsWith,
    /// True if a string ends with another.
    EndsWith,
    /// Converts to a signed integer.
    Int,
    /// Converts to an unsigned integer.
    Uint,
    /// Converts to a double.
    Double,
    /// Converts to a string.
    String,
    /// Converts a string to its bytes in UTF-8.
    Bytes,
    /// Converts the ASCII letters of a string to lower case.
    LowerAscii,
    /// The host of a URL.
    Host,
    /// The domain of an e-mail address.
    Domain,
}

/// A function that evaluates its second argument once for each item of a list, or key of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum Macro {
    /// True if the body is true for all items.
    All,
    /// True if the body is true for at least one item.
    Exists,
    /// True if the body is true for exactly one item.
    #[strum(to_string = "exists_one", serialize = "existsOne")]
    ExistsOne,
    /// The items for which the body is true.
    Filter,
    /// The body's value for each item.
    Map,
}
