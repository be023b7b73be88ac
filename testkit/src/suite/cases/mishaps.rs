//! Workers and servers that are killed, and a tool that changes while a Job runs.

use bloomery_crds::v1alpha1::ModelProvider;
use serde_json::json;

use super::GOAL;
use crate::script::{Turn, call, conversation, refund_of};
use crate::skills::refunds;
use crate::suite::{Case, Mishap, THINKING};

/// The worker is killed after all calls. The next worker asks for the answer and repeats no call.
pub fn a_job_whose_worker_is_killed_goes_on() -> Case {
    let conversation = refund_of("A-17").hold(3, THINKING);
    Case::new(refunds(), GOAL, conversation).with_mishap(Mishap::WorkerKilledWhileTheModelThinks)
}

/// Each worker returns all thoughts to the model unchanged, including redacted thoughts.
pub fn thoughts_are_kept_by_the_next_worker_too() -> Case {
    let turns = [
        call("verify_identity", json!({"order_id": "A-17", "email": "customer-17@example.com"}))
            .thinking("Who is it?\n\u{2028}First \"of\" all: \u{1F914}"),
        call("check_eligibility", json!({"order_id": "A-17"})).redacted_thinking("RW5jcnlwdGVk").after_result("true"),
        call("process_refund", json!({"order_id": "A-17", "amount": 49.9}))
            .thinking("  Now the money. ")
            .redacted_thinking("bW9yZQ==")
            .after_result("true"),
        Turn::answer("A-17").after_result("refunded"),
    ];
    Case::new(refunds(), GOAL, conversation("A-17", turns).hold(3, THINKING))
        .with_provider(ModelProvider::Anthropic)
        .with_mishap(Mishap::WorkerKilledWhileTheModelThinks)
}

/// The MCP server is killed after the refund and before it answers. The worker asks a person, who replies that the
/// refund happened.
pub fn a_call_whose_server_died_is_left_to_a_person() -> Case {
    let turns = [
        call("check_eligibility", json!({"order_id": "HOLD-5"})),
        call("process_refund", json!({"order_id": "HOLD-5", "amount": 25.9})).after_result("true"),
        Turn::answer("HOLD-5").after_result("It happened, as"),
    ];
    Case::new(refunds(), "Refund order HOLD-5", conversation("HOLD-5", turns))
        .with_mishap(Mishap::ServerKilledAfterRefund("HOLD-5"))
        .with_replies(&["happened"])
}

/// The worker is killed after the refund and before it receives the result. The next worker does not repeat the call
/// and asks a person, who ends the Job.
pub fn a_call_whose_worker_died_is_left_to_a_person() -> Case {
    Case::new(refunds(), "Refund order HOLD-6", refund_of("HOLD-6"))
        .with_mishap(Mishap::WorkerKilledAfterRefund("HOLD-6"))
        .with_replies(&["stop"])
}

/// The MCP server changes the description of a tool while the Job runs. From then on, the calls of this tool are denied, and
/// other tools are not affected.
pub fn a_tool_that_changes_is_denied_and_the_others_go_on() -> Case {
    let turns = [
        call("check_eligibility", json!({"order_id": "NEWS-17"})),
        call("track_order", json!({"order_id": "NEWS-17"})).after_result("true"),
        call("check_eligibility", json!({"order_id": "NEWS-17"})).after_result("delivered"),
        call("process_refund", json!({"order_id": "NEWS-17", "amount": 49.9}))
            .after_result("The call was not sent, because its tool has changed"),
        call("check_eligibility", json!({"order_id": "NEWS-17"})).after_result("refunded"),
        Turn::answer("NEWS-17").after_result("Denied: the tool \"check_eligibility\" cannot be used"),
    ];
    Case::new(refunds(), "Refund order NEWS-17", conversation("NEWS-17", turns))
}
