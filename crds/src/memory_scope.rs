//! The core notes that a Job reads at its start: those in `memory.scope` of its Skill, of which `memoryScope` of the Job may keep some.

use crate::v1alpha1::{CoreNote, SkillSpec};
use strum::IntoEnumIterator;

/// Returns the core notes that a Job with the scope `job` reads at its start, in the order in which they are read.
pub fn core_notes(skill: &SkillSpec, job: Option<&[CoreNote]>) -> Vec<CoreNote> {
    let is_in = |scope: Option<&[CoreNote]>, note: &CoreNote| scope.is_none_or(|scope| scope.contains(note));
    CoreNote::iter().filter(|note| is_in(of_skill(skill), note) && is_in(job, note)).collect()
}

/// Returns a sentence for each note of a Job's scope that the scope of its Skill does not have. Each begins with the path of the note.
pub fn faults(skill: &SkillSpec, job: Option<&[CoreNote]>) -> Vec<String> {
    let Some(allowed) = of_skill(skill) else { return Vec::new() };
    let names: Vec<String> = allowed.iter().map(ToString::to_string).collect();
    let allowed_names = if names.is_empty() { "no note".to_owned() } else { format!("only {}", names.join(", ")) };
    let wrong = job.unwrap_or_default().iter().enumerate().filter(|(_, note)| !allowed.contains(note));
    wrong
        .map(|(at, note)| {
            format!("spec.memoryScope[{at}]: memory.scope of the Skill has {allowed_names}: leave {note} out.")
        })
        .collect()
}

fn of_skill(skill: &SkillSpec) -> Option<&[CoreNote]> {
    skill.memory.as_ref()?.scope.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    #[rstest]
    #[case::all(json!(null), json!(null), &["projectbrief", "productContext", "systemPatterns", "techContext", "activeContext", "progress"])]
    #[case::of_the_skill(json!(["progress", "projectbrief"]), json!(null), &["projectbrief", "progress"])]
    #[case::of_the_job(json!(null), json!(["progress"]), &["progress"])]
    #[case::of_both(json!(["progress", "projectbrief"]), json!(["projectbrief", "techContext"]), &["projectbrief"])]
    #[case::none(json!([]), json!(null), &[])]
    #[case::none_of_the_job(json!(null), json!([]), &[])]
    fn a_job_reads_the_notes_that_both_scopes_have(
        #[case] skill: Value,
        #[case] job: Value,
        #[case] expected: &[&str],
    ) {
        let (skill, job) = scopes(&skill, job);
        let names: Vec<String> = core_notes(&skill, job.as_deref()).iter().map(ToString::to_string).collect();
        assert_eq!(names, expected);
    }

    #[rstest]
    #[case::all(json!(null), json!(["progress"]), &[])]
    #[case::no_scope(json!(["progress"]), json!(null), &[])]
    #[case::within(json!(["progress", "techContext"]), json!(["techContext"]), &[])]
    #[case::beyond(
        json!(["progress", "projectbrief"]), json!(["progress", "techContext"]),
        &["spec.memoryScope[1]: memory.scope of the Skill has only progress, projectbrief: leave techContext out."]
    )]
    #[case::nothing_allowed(
        json!([]), json!(["progress"]), &["spec.memoryScope[0]: memory.scope of the Skill has no note: leave progress out."]
    )]
    fn a_note_beyond_the_scope_of_the_skill_is_a_fault(
        #[case] skill: Value,
        #[case] job: Value,
        #[case] expected: &[&str],
    ) {
        let (skill, job) = scopes(&skill, job);
        assert_eq!(faults(&skill, job.as_deref()), expected);
    }

    fn scopes(skill: &Value, job: Value) -> (SkillSpec, Option<Vec<CoreNote>>) {
        let skill = json!({"problem": {"statement": "help"}, "memory": {"scope": skill}});
        (serde_json::from_value(skill).unwrap(), serde_json::from_value(job).unwrap())
    }
}
