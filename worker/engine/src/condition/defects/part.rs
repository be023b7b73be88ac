//! What is known about a part of a condition.

use super::texts::Form;
use crate::condition::kinds::Kinds;
use crate::condition::shape::{Fields, Shape};
use serde_json::Number;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is known about a part of a condition.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) kinds: Kinds,
    pub(super) fields: Fields,
    /// The items of a list. `None` if they may be anything.
    pub(super) items: Option<Box<Part>>,
    /// The part as written, for messages. Empty if it is no argument and no part of one.
    pub(super) path: String,
    /// Whether no call of the tool has it.
    pub(super) is_absent: bool,
    /// The form of its text.
    pub(super) form: Option<Form>,
    /// The texts that the author wrote for it.
    pub(super) texts: Texts,
    /// The only texts that it may be, if a schema lists them.
    pub(super) allowed: Option<Arc<BTreeSet<String>>>,
    /// The only numbers that it may be, if a schema lists them.
    pub(super) numbers: Option<Arc<Vec<Number>>>,
}

/// The texts that an author wrote for a part of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Texts {
    /// It is no constant.
    NotConstant,
    /// One of these.
    Written(Vec<String>),
    /// One of a named list. The position is that of its use.
    OfList(usize),
}

impl Part {
    /// Returns a part of which only the types are known.
    pub(super) fn of_kinds(kinds: Kinds) -> Self {
        Self::of_shape(&Shape::of_kinds(kinds), String::new())
    }

    /// Returns a part that may be anything.
    pub(super) fn any() -> Self {
        Self::of_kinds(Kinds::ANY)
    }

    /// Returns a part that no call of the tool has.
    pub(super) fn absent() -> Self {
        Self { is_absent: true, ..Self::any() }
    }

    pub(super) fn of_shape(shape: &Shape, path: String) -> Self {
        let items = shape.items.as_ref().map(|items| Box::new(Self::of_shape(items, item_path(&path))));
        Self {
            kinds: shape.kinds,
            fields: shape.fields.clone(),
            items,
            path,
            is_absent: false,
            form: None,
            texts: Texts::NotConstant,
            allowed: shape.texts.clone(),
            numbers: shape.numbers.clone(),
        }
    }

    /// Returns a text that the author wrote.
    pub(super) fn of_texts(texts: Texts) -> Self {
        Self { texts, ..Self::of_kinds(Kinds::TEXT) }
    }

    /// Returns a list of items.
    pub(super) fn list(items: Option<Self>) -> Self {
        Self { items: items.map(Box::new), ..Self::of_kinds(Kinds::LIST) }
    }

    /// Returns the items of this part, if it is a list.
    pub(super) fn item(&self) -> Self {
        match &self.items {
            Some(items) => (**items).clone(),
            None => Self { path: item_path(&self.path), is_absent: self.is_absent, ..Self::any() },
        }
    }

    /// Returns the items of a macro over this part: those of a list, or the names of fields.
    pub(super) fn item_of_macro(&self) -> Self {
        match (self.kinds.may_be(Kinds::LIST), self.kinds.may_be(Kinds::MAP), &self.items) {
            (true, false, _) => self.item(),
            (false, true, _) => Self::of_kinds(Kinds::TEXT),
            // A name has no fields, so those of the items are all that it can have.
            (true, true, Some(items)) => {
                Self { kinds: items.kinds | Kinds::TEXT, allowed: None, numbers: None, ..(**items).clone() }
            }
            _ => Self::any(),
        }
    }

    /// Returns a part that is one or the other.
    pub(super) fn or(self, other: Self) -> Self {
        let texts = match (self.texts, other.texts) {
            (Texts::Written(one), Texts::Written(other)) => Texts::Written([one, other].concat()),
            _ => Texts::NotConstant,
        };
        let form = self.form.filter(|form| other.form == Some(*form));
        Self { form, texts, ..Self::of_kinds(self.kinds | other.kinds) }
    }
}

fn item_path(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}[]") }
}
