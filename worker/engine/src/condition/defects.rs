//! Type inference for conditions: finds parts that have no value, or the same value, for every call.
//!
//! Only the lint uses it, also when a Job begins. The gate evaluates a condition with defects like any other.

mod operators;
mod part;
mod texts;

pub use texts::{Comparison, Form, TextFault, text_fault, value_fault};

use super::Condition;
use super::kinds::Kinds;
use super::shape::{Fields, Shape};
use super::signature::Signature;
use bloomery_cel::{Earlier, Macro, Node};
use part::{Part, Texts};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A defect of a condition. It exists for every call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Defect {
    /// A part has no value. The text is the reason.
    Undecidable(String),
    /// A part always has the same value, if values of different types that are both null do not count. The text names the part and its
    /// value.
    Constant(String),
    /// A value is compared with a text that it never has, or probably does not have.
    Text(TextFault),
}

/// The result of examining a condition for one tool.
#[derive(Debug, Default)]
pub struct Examination {
    /// The defects.
    pub defects: Vec<Defect>,
    /// The fields within arguments and results that do not exist, such as `address.zip`, each with the names of those that do.
    pub unknown_fields: BTreeMap<String, Vec<String>>,
    /// The other fields within arguments and results.
    pub possible_fields: BTreeSet<String>,
    /// The written values that the tool's schema does not allow.
    pub impossible_values: BTreeMap<WrittenValue, TextFault>,
    /// The other written values.
    pub possible_values: BTreeSet<WrittenValue>,
    /// The uses of named lists.
    pub list_uses: Vec<ListUse>,
    /// The values of several types that are compared with constants, each by its argument or field.
    pub compared_kinds: BTreeMap<String, ComparedKinds>,
}

/// A text or a number with which the author compares an argument.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WrittenValue {
    /// The argument, or the part of one.
    pub path: String,
    /// All values of the comparison. A list may have several, and one of them is enough for it to be true.
    pub values: Vec<String>,
    /// One of these values.
    pub value: String,
}

/// The types of a value that is compared with constants.
#[derive(Debug, Clone, Copy)]
pub struct ComparedKinds {
    /// The types that the value may have.
    pub possible: Kinds,
    /// The types of the constants. A macro over a list compares lists.
    pub compared: Kinds,
    /// Whether a call passes if the value has another type than the constant.
    pub lets_pass: bool,
}

impl ComparedKinds {
    /// Returns the types with which a call passes because no constant has them. `None` if there are none.
    pub(crate) fn passing(self) -> Option<Kinds> {
        let others = self.possible.without(self.compared | Kinds::NULL | Kinds::BOOL | Kinds::BYTES);
        (self.lets_pass && !others.is_none()).then_some(others)
    }
}

/// A use of a named list in a condition.
#[derive(Debug)]
pub struct ListUse {
    /// The name of the list.
    pub name: String,
    /// The comparisons of values with its texts. Without any, nothing is known about the use.
    pub comparisons: Vec<(Option<Form>, Comparison)>,
    /// The values that schemas list for the compared arguments, each with the argument. A text must equal one of them.
    pub values: Vec<(String, Arc<BTreeSet<String>>)>,
}

impl Condition {
    /// Examines the condition for a tool with these arguments. Other arguments may have any type. `tool` is the name or the prefix in the
    /// rule. `earlier` returns what is known about the earlier calls or the results of a tool, by a name or a prefix. `allows` says whether
    /// calls pass if the condition is true. Otherwise, they pass if it is false.
    pub(crate) fn examine(
        &self,
        signature: &Signature,
        tool: &str,
        earlier: &dyn Fn(Earlier, &str) -> Shape,
        allows: bool,
    ) -> Examination {
        let mut inference =
            Inference { signature, tool, earlier, items: Vec::new(), passes_if: None, found: Examination::default() };
        inference.check_bool(self.program.root(), Some(allows));
        inference.found
    }
}

/// Walks the tree and collects defects. A part without a value is reported once; an expression that contains it may then have
/// any type.
struct Inference<'a> {
    signature: &'a Signature,
    tool: &'a str,
    earlier: &'a dyn Fn(Earlier, &str) -> Shape,
    /// The items of the enclosing macros, the outermost first.
    items: Vec<Part>,
    /// The value of the next part with which more calls pass. `None` if it is not known.
    passes_if: Option<bool>,
    found: Examination,
}

impl Inference<'_> {
    /// Returns what is known about a part. Reports the defects in it.
    fn infer(&mut self, node: &Node) -> Part {
        let passes_if = self.passes_if.take();
        match node {
            Node::Null => Part::of_kinds(Kinds::NULL),
            Node::Bool(_) => Part::of_kinds(Kinds::BOOL),
            Node::Int(_) | Node::Uint(_) | Node::Double(_) => Part::of_kinds(Kinds::NUMBER),
            Node::Text(text) => Part::of_texts(Texts::Written(vec![text.clone()])),
            Node::Arguments => Part::of_kinds(Kinds::MAP),
            Node::Argument(name) => self.argument(name),
            Node::Item(at) => self.items.get(*at).cloned().unwrap_or_else(Part::any),
            Node::Result => Part::of_shape(&(self.earlier)(Earlier::Results, self.tool), "result".to_owned()),
            Node::Step(name) => self.step(name),
            Node::Earlier(earlier, tool) => {
                let shape = (self.earlier)(*earlier, tool);
                Part::list(Some(Part::of_shape(&shape, format!("{earlier}('{tool}')[]"))))
            }
            Node::NamedList(name) => self.named_list(name),
            Node::List(items) => {
                let items: Vec<Part> = items.iter().map(|item| self.infer(item)).collect();
                Part::list(items.into_iter().reduce(Part::or))
            }
            Node::Select(base, name) => self.field(base, name),
            Node::Has(base, name) => {
                self.field(base, name);
                Part::of_kinds(Kinds::BOOL)
            }
            Node::Index(base, index) => self.index(base, index),
            Node::Not(operand) => {
                self.check_bool(operand, passes_if.map(|passes_if| !passes_if));
                Part::of_kinds(Kinds::BOOL)
            }
            Node::Negate(operand) => {
                let kinds = self.infer(operand).kinds;
                self.report_unless(kinds.may_be(Kinds::NUMBER), || format!("-({kinds}) is not defined"));
                Part::of_kinds(Kinds::NUMBER)
            }
            Node::And(sides) | Node::Or(sides) => {
                for side in sides {
                    self.check_bool(side, passes_if);
                }
                Part::of_kinds(Kinds::BOOL)
            }
            Node::Conditional(parts) => {
                let [condition, yes, no] = parts.as_ref();
                self.check_bool(condition, None);
                self.infer(yes).or(self.infer(no))
            }
            Node::Binary(operator, left, right) => Part::of_kinds(self.binary(*operator, left, right, passes_if)),
            Node::Call(function, operands) => self.call(*function, operands, passes_if),
            Node::Matches(operand, pattern) => {
                let form = self.operand("matches", operand, Kinds::TEXT);
                let fault = form.and_then(|form| texts::pattern_fault(form, pattern));
                self.found.defects.extend(fault.map(Defect::Text));
                Part::of_kinds(Kinds::BOOL)
            }
            Node::FromUser(operand) => self.origin("fromUser", operand),
            Node::FromTool(operand, _) => self.origin("fromTool", operand),
            Node::Macro(kind, over, body) => self.macro_call(*kind, over, body, passes_if),
        }
    }

    fn origin(&mut self, function: &'static str, operand: &Node) -> Part {
        self.operand(function, operand, Kinds::TEXT | Kinds::NUMBER);
        Part::of_kinds(Kinds::BOOL)
    }

    fn named_list(&mut self, name: &str) -> Part {
        self.found.list_uses.push(ListUse { name: name.to_owned(), comparisons: Vec::new(), values: Vec::new() });
        Part::list(Some(Part::of_texts(Texts::OfList(self.found.list_uses.len() - 1))))
    }

    /// Checks a part that must be true or false. Of `a ? b : c`, all three parts must be. `passes_if` is its value with which more
    /// calls pass, if it is known.
    fn check_bool(&mut self, node: &Node, passes_if: Option<bool>) {
        if let Node::Conditional(parts) = node {
            let [condition, yes, no] = parts.as_ref();
            self.check_bool(condition, None);
            self.check_bool(yes, passes_if);
            self.check_bool(no, passes_if);
            return;
        }
        self.passes_if = passes_if;
        let kinds = self.infer(node).kinds;
        self.report_unless(kinds.may_be(Kinds::BOOL), || format!("{kinds} is neither true nor false"));
    }

    fn argument(&self, name: &str) -> Part {
        let fields = self.signature.fields();
        match fields.known.get(name) {
            Some(shape) => Part::of_shape(shape, name.to_owned()),
            None if fields.are_all => Part::absent(),
            None => Part { path: name.to_owned(), ..Part::any() },
        }
    }

    fn step(&self, name: &str) -> Part {
        let fields = [("args", Earlier::Calls), ("result", Earlier::Results)];
        let known = fields.map(|(field, earlier)| (field.to_owned(), (self.earlier)(earlier, name)));
        let fields = Fields { known: Arc::new(known.into()), are_all: true };
        Part::of_shape(&Shape::object(fields), format!("steps.{name}"))
    }

    fn field(&mut self, base: &Node, name: &str) -> Part {
        let base = self.infer(base);
        let kinds = base.kinds;
        self.report_unless(kinds.may_be(Kinds::MAP), || format!("{kinds} has no field {name:?}"));
        self.field_of(&base, name)
    }

    /// Returns a field, and records whether the object has it. The arguments themselves are checked elsewhere.
    fn field_of(&mut self, base: &Part, name: &str) -> Part {
        if base.is_absent {
            return Part::absent();
        }
        if base.path.is_empty() || !base.kinds.may_be(Kinds::MAP) {
            return Part::any();
        }
        let path = format!("{}.{name}", base.path);
        match base.fields.known.get(name) {
            Some(shape) => {
                self.found.possible_fields.insert(path.clone());
                Part::of_shape(shape, path)
            }
            None if base.fields.are_all => {
                self.found.unknown_fields.insert(path, base.fields.known.keys().cloned().collect());
                Part::absent()
            }
            None => {
                self.found.possible_fields.insert(path.clone());
                Part { path, ..Part::any() }
            }
        }
    }

    fn index(&mut self, base: &Node, index: &Node) -> Part {
        let (base, of_index) = (self.infer(base), self.infer(index));
        let in_list = base.kinds.may_be(Kinds::LIST) && of_index.kinds.may_be(Kinds::NUMBER);
        let in_map = base.kinds.may_be(Kinds::MAP) && of_index.kinds.may_be(Kinds::TEXT);
        let fits = in_list || in_map;
        self.report_unless(fits, || format!("{} cannot be indexed with {}", base.kinds, of_index.kinds));
        match index {
            Node::Text(name) if in_map => self.field_of(&base, name),
            _ if in_list && !in_map => base.item(),
            _ => Part::any(),
        }
    }

    fn macro_call(&mut self, kind: Macro, over: &Node, body: &Node, passes_if: Option<bool>) -> Part {
        if matches!(over, Node::List(items) if items.is_empty()) {
            self.found.defects.push(Defect::Constant(format!("{kind}() over [] always has the same result")));
        }
        let over = self.infer(over);
        let kinds = over.kinds;
        let is_iterable = kinds.may_be(Kinds::LIST | Kinds::MAP);
        self.report_unless(is_iterable, || format!("{kind}() goes over a list, not {kinds}"));
        self.note_kinds(&over, Kinds::LIST | Kinds::MAP, false);
        let item = over.item_of_macro();
        self.items.push(item.clone());
        let result = match kind {
            Macro::Map => Part::list(Some(self.infer(body))),
            Macro::All | Macro::Exists | Macro::ExistsOne => {
                // One more item can make `exists_one` false.
                self.check_bool(body, passes_if.filter(|_| kind != Macro::ExistsOne));
                Part::of_kinds(Kinds::BOOL)
            }
            Macro::Filter => {
                self.check_bool(body, None);
                Part::list(Some(item))
            }
        };
        self.items.pop();
        result
    }

    fn report_unless(&mut self, fits: bool, sentence: impl FnOnce() -> String) {
        if !fits {
            self.found.defects.push(Defect::Undecidable(sentence()));
        }
    }
}

#[cfg(test)]
mod tests;
