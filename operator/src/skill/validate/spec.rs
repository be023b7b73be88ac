//! Checks of a Skill's spec that CRD rules cannot express.
//!
//! Conditions are parsed, by a parser whose depth and work are bounded (`bloomery_cel`), and schemas are only measured: one Skill must
//! not stop the operator of all tenants. Only probes, workers and `bloomery lint` compare conditions with the tools that they are about.

use bloomery_cel::Dialect;
use bloomery_crds::canonical::{self, MAX_DEPTH, MAX_SCHEMA_BYTES};
use bloomery_crds::nearest::did_you_mean;
use bloomery_crds::persona;
use bloomery_crds::v1alpha1::{Policy, SkillSpec};
use bloomery_crds::{features, scripts, sidecar};
use std::collections::{BTreeMap, BTreeSet};

/// The faults of a spec, each a sentence that begins with the path of its field.
pub(super) fn faults(spec: &SkillSpec) -> Vec<String> {
    let mut faults = persona_faults(spec);
    faults.extend(condition_faults(spec));
    faults.extend(schema_fault(spec));
    faults.extend(workflow_faults(spec));
    let shared = [sidecar::faults(spec), scripts::faults(spec), features::faults(spec)];
    faults.extend(shared.into_iter().flatten().map(|fault| fault.to_string()));
    faults
}

fn policy(spec: &SkillSpec) -> &Policy {
    const NONE: &Policy = &Policy {
        tools: None,
        guardrails: None,
        workflows: Vec::new(),
        approvals: Vec::new(),
        lists: BTreeMap::new(),
        lists_from: BTreeMap::new(),
        limits: Vec::new(),
        effects: None,
        allow_unmatched: None,
    };
    spec.policy.as_ref().unwrap_or(NONE)
}

fn persona_faults(spec: &SkillSpec) -> Vec<String> {
    let template = spec.role.as_ref().and_then(|role| role.persona.as_deref());
    let errors = template.and_then(|template| persona::check(template, &spec.resources).err());
    errors.unwrap_or_default().iter().map(ToString::to_string).collect()
}

fn condition_faults(spec: &SkillSpec) -> Vec<String> {
    let tool_conditions = spec.tools.iter().enumerate().filter_map(|(at, tool)| {
        let condition = tool.policy.as_ref()?.condition.as_deref()?;
        Some((format!("spec.tools[{at}].policy.condition"), condition, Dialect::Call))
    });
    let approval_conditions = policy(spec).approvals.iter().enumerate().filter_map(|(at, rule)| {
        let condition = rule.when.as_deref()?;
        Some((format!("spec.policy.approvals[{at}].when"), condition, Dialect::Call))
    });
    let expected_conditions = policy(spec).expectations().filter_map(|(path, _, expected)| {
        Some((format!("{path}.condition"), expected.condition.as_deref()?, Dialect::Step))
    });
    let faults = |(field, text, dialect): (String, &str, Dialect)| {
        bloomery_cel::faults(text, dialect).into_iter().map(move |fault| format!("{field}: {fault}."))
    };
    tool_conditions.chain(approval_conditions).chain(expected_conditions).flat_map(faults).collect()
}

fn schema_fault(spec: &SkillSpec) -> Option<String> {
    let schema = spec.output_contract.as_ref()?.schema.as_ref()?;
    let depth = canonical::object_depth(schema);
    if depth > MAX_DEPTH {
        return Some(format!(
            "spec.outputContract.schema: is nested {depth} levels deep, and the maximum is {MAX_DEPTH}: move parts of it to $defs, and refer to them."
        ));
    }
    let size = canonical::object_to_string(schema).len();
    (size > MAX_SCHEMA_BYTES)
        .then(|| format!("spec.outputContract.schema: has {size} bytes, and the maximum is {MAX_SCHEMA_BYTES}."))
}

fn workflow_faults(spec: &SkillSpec) -> Vec<String> {
    let intents: Vec<&str> =
        spec.intents.iter().flat_map(|intents| &intents.supported).map(|intent| intent.id.as_str()).collect();
    let mut faults = Vec::new();
    for (at, workflow) in policy(spec).workflows.iter().enumerate() {
        let field = format!("spec.policy.workflows[{at}]");
        for (nth, id) in workflow.intents.iter().enumerate().filter(|(_, id)| !intents.contains(&id.as_str())) {
            let near = did_you_mean(id, intents.iter().copied());
            faults.push(format!("{field}.intents[{nth}]: {id:?} is not an id in spec.intents.supported.{near}"));
        }
        let mut seen = BTreeSet::new();
        for (nth, step) in workflow.steps.iter().enumerate().filter(|(_, step)| !seen.insert(step.as_str())) {
            faults.push(format!(
                "{field}.steps[{nth}]: {step:?} is a duplicate: steps are identified by their names, so names must be unique."
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::fixtures;
    use rstest::rstest;
    use serde_json::{Value, json};

    /// The faults of the complete Skill after a change.
    fn faults_after(pointer: &str, value: Value) -> Vec<String> {
        let mut spec = serde_json::to_value(fixtures::complete().spec).unwrap();
        *spec.pointer_mut(pointer).unwrap() = value;
        faults(&serde_json::from_value(spec).unwrap())
    }

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(true), |inner, _| json!({ "not": inner }))
    }

    #[test]
    fn a_complete_skill_has_no_fault() {
        assert_eq!(faults(&fixtures::complete().spec), [""; 0]);
    }

    #[rstest]
    #[case::persona("/role/persona", json!("See {{resources.doc}}"), "spec.role.persona (line 1, column 5): ")]
    #[case::optional_resource("/role/persona", json!("See {{resources.docs}}"), "spec.role.persona (line 1, column 5): ")]
    #[case::tool_condition(
        "/tools/0/policy/condition", json!("(".repeat(25)), "spec.tools[0].policy.condition: at byte 24 the condition is nested"
    )]
    #[case::path_as_a_condition(
        "/policy/approvals/0/when", json!("../../etc/passwd"), "spec.policy.approvals[0].when: "
    )]
    #[case::unknown_function("/policy/approvals/0/when", json!("isBig(amount)"), "spec.policy.approvals[0].when: ")]
    #[case::approval_condition("/policy/approvals/0/when", json!("amount > #2"), "spec.policy.approvals[0].when: the character '#'")]
    #[case::condition_of_a_step(
        "/policy/workflows/0", json!({"name": "w", "steps": ["a"], "expect": [{"step": "a", "condition": "result > #2"}]}),
        "spec.policy.workflows[0].expect[0].condition: the character '#'"
    )]
    #[case::intent(
        "/policy/workflows/0/intents", json!(["refunds"]),
        "spec.policy.workflows[0].intents[0]: \"refunds\" is not an id in spec.intents.supported. Did you mean \"refund\"?"
    )]
    #[case::step("/policy/workflows/0/steps", json!(["a", "b", "a"]), "spec.policy.workflows[0].steps[2]: \"a\" is a duplicate")]
    fn each_invalid_field_is_reported_with_its_path(
        #[case] pointer: &str,
        #[case] value: Value,
        #[case] expected: &str,
    ) {
        let faults = faults_after(pointer, value);
        assert!(faults.len() == 1 && faults[0].starts_with(expected), "{faults:?}");
    }

    #[test]
    fn bindings_of_a_server_that_all_jobs_share_are_a_fault() {
        let mut spec = fixtures::complete().spec;
        let server = json!({"container": {"image": "db:1", "bindings": [{"resource": "ledger", "env": "DB"}]}});
        spec.mcp_server = serde_json::from_value(server).unwrap();
        let fault = "spec.mcpServer.container.bindings: is only allowed with scope Job: all Jobs share another server.";
        assert_eq!(faults(&spec), [fault]);
    }

    #[test]
    fn a_feature_that_refers_to_nothing_is_a_fault() {
        let mut spec = fixtures::complete().spec;
        spec.docs = Some("# Refunds\nWithin 30 days.\n".into());
        let feature = |reference: &str| json!([{"name": "a", "testScenario": "Given x", "expectedResult": "y", "ext": {"skillMdRef": reference}}]);
        spec.features = serde_json::from_value(feature("#refunds")).unwrap();
        assert_eq!(faults(&spec), [""; 0]);
        spec.features = serde_json::from_value(feature("#refnuds")).unwrap();
        let fault =
            "spec.features[0].ext.skillMdRef: \"#refnuds\" is no section of spec.docs (did you mean \"#refunds\"?).";
        assert_eq!(faults(&spec), [fault]);
    }

    #[test]
    fn two_scripts_with_the_name_of_one_tool_are_a_fault() {
        let mut spec = fixtures::with_scripts().spec;
        let files = &mut spec.scripts.as_mut().unwrap().files;
        files.insert("a.b.sh".into(), "exit 0".into());
        files.insert("a_b.sh".into(), "exit 0".into());
        let faults = faults(&spec);
        assert!(
            faults.len() == 1 && faults[0].starts_with("spec.scripts.files: has \"a.b.sh\" and \"a_b.sh\""),
            "{faults:?}"
        );
    }

    #[test]
    fn a_schema_at_its_limits_is_accepted() {
        let with = |schema: Value| {
            let mut spec = fixtures::complete().spec;
            spec.output_contract = Some(serde_json::from_value(json!({ "schema": schema })).unwrap());
            faults(&spec)
        };
        let of_size = |bytes: usize| json!({ "title": "x".repeat(bytes - r#"{"title":""}"#.len()) });
        assert_eq!(with(nested(MAX_DEPTH)), [""; 0]);
        assert!(with(nested(MAX_DEPTH + 1))[0].starts_with("spec.outputContract.schema: is nested 33 levels"));
        assert_eq!(with(of_size(MAX_SCHEMA_BYTES)), [""; 0]);
        assert!(with(of_size(MAX_SCHEMA_BYTES + 1))[0].starts_with("spec.outputContract.schema: has 65537 bytes"));
    }

    #[test]
    fn all_characters_that_are_not_cel_are_reported_together() {
        let faults = faults_after("/policy/approvals/0/when", json!("kind = 'x' && amount = 5"));
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults.iter().all(|fault| fault.ends_with("write == to compare.")), "{faults:?}");
    }

    #[test]
    fn faults_of_several_fields_are_reported_together() {
        let mut spec = fixtures::complete().spec;
        spec.intents = None;
        spec.tools[0].policy.as_mut().unwrap().condition = Some(")".into());
        spec.role.as_mut().unwrap().persona = Some("{{name}}".into());
        let faults = faults(&spec);
        let fields: Vec<_> = faults.iter().map(|fault| fault.split([' ', ':']).next().unwrap()).collect();
        assert_eq!(
            fields,
            ["spec.role.persona", "spec.tools[0].policy.condition", "spec.policy.workflows[0].intents[0]"]
        );
    }
}
