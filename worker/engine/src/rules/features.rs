//! The features of a Skill in the system prompt (`docs/explanation/engine.md`, section 2). They cost tokens in every request, so they are
//! limited: the prompt has all of a required feature, and the test of an optional one. The agent reads the rest with `apply_feature`.

use super::prompt_room::{self, Omission};
use bloomery_crds::text::sentence;
use bloomery_crds::v1alpha1::{Feature, FeatureExtension, SkillSpec};

/// The most tokens of the required features in the prompt, by estimate.
const MAX_REQUIRED_TOKENS: usize = 1000;

/// The most tokens of the optional features in the prompt, by estimate.
const MAX_OPTIONAL_TOKENS: usize = 500;

/// The required or the optional features in the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListedFeatures<'a> {
    /// A line for each feature that the prompt shows.
    pub lines: Vec<String>,
    /// The names of the features for which the prompt has no room.
    pub without_room: Vec<&'a str>,
}

/// Returns the features that apply to every goal.
pub(crate) fn required(skill: &SkillSpec) -> ListedFeatures<'_> {
    let features = skill.features.iter().filter(|feature| feature.is_required());
    split(features, details, MAX_REQUIRED_TOKENS)
}

/// Returns the features that the agent applies when they fit.
pub(crate) fn optional(skill: &SkillSpec) -> ListedFeatures<'_> {
    let features = skill.features.iter().filter(|feature| !feature.is_required());
    split(features, |feature| one_sentence(&feature.test_scenario), MAX_OPTIONAL_TOKENS)
}

/// Returns the names of the features that the prompt does not show completely.
pub(crate) fn read_on_demand(skill: &SkillSpec) -> Vec<&str> {
    let without_room = required(skill).without_room;
    let is_cut = |feature: &&Feature| !feature.is_required() || without_room.contains(&feature.name.as_str());
    skill.features.iter().filter(is_cut).map(|feature| feature.name.as_str()).collect()
}

/// Returns all of a feature except its name: its test, the expected result, and what implements or explains it.
pub(crate) fn details(feature: &Feature) -> String {
    let test = one_sentence(&feature.test_scenario);
    let expected = one_sentence(&feature.expected_result);
    let implemented = feature.ext.as_ref().and_then(implementation).unwrap_or_default();
    format!("{test} Expected: {expected}{implemented}")
}

/// Returns what the prompt does not show of the features.
pub(super) fn omission(skill: &SkillSpec) -> Option<Omission> {
    let without_room = [required(skill).without_room, optional(skill).without_room].concat();
    let quoted: Vec<String> = without_room.iter().map(|name| format!("{name:?}")).collect();
    (!quoted.is_empty()).then(|| Omission {
        path: "spec.features",
        message: format!(
            "the prompt has room for about {MAX_REQUIRED_TOKENS} tokens of required features and {MAX_OPTIONAL_TOKENS} of optional ones, \
             so it has only the names of {}",
            quoted.join(", ")
        ),
    })
}

fn split<'a>(
    features: impl Iterator<Item = &'a Feature>,
    text: impl Fn(&Feature) -> String,
    max_tokens: usize,
) -> ListedFeatures<'a> {
    let named: Vec<(&str, String)> =
        features.map(|feature| (feature.name.as_str(), format!("{}: {}", feature.name, text(feature)))).collect();
    let (lines, omitted) = prompt_room::split(named.iter().map(|(_, line)| line.as_str()), usize::MAX, max_tokens);
    let without_room = named.iter().filter(|(_, line)| omitted.contains(line)).map(|(name, _)| *name).collect();
    ListedFeatures { lines, without_room }
}

/// Returns a sentence about what implements a feature. What comes first implements it, and the others are context.
fn implementation(ext: &FeatureExtension) -> Option<String> {
    let FeatureExtension { subskill, script, skill_md_ref } = ext;
    let named = [("Skill", subskill), ("script", script), ("section", skill_md_ref)];
    let parts: Vec<String> =
        named.iter().filter_map(|(kind, name)| Some(format!("the {kind} `{}`", name.as_deref()?))).collect();
    let (first, context) = parts.split_first()?;
    Some(if context.is_empty() {
        format!(" Use {first}.")
    } else {
        format!(" Use {first}; {} may help.", context.join(" and "))
    })
}

fn one_sentence(text: &str) -> String {
    sentence(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn skill(features: &Value) -> SkillSpec {
        serde_json::from_value(json!({"problem": {"statement": "Help"}, "features": features})).unwrap()
    }

    #[rstest]
    #[case::nothing(json!({}), "")]
    #[case::a_subskill(json!({"subskill": "find"}), " Use the Skill `find`.")]
    #[case::a_section(json!({"skillMdRef": "#refunds"}), " Use the section `#refunds`.")]
    #[case::all(
        json!({"skillMdRef": "#refunds", "script": "check.sh", "subskill": "find"}),
        " Use the Skill `find`; the script `check.sh` and the section `#refunds` may help."
    )]
    fn a_subskill_comes_before_a_script_and_a_script_before_a_section(#[case] ext: Value, #[case] expected: &str) {
        let feature = json!({"name": "a", "testScenario": "Given x,\n  then y", "expectedResult": "y.", "ext": ext});
        let skill = skill(&json!([feature]));
        assert_eq!(details(&skill.features[0]), format!("Given x, then y. Expected: Y.{expected}"));
    }

    #[test]
    fn a_feature_without_room_and_each_optional_one_is_read_on_demand() {
        let feature = |name: &str, bytes: usize, optional: bool| json!({"name": name, "testScenario": "x".repeat(bytes), "expectedResult": "y", "optional": optional});
        let mut features: Vec<Value> = (0..10).map(|n| feature(&format!("long-{n}"), 500, false)).collect();
        features.extend([feature("short", 5, false), feature("extra", 5, true)]);
        let skill = skill(&json!(features));
        assert_eq!(required(&skill).without_room, ["long-7", "long-8", "long-9"]);
        assert!(required(&skill).lines.last().unwrap().starts_with("short: Xxxxx. Expected: Y."));
        assert_eq!(optional(&skill).lines, ["extra: Xxxxx."]);
        assert_eq!(read_on_demand(&skill), ["long-7", "long-8", "long-9", "extra"]);
        let omission = omission(&skill).unwrap();
        assert!(omission.message.ends_with("only the names of \"long-7\", \"long-8\", \"long-9\""), "{omission:?}");
    }

    #[test]
    fn a_skill_without_features_shows_none() {
        let skill = skill(&json!([]));
        assert_eq!(required(&skill), ListedFeatures { lines: Vec::new(), without_room: Vec::new() });
        assert_eq!((read_on_demand(&skill), omission(&skill)), (Vec::new(), None));
    }
}
