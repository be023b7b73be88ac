//! The budgets of a conversation (`docs/explanation/engine.md`, section 5).

use crate::v1alpha1::Limits;
use serde::{Deserialize, Serialize};

/// The limits that apply to one Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EffectiveLimits {
    /// The largest number of model calls in the main loop.
    pub steps: u32,
    /// The largest number of tool calls.
    pub tool_calls: u32,
    /// The largest number of tokens, input and output together.
    pub tokens: u64,
    /// The longest working time, in seconds. Waiting does not count.
    pub duration_seconds: u64,
}

impl EffectiveLimits {
    /// The limits if neither the Skill nor the Job sets any.
    pub const DEFAULT: Self = Self { steps: 50, tool_calls: 100, tokens: 200_000, duration_seconds: 30 * 60 };

    /// Resolves the limits of a Job. Those of the Skill replace the defaults; those of the Job can only lower them.
    pub fn resolve(skill: Option<&Limits>, job: Option<&Limits>) -> Self {
        let of_skill = Self::DEFAULT.combine(skill, |_, own| own);
        of_skill.lowered_to(job)
    }

    /// Returns these limits, lowered to those of `job` that are lower. No limit rises.
    #[must_use]
    pub fn lowered_to(self, job: Option<&Limits>) -> Self {
        self.combine(job, Ord::min)
    }

    /// Names each limit of a Job that is above its Skill's, so that the Skill's applies. Each is a sentence.
    pub fn lowered(skill: Option<&Limits>, job: Option<&Limits>) -> Vec<String> {
        let allowed = Self::DEFAULT.combine(skill, |_, own| own);
        let wanted = allowed.combine(job, |_, own| own);
        let limits = [
            ("steps", wanted.steps.into(), allowed.steps.into()),
            ("toolCalls", wanted.tool_calls.into(), allowed.tool_calls.into()),
            ("tokens", wanted.tokens, allowed.tokens),
            ("duration (in seconds)", wanted.duration_seconds, allowed.duration_seconds),
        ];
        let above = limits.into_iter().filter(|(_, wanted, allowed)| wanted > allowed);
        above
            .map(|(name, wanted, allowed): (_, u64, u64)| {
                format!("spec.limits.{name} is {wanted}, and the Skill allows {allowed}: {allowed} applies.")
            })
            .collect()
    }

    /// Replaces each limit that `own` sets with `choose(current, own)`.
    fn combine(self, own: Option<&Limits>, choose: impl Fn(u64, u64) -> u64) -> Self {
        let Some(own) = own else { return self };
        let choose_u64 = |current: u64, own: Option<u64>| own.map_or(current, |own| choose(current, own));
        let choose_u32 = |current: u32, own: Option<u32>| {
            u32::try_from(choose_u64(current.into(), own.map(u64::from))).unwrap_or(u32::MAX)
        };
        Self {
            steps: choose_u32(self.steps, own.steps),
            tool_calls: choose_u32(self.tool_calls, own.tool_calls),
            tokens: choose_u64(self.tokens, own.tokens),
            duration_seconds: choose_u64(
                self.duration_seconds,
                own.duration.as_ref().map(crate::v1alpha1::whole_seconds),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(steps: Option<u32>, duration: Option<&str>) -> Limits {
        Limits { steps, duration: duration.map(|text| text.parse().unwrap()), ..Limits::default() }
    }

    #[test]
    fn the_skill_replaces_defaults_and_the_job_only_lowers() {
        let skill = limits(Some(80), Some("1h"));
        assert_eq!(EffectiveLimits::resolve(Some(&skill), None).steps, 80);
        let raised = EffectiveLimits::resolve(Some(&skill), Some(&limits(Some(90), Some("2h"))));
        assert_eq!((raised.steps, raised.duration_seconds), (80, 3600));
        let named = EffectiveLimits::lowered(Some(&skill), Some(&limits(Some(90), Some("2h"))));
        assert_eq!(named[0], "spec.limits.steps is 90, and the Skill allows 80: 80 applies.");
        assert_eq!(named[1], "spec.limits.duration (in seconds) is 7200, and the Skill allows 3600: 3600 applies.");
        assert!(EffectiveLimits::lowered(Some(&skill), Some(&limits(Some(80), None))).is_empty());
        assert_eq!(EffectiveLimits::lowered(None, Some(&limits(Some(51), None))).len(), 1, "above the default");
        let lowered = EffectiveLimits::resolve(Some(&skill), Some(&limits(Some(7), Some("1m30s"))));
        assert_eq!((lowered.steps, lowered.duration_seconds), (7, 90));
        assert_eq!(EffectiveLimits::resolve(None, None), EffectiveLimits::DEFAULT);
    }
}
