//! The admission policy for the limits of tenants knows the default limits of a Skill, because a Skill without a limit asks for the
//! default.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bloomery_crds::limits::EffectiveLimits;

#[test]
fn the_admission_policy_has_the_default_of_each_limit() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/bloomery/templates/limits-policy.yaml");
    let policy = std::fs::read_to_string(path).unwrap();
    let EffectiveLimits { steps, tool_calls, tokens, duration_seconds } = EffectiveLimits::DEFAULT;
    for (limit, default) in [("steps", u64::from(steps)), ("toolCalls", u64::from(tool_calls)), ("tokens", tokens)] {
        let expected = format!("(dict \"name\" \"{limit}\" \"default\" {default})");
        assert!(policy.contains(&expected), "`{expected}` should be in {path}");
    }
    let expected = format!("engine.limits.duration.orValue('{}m')", duration_seconds / 60);
    assert!(policy.contains(&expected), "`{expected}` should be in {path}");
}
