//! The cases of the suite.

use bloomery_crds::v1alpha1::{Limits, ModelProvider, ModelSpec, SkillSpec};
use serde_json::json;

use super::{Case, FOLDER, LEDGER, model};
use crate::harness::{Conversation, Turn, call, conversation, fails, refund_of, refunds, say, tier_one, typed};

const GOAL: &str = "Refund order A-17, it arrived broken";

/// Verify, check, refund, answer.
pub fn a_refund_passes_every_gate() -> Case {
    Case::of(refunds(), GOAL, refund_of("A-17"))
}

/// Detect the intent, bind the workflow, rule each call, judge the answer, polish it (002).
pub fn all_six_stages_of_cs_tier_1() -> Case {
    Case::of(tier_one(), GOAL, of_tier_one(refund_of("A-17")))
}

/// The same, in the words of another provider, with thoughts that it wants back to the letter.
pub fn all_six_stages_with_anthropic() -> Case {
    let conversation = of_tier_one(refund_of("A-17").thinking("Who is it, first of all?"));
    Case::of(tier_one(), GOAL, conversation).speaking(ModelProvider::Anthropic)
}

fn of_tier_one(conversation: Conversation) -> Conversation {
    conversation
        .intent("intent_refund", json!({"order_id": "A-17"}))
        .told("Never be dismissive to frustrated customers")
        .ruling(json!({"passed": true, "score": 0.9, "reasons": []}))
        .polished("Good news: order A-17 is refunded!")
}

/// One provider refuses every turn; the other is told the conversation in its own form, and goes on.
pub fn a_model_that_fails_is_replaced_by_its_fallback() -> Case {
    let refuses = conversation("A-17", [say("").fault(json!({"status": 400, "times": "always"}))]).of_model("broken");
    let broken =
        ModelSpec { model: "broken".to_owned(), fallback: vec!["other".to_owned()], ..model(ModelProvider::Openai) };
    let mut case = Case::of(refunds(), GOAL, refuses);
    case.conversations.push(refund_of("A-17").of_model("scripted"));
    case.models = vec![("default", broken), ("other", model(ModelProvider::Anthropic))];
    case
}

/// Too many requests, a stream that is cut, an error inside of one: asked again, and nothing is done twice.
pub fn a_model_that_is_busy_is_asked_again() -> Case {
    let conversation = refund_of("A-17")
        .fault(0, json!({"status": 429, "retryAfter": 1}))
        .fault(2, json!({"cut": "reset"}))
        .fault(3, json!({"errorInside": 529}));
    Case::of(refunds(), GOAL, conversation)
}

/// What is none of the Skill's intents costs one request, and no tool.
pub fn a_goal_out_of_domain_is_redirected() -> Case {
    Case::of(tier_one(), "What will the weather be?", conversation("weather", []).out_of_domain())
}

/// A tool that is blocked is not offered; arguments that do not fit their schema are told.
pub fn what_is_denied_is_told_and_the_model_goes_on() -> Case {
    let turns = [
        call("track_order", json!({"order_id": "A-17"})).not_offered(&["track_order"]),
        call("verify_identity", json!({"order_id": 17, "email": "customer-17@example.com"})).after_result("Denied"),
        call("check_eligibility", json!({"order_id": "A-17"})).after_result("Denied"),
        Turn::answer("A-17").after_result("eligible"),
    ];
    Case::of(refunds(), GOAL, conversation("A-17", turns))
        .with(|spec| spec.policy = Some(typed(json!({"tools": {"blocked": ["track_order"]}}))))
}

/// Two rules hold it, each with an approver of its own; nobody is there to be asked.
pub fn a_call_that_is_held_waits() -> Case {
    Case::of(tier_one(), "Refund order A-243", refund_of("A-243"))
}

/// Sent back twice for its form, once by the gate, and then to a person.
pub fn an_answer_without_its_fields_is_handed_over() -> Case {
    let unfit = || say("Order A-17 is refunded.\n```json\n{\"order_id\": \"A-17\", \"status\": \"refunded\"}\n```");
    Case::of(refunds(), GOAL, conversation("A-17", [unfit(), unfit(), unfit(), unfit()]))
}

/// The gate's objection reaches the model, which looks something up and answers anew.
pub fn an_answer_that_failed_comes_back_with_evidence() -> Case {
    let turns = [
        Turn::answer("A-17"),
        call("check_eligibility", json!({"order_id": "A-17"})).after_feedback("nothing was looked up"),
        Turn::answer("A-17, which is eligible,"),
    ];
    let failed = fails("GOAL_NOT_MET", "nothing was looked up", "TOOL_CALL");
    Case::of(refunds(), GOAL, conversation("A-17", turns).ruling(failed))
}

/// A step that comes too early is denied.
pub fn a_workflow_binds_the_order_of_its_steps() -> Case {
    let refund = || call("process_refund", json!({"order_id": "A-17", "amount": 49.9}));
    let turns = [
        refund(),
        call("verify_identity", json!({"order_id": "A-17", "email": "customer-17@example.com"}))
            .and_call("check_eligibility", json!({"order_id": "A-17"}))
            .after_result("Denied"),
        refund(),
        Turn::answer("A-17").after_result("refunded"),
    ];
    Case::of(tier_one(), GOAL, conversation("A-17", turns))
}

/// More tools than the Skill wants in a prompt: the model is offered those that it chose.
pub fn tools_are_selected_where_there_are_many() -> Case {
    let turns = [
        call("check_eligibility", json!({"order_id": "A-17"})).offered(&["check_eligibility"]).not_offered(&[
            "verify_identity",
            "track_order",
            "process_refund",
        ]),
        Turn::answer("A-17, which is eligible,").after_result("eligible"),
    ];
    let chosen = json!({"json": {"tools": ["check_eligibility"]}});
    Case::of(refunds(), GOAL, conversation("A-17", turns).stage("selection", chosen))
        .with(|spec| spec.engine = Some(typed(json!({"toolSelection": {"max": 2}}))))
}

/// Two Jobs on one folder: what the first has written, the second is told of, finds, and changes.
pub fn files_are_written_read_and_changed_in_what_is_bound_only() -> Case {
    let write = [
        call(
            "write_file",
            json!({"path": "notes/today.md", "content": "one\ntwo\nthree\n", "createDirectories": true}),
        )
        .offered(&["read_file", "list_files", "search_files", "write_file", "edit_file", "apply_patch"]),
        call("read_file", json!({"path": "../../etc/passwd"})).after_result("a new file of 14 bytes"),
        call("write_file", json!({"path": ".git/hooks/post-checkout", "content": "#!/bin/sh"})).after_result("goes up"),
        say("It is written.").after_result("it is never written"),
    ];
    let patch = "--- notes/today.md\n+++ notes/today.md\n@@ -1,3 +1,3 @@\n one\n-2\n+second\n three\n";
    let change = [
        call("search_files", json!({"pattern": "^tw[o]$"})),
        call("edit_file", json!({"path": "notes/today.md", "oldText": "two", "newText": "2"})).after_result("2: two"),
        call("apply_patch", json!({"patch": patch})).after_result("at line 2"),
        call("list_files", json!({"depth": 3})).after_result("notes/today.md"),
        call("read_file", json!({"path": "notes/today.md", "line": 2, "lines": 1})).after_result("today.md"),
        say("It is changed.").after_result("second"),
    ];
    let mut case = Case::of(coding(), "Write it down", conversation("Write it down", write));
    case.conversations.push(conversation("Change it", change).told("notes/"));
    case.goals.push("Change it");
    case.has_orders = false;
    case
}

fn coding() -> SkillSpec {
    typed(json!({
        "problem": {"statement": "Keep notes"},
        "resources": [{"name": FOLDER, "type": "filesystem", "required": true}],
        "context": {"projectStructure": true},
    }))
}

/// What the Skill's rules let through is called; what they do not is denied, and the model goes on.
pub fn an_endpoint_is_called_by_its_rules() -> Case {
    let skill: SkillSpec = typed(json!({
        "problem": {"statement": "Keep the ledger"},
        "resources": [{"name": LEDGER, "type": "api_endpoint", "required": true, "rules": [
            {"methods": ["GET"], "paths": ["/effects/**"]}, {"methods": ["POST"], "paths": ["/effects"]},
        ]}],
    }));
    let effect = json!({"callKey": "by-hand", "tool": "http_request", "order": "A-17", "amount": 5});
    let turns = [
        call("http_get", json!({"path": "/effects/summary"})).offered(&["http_get", "http_request"]),
        call("http_request", json!({"method": "POST", "path": "/effects", "json": effect})).after_result("HTTP 200 OK"),
        call("http_request", json!({"method": "POST", "path": "/holds/A-17/release"})).after_result("HTTP 200 OK"),
        call("http_get", json!({"path": "/effects/%2e%2e/healthz"})).after_result("allow no POST of /holds"),
        say("It is in the ledger.").after_result("not"),
    ];
    let mut case = Case::of(skill, "Note A-17", conversation("A-17", turns));
    case.has_orders = false;
    case
}

/// The memory bank outlives a Job: the next one of the Skill begins with what is in it.
pub fn what_one_job_notes_the_next_begins_with() -> Case {
    let skill: SkillSpec = typed(json!({"problem": {"statement": "Remember"}, "memory": {"bank": "write"}}));
    let note = |content: &str, expect: &str| {
        call("memory_write", json!({"file": "activeContext.md", "content": content, "expect": expect}))
    };
    let first = [
        note("Ada likes mornings.", "none").offered(&["memory_read", "memory_write"]),
        note("Ada likes evenings.", "none").after_result("Wrote"),
        say("Noted.").after_result("Failed"),
    ];
    let second = [
        call("memory_read", json!({"file": "activeContext.md"})),
        say("She likes mornings.").after_result("Ada likes mornings."),
    ];
    let mut case = Case::of(skill, "Note it", conversation("Note it", first));
    case.conversations.push(conversation("What does Ada like?", second).told("Ada likes mornings."));
    case.goals.push("What does Ada like?");
    case.has_orders = false;
    case
}

/// A limit that is too low for the goal.
pub fn a_job_ends_at_its_steps() -> Case {
    let mut case = Case::of(refunds(), GOAL, refund_of("A-17"));
    case.limits = Some(Limits { steps: Some(2), ..Limits::default() });
    case
}
