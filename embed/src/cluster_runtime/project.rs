//! The projections of objects. The functions are pure.

use crate::cluster::state;
use crate::job::{JobStatus, JobSummary};
use crate::requests::{HeldCall, MissingRights, OpenRequests, Question};
use crate::skill::{SkillCondition, SkillState, SkillTool, allows};
use bloomery_crds::Digest;
use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::report::Projection;
use bloomery_crds::v1alpha1::{Approval, AskedQuestion, HoldRule, Job, LogPosition, Skill};
use bloomery_engine::event::{CallId, QuestionId, RulingReason, UserQuestion};
use kube::ResourceExt;
use serde_json::{Map, Value, json};

/// Returns a Job as lists show it.
pub(super) fn summary(job: &Job) -> JobSummary {
    JobSummary {
        job: job.name_any(),
        skill: job.spec.skill.clone(),
        goal: job.spec.goal.clone(),
        phase: state::phase(job),
        created: job.metadata.creation_timestamp.as_ref().map(|time| time.0.to_string()),
    }
}

/// Returns the state of a Job. The remarks are in the conditions of the object only.
pub(super) fn status(job: &Job) -> JobStatus {
    let JobSummary { job: key, skill, goal, phase, created: _ } = summary(job);
    let not_ready = state::not_ready(job).filter(|_| !state::has_ended(job));
    let condition = not_ready.map(|ready| format!("{}: {}", ready.reason, ready.message));
    let status = job.status.clone().unwrap_or_default();
    let no_log = || LogPosition { path: String::new(), events: 0, head: Digest::of_bytes(b"") };
    let status = Projection {
        phase,
        outcome: status.outcome,
        result: status.result,
        gates: *status.gates.unwrap_or_default(),
        features: status.features,
        workflows: status.workflows,
        tool_names: status.tool_names,
        waiting_for: status.waiting_for.map(|waiting| *waiting),
        replies_heard: status.replies_heard.unwrap_or_default(),
        stray_replies: Vec::new(),
        remarks: Vec::new(),
        tools_changed: false,
        usage: *status.usage.unwrap_or_default(),
        log: status.log.unwrap_or_else(no_log),
    };
    JobStatus { job: key, skill, goal, status, condition }
}

/// Returns the requests of a Job that wait for people. `approvals` are the undecided Approvals that its status names.
pub(super) fn open_requests(job: &Job, approvals: &[Approval], missing: MissingRights) -> OpenRequests {
    let questions = state::questions(job).iter().map(|asked| {
        let AskedQuestion { id, text, choices, refused } = asked.clone();
        Question { question: UserQuestion { id: QuestionId(id), text, choices }, refused }
    });
    let mut held: Vec<HeldCall> = Vec::new();
    for Approval { spec, .. } in approvals {
        match held.iter_mut().find(|call| call.call.0 == spec.call_id) {
            Some(call) => call.approvers.push(spec.approver.clone()),
            None => held.push(HeldCall {
                call: CallId(spec.call_id.clone()),
                tool: spec.tool.clone(),
                arguments: spec.arguments.clone(),
                digest: spec.arguments_digest.clone(),
                reasons: spec.rules.iter().map(reason).collect(),
                approvers: vec![spec.approver.clone()],
            }),
        }
    }
    OpenRequests { approvals: held, questions: questions.collect(), missing }
}

fn reason(rule: &HoldRule) -> RulingReason {
    let HoldRule { layer, text, approver } = rule.clone();
    RulingReason { layer, detail: text, approver, rule: None }
}

/// Returns the state of a Skill, with the latest result of each feature.
pub(super) fn skill(skill: &Skill) -> SkillState {
    let conditions = skill.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let fault = match conditions::find(conditions, ConditionType::Ready) {
        Some(ready) if ready.status == "True" => None,
        Some(ready) => Some(format!("{}: {}", ready.reason, ready.message)),
        None => Some("the operator has not accepted the Skill yet".to_owned()),
    };
    let conditions = conditions.iter().map(|condition| SkillCondition {
        kind: condition.type_.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
    });
    let conditions = conditions.collect();
    let mut state = SkillState { fault, conditions, ..SkillState::new(skill.name_any(), &skill.spec) };
    for result in skill.status.iter().flat_map(|status| &status.features) {
        for feature in state.features.iter_mut().filter(|feature| feature.name == result.name) {
            feature.passed = Some(result.passed);
            feature.reason.clone_from(&result.reason);
        }
    }
    state
}

/// Returns the verified tools of the MCP server of a Skill that its policy allows; none if no probe has verified them. The status has
/// no definitions, so the descriptions and the arguments are those that the Skill declares. The tool policy of the tenant applies to
/// each call.
pub(super) fn tools(skill: &Skill) -> Option<Vec<SkillTool>> {
    let verified = skill.status.as_ref().and_then(|status| status.tools.as_ref());
    if verified.is_none() && skill.spec.mcp_server.is_none() {
        return Some(Vec::new());
    }
    let pinned = &verified?.pins.as_ref()?.tools;
    let allowed = pinned.iter().filter(|tool| allows(&skill.spec, &tool.name));
    Some(allowed.map(|tool| shown_tool(skill, &tool.name)).collect())
}

fn shown_tool(skill: &Skill, name: &str) -> SkillTool {
    let declared = skill.spec.declaration_of(name).and_then(|declared| declared.description.clone());
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for input in skill.spec.inputs_of(name) {
        let description = input.description.as_deref().unwrap_or_default();
        properties.insert(input.name.clone(), json!({"type": input.kind.to_string(), "description": description}));
        if input.required == Some(true) {
            required.push(Value::from(input.name.clone()));
        }
    }
    let input_schema = json!({"type": "object", "properties": properties, "required": required});
    SkillTool { name: name.to_owned(), description: declared.unwrap_or_default(), input_schema }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
    use bloomery_testkit::objects::approvals::approval;
    use bloomery_testkit::objects::jobs::{ended, job, with_held_call, with_questions};

    #[test]
    fn a_job_has_its_projection() {
        let ended = status(&ended(&Outcome::new(OutcomeCode::Succeeded, "It ended.")));
        assert_eq!((ended.job.as_str(), ended.skill.as_str()), ("refund", "cs-tier-1"));
        assert_eq!((ended.status.phase, ended.status.log.events), (Phase::Succeeded, 21));
        assert_eq!(ended.status.result.unwrap().text, "Order A-443 was refunded.");
        let new = status(&job("new"));
        assert_eq!((new.status.phase, new.status.log.events), (Phase::Pending, 0));
        assert_eq!(new.condition, None);
    }

    #[test]
    fn a_job_that_waits_has_the_reason() {
        let mut waiting = job("waiting");
        waiting.status = serde_json::from_value(json!({"phase": "Pending", "conditions": [ready("False")]})).unwrap();
        assert_eq!(status(&waiting).condition.as_deref(), Some("ModelMissing: there is no Model x"));
        waiting.status = serde_json::from_value(json!({"phase": "Failed", "conditions": [ready("False")]})).unwrap();
        assert_eq!(status(&waiting).condition, None);
    }

    #[test]
    fn a_held_call_has_the_arguments_of_its_approvals() {
        let approvals = ["finance", "supervisor"].map(|approver| approval(approver, approver, r#"{"amount":900}"#));
        let open = open_requests(&with_held_call(), &approvals, MissingRights::default());
        assert_eq!(open.approvals.len(), 1);
        let call = &open.approvals[0];
        assert_eq!((call.call.0.as_str(), call.arguments.as_str()), ("c-7", r#"{"amount":900}"#));
        assert_eq!((call.approvers.len(), call.reasons.len()), (2, 2));
        let questions = open_requests(&with_questions(), &[], MissingRights::default()).questions;
        assert_eq!(questions.iter().map(|asked| asked.question.id.0.as_str()).collect::<Vec<_>>(), ["q-1", "q-2"]);
    }

    fn desk(status: &Value) -> Skill {
        serde_json::from_value(json!({
            "apiVersion": "bloomery.dev/v1alpha1", "kind": "Skill", "metadata": {"name": "desk"},
            "spec": {
                "problem": {"statement": "Help"}, "displayName": "The desk",
                "mcpServer": {"uri": "https://orders.example/mcp"},
                "policy": {"tools": {"blocked": ["delete_*"]}},
                "features": [
                    {"name": "brief", "testScenario": "Given a question", "expectedResult": "One sentence"},
                    {"name": "letters", "testScenario": "Given a letter", "expectedResult": "A greeting"},
                ],
                "tools": [{
                    "name": "refund", "description": "Refunds",
                    "inputs": [{"name": "order", "type": "string", "required": true}],
                }],
            },
            "status": status,
        }))
        .unwrap()
    }

    fn ready(status: &str) -> Value {
        json!({
            "type": "Ready", "status": status, "reason": "ModelMissing", "message": "there is no Model x",
            "lastTransitionTime": "2027-01-15T08:20:00Z",
        })
    }

    #[test]
    fn a_skill_that_is_not_ready_has_a_fault() {
        assert_eq!(skill(&desk(&json!({"conditions": [ready("True")]}))).fault, None);
        let fault = skill(&desk(&json!({"conditions": [ready("False")]}))).fault.unwrap();
        assert_eq!(fault, "ModelMissing: there is no Model x");
        assert!(skill(&desk(&Value::Null)).fault.is_some());
    }

    #[test]
    fn a_skill_has_its_conditions_and_the_results_of_its_features() {
        let result = json!({
            "name": "brief", "passed": false, "reason": "The answer is long.", "revision": "desk-1", "job": "validate-1",
            "time": "2027-01-15T08:20:00Z", "tokens": 7,
        });
        let state = skill(&desk(&json!({"conditions": [ready("False")], "features": [result]})));
        assert_eq!(state.description.as_deref(), Some("Help"));
        let condition = &state.conditions[0];
        assert_eq!((condition.kind.as_str(), condition.status.as_str()), ("Ready", "False"));
        let features: Vec<_> = state.features.iter().map(|found| (found.name.as_str(), found.passed)).collect();
        assert_eq!(features, [("brief", Some(false)), ("letters", None)]);
        assert_eq!(state.features[0].reason.as_deref(), Some("The answer is long."));
    }

    #[test]
    fn the_tools_are_the_verified_ones_that_the_policy_allows() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let pinned = ["delete_order", "note", "refund"].map(|name| json!({"name": name, "digest": "00"}));
        let found = json!({"key": digest, "rules": digest, "at": "2027-01-15T08:20:00Z", "digest": digest, "count": 3});
        let status = json!({"tools": {"server": digest, "pins": {"tools": pinned}, "found": found}});
        let tools = tools(&desk(&status)).unwrap();
        assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["note", "refund"]);
        assert_eq!(tools[1].description, "Refunds");
        assert_eq!(tools[1].input_schema["required"], json!(["order"]));
        assert_eq!(super::tools(&desk(&Value::Null)), None);
    }
}
