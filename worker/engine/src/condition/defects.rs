//! Type inference for conditions: finds parts that have no value, or the same value, for every call.
//!
//! Only the lint uses it. The worker evaluates a condition with defects like any other.

use super::Condition;
use bloomery_cel::{Function, Macro, Node, Operator};
use bloomery_crds::v1alpha1::{ToolInput, ValueType};
use std::fmt;
use std::ops::{BitAnd, BitOr};

/// A defect of a condition. It exists for every call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Defect {
    /// A part has no value. The text is the reason.
    Undecidable(String),
    /// A part always has the same value. The text names the part and its value.
    Constant(String),
}

impl Condition {
    /// Returns the defects of the condition for a tool with these declared inputs. Other arguments may have any type.
    pub fn defects(&self, declared: &[ToolInput]) -> Vec<Defect> {
        let mut inference = Inference { declared, defects: Vec::new() };
        inference.check_bool(self.program.root());
        inference.defects
    }
}

/// The set of types that a value may have.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kinds(u8);

impl Kinds {
    const NULL: Self = Self(1);
    const BOOL: Self = Self(1 << 1);
    const NUMBER: Self = Self(1 << 2);
    const TEXT: Self = Self(1 << 3);
    const LIST: Self = Self(1 << 4);
    const MAP: Self = Self(1 << 5);
    const BYTES: Self = Self(1 << 6);
    const ANY: Self = Self((1 << 7) - 1);

    /// Returns the types of a declared input. It may also be null: authors compare with null.
    fn declared(kind: ValueType) -> Self {
        Self::NULL
            | match kind {
                ValueType::String => Self::TEXT,
                ValueType::Number | ValueType::Integer => Self::NUMBER,
                ValueType::Boolean => Self::BOOL,
                ValueType::Array => Self::LIST,
                ValueType::Object => Self::MAP,
            }
    }

    /// Returns every type instead of none: the part without a value is reported already.
    fn or_any(self) -> Self {
        if self.is_none() { Self::ANY } else { self }
    }

    fn is_none(self) -> bool {
        self.0 == 0
    }

    fn may_be(self, other: Self) -> bool {
        !(self & other).is_none()
    }
}

impl BitOr for Kinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Kinds {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Kinds, &str); 6] = [
            (Kinds::BOOL, "a bool"),
            (Kinds::NUMBER, "a number"),
            (Kinds::TEXT, "a string"),
            (Kinds::LIST, "a list"),
            (Kinds::MAP, "an object"),
            (Kinds::BYTES, "bytes"),
        ];
        if *self == Self::NULL {
            return f.write_str("null");
        }
        if *self == Self::ANY {
            return f.write_str("anything");
        }
        // Null is not named beside other types: every declared input may be null.
        let names: Vec<&str> = NAMES.into_iter().filter(|(kind, _)| self.may_be(*kind)).map(|(_, name)| name).collect();
        f.write_str(&names.join(" or "))
    }
}

/// Walks the tree and collects defects. A part without a value is reported once; an expression that contains it may then have
/// any type.
struct Inference<'a> {
    declared: &'a [ToolInput],
    defects: Vec<Defect>,
}

impl Inference<'_> {
    /// Returns the types that a part may have. Reports the defects in it.
    fn infer(&mut self, node: &Node) -> Kinds {
        match node {
            Node::Null => Kinds::NULL,
            Node::Bool(_) => Kinds::BOOL,
            Node::Int(_) | Node::Uint(_) | Node::Double(_) => Kinds::NUMBER,
            Node::Text(_) => Kinds::TEXT,
            Node::Arguments => Kinds::MAP,
            Node::Argument(name) => self
                .declared
                .iter()
                .find(|input| input.name == *name)
                .map_or(Kinds::ANY, |input| Kinds::declared(input.kind)),
            Node::Item(_) => Kinds::ANY,
            Node::List(items) => {
                for item in items {
                    self.infer(item);
                }
                Kinds::LIST
            }
            Node::Select(base, name) => {
                self.check_field(base, name);
                Kinds::ANY
            }
            Node::Has(base, name) => {
                self.check_field(base, name);
                Kinds::BOOL
            }
            Node::Index(base, index) => {
                self.check_index(base, index);
                Kinds::ANY
            }
            Node::Not(operand) => {
                self.check_bool(operand);
                Kinds::BOOL
            }
            Node::Negate(operand) => {
                let operand = self.infer(operand);
                self.report_unless(operand.may_be(Kinds::NUMBER), || format!("-({operand}) is not defined"));
                Kinds::NUMBER
            }
            Node::And(sides) | Node::Or(sides) => {
                for side in sides {
                    self.check_bool(side);
                }
                Kinds::BOOL
            }
            Node::Conditional(parts) => {
                let [condition, yes, no] = parts.as_ref();
                self.check_bool(condition);
                self.infer(yes) | self.infer(no)
            }
            Node::Binary(operator, left, right) => {
                let (left, right) = (self.infer(left), self.infer(right));
                self.infer_binary(*operator, left, right)
            }
            Node::Call(function, operands) => self.infer_call(*function, operands),
            Node::Macro(kind, over, body) => self.infer_macro(*kind, over, body),
        }
    }

    /// Checks a part that must be true or false. Of `a ? b : c`, all three parts must be.
    fn check_bool(&mut self, node: &Node) {
        if let Node::Conditional(parts) = node {
            for part in parts.iter() {
                self.check_bool(part);
            }
            return;
        }
        let kinds = self.infer(node);
        self.report_unless(kinds.may_be(Kinds::BOOL), || format!("{kinds} is neither true nor false"));
    }

    fn check_field(&mut self, base: &Node, name: &str) {
        let base = self.infer(base);
        self.report_unless(base.may_be(Kinds::MAP), || format!("{base} has no field {name:?}"));
    }

    fn check_index(&mut self, base: &Node, index: &Node) {
        let (base, index) = (self.infer(base), self.infer(index));
        let in_list = base.may_be(Kinds::LIST) && index.may_be(Kinds::NUMBER);
        let in_map = base.may_be(Kinds::MAP) && index.may_be(Kinds::TEXT);
        self.report_unless(in_list || in_map, || format!("{base} cannot be indexed with {index}"));
    }

    fn infer_binary(&mut self, operator: Operator, left: Kinds, right: Kinds) -> Kinds {
        let common = left & right;
        let computed = match operator {
            Operator::Equal | Operator::Unequal => {
                if common.is_none() {
                    let always = operator == Operator::Unequal;
                    self.defects.push(Defect::Constant(format!("{left} {operator} {right} is always {always}")));
                }
                return Kinds::BOOL;
            }
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                let ordered = common.may_be(Kinds::BOOL | Kinds::NUMBER | Kinds::TEXT | Kinds::BYTES);
                self.report_unless(ordered, || format!("{left} {operator} {right} cannot be compared"));
                return Kinds::BOOL;
            }
            Operator::In => {
                let fits = right.may_be(Kinds::LIST) || right.may_be(Kinds::MAP) && left.may_be(Kinds::TEXT);
                self.report_unless(fits, || format!("{left} cannot be in {right}"));
                return Kinds::BOOL;
            }
            Operator::Add => common & (Kinds::NUMBER | Kinds::TEXT | Kinds::LIST),
            Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => common & Kinds::NUMBER,
        };
        self.report_unless(!computed.is_none(), || format!("{left} {operator} {right} is not defined"));
        computed.or_any()
    }

    fn infer_call(&mut self, function: Function, operands: &[Node]) -> Kinds {
        let (accepted, returned) = match function {
            Function::Size => (Kinds::TEXT | Kinds::BYTES | Kinds::LIST | Kinds::MAP, Kinds::NUMBER),
            Function::Contains | Function::StartsWith | Function::EndsWith => (Kinds::TEXT, Kinds::BOOL),
            Function::Int | Function::Uint | Function::Double => (Kinds::TEXT | Kinds::NUMBER, Kinds::NUMBER),
            Function::String => (Kinds::TEXT | Kinds::NUMBER | Kinds::BOOL, Kinds::TEXT),
            Function::Bytes => (Kinds::TEXT, Kinds::BYTES),
        };
        for operand in operands {
            let operand = self.infer(operand);
            self.report_unless(operand.may_be(accepted), || format!("{function}() is not defined for {operand}"));
        }
        returned
    }

    fn infer_macro(&mut self, kind: Macro, over: &Node, body: &Node) -> Kinds {
        let over = self.infer(over);
        self.report_unless(over.may_be(Kinds::LIST | Kinds::MAP), || format!("{kind}() goes over a list, not {over}"));
        match kind {
            Macro::Map => _ = self.infer(body),
            Macro::All | Macro::Exists | Macro::ExistsOne | Macro::Filter => self.check_bool(body),
        }
        match kind {
            Macro::All | Macro::Exists | Macro::ExistsOne => Kinds::BOOL,
            Macro::Filter | Macro::Map => Kinds::LIST,
        }
    }

    fn report_unless(&mut self, fits: bool, sentence: impl FnOnce() -> String) {
        if !fits {
            self.defects.push(Defect::Undecidable(sentence()));
        }
    }
}

#[cfg(test)]
mod tests;
