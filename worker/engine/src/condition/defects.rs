//! Type inference for conditions: finds parts that have no value, or the same value, for every call.
//!
//! Only the lint uses it, also when a Job begins. The gate evaluates a condition with defects like any other.

use super::Condition;
use super::kinds::Kinds;
use super::signature::Signature;
use bloomery_cel::{Function, Macro, Node, Operator};

/// A defect of a condition. It exists for every call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Defect {
    /// A part has no value. The text is the reason.
    Undecidable(String),
    /// A part always has the same value. The text names the part and its value.
    Constant(String),
}

impl Condition {
    /// Returns the defects of the condition for a tool with these arguments. Other arguments may have any type.
    pub fn defects(&self, signature: &Signature) -> Vec<Defect> {
        let mut inference = Inference { signature, defects: Vec::new() };
        inference.check_bool(self.program.root());
        inference.defects
    }
}

/// Walks the tree and collects defects. A part without a value is reported once; an expression that contains it may then have
/// any type.
struct Inference<'a> {
    signature: &'a Signature,
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
            Node::Arguments | Node::Step(_) => Kinds::MAP,
            Node::Argument(name) => self.signature.kinds(name).unwrap_or(Kinds::ANY),
            Node::Item(_) | Node::Result => Kinds::ANY,
            Node::NamedList(_) | Node::Earlier(..) => Kinds::LIST,
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
            Node::Binary(operator, left, right) => self.check_binary(*operator, left, right),
            Node::Call(function, operands) => self.infer_call(*function, operands),
            Node::Matches(operand, _) => self.check_operand("matches", operand, Kinds::TEXT),
            Node::FromUser(operand) => self.check_operand("fromUser", operand, Kinds::TEXT | Kinds::NUMBER),
            Node::FromTool(operand, _) => self.check_operand("fromTool", operand, Kinds::TEXT | Kinds::NUMBER),
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

    fn check_binary(&mut self, operator: Operator, left: &Node, right: &Node) -> Kinds {
        let is_named_list = matches!(right, Node::NamedList(_));
        let (left, right) = (self.infer(left), self.infer(right));
        if operator == Operator::In && is_named_list {
            if !left.may_be(Kinds::TEXT) {
                self.defects.push(Defect::Constant(format!("{left} in a list of strings is always false")));
            }
            return Kinds::BOOL;
        }
        self.infer_binary(operator, left, right)
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
            Function::LowerAscii | Function::Host | Function::Domain => (Kinds::TEXT, Kinds::TEXT),
        };
        for operand in operands {
            self.check_operand(&function.to_string(), operand, accepted);
        }
        returned
    }

    /// Checks the operand of a function. Returns the type of a function that is true or false.
    fn check_operand(&mut self, function: &str, operand: &Node, accepted: Kinds) -> Kinds {
        let operand = self.infer(operand);
        self.report_unless(operand.may_be(accepted), || format!("{function}() is not defined for {operand}"));
        Kinds::BOOL
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
