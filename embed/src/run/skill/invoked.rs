//! Finds the Skills that a Job may invoke: in a file with several Skills, in the memory, or among the templates. Prints nothing.

use super::documents::SkillDocuments;
use super::{LoadedSkill, Origin, SelectedSkill, SkillSelector, check_skill, known_names};
use crate::findings::Tally;
use crate::local::SKILL_FILE;
use crate::local::skill_directory::SkillDirectory;
use crate::run::templates;
use crate::source::{self, Source};
use bloomery_crds::children::{EVERY_SKILL, VisibleSkill};
use bloomery_crds::v1alpha1::SkillSpec;
use bloomery_skills::names::name_fault;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Returns the Skills that the Jobs of a Skill may invoke, sorted by name. `file` is the file of the Skill.
pub fn visible(spec: &SkillSpec, memory: &Path, file: &Path) -> Vec<VisibleSkill> {
    let mut names: BTreeSet<String> = if spec.skills.iter().any(|name| name == EVERY_SKILL) {
        known_names(memory).into_iter().chain(names_in(file)).collect()
    } else {
        spec.skills.iter().cloned().collect()
    };
    names.retain(|name| name_fault(name).is_none());
    let found = names.iter().filter_map(|name| find(memory, file, name));
    found.map(|SelectedSkill { loaded, .. }| VisibleSkill::new(&loaded.name, &loaded.spec)).collect()
}

/// Finds a Skill by its name. Returns `None` if there is none without errors.
pub fn find(memory: &Path, file: &Path, name: &str) -> Option<SelectedSkill> {
    let directory = SkillDirectory::new(memory, name);
    let own_file = directory.dir.join(SKILL_FILE);
    let own_selector = || SkillSelector { file: own_file.clone(), name: None, directory: Some(name.to_owned()) };
    let in_file = || {
        let selector = SkillSelector { file: file.to_owned(), name: Some(name.to_owned()), directory: None };
        Some((load(source::read(file).ok()?, selector)?, Origin::File(file.display().to_string())))
    };
    let in_memory = || {
        let found = load(source::read(&own_file).ok()?, own_selector())?;
        (found.name == name).then_some((found, Origin::SkillDirectory))
    };
    let in_templates = || {
        let text = templates::find(name, false).filter(|_| !own_file.exists())?;
        let source = Source { name: format!("the template {name}"), bytes: text.into_bytes() };
        Some((load(source, own_selector())?, Origin::Template))
    };
    let (loaded, origin) = in_file().or_else(in_memory).or_else(in_templates)?;
    Some(SelectedSkill { directory, loaded, origin })
}

/// Parses and checks the Skill that `selector` selects. Returns `None` if it has errors.
fn load(source: Source, selector: SkillSelector) -> Option<LoadedSkill> {
    let (checked, findings) = check_skill(&source, &selector, &[]);
    let valid = checked.filter(|_| Tally::count(&findings).errors == 0)?;
    Some(LoadedSkill::new(valid, &Arc::new(source), selector))
}

/// Returns the names of the Skills in a file.
fn names_in(file: &Path) -> Vec<String> {
    let Ok(source) = source::read(file) else { return Vec::new() };
    let skills = SkillDocuments::read(&source, file, None, &[]).skills;
    let names = skills.iter().filter_map(|checked| checked.object.pointer("/metadata/name")?.as_str());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;

    fn skill(name: &str) -> String {
        format!(
            "apiVersion: bloomery.dev/v1alpha1\nkind: Skill\nmetadata: {{name: {name}}}\nspec: {{problem: {{statement: Help}}}}\n"
        )
    }

    #[test]
    fn skills_are_found_in_the_file_the_memory_and_the_templates() {
        let dir = tempfile::tempdir().unwrap();
        let (memory, file) = (dir.path().join("memory"), dir.path().join("skills.yaml"));
        fs::create_dir_all(memory.join("own")).unwrap();
        fs::create_dir_all(memory.join("broken")).unwrap();
        fs::write(memory.join("own").join(SKILL_FILE), skill("own")).unwrap();
        fs::write(memory.join("broken").join(SKILL_FILE), "kind: Skill").unwrap();
        fs::write(&file, format!("{}---\n{}", skill("front-desk"), skill("billing"))).unwrap();
        let found = |skills: &[&str]| -> Vec<String> {
            let spec = serde_json::from_value(json!({"problem": {"statement": "x"}, "skills": skills})).unwrap();
            visible(&spec, &memory, &file).into_iter().map(|skill| skill.name).collect()
        };
        assert_eq!(found(&["own", "billing", "missing", "broken"]), ["billing", "own"]);
        let all = found(&["*"]);
        for name in ["billing", "front-desk", "own", "sw-dev-agent"] {
            assert!(all.contains(&name.to_owned()), "{name}: {all:?}");
        }
        assert!(!all.contains(&"broken".to_owned()), "{all:?}");
    }
}
