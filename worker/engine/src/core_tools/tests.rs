use super::*;
use crate::catalogue;
use crate::fixture;
use crate::schema::Schema;
use bloomery_crds::run::{BoundResource, ResourceSource};
use bloomery_crds::v1alpha1::{Feature, GateReason, ResourceType};
use rstest::rstest;
use serde_json::{Value, json};

fn mount(name: &str, read_only: bool) -> BoundResource {
    let source = ResourceSource::Mount { path: format!("/resources/{name}"), read_only };
    BoundResource { name: name.into(), kind: ResourceType::Filesystem, source }
}

fn endpoint(name: &str) -> BoundResource {
    let source = ResourceSource::Value(format!("https://{name}.example"));
    BoundResource { name: name.into(), kind: ResourceType::ApiEndpoint, source }
}

/// Returns a Job that binds endpoints, which the Skill declares with these rules.
fn run_with_endpoints(rules: &[(&str, Value)]) -> Run {
    let mut run = run_with(rules.iter().map(|(name, _)| endpoint(name)).collect());
    let declared = rules.iter().map(|(name, rules)| json!({"name": name, "type": "api_endpoint", "rules": rules}));
    run.skill.resources = serde_json::from_value(declared.collect()).unwrap();
    run
}

fn run_with(resources: Vec<BoundResource>) -> Run {
    Run { resources, ..fixture::run() }
}

fn visible(run: &Run) -> Vec<String> {
    visible_beside(&[], run)
}

fn visible_beside(listed: &[ListedTool], run: &Run) -> Vec<String> {
    offered(run, listed).into_iter().filter(|tool| tool.visible).map(|tool| tool.name).collect()
}

fn listed(name: &str) -> ListedTool {
    ListedTool {
        name: name.into(),
        description: "the server's".into(),
        input_schema: json!({"type": "object"}),
        annotations: [("readOnlyHint".to_owned(), json!(true))].into_iter().collect(),
        ..ListedTool::default()
    }
}

#[test]
fn core_tools_are_offered_if_they_can_be_used_and_are_not_blocked() {
    let mut run = run_with(Vec::new());
    assert_eq!(visible(&run), [""; 0]);
    run.skill.policy = serde_json::from_value(json!({"workflows": [{"name": "w", "steps": ["a"]}]})).unwrap();
    assert_eq!(visible(&run), [SUBGOAL_DONE]);
    let listed = [listed("a")];
    assert_eq!(visible_beside(&listed, &run), [SUBGOAL_DONE, FOCUS_READ]);
    run.people = true;
    assert_eq!(visible_beside(&listed, &run), [SUBGOAL_DONE, FOCUS_READ, ASK_USER]);
    run.skill.policy =
        serde_json::from_value(json!({"tools": {"allowed": [], "blocked": ["focus_*", "ask_user"]}})).unwrap();
    assert_eq!(visible_beside(&listed, &run), [""; 0]);
}

#[rstest]
#[case::nothing_bound(vec![], &[])]
#[case::no_file_system(vec![endpoint("shop")], &[])]
#[case::to_read(vec![mount("docs", true)], &[files::READ_FILE, files::LIST_FILES, files::SEARCH_FILES, FOCUS_READ])]
#[case::one_to_change(
    vec![mount("docs", true), mount("code", false)],
    &[
        files::READ_FILE, files::LIST_FILES, files::SEARCH_FILES,
        files::WRITE_FILE, files::EDIT_FILE, files::APPLY_PATCH, FOCUS_READ,
    ],
)]
fn file_tools_are_offered_if_a_file_system_is_bound(#[case] bound: Vec<BoundResource>, #[case] tools: &[&str]) {
    assert_eq!(visible(&run_with(bound)), tools);
}

#[rstest]
#[case::default_use(None, false, &[])]
#[case::default_use_with_notes(None, true, &[MEMORY_READ, FOCUS_READ])]
#[case::read(Some("read"), true, &[MEMORY_READ, FOCUS_READ])]
#[case::write(Some("write"), false, &[MEMORY_READ, MEMORY_WRITE, FOCUS_READ])]
#[case::off(Some("off"), true, &[])]
fn the_tools_of_the_memory_bank_follow_the_skill_s_bank_use(
    #[case] bank: Option<&str>,
    #[case] has_notes: bool,
    #[case] tools: &[&str],
) {
    let mut run = Run { has_notes, ..run_with(Vec::new()) };
    run.skill.memory = bank.map(|bank| serde_json::from_value(json!({ "bank": bank })).unwrap());
    assert_eq!(visible(&run), tools);
    run.skill.policy = serde_json::from_value(json!({"tools": {"blocked": ["memory_write"]}})).unwrap();
    assert!(!visible(&run).contains(&MEMORY_WRITE.to_owned()));
}

#[rstest]
#[case::named(&["billing"], true, &[USE_SKILL, FOCUS_READ])]
#[case::none_named(&[], true, &[])]
#[case::no_children(&["*"], false, &[])]
fn use_skill_is_offered_if_the_job_can_have_children_and_its_skill_names_skills(
    #[case] skills: &[&str],
    #[case] can_have_children: bool,
    #[case] tools: &[&str],
) {
    let mut run = Run { can_have_children, ..run_with(Vec::new()) };
    run.skill.skills = skills.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(visible(&run), tools);
    let offered = offered(&run, &[]);
    let invokes = offered.iter().find(|tool| tool.name == USE_SKILL);
    assert!(invokes.is_none_or(|tool| !tool.read_only && !tool.idempotent));
    // A tool of the server does not replace it.
    assert!(catalogue::fix(&run, vec![listed(USE_SKILL)]).iter().all(|tool| tool.source == ToolSource::Core));
}

fn features(named: &[(&str, bool)]) -> Vec<Feature> {
    let feature = |(name, optional): &(&str, bool)| json!({"name": name, "testScenario": "Given x", "expectedResult": "y", "optional": optional});
    named.iter().map(|named| serde_json::from_value(feature(named)).unwrap()).collect()
}

#[rstest]
#[case::nothing(None, &[], &[])]
#[case::docs(Some("# Refunds"), &[], &[SKILL_DOC, FOCUS_READ])]
#[case::a_feature_in_the_prompt(None, &[("refund", false)], &[])]
#[case::an_optional_feature(None, &[("refund", false), ("express", true)], &[APPLY_FEATURE, FOCUS_READ])]
fn the_tools_for_texts_of_the_skill_are_offered_if_the_prompt_does_not_have_them(
    #[case] docs: Option<&str>,
    #[case] named: &[(&str, bool)],
    #[case] tools: &[&str],
) {
    let mut run = run_with(Vec::new());
    run.skill.docs = docs.map(str::to_owned);
    run.skill.features = features(named);
    assert_eq!(visible(&run), tools);
    // A tool of the server does not replace them.
    let fixed = catalogue::fix(&run, vec![listed(SKILL_DOC), listed(APPLY_FEATURE)]);
    assert!(fixed.iter().all(|tool| tool.source == ToolSource::Core), "{fixed:?}");
    let named = fixed.iter().find(|tool| tool.name == APPLY_FEATURE).map(|tool| &tool.input_schema);
    assert!(named.is_none_or(|schema| schema["properties"]["feature"]["enum"] == json!(["express"])), "{named:?}");
    assert!(fixed.iter().all(|tool| tool.name == FOCUS_READ || tool.read_only && !gives_evidence(tool)));
}

#[test]
fn the_schema_of_a_file_tool_lists_its_resources() {
    let resources = |tool: &str, bound: Vec<BoundResource>| {
        let tools = offered(&run_with(bound), &[]);
        let schema = &tools.iter().find(|offered| offered.name == tool).unwrap().input_schema;
        let is_required = schema["required"].as_array().unwrap().contains(&json!("resource"));
        (schema["properties"]["resource"]["enum"].clone(), is_required)
    };
    let both = || vec![mount("docs", true), mount("code", false)];
    assert_eq!(resources(files::READ_FILE, both()), (json!(["docs", "code"]), true));
    assert_eq!(resources(files::WRITE_FILE, both()), (json!(["code"]), false));
    assert_eq!(resources(files::READ_FILE, vec![mount("docs", true)]), (json!(["docs"]), false));
}

#[test]
fn core_tools_with_effect_are_idempotent_only_if_a_repeat_changes_nothing_more() {
    let mut run = run_with(vec![mount("code", false)]);
    run.skill.memory = serde_json::from_value(json!({"bank": "write"})).unwrap();
    let tools = offered(&run, &[]);
    let effects: Vec<_> = tools.iter().map(|tool| (tool.name.as_str(), tool.read_only, tool.idempotent)).collect();
    assert_eq!(
        effects,
        [
            (files::READ_FILE, true, true),
            (files::LIST_FILES, true, true),
            (files::SEARCH_FILES, true, true),
            (files::WRITE_FILE, false, true),
            (files::EDIT_FILE, false, false),
            (files::APPLY_PATCH, false, false),
            (MEMORY_READ, true, true),
            (MEMORY_WRITE, false, true),
            (FOCUS_READ, true, true),
        ]
    );
}

#[rstest]
#[case::no_rules(json!(null), &[http::HTTP_GET, FOCUS_READ])]
#[case::to_read(json!([{"methods": ["HEAD"], "paths": ["/a"]}]), &[http::HTTP_GET, FOCUS_READ])]
#[case::to_change(json!([{"methods": ["POST"], "paths": ["/a"]}]), &[http::HTTP_REQUEST, FOCUS_READ])]
#[case::both(
    json!([{"methods": ["GET"], "paths": ["/a"]}, {"methods": ["PUT"], "paths": ["/a"]}]),
    &[http::HTTP_GET, http::HTTP_REQUEST, FOCUS_READ],
)]
#[case::nothing(json!([]), &[])]
fn http_tools_are_offered_if_the_rules_of_an_endpoint_allow_their_methods(
    #[case] rules: Value,
    #[case] tools: &[&str],
) {
    assert_eq!(visible(&run_with_endpoints(&[("shop", rules)])), tools);
}

#[test]
fn the_schema_of_an_api_call_lists_its_endpoints_and_methods() {
    let run = run_with_endpoints(&[
        ("docs", json!(null)),
        ("shop", json!([{"methods": ["POST", "GET"], "paths": ["/orders"]}])),
    ]);
    let tools = offered(&run, &[]);
    let [get, request, _] = tools.as_slice() else { panic!("{tools:?}") };
    let values = |tool: &CatalogueTool, name: &str| tool.input_schema["properties"][name]["enum"].clone();
    assert_eq!((values(get, "resource"), values(get, "method")), (json!(["docs", "shop"]), json!(["GET", "HEAD"])));
    assert_eq!((values(request, "resource"), values(request, "method")), (json!(["shop"]), json!(["POST"])));
    assert_eq!((get.read_only, get.idempotent), (true, true));
    assert_eq!((request.read_only, request.idempotent), (false, false));
    let allowed = "Allowed are:\ndocs: GET and HEAD of every path\nshop: POST|GET /orders";
    assert!(get.description.ends_with(allowed), "{}", get.description);
    assert_eq!(get.input_schema["required"], json!(["resource"]));
    assert_eq!(request.input_schema["required"], json!(["method"]));
}

/// If the endpoint were left out, a call without `resource` would go to the only other endpoint.
#[test]
fn the_description_has_the_reason_why_an_endpoint_cannot_be_called() {
    let mut run = run_with_endpoints(&[("docs", json!(null)), ("wiki", json!(null))]);
    run.resources[0].source = ResourceSource::Value("https://docs.example/?lang=en".into());
    let tools = offered(&run, &[]);
    let get = &tools[0];
    assert_eq!(get.input_schema["properties"]["resource"]["enum"], json!(["docs", "wiki"]));
    assert_eq!(get.input_schema["required"], json!(["resource"]));
    let fault = "the URL of `docs` cannot be called with a path: it has a query or a fragment";
    assert!(get.description.contains(&format!("docs: nothing: {fault}\nwiki: GET")), "{}", get.description);
    run.resources.truncate(1);
    assert_eq!(visible(&run), Vec::<String>::new());
}

#[test]
fn the_rules_of_endpoints_do_not_apply_to_a_server_tool() {
    let run = run_with_endpoints(&[("shop", json!(null))]);
    let http_get_of = |tools: Vec<CatalogueTool>| tools.into_iter().find(|tool| tool.name == http::HTTP_GET).unwrap();
    let wrong = json!({"path": ".."});
    let objection = http::objection(&http_get_of(offered(&run, &[])), &wrong, &run).unwrap();
    assert_eq!(objection.reason.layer, GateReason::Endpoint);
    assert_eq!(http::objection(&http_get_of(catalogue::fix(&run, vec![listed(http::HTTP_GET)])), &wrong, &run), None);
}

#[test]
fn a_server_tool_that_replaces_a_core_tool_is_not_read_only() {
    let run = run_with(vec![mount("code", false)]);
    let tools = catalogue::fix(&run, vec![listed(files::READ_FILE), listed(FOCUS_READ)]);
    let of_name = |name: &str| tools.iter().filter(|tool| tool.name == name).collect::<Vec<_>>();
    let [read] = of_name(files::READ_FILE)[..] else { panic!("{tools:?}") };
    assert_eq!((read.source, read.read_only, read.idempotent), (ToolSource::Server, false, false));
    assert_eq!(read.description, "the server's");
    let [focus] = of_name(FOCUS_READ)[..] else { panic!("{tools:?}") };
    assert_eq!(focus.source, ToolSource::Core);
}

#[test]
fn a_core_tool_whose_name_the_server_lists_twice_is_left_out() {
    let run = run_with(vec![mount("code", false)]);
    let tools = catalogue::fix(&run, vec![listed(files::READ_FILE), listed(files::READ_FILE)]);
    assert!(tools.iter().all(|tool| tool.name != files::READ_FILE), "{tools:?}");
}

#[test]
fn every_core_tool_is_known_by_name_and_has_a_schema_that_compiles() {
    let mut run = run_with_endpoints(&[("shop", json!([{"methods": ["GET", "POST"], "paths": ["/**"]}]))]);
    run.resources.push(mount("code", false));
    run.skill.policy = serde_json::from_value(json!({"workflows": [{"name": "w", "steps": ["a"]}]})).unwrap();
    run.people = true;
    run.skill.memory = serde_json::from_value(json!({"bank": "write"})).unwrap();
    run.skill.docs = Some("# Refunds".to_owned());
    run.skill.features = features(&[("express", true)]);
    run.skill.skills = vec!["*".to_owned()];
    run.can_have_children = true;
    let tools = offered(&run, &[]);
    let mut known = NAMES.to_vec();
    let mut given: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    known.sort_unstable();
    given.sort_unstable();
    assert_eq!(given, known);
    let mut defined: Vec<String> = definitions(|_| true).map(|tool| tool.name).collect();
    defined.sort_unstable();
    assert_eq!(defined, known);
    for tool in &tools {
        let fault = Schema::compile(&tool.input_schema).first_error(&json!({"unheard_of": 1})).unwrap();
        assert!(!fault.contains("cannot be used"), "{}: {fault}", tool.name);
    }
}
