use super::Draft;
use crate::{ImportOptions, check_manifest, import, yaml};
use bloomery_crds::v1alpha1::ResourceType;
use rstest::rstest;

const HEAD: &str = "apiVersion: bloomery.dev/v1alpha1\nkind: Skill\nmetadata: {name: x}\nspec:\n";

fn draft(spec: &str) -> Draft {
    check_manifest(&yaml::read(format!("{HEAD}{spec}").as_bytes()).documents[0]).draft.unwrap()
}

#[test]
fn the_draft_of_a_valid_skill_equals_the_skill() {
    let skill_files =
        [include_str!("../../tests/seeds/002-complete.yaml"), include_str!("../../tests/seeds/000-sw-dev-senior.yaml")];
    let options = ImportOptions { problem: Some("Help".to_owned()), ..ImportOptions::default() };
    for text in skill_files {
        let document = &yaml::read(text.replace("intents:", "id: x\nintents:").as_bytes()).documents[0];
        let imported = import(document, &options);
        let draft = imported.draft.unwrap();
        assert_eq!(draft.spec, imported.skill.unwrap().spec);
        assert!(draft.resources().is_some());
    }
}

#[rstest]
#[case::nothing_required("  {}\n")]
#[case::a_list_of_nothing("  tools: [1, null, {description: x}]\n")]
#[case::no_lists("  {tools: 1, resources: x, intents: [], policy: 7, engine: {limits: {duration: soon, steps: -1}}}\n")]
#[case::numbers("  {version: 1.5, mcpServer: {container: {image: x, port: 99999}}}\n")]
#[case::values("  {resources: [{name: A B, type: disk}], tools: [{name: x, inputs: [{name: y, type: strin}]}]}\n")]
fn a_draft_is_read_in_spite_of_any_fault(#[case] spec: &str) {
    assert_eq!(draft(&format!("{spec}\n")).spec.problem.statement, "");
}

#[test]
fn omitted_items_do_not_shift_the_places_of_others() {
    let draft = draft("  policy:\n    approvals:\n      - 7\n      - {toolId: a, when: b}\n");
    assert_eq!(draft.spec.policy.as_ref().unwrap().approvals.len(), 1);
    let (line, _, path) = super::locate(&draft.root, "spec.policy.approvals[0].when");
    assert_eq!((line, path.as_str()), (8, "spec.policy.approvals[1].when"));
}

#[rstest]
#[case::all_is_known("  tools: [{name: a}]\n", false)]
#[case::another_field("  tools: [{name: a, readonly: true}]\n", false)]
#[case::a_name_that_is_too_long(&format!("  tools: [{{name: {}}}]\n", "a".repeat(200)), false)]
#[case::no_list("  tools: a\n", true)]
#[case::no_item("  tools: [{name: a}, b]\n", true)]
#[case::no_name("  tools: [{name: a}, {description: b}]\n", true)]
#[case::a_name_that_is_no_text("  tools: [{name: 7}]\n", true)]
#[case::misspelt("  tool: [{name: a}]\n", true)]
#[case::merged("  <<: {tools: [{name: a}]}\n", true)]
#[case::an_alias("  problem: {statement: &s x}\n  tools: [{name: *s}]\n", true)]
#[case::twice("  tools: [{name: a}]\n  tools: [{name: b}]\n", true)]
fn a_reference_is_doubtful_if_a_name_may_be_missing(#[case] spec: &str, #[case] doubtful: bool) {
    let draft = draft(spec);
    for path in ["spec.policy.approvals[0].toolId", "spec.policy.workflows[0].steps[1]", "spec.policy.tools.blocked[0]"]
    {
        assert_eq!(draft.is_doubtful(path), doubtful, "{path}");
    }
    assert!(!draft.is_doubtful("spec.policy.approvals[0].when"));
}

#[rstest]
#[case::all_is_known("  docs: \"# A\"\n", false)]
#[case::no_text("  docs: [a]\n", true)]
#[case::misspelt("  dosc: \"# A\"\n", true)]
fn a_reference_of_a_feature_is_doubtful_if_its_field_may_differ(#[case] spec: &str, #[case] doubtful: bool) {
    let draft = draft(spec);
    assert_eq!(draft.is_doubtful("spec.features[0].ext.skillMdRef"), doubtful);
    assert!(!draft.is_doubtful("spec.features[0].ext.script"));
}

#[test]
fn a_place_with_an_error_is_doubtful() {
    let draft = draft("  tools:\n    - {name: a}\n    - {name: a}\n");
    assert!(draft.is_doubtful("spec.tools[1].name"));
    assert!(!draft.is_doubtful("spec.tools[0].name"));
}

#[rstest]
#[case::known("  resources: [{name: a, type: filesystem}]\n", Some(1), None)]
#[case::of_unknown_type("  resources: [{name: a, type: disk}]\n", None, Some(ResourceType::Filesystem))]
#[case::unknown(
    "  resources: [{type: filesystem}]\n  role: {persona: \"{{resources.a}}\"}\n",
    None,
    Some(ResourceType::Filesystem)
)]
fn a_persona_may_use_an_unknown_resource(
    #[case] spec: &str,
    #[case] declared: Option<usize>,
    #[case] kind: Option<ResourceType>,
) {
    let draft = draft(spec);
    assert_eq!(draft.resources().map(<[_]>::len), declared);
    let resource = draft.spec.resources.iter().find(|resource| resource.name == "a").unwrap();
    assert_eq!(resource.required.filter(|required| *required).map(|_| resource.kind), kind);
}

#[test]
fn a_tool_with_an_unknown_input_has_no_inputs() {
    let draft = draft("  tools: [{name: a, inputs: [{name: x, type: number}, {type: number}]}]\n");
    assert!(draft.spec.tools[0].inputs.is_empty());
    assert!(draft.is_doubtful("spec.policy.guardrails.never[0]"));
}
