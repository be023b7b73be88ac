//! The soft limit of a Skill's directory in the memory (`memory.softLimit`).

use crate::apply::quantity;
use bloomery_crds::v1alpha1::{MemoryUsage, Skill};
use k8s_openapi::jiff::SignedDuration;

/// The time after which the size of a directory above its soft limit counts as unknown, because its files may have been removed. Then
/// one Job starts, and its worker measures again.
pub const MAX_AGE: SignedDuration = SignedDuration::from_mins(10);

/// Returns the soft limit of a Skill's directory, in bytes; none if the Skill sets none.
pub fn soft_limit(skill: &Skill) -> Option<u64> {
    let limit = skill.spec.memory.as_ref()?.soft_limit.as_deref()?;
    u64::try_from(quantity::parse(limit)? / 1000).ok()
}

/// Describes a measured size, with the largest directories: `1.5 GiB (jobs 1.2 GiB, focus-cache 0.3 GiB)`.
pub fn describe(usage: &MemoryUsage) -> String {
    let largest =
        usage.directories.iter().take(3).map(|directory| format!("{} {}", directory.name, size(directory.bytes)));
    let largest: Vec<String> = largest.collect();
    let total = size(usage.bytes);
    if largest.is_empty() { total } else { format!("{total} ({})", largest.join(", ")) }
}

/// Returns a size for people.
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let unit = UNITS.into_iter().find(|(_, unit)| bytes >= *unit);
    let Some((name, unit)) = unit else { return format!("{bytes} bytes") };
    let tenths = bytes / (unit / 10).max(1);
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case(0, "0 bytes")]
    #[case(1023, "1023 bytes")]
    #[case(1024, "1.0 KiB")]
    #[case(1_610_612_736, "1.5 GiB")]
    #[case(u64::MAX, "16777216.0 TiB")]
    fn a_size_is_shown_in_the_largest_unit_that_it_reaches(#[case] bytes: u64, #[case] expected: &str) {
        assert_eq!(size(bytes), expected);
    }

    #[test]
    fn the_soft_limit_is_read_in_bytes() {
        let skill = json!({"metadata": {"name": "orders"}, "spec": {"problem": {"statement": "help"}}});
        let mut skill: Skill = serde_json::from_value(skill).unwrap();
        assert_eq!(soft_limit(&skill), None);
        for (limit, bytes) in [("2Gi", 2 << 30), ("500M", 500_000_000), ("7", 7)] {
            skill.spec.memory = serde_json::from_value(json!({"softLimit": limit})).unwrap();
            assert_eq!(soft_limit(&skill), Some(bytes));
        }
    }
}
