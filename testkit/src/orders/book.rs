//! The orders of the shop. All properties of an order are derived from its id.
//!
//! | series | delivery | refund |
//! |---|---|---|
//! | `A-<n>` | delivered | eligible |
//! | `B-<n>` | delivered | not eligible: the return window is over |
//! | `C-<n>` | in transit | not eligible: not delivered yet |
//! | `HOLD-<n>` | delivered | eligible; the answer waits until the ledger releases the order |
//! | `TERMS-<n>` | delivered | not eligible, for a reason of more than 16 KiB |
//! | `NEWS-<n>` | delivered | eligible; tracking it changes the description of the tool `check_eligibility` |
//!
//! `<n>` is 1 to 999 without leading zeros. The amount is 15.90 + 2 x n EUR (`A-17`: 49.90,
//! `A-243`: 501.90) and the customer's address `customer-<n>@example.com`.

use std::borrow::Cow;
use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An order of the shop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The order's id.
    pub id: String,
    /// The customer's e-mail address.
    pub email: String,
    /// The price in cents.
    pub cents: u32,
    /// The state of the delivery.
    pub delivery: Delivery,
    /// The reason why the order cannot be refunded, if there is one.
    pub refused_because: Option<Cow<'static, str>>,
    /// True if the answer to a refund waits for the ledger's release.
    pub held: bool,
    /// True if tracking the order changes the server's tools.
    pub changes_tools: bool,
}

/// The delivery state of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// On its way to the customer.
    InTransit,
    /// With the customer.
    Delivered,
}

/// The reason why an amount cannot be refunded.
#[derive(Debug, thiserror::Error)]
pub enum NotRefundable {
    /// The order is not eligible.
    #[error("Order {order} cannot be refunded: {reason}.")]
    NotEligible {
        /// The order's id.
        order: String,
        /// The reason of the shop.
        reason: Cow<'static, str>,
    },
    /// The amount is not positive, or more than the customer paid.
    #[error("Order {order}: a refund must be more than 0 and at most the {paid:.2} EUR that were paid.")]
    Amount {
        /// The order's id.
        order: String,
        /// The price of the order in euros.
        paid: f64,
    },
}

impl Order {
    /// Returns the order with this id, or `None` if the shop has none.
    pub fn find(id: &str) -> Option<Self> {
        let (series, digits) = id.split_once('-')?;
        let number: u32 = digits.parse().ok().filter(|number| (1..=999).contains(number))?;
        if number.to_string() != digits {
            return None;
        }
        let (delivery, refused_because) = match series {
            "A" | "HOLD" | "NEWS" => (Delivery::Delivered, None),
            "B" => (Delivery::Delivered, Some("the return window is over".into())),
            "C" => (Delivery::InTransit, Some("it is not delivered yet".into())),
            "TERMS" => (Delivery::Delivered, Some(terms().into())),
            _ => return None,
        };
        Some(Self {
            id: id.to_owned(),
            email: format!("customer-{number}@example.com"),
            cents: 1_590 + 200 * number,
            delivery,
            refused_because,
            held: series == "HOLD",
            changes_tools: series == "NEWS",
        })
    }

    /// Returns the price in euros.
    pub fn amount(&self) -> f64 {
        f64::from(self.cents) / 100.0
    }

    /// Checks that this amount can be refunded.
    ///
    /// # Errors
    /// The order is not eligible, or the amount is not above 0 and at most the price.
    pub fn check_refund(&self, amount: f64) -> Result<(), NotRefundable> {
        if let Some(why) = &self.refused_because {
            return Err(NotRefundable::NotEligible { order: self.id.clone(), reason: why.clone() });
        }
        let paid = self.amount();
        // NaN fails both comparisons.
        if amount > 0.0 && amount <= paid {
            return Ok(());
        }
        Err(NotRefundable::Amount { order: self.id.clone(), paid })
    }
}

/// Returns the reason why orders of the series `TERMS` are not eligible. It is so long that the worker offloads it.
pub fn terms() -> String {
    (1..=CLAUSES).fold(String::new(), |mut terms, clause| {
        let _ = write!(terms, "clause {clause} of the terms excludes it; ");
        terms
    })
}

/// The number of clauses in [`terms`].
const CLAUSES: u32 = 600;

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case::eligible("A-17", 49.90, Delivery::Delivered, None)]
    #[case::expensive("A-243", 501.90, Delivery::Delivered, None)]
    #[case::late("B-1", 17.90, Delivery::Delivered, Some("the return window is over"))]
    #[case::in_transit("C-2", 19.90, Delivery::InTransit, Some("it is not delivered yet"))]
    #[case::held("HOLD-3", 21.90, Delivery::Delivered, None)]
    #[case::changes_tools("NEWS-3", 21.90, Delivery::Delivered, None)]
    fn an_order_follows_from_its_id(
        #[case] id: &str,
        #[case] amount: f64,
        #[case] delivery: Delivery,
        #[case] refused: Option<&str>,
    ) {
        let order = Order::find(id).unwrap();
        assert!((order.amount() - amount).abs() < f64::EPSILON);
        assert_eq!((order.delivery, order.refused_because.as_deref()), (delivery, refused));
        assert_eq!((order.held, order.changes_tools), (id.starts_with("HOLD-"), id.starts_with("NEWS-")));
    }

    #[test]
    fn the_terms_are_long_enough_to_be_offloaded() {
        let why = Order::find("TERMS-1").unwrap().refused_because.unwrap();
        assert!(why.len() > 16 * 1024 && why.ends_with("clause 600 of the terms excludes it; "), "{}", why.len());
    }

    #[rstest::rstest]
    fn an_unknown_id_has_no_order(
        #[values("", "A", "A-", "A-0", "A-017", "A-1000", "A-+1", "a-17", "D-1", "A-17 ", "-17", "HOLD-A-1")] id: &str,
    ) {
        assert_eq!(Order::find(id), None);
    }

    #[rstest::rstest]
    #[case(49.90, true)]
    #[case(0.01, true)]
    #[case(0.0, false)]
    #[case(-1.0, false)]
    #[case(49.91, false)]
    #[case(f64::NAN, false)]
    #[case(f64::INFINITY, false)]
    fn a_refund_is_at_most_what_was_paid(#[case] amount: f64, #[case] fits: bool) {
        assert_eq!(Order::find("A-17").unwrap().check_refund(amount).is_ok(), fits);
    }
}
