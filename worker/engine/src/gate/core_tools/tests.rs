use super::*;
use crate::conversation::fixture;
use crate::gate::schema::Schema;
use serde_json::json;

fn visible(run: &Run) -> Vec<String> {
    offered(run, &[]).into_iter().filter(|tool| tool.visible).map(|tool| tool.name).collect()
}

#[test]
fn core_tools_are_offered_where_they_are_of_use_and_blocked_by_name() {
    let mut run = fixture::run();
    assert_eq!(visible(&run), [""; 0]);
    run.skill.policy = serde_json::from_value(json!({"workflows": [{"name": "w", "steps": ["a"]}]})).unwrap();
    assert_eq!(visible(&run), [SUBGOAL_DONE]);
    run.skill.mcp_server = serde_json::from_value(json!({"service": {"name": "orders", "port": 80}})).unwrap();
    assert_eq!(visible(&run), [SUBGOAL_DONE, FOCUS_READ]);
    run.people = true;
    assert_eq!(visible(&run), [SUBGOAL_DONE, FOCUS_READ, ASK_USER]);
    run.skill.policy =
        serde_json::from_value(json!({"tools": {"allowed": [], "blocked": ["focus_*", "ask_user"]}})).unwrap();
    assert_eq!(visible(&run), [""; 0]);
}

#[test]
fn every_core_tool_is_known_by_name_and_has_a_schema_that_compiles() {
    let mut run = fixture::run();
    run.skill.policy = serde_json::from_value(json!({"workflows": [{"name": "w", "steps": ["a"]}]})).unwrap();
    run.skill.mcp_server = serde_json::from_value(json!({"service": {"name": "orders", "port": 80}})).unwrap();
    run.people = true;
    let tools = offered(&run, &[]);
    let mut known: Vec<&str> = names();
    let mut given: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    known.sort_unstable();
    given.sort_unstable();
    assert_eq!(given, known);
    for tool in &tools {
        let fault = Schema::compile(&tool.input_schema).fault(&json!({"unheard_of": 1})).unwrap();
        assert!(!fault.contains("cannot be used"), "{}: {fault}", tool.name);
    }
}
