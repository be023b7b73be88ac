//! Workers and servers that die, and tools that change meanwhile.

use bloomery_crds::v1alpha1::ModelProvider;
use serde_json::json;

use super::GOAL;
use crate::script::{Turn, call, conversation, refund_of};
use crate::skills::refunds;
use crate::suite::{Case, Mishap, THINKING};

/// Killed when all tools were called: the next worker asks for what is missing, and calls nothing again.
pub fn a_job_whose_worker_is_killed_goes_on() -> Case {
    let conversation = refund_of("A-17").hold(3, THINKING);
    Case::of(refunds(), GOAL, conversation).suffering(Mishap::WorkerKilledWhileTheModelThinks)
}

/// What the model thought goes back to the letter, what nobody may see of it too, and by the next worker as well.
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
    Case::of(refunds(), GOAL, conversation("A-17", turns).hold(3, THINKING))
        .speaking(ModelProvider::Anthropic)
        .suffering(Mishap::WorkerKilledWhileTheModelThinks)
}

/// The refund is made, and the server dies before it says so: a person found out.
pub fn a_call_whose_server_died_is_left_to_a_person() -> Case {
    let turns = [
        call("check_eligibility", json!({"order_id": "HOLD-5"})),
        call("process_refund", json!({"order_id": "HOLD-5", "amount": 25.9})).after_result("true"),
        Turn::answer("HOLD-5").after_result("It happened, as"),
    ];
    Case::of(refunds(), "Refund order HOLD-5", conversation("HOLD-5", turns))
        .suffering(Mishap::ServerKilledAfterRefund("HOLD-5"))
        .answered(&["happened"])
}

/// The refund is made, and the worker dies before it hears of it: the next one does not call again, and asks a person,
/// who ends it there.
pub fn a_call_whose_worker_died_is_left_to_a_person() -> Case {
    Case::of(refunds(), "Refund order HOLD-6", refund_of("HOLD-6"))
        .suffering(Mishap::WorkerKilledAfterRefund("HOLD-6"))
        .answered(&["stop"])
}

/// The server says of a tool something else than when the Job began: it is denied from then on, the others go on.
pub fn a_tool_that_changes_is_denied_and_the_others_go_on() -> Case {
    let turns = [
        call("check_eligibility", json!({"order_id": "NEWS-17"})),
        call("track_order", json!({"order_id": "NEWS-17"})).after_result("true"),
        call("check_eligibility", json!({"order_id": "NEWS-17"})).after_result("delivered"),
        call("process_refund", json!({"order_id": "NEWS-17", "amount": 49.9}))
            .after_result("The call was not sent, because the tool is not what it was"),
        call("check_eligibility", json!({"order_id": "NEWS-17"})).after_result("refunded"),
        Turn::answer("NEWS-17").after_result("Denied: the tool \"check_eligibility\" is not what it was"),
    ];
    Case::of(refunds(), "Refund order NEWS-17", conversation("NEWS-17", turns))
}
