//! The evaluation of a condition: a walk of its tree with a budget.

use super::arguments::Arguments;
use super::fault::Fault;
use super::lower::{Function, Macro, Node, Operator};
use super::operate;
use super::value::{List, Text, Value};
use super::work::{Work, shallow};
use serde_json::{Map, Value as Json};
use std::rc::Rc;

/// Evaluates a condition to true or false.
pub(super) fn truth(node: &Node, arguments: Arguments<'_>, declared_optional: &[String]) -> Result<bool, Fault> {
    let mut evaluation =
        Evaluation { arguments: arguments.fields(), declared_optional, item: None, work: Work::default() };
    match evaluation.value(node)? {
        Value::Bool(truth) => Ok(truth),
        other => Err(Fault::NotBool(other.kind())),
    }
}

struct Evaluation<'a> {
    arguments: &'a Map<String, Json>,
    declared_optional: &'a [String],
    item: Option<Value<'a>>,
    work: Work,
}

impl Fault {
    /// Whether `&&` and `||` may do without the side that failed so. A missing argument and spent work may not be
    /// overlooked: the first is decided so (`docs/explanation/engine.md`), the second would never end.
    fn can_be_overlooked(&self) -> bool {
        matches!(self, Self::Evaluation(_) | Self::NotBool(_))
    }
}

impl<'a> Evaluation<'a> {
    fn value(&mut self, node: &'a Node) -> Result<Value<'a>, Fault> {
        self.work.spend(1)?;
        Ok(match node {
            Node::Null => Value::Null,
            Node::Bool(of) => Value::Bool(*of),
            Node::Int(of) => Value::Int(*of),
            Node::Uint(of) => Value::Uint(*of),
            Node::Double(of) => Value::Double(*of),
            Node::Text(of) => Value::Text(Text::Lent(of)),
            Node::Arguments => Value::Map(self.arguments),
            Node::Argument(name) => self.argument(name)?,
            Node::Item => self.item.clone().unwrap_or(Value::Null),
            Node::List(items) => {
                let items: Result<Vec<_>, Fault> = items.iter().map(|item| self.value(item)).collect();
                Value::List(List::Made(items?.into()))
            }
            Node::Select(of, name) => {
                let of = self.value(of)?;
                field(&of, name)?.ok_or_else(|| Fault::Evaluation(format!("there is no field {name:?}")))?
            }
            Node::Has(of, name) => Value::Bool(field(&self.value(of)?, name)?.is_some()),
            Node::Index(of, at) => {
                let (of, at) = (self.value(of)?, self.value(at)?);
                operate::index(&of, &at)?
            }
            Node::Not(of) => Value::Bool(!self.bool(of)?),
            Node::Negate(of) => operate::negate(&self.value(of)?)?,
            Node::And(left, right) => Value::Bool(self.connect(left, right, /*decisive*/ false)?),
            Node::Or(left, right) => Value::Bool(self.connect(left, right, /*decisive*/ true)?),
            Node::Choice(parts) => {
                let [condition, yes, no] = parts.as_ref();
                if self.bool(condition)? { self.value(yes)? } else { self.value(no)? }
            }
            Node::Binary(operator, left, right) => self.binary(*operator, left, right)?,
            Node::Call(function, operands) => self.call(*function, operands)?,
            Node::Macro(kind, over, body) => self.each(*kind, over, body)?,
        })
    }

    fn bool(&mut self, node: &'a Node) -> Result<bool, Fault> {
        match self.value(node)? {
            Value::Bool(of) => Ok(of),
            other => Err(Fault::NotBool(other.kind())),
        }
    }

    fn argument(&self, name: &str) -> Result<Value<'a>, Fault> {
        self.arguments.get(name).map(Value::of).ok_or_else(|| Fault::Missing {
            name: name.to_owned(),
            optional: self.declared_optional.iter().any(|declared| declared == name),
        })
    }

    /// `&&` (decided by false) and `||` (by true): the side that decides makes up for an error of the other.
    fn connect(&mut self, left: &'a Node, right: &'a Node, decisive: bool) -> Result<bool, Fault> {
        let fault = match self.bool(left) {
            Ok(left) if left == decisive => return Ok(decisive),
            Ok(_) => None,
            Err(fault) if fault.can_be_overlooked() => Some(fault),
            Err(fault) => return Err(fault),
        };
        match (self.bool(right), fault) {
            (Ok(right), None) => Ok(right),
            (Ok(right), Some(_)) if right == decisive => Ok(decisive),
            (Err(fault), _) | (Ok(_), Some(fault)) => Err(fault),
        }
    }

    fn binary(&mut self, operator: Operator, left: &'a Node, right: &'a Node) -> Result<Value<'a>, Fault> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        self.work.spend_on_operation(operator, &left, &right)?;
        operate::binary(operator, &left, &right)
    }

    fn call(&mut self, function: Function, operands: &'a [Node]) -> Result<Value<'a>, Fault> {
        let mut values = operands.iter().map(|operand| self.value(operand)).collect::<Result<Vec<_>, _>>()?.into_iter();
        let first = values.next().unwrap_or(Value::Null);
        let second = values.next();
        for text in [Some(&first), second.as_ref()].into_iter().flatten() {
            self.work.spend(shallow(text))?;
        }
        operate::call(function, first, second.as_ref())
    }

    fn each(&mut self, kind: Macro, over: &'a Node, body: &'a Node) -> Result<Value<'a>, Fault> {
        let items = match self.value(over)? {
            Value::List(items) => items,
            // The order of the keys is that of the arguments' canonical form.
            Value::Map(fields) => {
                let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
                names.sort_unstable();
                List::Made(names.into_iter().map(|name| Value::Text(Text::Lent(name))).collect())
            }
            other => return Err(Fault::Evaluation(format!("{kind}() goes over a list, not {}", other.kind()))),
        };
        let result = match kind {
            Macro::All => self.any(&items, body, /*decisive*/ false).map(Value::Bool),
            Macro::Exists => self.any(&items, body, /*decisive*/ true).map(Value::Bool),
            Macro::ExistsOne => self.chosen(&items, body).map(|chosen| Value::Bool(chosen.len() == 1)),
            Macro::Filter => self.chosen(&items, body).map(|chosen| Value::List(List::Made(chosen))),
            Macro::Map => {
                let made: Result<Rc<[_]>, Fault> = items.iter().map(|item| self.with(item, body)).collect();
                made.map(|made| Value::List(List::Made(made)))
            }
        };
        self.item = None;
        result
    }

    fn with(&mut self, item: Value<'a>, body: &'a Node) -> Result<Value<'a>, Fault> {
        self.item = Some(item);
        self.value(body)
    }

    fn holds(&mut self, item: Value<'a>, body: &'a Node) -> Result<bool, Fault> {
        self.item = Some(item);
        self.bool(body)
    }

    /// Whether the body is `decisive` for any item; that item makes up for errors of others.
    fn any(&mut self, items: &List<'a>, body: &'a Node, decisive: bool) -> Result<bool, Fault> {
        let mut overlooked = None;
        for item in items.iter() {
            match self.holds(item, body) {
                Ok(truth) if truth == decisive => return Ok(decisive),
                Ok(_) => {}
                Err(fault) if fault.can_be_overlooked() => overlooked = overlooked.or(Some(fault)),
                Err(fault) => return Err(fault),
            }
        }
        overlooked.map_or(Ok(!decisive), Err)
    }

    fn chosen(&mut self, items: &List<'a>, body: &'a Node) -> Result<Rc<[Value<'a>]>, Fault> {
        let mut chosen = Vec::new();
        for item in items.iter() {
            if self.holds(item.clone(), body)? {
                chosen.push(item);
            }
        }
        Ok(chosen.into())
    }
}

fn field<'a>(of: &Value<'a>, name: &str) -> Result<Option<Value<'a>>, Fault> {
    match of {
        Value::Map(fields) => Ok(fields.get(name).map(Value::of)),
        other => Err(Fault::Evaluation(format!("{} has no field {name:?}", other.kind()))),
    }
}
