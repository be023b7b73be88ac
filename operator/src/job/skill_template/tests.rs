use super::*;
use bloomery_crds::v1alpha1::JobSpec;
use rstest::rstest;
use std::path::PathBuf;

/// The templates that the chart ships.
fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../skill-templates")
}

#[test]
fn the_templates_of_the_chart_can_be_used() {
    for name in [JobSpec::DEFAULT_SKILL, "sw-dev-senior", "cs-tier-1", "devops-tier-1", "data-analyst"] {
        let skill = new_skill(read_template(Some(&shipped()), name).unwrap(), "acme", name);
        assert_eq!((skill.metadata.name.as_deref(), skill.metadata.namespace.as_deref()), (Some(name), Some("acme")));
        assert_eq!(skill.metadata.labels.unwrap()[names::LABEL_TEMPLATE], name);
        assert_eq!(skill.metadata.owner_references, None, "the Skill outlives the Job");
    }
}

/// The chart contains the templates by a link to the directory at the top, so that each exists once.
#[test]
fn the_chart_ships_the_templates_of_the_command_line() {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/bloomery/skill-templates");
    assert!(chart.symlink_metadata().unwrap().is_symlink());
    assert_eq!(chart.canonicalize().unwrap(), shipped().canonicalize().unwrap());
}

#[test]
fn a_missing_template_is_named() {
    for directory in [None, Some(shipped())] {
        let why = read_template(directory.as_deref(), "no-such").unwrap_err();
        assert_eq!(why, "the installation has no template no-such");
    }
}

#[rstest]
#[case::not_yaml("spec: [", "line 1 column 7: unclosed bracket")]
#[case::no_spec("kind: Skill\nmetadata: {name: a}\n", "spec")]
#[case::an_unknown_field(
    "metadata: {name: a}\nspec: {problem: {statement: x}, policy: {quorum: 2}}\n",
    "spec.policy.quorum"
)]
fn a_template_that_cannot_be_used_is_refused(#[case] text: &str, #[case] reason: &str) {
    let why = parse_template(text).unwrap_err();
    assert!(why.contains(reason), "{why}");
}
