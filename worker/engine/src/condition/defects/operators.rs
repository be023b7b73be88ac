//! Operators and functions: the types of their operands, and the texts that the author compares with.

use super::part::{Part, Texts};
use super::{Comparison, Defect, Form, Inference, text_fault};
use crate::condition::kinds::Kinds;
use bloomery_cel::{Function, Node, Operator};

impl Inference<'_> {
    pub(super) fn binary(&mut self, operator: Operator, left: &Node, right: &Node) -> Kinds {
        let is_named_list = matches!(right, Node::NamedList(_));
        let (of_left, of_right) = (self.infer(left), self.infer(right));
        match operator {
            Operator::Equal | Operator::Unequal => self.compare(&of_left, &of_right, Comparison::Whole),
            Operator::In => {
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
        if operator == Operator::In && is_list && !left.may_be(items) {
            let list =
                if is_named_list { "a list of strings".to_owned() } else { format!("a list whose items are {items}") };
            self.found.defects.push(Defect::Constant(format!("{left} in {list} is always false")));
            return Kinds::BOOL;
        }
        self.operator(operator, left, right)
    }

    fn operator(&mut self, operator: Operator, left: Kinds, right: Kinds) -> Kinds {
        let common = left & right;
        let computed = match operator {
            Operator::Equal | Operator::Unequal => {
                if common.is_none() {
                    let always = operator == Operator::Unequal;
                    self.found.defects.push(Defect::Constant(format!("{left} {operator} {right} is always {always}")));
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

    pub(super) fn call(&mut self, function: Function, operands: &[Node]) -> Part {
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
            self.compare(whole, part, Comparison::Part);
        }
        let form = Form::returned_by(function, parts.first().and_then(|part| part.form));
        Part { form, ..Part::of_kinds(returned) }
    }

    /// Checks the operand of a function that is true or false.
    pub(super) fn operand(&mut self, function: &str, operand: &Node, accepted: Kinds) -> Part {
        let operand = self.infer(operand).kinds;
        self.check_operand(function, operand, accepted);
        Part::of_kinds(Kinds::BOOL)
    }

    fn check_operand(&mut self, function: &str, operand: Kinds, accepted: Kinds) {
        self.report_unless(operand.may_be(accepted), || format!("{function}() is not defined for {operand}"));
    }

    /// Checks the comparison of a value with a text that the author wrote. Of two values, either can be the text.
    fn compare(&mut self, left: &Part, right: &Part, comparison: Comparison) {
        if left.texts == Texts::NotConstant {
            self.check_texts(left.form, &right.texts, comparison);
        } else if right.texts == Texts::NotConstant && comparison == Comparison::Whole {
            self.check_texts(right.form, &left.texts, comparison);
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
