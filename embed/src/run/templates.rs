//! Templates of Skills. On the first use, a template is copied to the skill directory, where the user can edit it.

/// The name and the text of each template.
const TEMPLATES: [(&str, &str); 9] = [
    ("banking", include_str!("../../../skill-templates/banking.yaml")),
    ("cs-tier-1", include_str!("../../../skill-templates/cs-tier-1.yaml")),
    ("data-analyst", include_str!("../../../skill-templates/data-analyst.yaml")),
    ("devops-tier-1", include_str!("../../../skill-templates/devops-tier-1.yaml")),
    ("mail-calendar", include_str!("../../../skill-templates/mail-calendar.yaml")),
    ("sw-dev-agent", include_str!("../../../skill-templates/sw-dev-agent.yaml")),
    ("sw-dev-senior", include_str!("../../../skill-templates/sw-dev-senior.yaml")),
    ("team-chat", include_str!("../../../skill-templates/team-chat.yaml")),
    ("travel", include_str!("../../../skill-templates/travel.yaml")),
];

/// Returns the names of all templates.
pub fn names() -> impl Iterator<Item = &'static str> {
    TEMPLATES.iter().map(|(name, _)| *name)
}

/// Returns the text of the template with this name. If there is none and `bootstrap` is true, returns a minimal Skill.
pub fn find(name: &str, bootstrap: bool) -> Option<String> {
    let template = TEMPLATES.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
    template.or_else(|| bootstrap.then(|| minimal(name)))
}

/// Returns a minimal Skill.
fn minimal(name: &str) -> String {
    format!(
        "apiVersion: bloomery.dev/v1alpha1\nkind: Skill\nmetadata:\n  name: {name}\nspec:\n  problem:\n    \
         statement: Do the work of {name}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check_document;
    use bloomery_crds::lists::ConfigMaps;
    use bloomery_crds::v1alpha1::SkillSpec;
    use bloomery_skills::{ImportOptions, import, yaml};

    fn skill(text: &str) -> (String, SkillSpec) {
        let options = ImportOptions { local: true, ..ImportOptions::default() };
        let checked = check_document(&yaml::read(text.as_bytes()).documents[0], &options, &[], &ConfigMaps::new());
        assert!(checked.findings.is_empty(), "{:?}", checked.findings);
        let skill = checked.skill.unwrap();
        (skill.metadata.name.unwrap(), skill.spec)
    }

    #[test]
    fn every_template_and_the_minimal_skill_are_valid_and_have_their_name() {
        for name in names().chain(["own"]) {
            assert_eq!(skill(&find(name, true).unwrap()).0, name);
        }
        assert_eq!(find("own", false), None);
    }

    #[test]
    fn the_tool_track_order_is_read_only() {
        let (_, spec) = skill(&find("cs-tier-1", false).unwrap());
        assert_eq!(spec.tools.iter().find(|tool| tool.name == "track_order").unwrap().read_only, Some(true));
    }

    /// `tests/seeds` has the skill files of the requirement documents.
    #[test]
    fn the_templates_match_the_skill_files_of_the_requirements() {
        let required_files = [
            ("sw-dev-agent", include_str!("../../../skills/tests/seeds/000-sw-dev-agent.yaml")),
            ("sw-dev-senior", include_str!("../../../skills/tests/seeds/000-sw-dev-senior.yaml")),
        ];
        for (name, text) in required_files {
            let options = ImportOptions { local: true, ..ImportOptions::default() };
            let required = import(&yaml::read(text.as_bytes()).documents[0], &options).skill.unwrap().spec;
            let (_, ours) = skill(&find(name, false).unwrap());
            let resources = |spec: &SkillSpec| {
                let named = spec.resources.iter().map(|it| (it.name.clone(), it.kind, it.required == Some(true)));
                named.collect::<Vec<_>>()
            };
            assert_eq!(resources(&ours), resources(&required), "{name}");
            assert_eq!((&ours.display_name, ours.version), (&required.display_name, required.version), "{name}");
            let tools = |spec: &SkillSpec| spec.policy.as_ref().and_then(|policy| policy.tools.clone());
            assert_eq!(tools(&ours), tools(&required), "{name}");
            // A template may have a context that the required file does not have.
            assert!(required.context.is_none() || ours.context == required.context, "{name}");
            let rules = |spec: &SkillSpec| spec.policy.as_ref().and_then(|policy| policy.guardrails.clone());
            assert_eq!(rules(&ours), rules(&required), "{name}");
        }
    }
}
