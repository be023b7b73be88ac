//! The state of the ledger, which is folded from its entries.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::entry::{Effect, Entry, Recorded};

/// The recorded effects, and the orders whose hold was released.
#[derive(Debug, Default)]
pub(super) struct Book {
    effects: Vec<Effect>,
    released: BTreeSet<String>,
}

/// The numbers of effects, for the assertions of tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// All effects.
    pub effects: u64,
    /// Effects by order.
    pub orders: BTreeMap<String, OrderSummary>,
    /// Effects by call key. A number above 1 is an effect that happened more than once.
    pub call_keys: BTreeMap<String, u64>,
    /// Effects without a call key.
    pub without_call_key: u64,
}

/// The effects on one order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderSummary {
    /// All effects on the order.
    pub effects: u64,
    /// Effects on the order by call key.
    pub call_keys: BTreeMap<String, u64>,
}

impl Book {
    pub(super) fn from_entries(entries: Vec<Entry>) -> Self {
        let mut book = Self::default();
        for entry in entries {
            book.apply(entry);
        }
        book
    }

    pub(super) fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Effect(effect) => self.effects.push(effect),
            Entry::Released(order) => {
                self.released.insert(order);
            }
        }
    }

    /// Returns the acknowledgement of the last effect.
    pub(super) fn last_recorded(&self) -> Recorded {
        let last_key = self.effects.last().and_then(|effect| effect.call_key.as_deref());
        let seen = match last_key {
            Some(key) => self.effects.iter().filter(|effect| effect.call_key.as_deref() == Some(key)).count(),
            None => 1,
        };
        Recorded { seq: self.effects.len() as u64, seen: seen as u64 }
    }

    pub(super) fn is_released(&self, order: &str) -> bool {
        self.released.contains(order)
    }

    /// Returns the effects in their order, only those of `tenant` if one is given.
    pub(super) fn effects(&self, tenant: Option<&str>) -> impl Iterator<Item = &Effect> {
        self.effects.iter().filter(move |effect| tenant.is_none() || effect.tenant.as_deref() == tenant)
    }

    pub(super) fn summary(&self, tenant: Option<&str>) -> Summary {
        let mut summary = Summary::default();
        for effect in self.effects(tenant) {
            let order = summary.orders.entry(effect.order.clone()).or_default();
            summary.effects += 1;
            order.effects += 1;
            match &effect.call_key {
                Some(key) => {
                    *order.call_keys.entry(key.clone()).or_default() += 1;
                    *summary.call_keys.entry(key.clone()).or_default() += 1;
                }
                None => summary.without_call_key += 1,
            }
        }
        summary
    }
}
