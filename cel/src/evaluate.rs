//! The evaluation of an expression: a walk of its tree with a work budget.

use crate::error::Error;
use crate::facts::Facts;
use crate::node::{Earlier, Function, Macro, Node, Operator};
use crate::operate;
use crate::pattern::Pattern;
use crate::value::{List, Text, Value};
use crate::work::{WorkBudget, reading_units};
use serde_json::{Map, Value as Json};
use std::rc::Rc;

/// The units of work to match a pattern, for each byte of the text. This is more than reading takes, because a pattern may need many
/// steps for each byte.
const MATCHING_UNITS_PER_BYTE: u64 = 1;

/// The units of work to search the source of a value.
const SEARCHING_UNITS: u64 = 20;

/// Evaluates an expression to true or false.
pub(crate) fn evaluate(root: &Node, scope: Scope<'_>) -> Result<bool, Error> {
    let mut evaluation = Evaluation { scope, items: Vec::new(), work: WorkBudget::default() };
    match evaluation.evaluate(root)? {
        Value::Bool(truth) => Ok(truth),
        other => Err(Error::NotBool(other.kind())),
    }
}

/// The values that an expression reads.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The variables, which are also the fields of `args`.
    pub variables: &'a Map<String, Json>,
    /// The names of the optional arguments of the tool. They only affect the message of [`Error::Missing`].
    pub declared_optional: &'a [String],
    /// The values beside the variables.
    pub facts: &'a dyn Facts,
}

struct Evaluation<'a> {
    scope: Scope<'a>,
    /// The current item of each macro that is being evaluated, the outermost first.
    items: Vec<Value<'a>>,
    work: WorkBudget,
}

impl Error {
    /// Returns whether `&&` and `||` ignore the error if a later side decides. They never ignore a missing variable
    /// (`docs/explanation/engine.md`, section 3) or a spent budget.
    fn can_be_ignored(&self) -> bool {
        matches!(self, Self::Evaluation(_) | Self::NotBool(_))
    }
}

impl<'a> Evaluation<'a> {
    fn evaluate(&mut self, node: &'a Node) -> Result<Value<'a>, Error> {
        self.work.spend(1)?;
        Ok(match node {
            Node::Null => Value::Null,
            Node::Bool(value) => Value::Bool(*value),
            Node::Int(value) => Value::Int(*value),
            Node::Uint(value) => Value::Uint(*value),
            Node::Double(value) => Value::Double(*value),
            Node::Text(text) => Value::Text(Text::Borrowed(text)),
            Node::Arguments => Value::Map(self.scope.variables),
            Node::Argument(name) => self.find_argument(name)?,
            // The parser creates an `Item` only within its macro, so the item exists.
            Node::Item(at) => self.items.get(*at).cloned().unwrap_or(Value::Null),
            Node::List(items) => {
                let items: Result<Vec<_>, Error> = items.iter().map(|item| self.evaluate(item)).collect();
                Value::List(List::Computed(items?.into()))
            }
            Node::Select(operand, name) => {
                let operand = self.evaluate(operand)?;
                get_field(&operand, name)?.ok_or_else(|| Error::Evaluation(format!("there is no field {name:?}")))?
            }
            // Null counts as absent: models and schemas use it for an optional argument that is not given.
            Node::Has(operand, name) => {
                let field = get_field(&self.evaluate(operand)?, name)?;
                Value::Bool(field.is_some_and(|field| !matches!(field, Value::Null)))
            }
            Node::Index(operand, index) => {
                let (operand, index) = (self.evaluate(operand)?, self.evaluate(index)?);
                operate::index(&operand, &index)?
            }
            Node::Not(operand) => Value::Bool(!self.evaluate_bool(operand)?),
            Node::Negate(operand) => operate::negate(&self.evaluate(operand)?)?,
            Node::And(sides) => Value::Bool(self.evaluate_and_or(sides, /*decisive*/ false)?),
            Node::Or(sides) => Value::Bool(self.evaluate_and_or(sides, /*decisive*/ true)?),
            Node::Conditional(parts) => {
                let [condition, yes, no] = parts.as_ref();
                if self.evaluate_bool(condition)? { self.evaluate(yes)? } else { self.evaluate(no)? }
            }
            Node::Binary(operator, left, right) => self.evaluate_binary(*operator, left, right)?,
            Node::Call(function, operands) => self.evaluate_call(*function, operands)?,
            Node::Macro(kind, range, body) => self.evaluate_macro(*kind, range, body)?,
            Node::Matches(operand, pattern) => self.evaluate_match(operand, pattern)?,
            Node::NamedList(_) | Node::Result | Node::Step(_) => self.read_fact(node)?,
            Node::FromUser(value) => {
                let value = self.evaluate_token("fromUser", value)?;
                Value::Bool(self.scope.facts.is_from_user(value.as_str()))
            }
            Node::FromTool(value, tool) => {
                let value = self.evaluate_token("fromTool", value)?;
                Value::Bool(self.scope.facts.is_from_tool(value.as_str(), tool))
            }
            Node::Earlier(kind, tool) => self.read_earlier(*kind, tool)?,
        })
    }

    fn evaluate_bool(&mut self, node: &'a Node) -> Result<bool, Error> {
        match self.evaluate(node)? {
            Value::Bool(truth) => Ok(truth),
            other => Err(Error::NotBool(other.kind())),
        }
    }

    fn find_argument(&self, name: &str) -> Result<Value<'a>, Error> {
        self.scope.variables.get(name).map(Value::from_json).ok_or_else(|| Error::Missing {
            name: name.to_owned(),
            optional: self.scope.declared_optional.iter().any(|declared| declared == name),
        })
    }

    /// Evaluates `&&` (`decisive` is false) or `||` (`decisive` is true). A side with the decisive value decides, even if
    /// earlier sides failed. If no side decides, the last failure is the error.
    fn evaluate_and_or(&mut self, sides: &'a [Node], decisive: bool) -> Result<bool, Error> {
        let mut ignored = None;
        for side in sides {
            match self.evaluate_bool(side) {
                Ok(truth) if truth == decisive => return Ok(decisive),
                Ok(_) => {}
                Err(error) if error.can_be_ignored() => ignored = Some(error),
                Err(error) => return Err(error),
            }
        }
        ignored.map_or(Ok(!decisive), Err)
    }

    fn evaluate_binary(&mut self, operator: Operator, left: &'a Node, right: &'a Node) -> Result<Value<'a>, Error> {
        let (left, right) = (self.evaluate(left)?, self.evaluate(right)?);
        self.work.spend_on_operation(operator, &left, &right)?;
        operate::binary(operator, &left, &right)
    }

    fn evaluate_call(&mut self, function: Function, operands: &'a [Node]) -> Result<Value<'a>, Error> {
        let mut operands = operands.iter();
        let first = operands.next().map_or(Ok(Value::Null), |operand| self.evaluate(operand))?;
        let second = operands.next().map(|operand| self.evaluate(operand)).transpose()?;
        self.work.spend(reading_units(&first) + second.as_ref().map_or(0, reading_units))?;
        operate::call(function, first, second.as_ref())
    }

    fn evaluate_match(&mut self, operand: &'a Node, pattern: &Pattern) -> Result<Value<'a>, Error> {
        match self.evaluate(operand)? {
            Value::Text(text) => {
                self.work.spend(MATCHING_UNITS_PER_BYTE * text.as_str().len() as u64)?;
                Ok(Value::Bool(pattern.is_match(text.as_str())))
            }
            other => Err(Error::Evaluation(format!("matches() is not defined for {}", other.kind()))),
        }
    }

    /// Evaluates a value whose source is asked for. Returns its text.
    fn evaluate_token(&mut self, function: &str, node: &'a Node) -> Result<Text<'a>, Error> {
        let value = self.evaluate(node)?;
        let units = SEARCHING_UNITS + reading_units(&value);
        self.work.spend(units)?;
        if let Value::Text(text) = value {
            return Ok(text);
        }
        operate::token_text(&value).map(|text| Text::Computed(text.into())).ok_or_else(|| {
            let kind = value.kind();
            Error::Evaluation(format!(
                "{function}() is not defined for {kind}: it takes a string or a number, such as each item of a list"
            ))
        })
    }

    /// Reads a named list, the result or an earlier step.
    fn read_fact(&self, node: &'a Node) -> Result<Value<'a>, Error> {
        let facts = self.scope.facts;
        let (value, what) = match node {
            Node::NamedList(name) => {
                (facts.list(name).map(|items| Value::List(List::Borrowed(items))), format!("list {name:?}"))
            }
            Node::Step(name) => (facts.step(name).map(Value::Map), format!("completed step {name:?}")),
            _ => (facts.result().map(Value::from_json), "result".to_owned()),
        };
        value.ok_or_else(|| Error::Evaluation(format!("there is no {what}")))
    }

    fn read_earlier(&mut self, kind: Earlier, tool: &str) -> Result<Value<'a>, Error> {
        let facts = self.scope.facts;
        let found = match kind {
            Earlier::Calls => facts.calls(tool),
            Earlier::Results => facts.results(tool),
        };
        let found = found.map_err(Error::Evaluation)?;
        self.work.spend(found.len() as u64)?;
        Ok(Value::List(List::Computed(found.into_iter().map(Value::from_json).collect())))
    }

    fn evaluate_macro(&mut self, kind: Macro, range: &'a Node, body: &'a Node) -> Result<Value<'a>, Error> {
        let items = match self.evaluate(range)? {
            Value::List(items) => items,
            // Sorted, because the order of a `Map` depends on the features of `serde_json`.
            Value::Map(fields) => {
                let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
                names.sort_unstable();
                List::Computed(names.into_iter().map(|name| Value::Text(Text::Borrowed(name))).collect())
            }
            other => return Err(Error::Evaluation(format!("{kind}() goes over a list, not {}", other.kind()))),
        };
        match kind {
            Macro::All => self.all_or_exists(&items, body, /*decisive*/ false).map(Value::Bool),
            Macro::Exists => self.all_or_exists(&items, body, /*decisive*/ true).map(Value::Bool),
            Macro::ExistsOne => self.matching_items(&items, body).map(|items| Value::Bool(items.len() == 1)),
            Macro::Filter => self.matching_items(&items, body).map(|items| Value::List(List::Computed(items))),
            Macro::Map => {
                let results: Result<Rc<[_]>, Error> =
                    items.iter().map(|item| self.evaluate_for_item(item, body)).collect();
                results.map(|results| Value::List(List::Computed(results)))
            }
        }
    }

    /// Evaluates the body of a macro for one item.
    fn evaluate_for_item(&mut self, item: Value<'a>, body: &'a Node) -> Result<Value<'a>, Error> {
        self.items.push(item);
        let result = self.evaluate(body);
        self.items.pop();
        result
    }

    fn is_true_for_item(&mut self, item: Value<'a>, body: &'a Node) -> Result<bool, Error> {
        match self.evaluate_for_item(item, body)? {
            Value::Bool(truth) => Ok(truth),
            other => Err(Error::NotBool(other.kind())),
        }
    }

    /// Evaluates `all` (`decisive` is false) or `exists` (`decisive` is true).
    ///
    /// Returns `decisive` if the body has this value for any item, even if it fails for earlier items. Otherwise, the first
    /// failure is the error. Without a failure, returns the opposite of `decisive`.
    fn all_or_exists(&mut self, items: &List<'a>, body: &'a Node, decisive: bool) -> Result<bool, Error> {
        let mut ignored = None;
        for item in items.iter() {
            match self.is_true_for_item(item, body) {
                Ok(truth) if truth == decisive => return Ok(decisive),
                Ok(_) => {}
                Err(error) if error.can_be_ignored() => ignored = ignored.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        ignored.map_or(Ok(!decisive), Err)
    }

    fn matching_items(&mut self, items: &List<'a>, body: &'a Node) -> Result<Rc<[Value<'a>]>, Error> {
        let mut matching = Vec::new();
        for item in items.iter() {
            if self.is_true_for_item(item.clone(), body)? {
                matching.push(item);
            }
        }
        Ok(matching.into())
    }
}

fn get_field<'a>(operand: &Value<'a>, name: &str) -> Result<Option<Value<'a>>, Error> {
    match operand {
        Value::Map(fields) => Ok(fields.get(name).map(Value::from_json)),
        other => Err(Error::Evaluation(format!("{} has no field {name:?}", other.kind()))),
    }
}
