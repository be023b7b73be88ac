//! The Skill of seed 002, section 3.1, from the seed's own YAML.

use bloomery_crds::v1alpha1::SkillSpec;
use bloomery_skills::{Options, import, yaml};

const YAML: &str = include_str!("../../../../../skills/tests/seeds/002-complete.yaml");

/// As it is written.
pub(super) fn skill() -> SkillSpec {
    edited(&[])
}

/// With places of it written otherwise, as an author would edit them: each stands there once.
pub(super) fn edited(edits: &[(&str, &str)]) -> SkillSpec {
    let text = edits.iter().fold(YAML.to_owned(), |text, (from, to)| {
        assert_eq!(text.matches(from).count(), 1, "{from:?} in\n{text}");
        text.replace(from, to)
    });
    let read = yaml::read(text.as_bytes());
    assert_eq!((read.findings.as_slice(), read.documents.len()), (&[][..], 1));
    let options = Options { name: Some("cs-tier-1".into()), ..Options::default() };
    let imported = import(&read.documents[0], &options);
    imported.skill.unwrap_or_else(|| panic!("{:?}", imported.findings)).spec
}
