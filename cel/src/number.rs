//! Exact comparison of numbers.

use serde_json::Number;
use std::cmp::Ordering;
use std::fmt;

/// A number of JSON or CEL.
#[derive(Debug, Clone, Copy)]
pub enum Numeric {
    /// A signed or unsigned integer of 64 bits.
    Whole(i128),
    /// Any other number.
    Double(f64),
}

impl Numeric {
    /// Reads a JSON number: an integer if it is one, else a double.
    pub fn from_json(number: &Number) -> Self {
        match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Self::Whole(whole.into()),
            (None, Some(whole)) => Self::Whole(whole.into()),
            (None, None) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
        }
    }
}

/// Writes the shortest decimal text: `50` for 50 and 50.0, `12.5` for 12.50.
impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(whole) => whole.fmt(f),
            Self::Double(double) => double.fmt(f),
        }
    }
}

/// Compares two numbers without rounding: 9007199254740993 is more than 9007199254740992.0. Returns `None` if one is NaN.
pub fn compare(left: Numeric, right: Numeric) -> Option<Ordering> {
    match (left, right) {
        (Numeric::Whole(left), Numeric::Whole(right)) => Some(left.cmp(&right)),
        (Numeric::Double(left), Numeric::Double(right)) => left.partial_cmp(&right),
        (Numeric::Whole(left), Numeric::Double(right)) => compare_mixed(left, right),
        (Numeric::Double(left), Numeric::Whole(right)) => compare_mixed(right, left).map(Ordering::reverse),
    }
}

fn compare_mixed(whole: i128, double: f64) -> Option<Ordering> {
    // Every `i32` is exact as a double.
    if let Ok(small) = i32::try_from(whole) {
        return f64::from(small).partial_cmp(&double);
    }
    if double.is_nan() {
        return None;
    }
    // The cast saturates far beyond the integers of 64 bits, so the order stays correct.
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is compared below")]
    let floor = double.floor() as i128;
    Some(whole.cmp(&floor).then(if double.fract() == 0.0 || double.is_infinite() {
        Ordering::Equal
    } else {
        Ordering::Less
    }))
}
