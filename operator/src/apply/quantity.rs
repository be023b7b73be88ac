//! Exact comparison of Kubernetes quantities.
//!
//! The crate `kube_quantity` 0.9 is not used: it parses quantities as `f64`, compares `1Gi` with `1G` as `f32`, accepts
//! `Gi` as zero, and may panic on overflow.

/// Returns the value of a quantity in thousandths; none for text that is not a quantity.
///
/// A quantity with a fraction of a thousandth counts as invalid: the operator writes none.
pub fn parse(text: &str) -> Option<i128> {
    let number_length = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(number_length)?;
    let (decimal_places, digits) = parse_decimal(number)?;
    let product = digits.checked_mul(thousandths_per_unit(suffix)?)?;
    // `digits` has no decimal point, so the product is too large by this divisor.
    let divisor = 10_i128.checked_pow(decimal_places)?;
    (product % divisor == 0).then_some(product / divisor)
}

/// Parses a decimal number. Returns the number of digits after the decimal point, and all digits as one whole number:
/// (2, 150) for `1.50`.
fn parse_decimal(number: &str) -> Option<(u32, i128)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.trim_start_matches(['+', '-']).is_empty() && fraction.is_empty()
        || !fraction.bytes().all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    Some((u32::try_from(fraction.len()).ok()?, digits))
}

/// The value of one unit of a suffix, in thousandths.
fn thousandths_per_unit(suffix: &str) -> Option<i128> {
    let binary = |power: u32| 1024_i128.checked_pow(power).map(|unit| unit * 1000);
    match suffix {
        "m" => Some(1),
        "" => Some(1_000),
        "k" => Some(1_000_000),
        "M" => Some(1_000_000_000),
        "G" => Some(1_000_000_000_000),
        "T" => Some(1_000_000_000_000_000),
        "P" => Some(1_000_000_000_000_000_000),
        "E" => Some(1_000_000_000_000_000_000_000),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            10_i128.checked_pow(u32::try_from(power.checked_add(3)?).ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use rstest::rstest;

    #[rstest]
    #[case("0.5", "500m")]
    #[case("1", "1000m")]
    #[case("1.50", "1500m")]
    #[case("1Gi", "1024Mi")]
    #[case("0.5Gi", "512Mi")]
    #[case("1000M", "1G")]
    #[case("1e3", "1k")]
    #[case("1E3", "1000")]
    #[case("-.5", "-500m")]
    fn equal_quantities_have_equal_values(#[case] one: &str, #[case] other: &str) {
        assert_eq!(parse(one), parse(other));
        assert!(parse(one).is_some());
    }

    #[rstest]
    #[case("1G", "1Gi")]
    #[case("1", "1m")]
    fn different_quantities_have_different_values(#[case] one: &str, #[case] other: &str) {
        assert_ne!(parse(one), parse(other));
    }

    #[rstest]
    #[case("")]
    #[case("1Gb")]
    #[case("Gi")]
    #[case("1.2.3")]
    #[case("1-2")]
    #[case("1e99999999999")]
    #[case("1e-2147483648")]
    #[case("9e37")]
    fn invalid_quantities_are_rejected(#[case] text: &str) {
        assert_eq!(parse(text), None);
    }
}
