//! The evaluation of an expression: a walk of its tree with a work budget.

use crate::error::Error;
use crate::node::{Function, Macro, Node, Operator};
use crate::operate;
use crate::value::{List, Text, Value};
use crate::work::{Work, shallow};
use serde_json::{Map, Value as Json};
use std::rc::Rc;

/// Evaluates an expression to true or false.
pub(crate) fn evaluate(
    root: &Node,
    variables: &Map<String, Json>,
    declared_optional: &[String],
) -> Result<bool, Error> {
    let mut evaluation = Evaluation { variables, declared_optional, items: Vec::new(), work: Work::default() };
    match evaluation.value(root)? {
        Value::Bool(truth) => Ok(truth),
        other => Err(Error::NotBool(other.kind())),
    }
}

struct Evaluation<'a> {
    variables: &'a Map<String, Json>,
    declared_optional: &'a [String],
    /// The items of the open macros, the outermost first.
    items: Vec<Value<'a>>,
    work: Work,
}

impl Error {
    /// Returns whether `&&` and `||` may ignore the error if the other side decides. They do not ignore a missing variable
    /// (`docs/explanation/engine.md`, section 3), nor a spent budget.
    fn can_be_ignored(&self) -> bool {
        matches!(self, Self::Evaluation(_) | Self::NotBool(_))
    }
}

impl<'a> Evaluation<'a> {
    fn value(&mut self, node: &'a Node) -> Result<Value<'a>, Error> {
        self.work.spend(1)?;
        Ok(match node {
            Node::Null => Value::Null,
            Node::Bool(of) => Value::Bool(*of),
            Node::Int(of) => Value::Int(*of),
            Node::Uint(of) => Value::Uint(*of),
            Node::Double(of) => Value::Double(*of),
            Node::Text(of) => Value::Text(Text::Lent(of)),
            Node::Arguments => Value::Map(self.variables),
            Node::Argument(name) => self.argument(name)?,
            Node::Item(at) => self.items.get(*at).cloned().unwrap_or(Value::Null),
            Node::List(items) => {
                let items: Result<Vec<_>, Error> = items.iter().map(|item| self.value(item)).collect();
                Value::List(List::Made(items?.into()))
            }
            Node::Select(of, name) => {
                let of = self.value(of)?;
                field(&of, name)?.ok_or_else(|| Error::Evaluation(format!("there is no field {name:?}")))?
            }
            Node::Has(of, name) => Value::Bool(field(&self.value(of)?, name)?.is_some()),
            Node::Index(of, at) => {
                let (of, at) = (self.value(of)?, self.value(at)?);
                operate::index(&of, &at)?
            }
            Node::Not(of) => Value::Bool(!self.bool(of)?),
            Node::Negate(of) => operate::negate(&self.value(of)?)?,
            Node::And(sides) => Value::Bool(self.connect(sides, /*decisive*/ false)?),
            Node::Or(sides) => Value::Bool(self.connect(sides, /*decisive*/ true)?),
            Node::Choice(parts) => {
                let [condition, yes, no] = parts.as_ref();
                if self.bool(condition)? { self.value(yes)? } else { self.value(no)? }
            }
            Node::Binary(operator, left, right) => self.binary(*operator, left, right)?,
            Node::Call(function, operands) => self.call(*function, operands)?,
            Node::Macro(kind, over, body) => self.each(*kind, over, body)?,
        })
    }

    fn bool(&mut self, node: &'a Node) -> Result<bool, Error> {
        match self.value(node)? {
            Value::Bool(of) => Ok(of),
            other => Err(Error::NotBool(other.kind())),
        }
    }

    fn argument(&self, name: &str) -> Result<Value<'a>, Error> {
        self.variables.get(name).map(Value::from_json).ok_or_else(|| Error::Missing {
            name: name.to_owned(),
            optional: self.declared_optional.iter().any(|declared| declared == name),
        })
    }

    /// `&&`, which a false side decides, and `||`, which a true side decides. The deciding side overrules errors of others.
    fn connect(&mut self, sides: &'a [Node], decisive: bool) -> Result<bool, Error> {
        let mut ignored = None;
        for side in sides {
            match self.bool(side) {
                Ok(truth) if truth == decisive => return Ok(decisive),
                Ok(_) => {}
                Err(error) if error.can_be_ignored() => ignored = Some(error),
                Err(error) => return Err(error),
            }
        }
        ignored.map_or(Ok(!decisive), Err)
    }

    fn binary(&mut self, operator: Operator, left: &'a Node, right: &'a Node) -> Result<Value<'a>, Error> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        self.work.spend_on_operation(operator, &left, &right)?;
        operate::binary(operator, &left, &right)
    }

    fn call(&mut self, function: Function, operands: &'a [Node]) -> Result<Value<'a>, Error> {
        let mut values = operands.iter().map(|operand| self.value(operand)).collect::<Result<Vec<_>, _>>()?.into_iter();
        let first = values.next().unwrap_or(Value::Null);
        let second = values.next();
        for text in [Some(&first), second.as_ref()].into_iter().flatten() {
            self.work.spend(shallow(text))?;
        }
        operate::call(function, first, second.as_ref())
    }

    fn each(&mut self, kind: Macro, over: &'a Node, body: &'a Node) -> Result<Value<'a>, Error> {
        let items = match self.value(over)? {
            Value::List(items) => items,
            // In the order of the canonical form.
            Value::Map(fields) => {
                let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
                names.sort_unstable();
                List::Made(names.into_iter().map(|name| Value::Text(Text::Lent(name))).collect())
            }
            other => return Err(Error::Evaluation(format!("{kind}() goes over a list, not {}", other.kind()))),
        };
        match kind {
            Macro::All => self.any(&items, body, /*decisive*/ false).map(Value::Bool),
            Macro::Exists => self.any(&items, body, /*decisive*/ true).map(Value::Bool),
            Macro::ExistsOne => self.chosen(&items, body).map(|chosen| Value::Bool(chosen.len() == 1)),
            Macro::Filter => self.chosen(&items, body).map(|chosen| Value::List(List::Made(chosen))),
            Macro::Map => {
                let made: Result<Rc<[_]>, Error> = items.iter().map(|item| self.with(item, body)).collect();
                made.map(|made| Value::List(List::Made(made)))
            }
        }
    }

    /// Evaluates the body of a macro for one item.
    fn with(&mut self, item: Value<'a>, body: &'a Node) -> Result<Value<'a>, Error> {
        self.items.push(item);
        let result = self.value(body);
        self.items.pop();
        result
    }

    fn holds(&mut self, item: Value<'a>, body: &'a Node) -> Result<bool, Error> {
        match self.with(item, body)? {
            Value::Bool(truth) => Ok(truth),
            other => Err(Error::NotBool(other.kind())),
        }
    }

    /// Returns whether the body is `decisive` for any item. That item overrules errors of others.
    fn any(&mut self, items: &List<'a>, body: &'a Node, decisive: bool) -> Result<bool, Error> {
        let mut ignored = None;
        for item in items.iter() {
            match self.holds(item, body) {
                Ok(truth) if truth == decisive => return Ok(decisive),
                Ok(_) => {}
                Err(error) if error.can_be_ignored() => ignored = ignored.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        ignored.map_or(Ok(!decisive), Err)
    }

    fn chosen(&mut self, items: &List<'a>, body: &'a Node) -> Result<Rc<[Value<'a>]>, Error> {
        let mut chosen = Vec::new();
        for item in items.iter() {
            if self.holds(item.clone(), body)? {
                chosen.push(item);
            }
        }
        Ok(chosen.into())
    }
}

fn field<'a>(of: &Value<'a>, name: &str) -> Result<Option<Value<'a>>, Error> {
    match of {
        Value::Map(fields) => Ok(fields.get(name).map(Value::from_json)),
        other => Err(Error::Evaluation(format!("{} has no field {name:?}", other.kind()))),
    }
}
