//! The sections of the system prompt that say what the answer is judged by: the acceptance criteria and the output contract
//! (`docs/explanation/engine.md`, section 2). They cost tokens in every request, so they are limited.

pub(crate) use super::prompt_room::Omission;
use super::{features, prompt_room};
use crate::stage_prompt::list;
use bloomery_crds::canonical;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{OutputContract, SkillSpec};

/// The most tokens of the acceptance criteria in the prompt, by estimate.
const MAX_CRITERIA_TOKENS: usize = 500;

/// The most bytes of the output contract's schema in the prompt.
const MAX_SCHEMA_BYTES: usize = 4096;

/// Returns the section of the acceptance criteria. It says how many criteria it does not show.
pub(crate) fn criteria_section(skill: &SkillSpec) -> Option<String> {
    let (shown, omitted) = split_criteria(skill);
    if shown.is_empty() && omitted.is_empty() {
        return None;
    }
    let note = match omitted.len() {
        0 => String::new(),
        omitted => format!(
            "\n\nThere is no room here for further criteria ({omitted}). Your answer is checked against them too."
        ),
    };
    Some(format!("# Acceptance criteria\nYour answer must meet each of them:\n{}{note}", list(&shown)))
}

/// Returns the section about the form of the answer, if the output contract asks for fields. It says whether the schema is cut.
pub(crate) fn answer_section(skill: &SkillSpec) -> Option<String> {
    let contract = skill.output_contract.as_ref()?;
    let fields = list(&contract.required_fields);
    Some(match (contract.required_fields.is_empty(), schema_text(contract)) {
        (true, None) => return None,
        (false, None) => format!("{ANSWER_FORM} {WITH_FIELDS}\n{fields}"),
        (true, Some(schema)) => format!("{ANSWER_FORM} that is {WITH_SCHEMA}\n{}", shown_schema(&schema)),
        (false, Some(schema)) => {
            format!("{ANSWER_FORM} {WITH_FIELDS}\n{fields}\n\nIt must be {WITH_SCHEMA}\n{}", shown_schema(&schema))
        }
    })
}

/// Returns the parts of a Skill that the prompt does not show.
pub(crate) fn omissions(skill: &SkillSpec) -> Vec<Omission> {
    let (_, criteria) = split_criteria(skill);
    let quoted: Vec<String> = criteria.iter().map(|text| format!("{text:?}")).collect();
    let criteria = (!criteria.is_empty()).then(|| Omission {
        path: "spec.acceptanceCriteria",
        message: format!(
            "the prompt has room for about {MAX_CRITERIA_TOKENS} tokens, so only the finalization gate checks {}",
            quoted.join(", ")
        ),
    });
    let schema_bytes = skill.output_contract.as_ref().and_then(schema_text).map_or(0, |schema| schema.len());
    let schema = (schema_bytes > MAX_SCHEMA_BYTES).then(|| Omission {
        path: "spec.outputContract.schema",
        message: format!("the schema has {schema_bytes} bytes, and the prompt shows only the first {MAX_SCHEMA_BYTES}"),
    });
    criteria.into_iter().chain(schema).chain(features::omission(skill)).collect()
}

/// Returns the criteria in the prompt, and those without room in it.
fn split_criteria(skill: &SkillSpec) -> (Vec<String>, Vec<String>) {
    prompt_room::split(skill.acceptance_criteria.iter().map(|text| text.trim()), usize::MAX, MAX_CRITERIA_TOKENS)
}

fn schema_text(contract: &OutputContract) -> Option<String> {
    contract.schema.as_ref().map(canonical::object_to_string)
}

fn shown_schema(schema: &str) -> String {
    let note = if schema.len() > MAX_SCHEMA_BYTES { SCHEMA_CUT } else { "" };
    format!("{}{note}", bounded(schema, MAX_SCHEMA_BYTES))
}

const ANSWER_FORM: &str = "# Answer\nEnd your answer with exactly one fenced ```json block: an object";

const WITH_FIELDS: &str = "with at least these fields, each with a value:";

const WITH_SCHEMA: &str = "valid under this JSON Schema:";

const SCHEMA_CUT: &str = "\n\nThe schema is longer, and is cut here. If the object does not fit the rest of it, you receive the \
    error.";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn skill(fields: &Value) -> SkillSpec {
        let mut skill = json!({"problem": {"statement": "Help"}});
        skill.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(skill).unwrap()
    }

    #[test]
    fn the_agent_knows_its_criteria_and_the_schema_of_its_answer() {
        let skill = skill(&json!({
            "acceptanceCriteria": ["The customer knows when the money arrives", "The order is named"],
            "outputContract": {
                "requiredFields": ["status"],
                "schema": {"properties": {"status": {"enum": ["refunded", "denied"]}}, "type": "object"},
            },
        }));
        let sections = [criteria_section(&skill).unwrap(), answer_section(&skill).unwrap()];
        insta::assert_snapshot!(sections.join("\n\n"), @r#"
        # Acceptance criteria
        Your answer must meet each of them:
        - The customer knows when the money arrives
        - The order is named

        # Answer
        End your answer with exactly one fenced ```json block: an object with at least these fields, each with a value:
        - status

        It must be valid under this JSON Schema:
        {"properties":{"status":{"enum":["refunded","denied"]}},"type":"object"}
        "#);
        assert_eq!(omissions(&skill), []);
    }

    #[test]
    fn a_schema_without_required_fields_asks_for_a_block_too() {
        let skill = skill(&json!({"outputContract": {"schema": {"type": "object"}}}));
        insta::assert_snapshot!(answer_section(&skill).unwrap(), @r#"
        # Answer
        End your answer with exactly one fenced ```json block: an object that is valid under this JSON Schema:
        {"type":"object"}
        "#);
    }

    #[test]
    fn a_skill_without_criteria_and_contract_has_no_section() {
        for skill in [skill(&json!({})), skill(&json!({"acceptanceCriteria": [], "outputContract": {}}))] {
            assert_eq!((criteria_section(&skill), answer_section(&skill)), (None, None));
        }
    }

    #[test]
    fn the_sections_are_bounded_and_say_what_they_do_not_show() {
        let criteria: Vec<String> = (0..32).map(|n| format!("{n:02}{}", "x".repeat(498))).collect();
        let schema = json!({"properties": {"note": {"description": "é".repeat(20_000)}}});
        let skill = skill(&json!({"acceptanceCriteria": criteria, "outputContract": {"schema": schema}}));
        let (criteria, answer) = (criteria_section(&skill).unwrap(), answer_section(&skill).unwrap());
        assert!(criteria.len() < 2300 && answer.len() < 4400, "{} {}", criteria.len(), answer.len());
        assert!(criteria.contains("- 03x") && !criteria.contains("- 04x"), "{criteria}");
        assert!(criteria.ends_with("further criteria (28). Your answer is checked against them too."), "{criteria}");
        assert!(answer.contains("…\n\nThe schema is longer, and is cut here."), "{answer}");
        let omissions = omissions(&skill);
        assert_eq!(
            omissions.iter().map(|omission| omission.path).collect::<Vec<_>>(),
            ["spec.acceptanceCriteria", "spec.outputContract.schema"]
        );
        assert!(omissions[0].message.contains("\"04x"), "{omissions:?}");
        assert!(omissions[1].message.contains("only the first 4096"), "{omissions:?}");
    }
}
