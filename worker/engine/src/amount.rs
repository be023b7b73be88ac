//! Exact amounts: sums of decimals, without the rounding of doubles.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use std::fmt;

/// The most decimals of an amount.
const DECIMALS: u32 = 18;

/// The number of units in 1.
const UNITS: i128 = 10_i128.pow(DECIMALS);

/// A number of at least 0 with at most 18 decimals. In JSON, it is a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Amount(i128);

/// The error of a text that is no amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a number of at least 0 with at most 18 decimals")]
pub struct Error(String);

impl From<Amount> for String {
    fn from(amount: Amount) -> Self {
        amount.to_string()
    }
}

impl TryFrom<String> for Amount {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        parse(&text).ok_or(Error(text))
    }
}

impl Amount {
    /// The amount of one call.
    pub(crate) const ONE: Self = Self(UNITS);

    /// The largest number that is an amount. Sums may be larger.
    const LARGEST: Self = Self(u64::MAX as i128 * UNITS);

    /// Returns a number as an amount. `None` if it is negative, has more decimals, or is too large.
    pub fn of_number(number: &Number) -> Option<Self> {
        parse(&number.to_string()).filter(|amount| *amount <= Self::LARGEST)
    }

    /// Returns a value as an amount. `None` if it is missing, or no number that can be an amount.
    pub(crate) fn of_value(value: Option<&Value>) -> Option<Self> {
        Self::of_number(value?.as_number()?)
    }

    /// Returns the sum. A sum that is too large stays at the largest one, which exceeds every limit.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Parses a JSON number.
fn parse(text: &str) -> Option<Amount> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let decimals = i64::try_from(fraction.len()).ok()?.checked_sub(exponent.parse().ok()?)?;
    let shift = i64::from(DECIMALS).checked_sub(decimals)?;
    let factor = 10_i128.checked_pow(u32::try_from(shift.unsigned_abs()).ok()?)?;
    let units = match shift {
        0.. => digits.checked_mul(factor)?,
        _ if digits % factor == 0 => digits / factor,
        _ => return None,
    };
    (units >= 0).then_some(Amount(units))
}

/// Writes the amount without an exponent and without trailing zeros.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / UNITS, self.0 % UNITS);
        if fraction == 0 {
            return write!(f, "{whole}");
        }
        let decimals = format!("{fraction:018}");
        write!(f, "{whole}.{}", decimals.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::whole(json!(500), Some("500"))]
    #[case::decimals(json!(49.9), Some("49.9"))]
    #[case::exponent(json!(1e-7), Some("0.0000001"))]
    #[case::large_exponent(json!(1e16), Some("10000000000000000"))]
    #[case::largest(json!(u64::MAX), Some("18446744073709551615"))]
    #[case::zero(json!(0), Some("0"))]
    #[case::negative(json!(-600), None)]
    #[case::slightly_negative(json!(-1e-9), None)]
    #[case::too_large(json!(1e300), None)]
    #[case::too_many_decimals(json!(1e-300), None)]
    #[case::a_text(json!("500"), None)]
    #[case::null(json!(null), None)]
    #[case::a_list(json!([500]), None)]
    fn an_amount_is_a_number_of_at_least_0(#[case] value: Value, #[case] expected: Option<&str>) {
        assert_eq!(Amount::of_value(Some(&value)).map(|amount| amount.to_string()).as_deref(), expected);
    }

    #[test]
    fn no_sum_wraps_around() {
        let most = Amount::of_number(&Number::from(u64::MAX)).unwrap();
        let sum = (0..100).fold(Amount::default(), |sum, _| sum.plus(most));
        assert!(sum > most);
    }

    proptest! {
        /// Sums of cents are exact in every order. As doubles, 0.1 + 0.2 is more than 0.3.
        #[test]
        fn sums_of_cents_are_exact(cents in prop::collection::vec(0_u32..10_000_000, 0..20)) {
            let amount = |cents: u64| {
                let text = format!("{}.{:02}", cents / 100, cents % 100);
                Amount::of_value(Some(&serde_json::from_str(&text).unwrap())).unwrap()
            };
            let sum = |cents: &mut dyn Iterator<Item = &u32>| {
                cents.fold(Amount::default(), |sum, cents| sum.plus(amount((*cents).into())))
            };
            let expected = amount(cents.iter().map(|cents| u64::from(*cents)).sum());
            prop_assert_eq!(sum(&mut cents.iter()), expected);
            prop_assert_eq!(sum(&mut cents.iter().rev()), expected);
        }

        #[test]
        fn an_amount_is_written_as_it_is_read(whole in 0_u64.., decimals in 0_u32..1_000_000) {
            let text = format!("{}.{decimals:06}", whole / 10);
            let read = parse(&text).unwrap();
            prop_assert_eq!(parse(&read.to_string()), Some(read));
        }

        #[test]
        fn a_sum_is_read_as_it_is_written(numbers in prop::collection::vec(0_u64.., 0..30)) {
            let amount = |number: u64| Amount::of_number(&number.into()).unwrap();
            let sum = numbers.into_iter().fold(Amount::default(), |sum, number| sum.plus(amount(number)));
            let text = serde_json::to_string(&sum).unwrap();
            prop_assert_eq!(serde_json::from_str::<Amount>(&text).unwrap(), sum);
        }

        #[test]
        fn no_number_panics(number in any::<f64>()) {
            if let Some(number) = Number::from_f64(number) {
                let _ = Amount::of_number(&number).map(|amount| amount.to_string());
            }
        }
    }
}
