mod long;
mod seed_002;

use crate::conversation::Conversation;
use crate::fixture::checks::*;
use crate::fixture::staged::*;
use crate::fixture::*;
use crate::history::Turn;
use crate::line::Chain;
use crate::next::next;
use crate::projection::project;
use crate::step::Step;
use crate::tool::ListedTool;
use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::v1alpha1::ToolName;
use serde_json::json;

#[test]
fn a_refund_goes_through_all_stages() {
    let world = ended(run(), refund(), ALL_WELL);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    insta::assert_snapshot!(world.names().join("\n"));
    let status = project(&world.conversation, Chain::new("/test").position("jobs/x"));
    assert_eq!(status.phase, Phase::Succeeded);
    assert_eq!((status.gates.pre_tool.allowed, status.usage.tool_calls, status.usage.llm_calls.plan), (3, 3, 3));
    let result = status.result.unwrap();
    assert_eq!((result.text.as_str(), &result.fields["status"]), ("Refunded.", &json!("refunded")));
    assert_history_is_well_formed(&world.conversation);
}

#[test]
fn a_worker_lost_at_any_event_leads_to_the_same_end_with_each_effect_once() {
    let whole = ended(run(), refund(), ALL_WELL);
    for cut in 1..=whole.log.len() {
        let mut resumed = whole.resumed_from(cut);
        resumed.play_out();
        let sent_before = whole.names()[..cut].iter().filter(|name| **name == "tool.started").count();
        let effects = sent_before + resumed.effects.len();
        let in_flight = whole.names()[cut - 1] == "tool.started";
        let expected = if in_flight { OutcomeCode::ToolIndeterminate } else { OutcomeCode::Succeeded };
        assert_eq!((code(&resumed), effects), (expected, 1), "after {cut} events");
        let answered = whole.names()[..cut].iter().filter(|name| **name == "model.answered").count();
        let asked = if in_flight { 0 } else { 3 - answered };
        assert_eq!(resumed.asked as usize, asked, "no logged answer is requested again: after {cut}");
        assert_history_is_well_formed(&resumed.conversation);
    }
}

#[test]
fn replay_ends_in_the_same_state() {
    let whole = ended(run(), refund(), ALL_WELL);
    let mut replayed = Conversation::new(run());
    let mut chain = Chain::new("/test");
    for line in &whole.log {
        replayed.apply(&chain.read(line).unwrap());
    }
    assert_eq!(project(&replayed, chain.position("p")), project(&whole.conversation, chain.position("p")));
    assert_eq!(replayed.turns(), whole.conversation.turns());
    assert!(matches!(next(&replayed), Step::Done(_)));
}

/// The log has aliases; the status maps them to the names that the server knows.
#[test]
fn the_status_has_the_tools_that_providers_know_by_an_alias() {
    let mut world = World::new(run(), Vec::new(), ALL_WELL);
    let odd = (0..20).map(|number| format!("orders.get/{number}"));
    let one = world.listed[0].clone();
    world.listed.splice(0..0, odd.map(|name| ListedTool { name, ..one.clone() }));
    world.play_until(|conversation| conversation.system().is_some());
    let names = project(&world.conversation, Chain::new("/test").position("p")).tool_names;
    assert_eq!(names.len(), 16);
    for ToolName { tool, alias } in &names {
        assert!(
            tool.len() <= 128 && world.conversation.shared.catalogue.tool(alias).unwrap().name == *tool,
            "{alias} is {tool}"
        );
    }
    let mut world = World::new(run(), Vec::new(), ALL_WELL);
    world.listed = vec![one.clone(), ListedTool { name: "x".repeat(200), ..one }];
    world.play_until(|conversation| conversation.system().is_some());
    let names = project(&world.conversation, Chain::new("/test").position("p")).tool_names;
    assert!(names.len() == 1 && names[0].tool.len() <= 128 && names[0].alias.len() <= 64, "{names:?}");
}

#[test]
fn the_first_turns_never_change() {
    let mut world = World::new(run(), refund(), ALL_WELL);
    let mut before: Vec<Turn> = Vec::new();
    while !matches!(next(&world.conversation), Step::Done(_)) {
        let length = world.log.len() + 1;
        world.play(length);
        assert!(world.conversation.turns().starts_with(&before));
        before = world.conversation.turns().to_vec();
    }
}

#[test]
fn the_skill_of_the_seed_refunds_with_one_call_of_each_stage() {
    let world = refund_world();
    let status = status(&world);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let calls = &status.usage.llm_calls;
    assert_eq!((calls.intent, calls.plan, calls.finalization, calls.polish), (1, 3, 1, 1));
    assert_eq!(status.gates.intent.unwrap().id.as_deref(), Some("intent_refund"));
    assert_eq!(status.workflows[0].done, ["verify_identity", "check_eligibility", "process_refund"]);
    assert_eq!(status.gates.finalization.attempts[0].score, Some(0.9));
    let result = status.result.unwrap();
    assert_eq!((result.text.as_str(), result.polished), ("Your refund is on its way, dear customer!", true));
    assert_eq!(result.fields["status"], "done");
    insta::assert_snapshot!(world.names().join("\n"));
    assert_history_is_well_formed(&world.conversation);
}

#[test]
fn a_worker_lost_at_any_event_leads_through_the_same_stages() {
    let whole = refund_world();
    for cut in 1..=whole.log.len() {
        let mut resumed = whole.resumed_from(cut);
        resumed.play_out();
        let in_flight = whole.names()[cut - 1] == "tool.started";
        let expected = if in_flight { OutcomeCode::ToolIndeterminate } else { OutcomeCode::Succeeded };
        assert_eq!(code(&resumed), expected, "after {cut} events");
        if !in_flight {
            let (one, other) = (status(&whole), status(&resumed));
            assert_eq!(
                (&one.gates, &one.result, &one.workflows),
                (&other.gates, &other.result, &other.workflows),
                "{cut}"
            );
        }
    }
}
