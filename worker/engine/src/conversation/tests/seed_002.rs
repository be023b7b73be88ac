//! What seed 002 says of the pre-tool gate (sections 4.3 and 6) and of the prompt (section 4.2), in whole conversations.

use super::super::fixture::{World, asks, listed};
use super::stages::{answer, cs_tier_1, order, refunds, status, world};
use super::{ALL_WELL, code, ended};
use crate::run::Run;
use crate::tool::ListedTool;
use crate::turn::Turn;
use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::v1alpha1::{GateReason, SkillSpec, Verdict};
use rstest::rstest;
use serde_json::{Value, json};

/// The Skill of the seed, with nothing to say of its tools but this.
fn skill(of_refund: &Value, policy: &Value) -> SkillSpec {
    let mut skill = cs_tier_1();
    skill.tools[2].policy = serde_json::from_value(of_refund.clone()).unwrap();
    skill.policy = serde_json::from_value(policy.clone()).unwrap();
    skill
}

#[rstest]
#[case::policy_allowed_never(json!({"allowed": "never"}), json!({}), Verdict::Deny, GateReason::ToolPolicy)]
#[case::policy_requires_approval(
    json!({"requiresApproval": "always"}), json!({}), Verdict::Hold, GateReason::ToolPolicy
)]
#[case::compiled_guardrail_tool_deny(
    json!({}), json!({"guardrails": {"never": ["Never use process_refund"]}}), Verdict::Deny, GateReason::Guardrail
)]
#[case::compiled_guardrail_threshold(
    json!({}), json!({"guardrails": {"never": ["amount > 500"]}}), Verdict::Deny, GateReason::Guardrail
)]
#[case::compiled_guardrail_requires_approval(
    json!({}), json!({"guardrails": {"always": ["process_refund requires approval"]}}), Verdict::Hold,
    GateReason::Guardrail
)]
#[case::approval_threshold(
    json!({}), json!({"approvals": [{"toolId": "process_refund", "when": "amount > 500", "approver": "supervisor"}]}),
    Verdict::Hold, GateReason::Approval
)]
fn pre_tool_gate_blocks_denied_tools_and_triggers_approvals(
    #[case] of_refund: Value,
    #[case] policy: Value,
    #[case] verdict: Verdict,
    #[case] layer: GateReason,
) {
    let world = world(skill(&of_refund, &policy), vec![refunds(600.0), answer("It was not made.")], &[]);
    let status = status(&world);
    let ruling = &status.gates.pre_tool.last[0];
    assert_eq!((ruling.verdict, ruling.rule), (verdict, Some(layer)), "{ruling:?}");
    assert_eq!(world.effects, []);
    assert_eq!(status.phase == Phase::AwaitingApproval, verdict == Verdict::Hold, "{:?}", status.phase);
}

#[test]
fn a_skill_with_guardrail_never_use_delete_file_has_the_tool_blocked_at_pre_tool() {
    let mut guarded = super::run();
    guarded.skill.policy = serde_json::from_value(json!({"guardrails": {"never": ["never use deleteFile"]}})).unwrap();
    let mut world = World::new(guarded, vec![asks(&[("deleteFile", order())])], ALL_WELL);
    world.listed.push(ListedTool { name: "deleteFile".into(), ..listed().remove(0) });
    world.play_out();
    let ruling = &world.conversation.pre_tool().last[0];
    assert_eq!((ruling.verdict, ruling.rule), (Verdict::Deny, Some(GateReason::Guardrail)));
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::Succeeded, 0));
    let is_told = |turn: &Turn| matches!(turn, Turn::ToolResult { text, .. } if text.contains("never use deleteFile"));
    assert!(world.conversation.turns().iter().any(is_told), "{:?}", world.conversation.turns());
}

#[test]
fn skill_guardrails_in_the_prompt() {
    let guardrails = json!({
        "always": ["Always verify customer identity before account access", "Always confirm before making changes"],
        "never": ["Never share customer payment information", "Never be dismissive to frustrated customers"],
    });
    let skill = SkillSpec {
        policy: serde_json::from_value(json!({ "guardrails": guardrails })).unwrap(),
        ..super::super::fixture::skill()
    };
    let world = ended(Run { skill, ..super::run() }, vec![], ALL_WELL);
    let section = "# Skill guardrails\n\
        - Never share customer payment information\n\
        - Never be dismissive to frustrated customers\n\
        - Always verify customer identity before account access\n\
        - Always confirm before making changes\n\n";
    let prompt = world.conversation.system().unwrap();
    assert!(prompt.contains(section), "{prompt}");
}
