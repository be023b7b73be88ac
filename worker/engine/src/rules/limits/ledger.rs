//! The ledger of a Skill: the calls of all its Jobs that count towards limits with a window.
//!
//! The worker reads the ledger, asks [`Reservation::decide`] for the next state, and stores this state by compare-and-swap. The answer
//! becomes an event, so a replay reads no ledger.

use crate::amount::Amount;
use crate::event::{CallId, LimitUse, ReservationAnswer};
use bloomery_crds::Digest;
use bloomery_crds::tool_pattern::matches;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most calls in a ledger.
pub const MAX_ENTRIES: usize = 2_000;

/// The calls of a Skill that count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ledger {
    /// The calls, in the order in which they were reserved.
    pub entries: Vec<LedgerEntry>,
}

/// A call that counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LedgerEntry {
    /// The key of the call.
    pub key: Digest,
    /// The tool.
    pub tool: String,
    /// The time of the reservation, in seconds since 1970.
    pub at: u64,
    /// The time from which no limit counts the call, in seconds since 1970.
    pub until: u64,
    /// The amounts, by argument.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub amounts: BTreeMap<String, Amount>,
}

impl Ledger {
    /// Returns whether the ledger has a call.
    pub fn contains(&self, key: &Digest) -> bool {
        self.entries.iter().any(|entry| entry.key == *key)
    }

    /// Returns the ledger without a call, which is known not to have happened. `None` if the ledger does not have it.
    #[must_use]
    pub fn without(&self, key: &Digest) -> Option<Self> {
        let others = self.entries.iter().filter(|entry| entry.key != *key).cloned();
        self.contains(key).then(|| Self { entries: others.collect() })
    }
}

/// A limit with a window, as a reservation needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WindowLimit {
    /// The position in `policy.limits`.
    pub(super) at: usize,
    /// The tool, or a prefix of names.
    pub(super) tool: String,
    /// The argument whose values are added. Without it, the calls are counted.
    pub(super) sum: Option<String>,
    pub(super) window_seconds: u64,
    /// The largest sum. `None` if it cannot be read: then every call exceeds it.
    pub(super) max: Option<Amount>,
}

/// The reservation of a call's amounts in the ledger of the Skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation<'a> {
    /// The id of the call.
    pub call: &'a CallId,
    /// The key of the call, the same on every retry.
    pub key: Digest,
    pub(super) tool: &'a str,
    /// The amounts of the call, by argument.
    pub(super) amounts: BTreeMap<String, Amount>,
    pub(super) limits: Vec<WindowLimit>,
    /// Whether the call is reserved even beyond a limit, because people have approved it.
    pub(crate) forced: bool,
}

impl Reservation<'_> {
    /// Returns the answer, and the next state of the ledger if it changes. `now` is in seconds since 1970.
    ///
    /// A call that is in the ledger already is reserved, whatever other calls have spent since.
    pub fn decide(&self, ledger: &Ledger, now: u64) -> (ReservationAnswer, Option<Ledger>) {
        let counted: Vec<&LedgerEntry> = ledger.entries.iter().filter(|entry| entry.until > now).collect();
        let used_of = |limit: &WindowLimit| LimitUse { limit: limit.at, used: self.used(limit, &counted, now) };
        let used: Vec<LimitUse> = self.limits.iter().map(used_of).collect();
        let fits = self.limits.iter().zip(&used).all(|(limit, LimitUse { used, .. })| {
            let own = limit.sum.as_ref().map_or(Amount::ONE, |argument| self.amount(argument));
            limit.max.is_some_and(|max| used.plus(own) <= max)
        });
        let answer =
            |reserved: bool| ReservationAnswer { reserved, forced: self.forced, used: used.clone(), fault: None };
        if ledger.contains(&self.key) {
            return (answer(true), None);
        }
        if !fits && !self.forced {
            return (answer(false), None);
        }
        if counted.len() >= MAX_ENTRIES {
            let fault = format!("it has {MAX_ENTRIES} calls, and no room for another one");
            return (self.failed(fault), None);
        }
        let longest = self.limits.iter().map(|limit| limit.window_seconds).max().unwrap_or_default();
        let own = LedgerEntry {
            key: self.key.clone(),
            tool: self.tool.to_owned(),
            at: now,
            until: now.saturating_add(longest),
            amounts: self.amounts.clone(),
        };
        let entries = counted.into_iter().cloned().chain([own]).collect();
        (answer(true), Some(Ledger { entries }))
    }

    /// Returns the answer if the ledger cannot be used.
    pub fn failed(&self, fault: String) -> ReservationAnswer {
        ReservationAnswer { reserved: false, forced: self.forced, used: Vec::new(), fault: Some(fault) }
    }

    /// Returns what the calls in the ledger have spent of a limit.
    fn used(&self, limit: &WindowLimit, counted: &[&LedgerEntry], now: u64) -> Amount {
        let counts = |entry: &&&LedgerEntry| {
            let is_recent = entry.at.saturating_add(limit.window_seconds) > now;
            is_recent && entry.key != self.key && matches(&limit.tool, &entry.tool)
        };
        let amount = |entry: &&LedgerEntry| match &limit.sum {
            Some(argument) => entry.amounts.get(argument).copied().unwrap_or_default(),
            None => Amount::ONE,
        };
        counted.iter().filter(counts).map(amount).fold(Amount::default(), Amount::plus)
    }

    fn amount(&self, argument: &str) -> Amount {
        self.amounts.get(argument).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Number;

    const WINDOW: u64 = 100;

    fn amount(units: u64) -> Amount {
        Amount::of_number(&Number::from(units)).unwrap()
    }

    fn key(nth: usize) -> Digest {
        Digest::of_bytes(nth.to_string().as_bytes())
    }

    fn reservation(call: &CallId, nth: usize, units: u64, forced: bool) -> Reservation<'_> {
        Reservation {
            call,
            key: key(nth),
            tool: "send_money",
            amounts: BTreeMap::from([("amount".to_owned(), amount(units))]),
            limits: vec![WindowLimit {
                at: 0,
                tool: "send_*".into(),
                sum: Some("amount".into()),
                window_seconds: WINDOW,
                max: Some(amount(1000)),
            }],
            forced,
        }
    }

    #[test]
    fn a_full_ledger_has_a_fault() {
        let call = CallId::new(1, 0);
        let entry = |nth| LedgerEntry { key: key(nth), tool: "x".into(), at: 0, until: 50, amounts: BTreeMap::new() };
        let full = Ledger { entries: (0..MAX_ENTRIES).map(entry).collect() };
        let new = reservation(&call, MAX_ENTRIES, 1, false);
        let (answer, next) = new.decide(&full, 49);
        assert!(!answer.reserved && answer.fault.is_some() && next.is_none());
        let (answer, next) = new.decide(&full, 50);
        assert!(answer.reserved, "old entries are dropped");
        assert_eq!(next.unwrap().entries.len(), 1);
    }

    #[test]
    fn a_forced_reservation_counts_beyond_the_limit() {
        let call = CallId::new(1, 0);
        let (_, ledger) = reservation(&call, 0, 900, false).decide(&Ledger::default(), 0);
        let (refused, none) = reservation(&call, 1, 200, false).decide(ledger.as_ref().unwrap(), 1);
        assert!(!refused.reserved && none.is_none());
        assert_eq!(refused.used[0].used, amount(900));
        let (answer, forced) = reservation(&call, 1, 200, true).decide(ledger.as_ref().unwrap(), 1);
        assert!(answer.reserved);
        let (last, _) = reservation(&call, 2, 1, false).decide(&forced.unwrap(), 2);
        assert_eq!((last.reserved, last.used[0].used), (false, amount(1100)));
    }

    proptest! {
        /// Whatever is reserved, repeated and given back: the calls of each window never exceed the limit together, and a repeated
        /// reservation changes nothing.
        #[test]
        fn reserved_amounts_of_a_window_never_exceed_the_limit(
            acts in prop::collection::vec((0_usize..12, 0_u64..700, 0_u64..40, any::<bool>()), 0..60),
        ) {
            let (call, mut ledger, mut now) = (CallId::new(1, 0), Ledger::default(), 0);
            for (nth, units, later, fails) in acts {
                now += later;
                let new = reservation(&call, nth, units, false);
                let (answer, next) = new.decide(&ledger, now);
                ledger = next.unwrap_or(ledger);
                prop_assert_eq!(answer.reserved, ledger.contains(&key(nth)));
                prop_assert_eq!(new.decide(&ledger, now).1, None, "a second reservation changes nothing");
                let recent = ledger.entries.iter().filter(|entry| entry.at + WINDOW > now);
                let sum = recent.fold(Amount::default(), |sum, entry| sum.plus(entry.amounts["amount"]));
                prop_assert!(sum <= amount(1000), "{} at {}", sum, now);
                if fails && let Some(without) = ledger.without(&key(nth)) {
                    ledger = without;
                }
                let text = serde_json::to_string(&ledger).unwrap();
                prop_assert_eq!(&serde_json::from_str::<Ledger>(&text).unwrap(), &ledger);
            }
        }
    }
}
