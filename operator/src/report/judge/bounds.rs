//! Checks that a projection fits into a status (docs/explanation/design.md, section 3, "Sizes").
//!
//! The CRD bounds each field that it declares, in characters. Free-form fields, and texts that become conditions, are
//! bounded only here. A report that the API server would refuse is refused before it costs a write.

use bloomery_crds::canonical::{self, MAX_DEPTH};
use bloomery_crds::children::{ChildRequest, MAX_OPEN_CHILDREN};
use bloomery_crds::report::{
    HeldCallDetails, MAX_ENTITIES_BYTES, MAX_FIELDS_BYTES, MAX_REMARK_BYTES, MAX_REMARKS, MAX_TOOL_NAMES, Projection,
};
use bloomery_crds::v1alpha1::{
    ApprovalSpec, AskedQuestion, FeatureResult, HeldCall, ParentJob, Reply, RequestedChild, ToolName, WaitingFor,
    WorkflowProgress,
};
use serde_json::{Map, Value};

/// The maximum number of workflows in a status.
const MAX_WORKFLOWS: usize = 8;

/// The maximum number of steps in a workflow.
const MAX_STEPS: usize = 16;

/// The maximum length of the names of workflows, steps, intents, calls and approvers, in characters.
const MAX_NAME_CHARS: usize = 64;

/// The maximum length of the name of a tool, in characters.
const MAX_TOOL_CHARS: usize = 128;

/// The maximum number of approvers of a call.
const MAX_APPROVERS: usize = 8;

/// The maximum length of the reason why a call is held, in characters.
const MAX_REASON_CHARS: usize = 1024;

/// Describes the first part of a held call that is too large for an Approval; none if all parts fit.
pub(super) fn hold_fault(hold: &HeldCallDetails) -> Option<String> {
    let HeldCallDetails { call, arguments, rules, goal, events, expiry_seconds: _ } = hold;
    too_long("hold.call", call, MAX_NAME_CHARS)
        .or_else(|| beyond_maximum("hold.arguments", arguments.len(), ApprovalSpec::MAX_ARGUMENTS_BYTES, "bytes"))
        .or_else(|| too_many("hold.rules", rules.len(), ApprovalSpec::MAX_RULES))
        .or_else(|| rules.iter().find_map(|rule| too_long("a rule of hold", &rule.text, ApprovalSpec::MAX_RULE_BYTES)))
        .or_else(|| {
            rules.iter().find_map(|rule| too_long("an approver of hold", rule.approver.as_ref()?, MAX_NAME_CHARS))
        })
        .or_else(|| too_long("hold.goal", goal, ApprovalSpec::MAX_GOAL_BYTES))
        .or_else(|| too_many("hold.events", events.len(), ApprovalSpec::MAX_EVENTS))
        .or_else(|| events.iter().find_map(|event| too_long("an event of hold", event, ApprovalSpec::MAX_EVENT_BYTES)))
}

/// Describes the first part of the requests for children that does not fit into a status; none if all parts fit. A request that fits and
/// cannot be followed is refused in the status.
pub(super) fn children_fault(children: &[ChildRequest]) -> Option<String> {
    too_many("children", children.len(), MAX_OPEN_CHILDREN).or_else(|| children.iter().find_map(child_fault))
}

fn child_fault(child: &ChildRequest) -> Option<String> {
    let ChildRequest { call, digest: _, skill, goal: _, resources, limits: _ } = child;
    too_long("children.call", call, ParentJob::MAX_CALL_BYTES)
        .or_else(|| too_long("children.skill", skill, MAX_NAME_CHARS - 1))
        .or_else(|| too_many("children.resources", resources.len(), RequestedChild::MAX_RESOURCES))
        .or_else(|| {
            resources.iter().find_map(|name| too_long("children.resources", name, RequestedChild::MAX_RESOURCE_BYTES))
        })
}

/// Describes the first part of a projection that does not fit into a status; none if all parts fit.
pub(super) fn projection_fault(projection: &Projection) -> Option<String> {
    let Projection {
        result,
        gates,
        features,
        workflows,
        tool_names,
        waiting_for,
        remarks,
        stray_replies,
        replies_heard,
        ..
    } = projection;
    let intent = gates.intent.as_ref();
    let call = waiting_for.as_ref().and_then(|waiting| waiting.call.as_ref());
    too_many("remarks", remarks.len(), MAX_REMARKS)
        .or_else(|| {
            remarks.iter().find_map(|remark| beyond_maximum("a remark", remark.len(), MAX_REMARK_BYTES, "bytes"))
        })
        .or_else(|| too_many("features", features.len(), FeatureResult::MAX_RESULTS))
        .or_else(|| features.iter().find_map(feature_fault))
        .or_else(|| too_many("workflows", workflows.len(), MAX_WORKFLOWS))
        .or_else(|| workflows.iter().find_map(workflow_fault))
        .or_else(|| too_many("toolNames", tool_names.len(), MAX_TOOL_NAMES))
        .or_else(|| tool_names.iter().find_map(tool_name_fault))
        .or_else(|| call.and_then(call_fault))
        .or_else(|| questions_fault(&waiting_for.as_ref()?.questions))
        .or_else(|| too_many("strayReplies", stray_replies.len(), MAX_REMARKS))
        .or_else(|| {
            stray_replies
                .iter()
                .find_map(|stray| beyond_maximum("a stray reply", stray.len(), MAX_REMARK_BYTES, "bytes"))
        })
        .or_else(|| too_many("repliesHeard", usize::try_from(*replies_heard).unwrap_or(usize::MAX), Reply::MAX_REPLIES))
        .or_else(|| too_long("gates.intent.id", intent?.id.as_ref()?, MAX_NAME_CHARS))
        .or_else(|| too_large("gates.intent.entities", &intent?.entities, MAX_ENTITIES_BYTES))
        .or_else(|| too_large("result.fields", &result.as_ref()?.fields, MAX_FIELDS_BYTES))
}

fn feature_fault(result: &FeatureResult) -> Option<String> {
    let FeatureResult { name, passed: _, score, reason, tokens: _, seconds: _ } = result;
    let score_fault = |score: &f64| format!("the score of a feature: {score} is not between 0 and 1");
    too_long("the name of a feature", name, FeatureResult::MAX_NAME_BYTES)
        .or_else(|| score.as_ref().filter(|score| !(0.0..=1.0).contains(*score)).map(score_fault))
        .or_else(|| too_long("the reason of a feature", reason.as_ref()?, FeatureResult::MAX_REASON_BYTES))
}

fn workflow_fault(workflow: &WorkflowProgress) -> Option<String> {
    let WorkflowProgress { name, required: _, done, not_applicable, open } = workflow;
    let steps = || [done, not_applicable, open].into_iter().flatten();
    too_long("a workflow's name", name, MAX_NAME_CHARS)
        .or_else(|| too_many("a workflow's steps", steps().count(), MAX_STEPS))
        .or_else(|| steps().find_map(|step| too_long("a workflow's step", step, MAX_NAME_CHARS)))
}

fn tool_name_fault(name: &ToolName) -> Option<String> {
    let ToolName { tool, alias } = name;
    too_long("the name of a tool", tool, MAX_TOOL_CHARS)
        .or_else(|| too_long("the alias of a tool", alias, MAX_NAME_CHARS))
}

fn call_fault(call: &HeldCall) -> Option<String> {
    let HeldCall { id, tool, digest, approvers, reason } = call;
    too_long("waitingFor.call.id", id, MAX_NAME_CHARS)
        .or_else(|| too_long("waitingFor.call.tool", tool, MAX_TOOL_CHARS))
        .or_else(|| digest.as_str().parse::<bloomery_crds::Digest>().err().map(|error| error.to_string()))
        .or_else(|| too_many("waitingFor.call.approvers", approvers.len(), MAX_APPROVERS))
        .or_else(|| approvers.iter().find_map(|approver| too_long("an approver", approver, MAX_NAME_CHARS)))
        .or_else(|| too_long("waitingFor.call.reason", reason, MAX_REASON_CHARS))
}

/// Describes the first part of the open questions that does not fit into a status; none if all parts fit.
pub(crate) fn questions_fault(questions: &[AskedQuestion]) -> Option<String> {
    too_many("waitingFor.questions", questions.len(), WaitingFor::MAX_QUESTIONS)
        .or_else(|| questions.iter().find_map(question_fault))
}

fn question_fault(question: &AskedQuestion) -> Option<String> {
    let AskedQuestion { id, text: asked, choices, refused } = question;
    too_long("the id of a question", id, AskedQuestion::MAX_ID_BYTES)
        .or_else(|| too_long("a question", asked, AskedQuestion::MAX_TEXT_BYTES))
        .or_else(|| too_many("a question's choices", choices.len(), AskedQuestion::MAX_CHOICES))
        .or_else(|| choices.iter().find_map(|choice| too_long("a choice", choice, AskedQuestion::MAX_CHOICE_BYTES)))
        .or_else(|| too_long("why a reply was not taken", refused.as_ref()?, AskedQuestion::MAX_REFUSED_BYTES))
}

/// Checks an object against a maximum depth, and a maximum size in bytes.
fn too_large(what: &str, value: &Map<String, Value>, max: usize) -> Option<String> {
    beyond_maximum(what, canonical::object_depth(value), MAX_DEPTH, "levels")
        .or_else(|| beyond_maximum(what, canonical::object_to_string(value).len(), max, "bytes"))
}

/// Checks a text against a maximum length in characters.
fn too_long(what: &str, text: &str, max: usize) -> Option<String> {
    beyond_maximum(what, text.chars().count(), max, "characters")
}

/// Checks a list against a maximum length.
fn too_many(what: &str, found: usize, max: usize) -> Option<String> {
    beyond_maximum(what, found, max, "items")
}

/// Describes a number beyond its maximum; none within it.
fn beyond_maximum(what: &str, found: usize, max: usize, unit: &str) -> Option<String> {
    (found > max).then(|| format!("{what}: {found} {unit} exceed the maximum of {max}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::{held_call, report};
    use bloomery_crds::outcome::Phase;
    use rstest::rstest;
    use serde_json::json;

    /// A projection with the maximum size and number of every part.
    fn full() -> Value {
        let mut projection = report(1, 1, 3, Phase::AwaitingApproval).projection;
        projection.remarks = vec!["r".repeat(MAX_REMARK_BYTES); MAX_REMARKS];
        let mut held = serde_json::to_value(held_call()).unwrap();
        held["reason"] = json!("ä".repeat(MAX_REASON_CHARS));
        held["approvers"] = json!(vec!["a".repeat(MAX_NAME_CHARS); MAX_APPROVERS]);
        let mut whole = serde_json::to_value(projection).unwrap();
        let question = json!({
            "id": "q".repeat(AskedQuestion::MAX_ID_BYTES),
            "text": "ä".repeat(AskedQuestion::MAX_TEXT_BYTES),
            "choices": vec!["ä".repeat(AskedQuestion::MAX_CHOICE_BYTES); AskedQuestion::MAX_CHOICES],
            "refused": "ä".repeat(AskedQuestion::MAX_REFUSED_BYTES),
        });
        whole["waitingFor"] = json!({ "call": held, "questions": vec![question; WaitingFor::MAX_QUESTIONS] });
        whole["strayReplies"] = json!(vec!["r".repeat(MAX_REMARK_BYTES); MAX_REMARKS]);
        whole["repliesHeard"] = json!(Reply::MAX_REPLIES);
        let steps = vec!["s".repeat(MAX_NAME_CHARS); MAX_STEPS];
        whole["workflows"] = json!(vec![json!({ "name": "w", "required": true, "open": steps }); MAX_WORKFLOWS]);
        let feature = json!({
            "name": "f".repeat(FeatureResult::MAX_NAME_BYTES), "passed": false, "score": 1.0,
            "reason": "ä".repeat(FeatureResult::MAX_REASON_BYTES), "tokens": 1, "seconds": 1,
        });
        whole["features"] = json!(vec![feature; FeatureResult::MAX_RESULTS]);
        let name = json!({ "tool": "ä".repeat(MAX_TOOL_CHARS), "alias": "a".repeat(MAX_NAME_CHARS) });
        whole["toolNames"] = json!(vec![name; MAX_TOOL_NAMES]);
        whole["gates"]["intent"] =
            json!({ "id": "refund", "entities": of_size(MAX_ENTITIES_BYTES), "outOfDomain": false });
        whole["result"] = json!({ "fields": of_size(MAX_FIELDS_BYTES), "verified": false });
        whole
    }

    fn of_size(bytes: usize) -> Value {
        json!({ "a": "x".repeat(bytes - r#"{"a":""}"#.len()) })
    }

    fn fault(projection: Value) -> Option<String> {
        projection_fault(&serde_json::from_value(projection).unwrap())
    }

    #[test]
    fn a_projection_at_its_limits_is_accepted() {
        assert_eq!(fault(full()), None);
    }

    #[rstest]
    #[case::remarks("/remarks", json!(vec!["r"; 9]), "remarks: 9 items")]
    #[case::remark("/remarks/7", json!("r".repeat(257)), "a remark: 257 bytes")]
    #[case::features("/features", json!(vec![json!({ "name": "f", "passed": true, "tokens": 0, "seconds": 0 }); 33]), "features: 33 items")]
    #[case::feature("/features/31/name", json!("f".repeat(64)), "the name of a feature: 64")]
    #[case::feature_score("/features/31/score", json!(1.5), "the score of a feature: 1.5")]
    #[case::feature_reason("/features/31/reason", json!("r".repeat(257)), "the reason of a feature: 257")]
    #[case::workflows("/workflows", json!(vec![json!({ "name": "w", "required": false }); 9]), "workflows: 9 items")]
    #[case::workflow("/workflows/7/name", json!("w".repeat(65)), "a workflow's name: 65 characters")]
    #[case::steps("/workflows/7/open", json!(vec!["s"; 17]), "a workflow's steps: 17 items")]
    #[case::step("/workflows/7/open/15", json!("s".repeat(65)), "a workflow's step: 65")]
    #[case::tool_names("/toolNames", json!(vec![json!({ "tool": "t", "alias": "a" }); 17]), "toolNames: 17 items")]
    #[case::tool_name("/toolNames/15/tool", json!("t".repeat(129)), "the name of a tool: 129")]
    #[case::alias("/toolNames/15/alias", json!("a".repeat(65)), "the alias of a tool: 65")]
    #[case::call("/waitingFor/call/id", json!("i".repeat(65)), "waitingFor.call.id: 65")]
    #[case::tool("/waitingFor/call/tool", json!("t".repeat(129)), "waitingFor.call.tool: 129")]
    #[case::digest("/waitingFor/call/digest", json!("sha256:zz"), "\"sha256:zz\" is not a digest")]
    #[case::approvers("/waitingFor/call/approvers", json!(vec!["a"; 9]), "waitingFor.call.approvers: 9 items")]
    #[case::approver("/waitingFor/call/approvers/7", json!("a".repeat(65)), "an approver: 65")]
    #[case::reason("/waitingFor/call/reason", json!("r".repeat(1025)), "waitingFor.call.reason: 1025")]
    #[case::questions("/waitingFor/questions", json!(vec![json!({ "id": "q-1", "text": "?" }); 9]), "waitingFor.questions: 9 items")]
    #[case::question_id("/waitingFor/questions/7/id", json!("q".repeat(17)), "the id of a question: 17")]
    #[case::question("/waitingFor/questions/7/text", json!("t".repeat(1025)), "a question: 1025")]
    #[case::choices("/waitingFor/questions/7/choices", json!(vec!["c"; 9]), "a question's choices: 9 items")]
    #[case::choice("/waitingFor/questions/7/choices/7", json!("c".repeat(129)), "a choice: 129")]
    #[case::refused("/waitingFor/questions/7/refused", json!("r".repeat(257)), "why a reply was not taken: 257")]
    #[case::strays("/strayReplies", json!(vec!["r"; 9]), "strayReplies: 9 items")]
    #[case::stray("/strayReplies/7", json!("r".repeat(257)), "a stray reply: 257 bytes")]
    #[case::heard("/repliesHeard", json!(33), "repliesHeard: 33 items")]
    #[case::intent("/gates/intent/id", json!("i".repeat(65)), "gates.intent.id: 65")]
    #[case::entities("/gates/intent/entities", of_size(2049), "gates.intent.entities: 2049 bytes")]
    #[case::fields("/result/fields", of_size(4097), "result.fields: 4097 bytes")]
    #[case::deep("/result/fields", (0..33).fold(json!({}), |inner, _| json!({ "a": inner })), "result.fields: 34 levels")]
    fn a_part_beyond_its_limit_is_named(#[case] pointer: &str, #[case] value: Value, #[case] expected: &str) {
        let mut projection = full();
        *projection.pointer_mut(pointer).unwrap() = value;
        let fault = fault(projection).unwrap_or_default();
        assert!(fault.starts_with(expected), "{fault}");
    }
}
