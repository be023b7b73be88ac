//! Operators and functions: the types of their operands, and the texts that the author compares with.

use super::part::{Part, Texts};
use super::texts::{TextFault, number_fault, order_fault, value_fault};
use super::{ComparedKinds, Comparison, Defect, Form, Inference, WrittenValue, text_fault};
use crate::condition::kinds::Kinds;
use crate::condition::limits::number;
use bloomery_cel::{Function, Node, Operator};
use serde_json::Number;
use std::sync::Arc;

impl Inference<'_> {
    /// Checks an operator and its sides. `passes_if` is the result with which more calls pass, if it is known.
    pub(super) fn binary(&mut self, operator: Operator, left: &Node, right: &Node, passes_if: Option<bool>) -> Kinds {
        let is_named_list = matches!(right, Node::NamedList(_));
        let (of_left, of_right) = (self.infer(left), self.infer(right));
        self.compare_kinds(operator, (left, &of_left), (right, &of_right), passes_if);
        match operator {
            Operator::Equal | Operator::Unequal => self.compare(&of_left, &of_right, Comparison::Whole),
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual
                if of_left.kinds.may_be(Kinds::TEXT) && of_right.kinds.may_be(Kinds::TEXT) =>
            {
                self.check_order(&of_left);
                self.check_order(&of_right);
            }
            Operator::In => {
                if matches!(right, Node::List(items) if items.is_empty()) {
                    self.found.defects.push(Defect::Constant("a value in [] is always false".to_owned()));
                    return Kinds::BOOL;
                }
                self.compare(&of_left, &of_right.item(), Comparison::Whole);
                if let Node::Text(name) = left
                    && of_right.kinds.may_be(Kinds::MAP)
                {
                    self.field_of(&of_right, name);
                }
            }
            _ => {}
        }
        let (left, right) = (of_left.kinds, of_right.kinds);
        let is_list = right.may_be(Kinds::LIST) && !right.may_be(Kinds::MAP);
        let items = of_right.item().kinds;
        if operator == Operator::In
            && is_list
            && let Some(result) = constant_equality(left, items, false)
        {
            let list =
                if is_named_list { "a list of strings".to_owned() } else { format!("a list whose items are {items}") };
            self.found.defects.push(Defect::Constant(format!("{left} in {list} {result}")));
            return Kinds::BOOL;
        }
        self.operator(operator, left, right)
    }

    /// Records the types of the values that are compared with constants. Two values of different types are not equal.
    fn compare_kinds(
        &mut self,
        operator: Operator,
        (left, of_left): (&Node, &Part),
        (right, of_right): (&Node, &Part),
        passes_if: Option<bool>,
    ) {
        match operator {
            Operator::Equal | Operator::Unequal => {
                let lets_pass = passes_if == Some(operator == Operator::Unequal);
                if is_scalar(right) {
                    self.note_kinds(of_left, of_right.kinds, lets_pass);
                    self.check_numbers(of_left, std::slice::from_ref(right));
                } else if is_scalar(left) {
                    self.note_kinds(of_right, of_left.kinds, lets_pass);
                    self.check_numbers(of_right, std::slice::from_ref(left));
                }
            }
            Operator::In => {
                if let Node::List(items) = right {
                    self.check_numbers(of_left, items);
                }
                if matches!(right, Node::List(_) | Node::NamedList(_)) {
                    self.note_kinds(of_left, of_right.item().kinds, passes_if == Some(false));
                }
                self.note_kinds(of_right, Kinds::LIST | Kinds::MAP, false);
            }
            _ => {}
        }
    }

    /// Records whether a value can have one of the numbers that the author wrote, if all of them are numbers.
    fn check_numbers(&mut self, value: &Part, written: &[Node]) {
        let Some(written) = written.iter().map(number).collect::<Option<Vec<f64>>>() else { return };
        let values: Vec<String> = written.iter().map(f64::to_string).collect();
        for number in written {
            let is_written =
                |allowed: &Number| allowed.as_f64().is_none_or(|allowed| (allowed - number).abs() < f64::EPSILON);
            let allowed =
                value.numbers.as_ref().filter(|allowed| !allowed.is_empty() && !allowed.iter().any(is_written));
            let fault = allowed.map(|allowed| number_fault(&value.path, number, allowed));
            self.note_value(value, &values, number.to_string(), fault);
        }
    }

    /// Records whether a value can be one of several written values. Another tool of the rule may allow other values.
    fn note_value(&mut self, compared: &Part, values: &[String], value: String, fault: Option<TextFault>) {
        if compared.path.is_empty() || compared.is_absent {
            return;
        }
        let written = WrittenValue { path: compared.path.clone(), values: values.to_vec(), value };
        match fault {
            Some(fault) => {
                self.found.impossible_values.insert(written, fault);
            }
            None => {
                self.found.possible_values.insert(written);
            }
        }
    }

    /// Records the types of the constants with which a value is compared. A schema that lists the values leaves no other ones, and a
    /// constant of a type that the value never has is a defect of its own.
    pub(super) fn note_kinds(&mut self, value: &Part, compared: Kinds, lets_pass: bool) {
        let is_known = !value.path.is_empty() && !value.is_absent && value.kinds != Kinds::ANY;
        if !is_known || value.allowed.is_some() || !value.kinds.may_be(compared.without(Kinds::NULL)) {
            return;
        }
        let nothing = ComparedKinds { possible: value.kinds, compared: Kinds::NULL, lets_pass: false };
        let noted = self.found.compared_kinds.entry(value.path.clone()).or_insert(nothing);
        noted.compared = noted.compared | compared;
        noted.lets_pass |= lets_pass;
    }

    fn operator(&mut self, operator: Operator, left: Kinds, right: Kinds) -> Kinds {
        let common = left & right;
        let computed = match operator {
            Operator::Equal | Operator::Unequal => {
                if let Some(result) = constant_equality(left, right, operator == Operator::Unequal) {
                    self.found.defects.push(Defect::Constant(format!("{left} {operator} {right} {result}")));
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

    /// Checks a call of a function. `passes_if` is its result with which more calls pass, if it is known.
    pub(super) fn call(&mut self, function: Function, operands: &[Node], passes_if: Option<bool>) -> Part {
        let (accepted, returned) = match function {
            Function::Size => (Kinds::TEXT | Kinds::BYTES | Kinds::LIST | Kinds::MAP, Kinds::NUMBER),
            Function::Contains | Function::StartsWith | Function::EndsWith => (Kinds::TEXT, Kinds::BOOL),
            Function::Int | Function::Uint | Function::Double => (Kinds::TEXT | Kinds::NUMBER, Kinds::NUMBER),
            Function::String => (Kinds::TEXT | Kinds::NUMBER | Kinds::BOOL, Kinds::TEXT),
            Function::Bytes => (Kinds::TEXT, Kinds::BYTES),
            Function::LowerAscii | Function::Host | Function::Domain => (Kinds::TEXT, Kinds::TEXT),
        };
        let parts: Vec<Part> = operands.iter().map(|operand| self.infer(operand)).collect();
        for part in &parts {
            self.check_operand(&function.to_string(), part.kinds, accepted);
        }
        if let ([whole, part], Kinds::BOOL) = (parts.as_slice(), returned) {
            // A part that also other values have lets none of them pass if it holds or denies calls.
            let lets_pass = passes_if != Some(false);
            let comparison = match (lets_pass, function) {
                (false, _) => Comparison::Part,
                (true, Function::EndsWith) => Comparison::End,
                (true, _) => Comparison::PassingPart,
            };
            self.compare(whole, part, comparison);
        }
        let form = Form::returned_by(function, parts.first().and_then(|part| part.form));
        Part { form, ..Part::of_kinds(returned) }
    }

    /// Checks the operand of a function that is true or false. Returns the form of the operand's text.
    pub(super) fn operand(&mut self, function: &str, operand: &Node, accepted: Kinds) -> Option<Form> {
        let operand = self.infer(operand);
        self.check_operand(function, operand.kinds, accepted);
        operand.form
    }

    fn check_operand(&mut self, function: &str, operand: Kinds, accepted: Kinds) {
        let remedy = if operand.may_be(Kinds::LIST) { ": to check each item, write list.all(it, ...)" } else { "" };
        self.report_unless(operand.may_be(accepted), || format!("{function}() is not defined for {operand}{remedy}"));
    }

    /// Checks the comparison of a value with a text that the author wrote. Of two values, either can be the text.
    fn compare(&mut self, left: &Part, right: &Part, comparison: Comparison) {
        if left.texts == Texts::NotConstant {
            self.check_texts(left.form, &right.texts, comparison);
            self.check_values(left, &right.texts, comparison);
        } else if right.texts == Texts::NotConstant && comparison == Comparison::Whole {
            self.check_texts(right.form, &left.texts, comparison);
            self.check_values(right, &left.texts, comparison);
        }
    }

    /// Records whether a value can have one of the texts that the author wrote.
    fn check_values(&mut self, value: &Part, texts: &Texts, comparison: Comparison) {
        let texts = match texts {
            Texts::Written(texts) => texts,
            Texts::OfList(at) => return self.note_values(value, *at, comparison),
            Texts::NotConstant => return,
        };
        for text in texts.iter().filter(|text| !text.is_empty()) {
            let is_allowed = |allowed: &str| match comparison {
                Comparison::Whole => allowed == text,
                Comparison::Part | Comparison::PassingPart | Comparison::End => allowed.contains(text.as_str()),
            };
            let allowed = value.allowed.as_ref();
            let allowed =
                allowed.filter(|allowed| !allowed.is_empty() && !allowed.iter().any(|allowed| is_allowed(allowed)));
            let fault = allowed.map(|allowed| value_fault(&value.path, text, allowed));
            self.note_value(value, texts, text.clone(), fault);
        }
    }

    /// Records the values that a schema lists for an argument that is compared with the texts of a named list.
    fn note_values(&mut self, value: &Part, at: usize, comparison: Comparison) {
        let Some(allowed) = value.allowed.as_ref().filter(|_| comparison == Comparison::Whole) else { return };
        if let Some(list) = self.found.list_uses.get_mut(at) {
            list.values.push((value.path.clone(), Arc::clone(allowed)));
        }
    }

    /// Reports the number that a text by which values are ordered is.
    fn check_order(&mut self, part: &Part) {
        if let Texts::Written(texts) = &part.texts {
            self.found.defects.extend(texts.iter().find_map(|text| order_fault(text)).map(Defect::Text));
        }
    }

    fn check_texts(&mut self, form: Option<Form>, texts: &Texts, comparison: Comparison) {
        match texts {
            Texts::NotConstant => {}
            Texts::Written(texts) => {
                let faults = texts.iter().filter_map(|text| text_fault(form, text, comparison));
                self.found.defects.extend(faults.map(Defect::Text));
            }
            Texts::OfList(at) => {
                if let Some(list) = self.found.list_uses.get_mut(*at) {
                    list.comparisons.push((form, comparison));
                }
            }
        }
    }
}

/// Describes the result of a comparison of two values for equality, if they have no common type but null. `unequal` is the result for two
/// values of different types.
fn constant_equality(left: Kinds, right: Kinds, unequal: bool) -> Option<String> {
    let common = left & right;
    if common.is_none() {
        return Some(format!("is always {unequal}"));
    }
    let is_null = left == Kinds::NULL || right == Kinds::NULL;
    (common == Kinds::NULL && !is_null).then(|| format!("is {} only if both are null", !unequal))
}

fn is_scalar(node: &Node) -> bool {
    matches!(node, Node::Text(_) | Node::Int(_) | Node::Uint(_) | Node::Double(_))
}
