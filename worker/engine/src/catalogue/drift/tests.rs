//! Tools that change while a Job runs, and output that differs from its schema.

use crate::catalogue::{Drift, fix_catalogue, unpinned_tools};
use crate::conversation::Conversation;
use crate::event::Event;
use crate::fixture;
use crate::fixture::checks::*;
use crate::fixture::*;
use crate::line::Chain;
use crate::next::next;
use crate::projection::project;
use crate::run::Run;
use crate::stages::calls::CallState;
use crate::step::Step;
use crate::tool::ListedTool;
use bloomery_crds::Digest;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::tool_pins::ToolPins;
use bloomery_crds::v1alpha1::Verdict;
use rstest::rstest;
use serde_json::json;

/// Returns the listed tools of the fixture, with another description of one tool.
fn changed(tool: &str) -> Vec<ListedTool> {
    let mut listed = listed();
    listed.iter_mut().find(|listed| listed.name == tool).unwrap().description = "Does what it likes".into();
    listed
}

fn without(tool: &str) -> Vec<ListedTool> {
    listed().into_iter().filter(|listed| listed.name != tool).collect()
}

/// Records the differences of a new listing, of which there must be some.
fn list_again(world: &mut World, listed: &[ListedTool]) {
    let event = world.conversation.compare_tools(listed).unwrap();
    world.record(event);
}

fn denials(world: &World) -> Vec<(String, String)> {
    let status = project(&world.conversation, Chain::new("/test").position("jobs/x"));
    let denied = status.gates.pre_tool.last.into_iter().filter(|ruling| ruling.verdict == Verdict::Deny);
    denied.map(|ruling| (ruling.tool, ruling.reason.unwrap_or_default())).collect()
}

#[rstest]
#[case::changed(
    changed("check_eligibility"),
    "the tool \"check_eligibility\" cannot be used: the server has changed its definition since the Job began",
    "The MCP server has changed the tool check_eligibility since the Job began: its calls are denied."
)]
#[case::missing(
    without("check_eligibility"),
    "the tool \"check_eligibility\" cannot be used: the server does not list it any more",
    "The MCP server does not list the tool check_eligibility any more: its calls are denied."
)]
fn calls_of_a_changed_tool_are_denied_and_other_tools_stay_allowed(
    #[case] now: Vec<ListedTool>,
    #[case] reason: &str,
    #[case] remark: &str,
) {
    let mut world = World::new(run(), refund(), ALL_WELL);
    world.play_until(Conversation::has_catalogue);
    list_again(&mut world, &now);
    world.play_out();
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    assert_eq!(denials(&world), [("check_eligibility".to_owned(), reason.to_owned())]);
    assert_eq!(world.effects.iter().map(|(tool, _)| tool.as_str()).collect::<Vec<_>>(), ["process_refund"]);
    let status = project(&world.conversation, Chain::new("/test").position("jobs/x"));
    assert_eq!(status.remarks.first().map(String::as_str), Some(remark));
    assert!(world.conversation.visible_tools().iter().any(|tool| tool.name == "check_eligibility"), "it stays visible");
    assert_history_is_well_formed(&world.conversation);
}

#[test]
fn tools_that_differ_from_the_pins_are_denied_from_the_first_listing() {
    let pins = ToolPins::from_listed(listed().iter().map(ListedTool::pin).collect());
    let mut world = World::new(Run { pins: Some(pins), ..run() }, refund(), ALL_WELL);
    world.listed = changed("check_eligibility");
    world.listed.push(ListedTool { name: "pay".into(), ..listed()[0].clone() });
    world.play_out();
    let reason = "the tool \"check_eligibility\" cannot be used: it differs from the tool that is pinned for the Skill, and a person \
                  has to accept it";
    assert_eq!(denials(&world), [("check_eligibility".to_owned(), reason.to_owned())]);
    let status = project(&world.conversation, Chain::new("/test").position("jobs/x"));
    let remarks = [
        "Denied tool check_eligibility: its description changed since the tools were pinned.",
        "Denied tool pay: is new since the tools were pinned.",
    ];
    assert_eq!(status.remarks[..2], remarks);
    assert!(status.tools_changed);
    let visible: Vec<&str> = world.conversation.visible_tools().iter().map(|tool| tool.name.as_str()).collect();
    assert!(!visible.contains(&"check_eligibility") && !visible.contains(&"pay"), "{visible:?}");
}

#[test]
fn tools_that_are_pinned_are_not_recorded() {
    let pins = ToolPins::from_listed(listed().iter().map(ListedTool::pin).collect());
    let pinned = Run { pins: Some(pins), ..run() };
    assert_eq!(unpinned_tools(&pinned, &listed()), None);
    assert_eq!(unpinned_tools(&run(), &changed("note")), None);
    let Some(Event::CatalogueUnpinned { tools }) = unpinned_tools(&pinned, &without("note")) else { panic!() };
    assert_eq!(tools[0].to_string(), "note: is missing");
}

#[test]
fn scripts_are_not_compared_with_pins() {
    let script = ListedTool { name: "script_check".into(), ..listed()[0].clone() };
    // The server has a tool of this name too.
    let pins = ToolPins::from_listed(listed().iter().chain([&script]).map(ListedTool::pin).collect());
    let mut pinned = Run { pins: Some(pins), ..run() };
    let scripts = serde_json::json!({"image": "busybox", "files": {"check.sh": "exit 0"}});
    pinned.skill.scripts = serde_json::from_value(scripts).unwrap();
    let other = ListedTool { description: "Checks".into(), ..script };
    let listed = || listed().into_iter().chain([other.clone()]).collect::<Vec<_>>();
    assert_eq!(unpinned_tools(&pinned, &listed()), None);
    pinned.skill.scripts = None;
    assert!(unpinned_tools(&pinned, &listed()).is_some());
}

#[test]
fn a_change_is_recorded_once_and_new_tools_are_not_offered() {
    let mut world = World::new(run(), refund(), ALL_WELL);
    world.play_until(Conversation::has_catalogue);
    assert_eq!(world.conversation.compare_tools(&listed()), None);
    let extra = ListedTool { name: "pay".into(), ..listed()[0].clone() };
    let mut more = listed();
    more.push(extra.clone());
    assert_eq!(world.conversation.compare_tools(&more), None, "the Job's tools are as they were");
    let mut other = changed("note");
    other.push(extra);
    let event = world.conversation.compare_tools(&other).unwrap();
    let drifted = |changed: &str| Event::CatalogueDrifted {
        changed: vec![changed.into()],
        missing: Vec::new(),
        added: vec!["pay".into()],
    };
    assert_eq!(event, drifted("note"));
    world.record(event);
    assert_eq!(world.conversation.compare_tools(&other), None);
    assert_eq!(world.conversation.shared.catalogue.drift_of("note"), Some(Drift::Changed));
    other[0].title = Some("Somebody else".into());
    assert_eq!(world.conversation.compare_tools(&other), Some(drifted("verify_identity")));
    assert!(world.conversation.shared.catalogue.tool("pay").is_none());
}

#[test]
fn a_tool_that_is_now_listed_twice_counts_as_changed() {
    let mut world = World::new(run(), refund(), ALL_WELL);
    world.play_until(Conversation::has_catalogue);
    let mut twice = listed();
    twice.push(twice[2].clone());
    let changed = vec!["process_refund".to_owned()];
    let expected = Event::CatalogueDrifted { changed, missing: Vec::new(), added: Vec::new() };
    assert_eq!(world.conversation.compare_tools(&twice), Some(expected));
}

/// Logs of earlier versions have digests of the name, description and schema only.
#[test]
fn a_digest_of_an_earlier_version_detects_no_change_of_hints() {
    let run = fixture::run();
    let Event::CatalogueFixed { mut tools } = fix_catalogue(&run, listed()) else { panic!("no catalogue") };
    for tool in &mut tools {
        tool.digest = Digest::of_value(
            &json!({"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}),
        );
    }
    let mut world = World::new(run, Vec::new(), ALL_WELL);
    world.record(Event::CatalogueFixed { tools });
    let mut hinted = listed();
    hinted[0].annotations.insert("readOnlyHint".into(), json!(true));
    assert_eq!(world.conversation.compare_tools(&hinted), None);
    assert!(world.conversation.compare_tools(&changed("note")).is_some());

    let mut newer = World::new(fixture::run(), Vec::new(), ALL_WELL);
    newer.play_until(Conversation::has_catalogue);
    assert!(newer.conversation.compare_tools(&hinted).is_some());
}

#[test]
fn a_call_that_was_allowed_before_the_tool_changed_is_ruled_on_again() {
    let mut world = World::new(run(), refund(), ALL_WELL);
    world.play_until(|conversation| {
        conversation.calls().iter().any(|call| call.tool == "process_refund" && call.state == CallState::Allowed)
    });
    list_again(&mut world, &changed("process_refund"));
    let Step::Record(events) = next(&world.conversation) else { panic!("the call is sent without a ruling") };
    assert!(matches!(events.as_slice(), [Event::ToolRuled { verdict: Verdict::Deny, .. }]), "{events:?}");
    world.play_out();
    assert_eq!((world.effects.len(), denials(&world).len()), (0, 1));
}

#[rstest]
#[case::found_before_its_answer_was_lost(true)]
#[case::found_after(false)]
fn a_call_that_may_have_happened_is_not_repeated_with_another_tool(#[case] is_found_first: bool) {
    let mut world = World::new(run(), vec![asks(&[("note", order())])], |_, _| Reply::Lost);
    world.play_until(|conversation| conversation.calls().iter().any(|call| call.state == CallState::Allowed));
    let call = world.conversation.calls()[0].id.clone();
    world.record(Event::ToolStarted { call: call.clone() });
    let lost = Event::ToolIndeterminate { call, text: "the connection was cut".into() };
    if is_found_first {
        list_again(&mut world, &changed("note"));
        world.record(lost);
    } else {
        world.record(lost);
        assert_eq!(world.conversation.calls()[0].state, CallState::Retry);
        list_again(&mut world, &changed("note"));
    }
    world.play_out();
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::ToolIndeterminate, 0));
}

#[test]
fn a_read_of_a_changed_tool_is_denied_instead_of_repeated() {
    let mut world = World::new(run(), vec![asks(&[("verify_identity", order())])], ALL_WELL);
    world.play_until(|conversation| conversation.calls().iter().any(|call| call.state == CallState::Allowed));
    let call = world.conversation.calls()[0].id.clone();
    world.record(Event::ToolIndeterminate { call, text: "the connection was cut".into() });
    list_again(&mut world, &changed("verify_identity"));
    world.play_out();
    assert_eq!((code(&world), denials(&world).len()), (OutcomeCode::Succeeded, 1));
}

#[test]
fn output_is_checked_against_the_listed_schema() {
    let mut world = World::new(run(), refund(), ALL_WELL);
    let schema = json!({"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}});
    world.listed[0].output_schema = Some(schema);
    world.play_until(|conversation| !conversation.calls().is_empty());
    let [with_schema, without_schema] = [0, 1].map(|at| world.conversation.calls()[at].id.clone());
    let fault = |call, output: Option<serde_json::Value>| world.conversation.output_error(call, output.as_ref());
    assert_eq!(fault(&with_schema, Some(json!({"ok": true}))), None);
    let wrong = fault(&with_schema, Some(json!({"ok": "yes"}))).unwrap();
    assert!(wrong.starts_with("/ok: "), "{wrong}");
    assert_eq!(fault(&with_schema, None).as_deref(), Some("there is none"));
    assert_eq!((fault(&without_schema, None), fault(&without_schema, Some(json!(7)))), (None, None));
}
