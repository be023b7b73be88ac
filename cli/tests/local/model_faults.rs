//! Faults between a model and its client, with the protocol of each provider, streamed and in one piece. The real binary runs
//! against the scripted model server. The conversation has a tool with effect, which must be called at most once.

use super::setup::{CommandOutput, Setup, get};
use bloomery_crds::v1alpha1::{Model, ModelProvider, ModelSpec, Skill};
use bloomery_testkit::model_server::Requests;
use bloomery_testkit::script::{Conversation, Turn, call, conversation, raw_call, refund_of, say, script_text};
use bloomery_testkit::shop::Shop;
use bloomery_testkit::skills::refunds;
use rstest::rstest;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const MIB: usize = 1024 * 1024;

/// The protocol of the model server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wire {
    provider: ModelProvider,
    /// True if the server refuses the field `stream`, and sends each answer in one piece.
    without_streams: bool,
}

const WIRES: [Wire; 4] = [
    Wire { provider: ModelProvider::Openai, without_streams: false },
    Wire { provider: ModelProvider::Openai, without_streams: true },
    Wire { provider: ModelProvider::Anthropic, without_streams: false },
    Wire { provider: ModelProvider::Anthropic, without_streams: true },
];

/// The result of a run.
#[derive(Debug)]
struct RunResult {
    wire: Wire,
    result: CommandOutput,
    /// The number of requests for each turn of the main loop.
    asked: BTreeMap<usize, u64>,
    /// The number of refunds.
    refunds: u64,
}

impl RunResult {
    fn assert_ended(&self, code: i32, says: &str) {
        assert!(self.result.code == code && self.result.err.contains(says), "{code}, {says:?}: {self:#?}");
    }

    fn assert_asked(&self, times: &[u64]) {
        let asked: Vec<u64> = self.asked.values().copied().collect();
        // A server without streams refuses the first request, because it has the field `stream`. Later requests omit it.
        let first = u64::from(self.wire.without_streams);
        let times: Vec<u64> = times.iter().enumerate().map(|(at, n)| n + if at == 0 { first } else { 0 }).collect();
        assert_eq!(asked, times, "{self:#?}");
    }

    fn assert_refunded(&self, times: u64) {
        assert_eq!(self.refunds, times, "{self:#?}");
    }
}

/// The timeouts for a model, in seconds.
#[derive(Clone, Copy)]
struct Timeouts {
    /// The timeout of a request during which the server sends nothing.
    silence: u64,
    /// The time for which a failing model is retried.
    patience: u64,
}

impl Timeouts {
    /// Returns a short timeout only for faults in which the server sends nothing. On a busy machine, other requests may be slow.
    fn for_fault(fault: &Value, patience: u64) -> Self {
        let silent = fault.get("stall").is_some() || fault.get("hang").is_some();
        Self { silence: if silent { 4 } else { 60 }, patience }
    }

    fn brief() -> Self {
        Self::for_fault(&Value::Null, 1)
    }
}

/// Runs a conversation about the order A-17 with each protocol, in parallel.
async fn on_each_wire(timeouts: Timeouts, conversation: impl Fn(Wire) -> Conversation) -> [RunResult; 4] {
    let [a, b, c, d] = WIRES.map(|wire| run_on_wire(wire, timeouts, conversation(wire)));
    let (a, b, c, d) = tokio::join!(a, b, c, d);
    [a, b, c, d]
}

/// Runs a conversation with a protocol.
async fn run_on_wire(wire: Wire, timeouts: Timeouts, conversation: Conversation) -> RunResult {
    let unknown: &[&str] = if wire.without_streams { &["stream"] } else { &[] };
    let setup = Setup::new(&script_text(&[conversation.with_unknown_fields(unknown)])).await;
    let shop = Shop::start(None).await;
    let mcp = shop.mcp_url();
    setup.write("skill.yaml", &serde_yaml::to_string(&Skill::new("shop", refunds())).unwrap());
    let spec = ModelSpec {
        base_url: setup.url(),
        timeout: Some(Duration::from_secs(timeouts.silence).into()),
        ..bloomery_testkit::suite::model(wire.provider)
    };
    setup.write("models.yaml", &serde_yaml::to_string(&Model::new("default", spec)).unwrap());
    let run = ["run", "--skill", "./skill.yaml", "--goal", "Refund A-17", "--model", "models.yaml", "--mcp", &mcp];
    let patience = timeouts.patience.to_string();
    let result = setup.bloomery(&[&run[..], &["--patience", &patience]].concat()).await;
    setup.assert_no_violations().await;
    let requests: Requests = get(&format!("{}/control/requests", setup.model.url())).await;
    let [asked] = <[_; 1]>::try_from(requests.users.into_values().collect::<Vec<_>>()).unwrap();
    let ledger = shop.summary().await;
    assert_eq!(ledger.without_call_key, 0, "{ledger:#?}");
    let refunds = ledger.orders.values().map(|order| order.effects).sum();
    RunResult { wire, result, asked: asked.by_position, refunds }
}

/// The fault occurs in place of the call with effect, and in place of the last answer. An incomplete call is not made.
#[rstest]
#[case::no_json(json!({"garbage": true}))]
#[case::ten_mib(json!({"huge": 10 * MIB}))]
#[case::error_inside(json!({"errorInside": true}))]
#[case::overload_inside(json!({"errorInside": 529}))]
#[case::cut_by_a_reset(json!({"cut": "reset"}))]
#[case::cut_without_an_error(json!({"cut": "short"}))]
#[case::without_its_end_marker(json!({"cut": "unmarked"}))]
#[case::stalled(json!({"stall": true}))]
#[case::never_answered(json!({"hang": true}))]
#[case::internal_error(json!({"status": 500}))]
#[case::too_many_requests(json!({"status": 429, "retryAfter": 1}))]
#[case::too_many_until_a_date(json!({"status": 429, "retryAfterDate": 1}))]
#[case::overloaded(json!({"status": 529, "retryAfter": 1}))]
#[tokio::test]
async fn a_temporary_fault_is_retried_and_no_call_is_repeated(#[case] fault: Value) {
    let troubled = |_| refund_of("A-17").fault(2, fault.clone()).fault(3, fault.clone());
    for seen in on_each_wire(Timeouts::for_fault(&fault, 30), troubled).await {
        seen.assert_ended(0, "Succeeded");
        seen.assert_asked(&[1, 1, 2, 2]);
        seen.assert_refunded(1);
    }
}

#[rstest]
#[case::no_json(json!({"garbage": true}), 3, "cannot be read")]
#[case::ten_mib(json!({"huge": 10 * MIB}), 3, "larger than 2097152 bytes")]
#[case::refused(json!({"status": 400}), 1, "refuses the request")]
#[case::wrong_key(json!({"status": 401}), 1, "Check its key")]
#[case::forbidden(json!({"status": 403}), 1, "Check its key")]
#[case::longer_than_the_window(json!({"tooLong": true}), 1, "longer than the model's context window")]
// A pause that is longer than the patience is shortened.
#[case::too_many_requests(json!({"status": 429, "retryAfter": 3600}), 2, "limits the rate of requests")]
#[case::overloaded(json!({"status": 529, "retryAfter": 3600}), 2, "answered HTTP 529")]
#[case::internal_error(json!({"status": 500, "retryAfter": 3600}), 2, "answered HTTP 500")]
#[tokio::test]
async fn a_permanent_fault_ends_the_job_without_a_call(#[case] fault: Value, #[case] times: u64, #[case] says: &str) {
    let mut fault = fault;
    fault["times"] = json!("always");
    let troubled = |_| conversation("A-17", [refund().fault(fault.clone())]);
    for seen in on_each_wire(Timeouts::for_fault(&fault, 1), troubled).await {
        seen.assert_ended(3, "ModelUnavailable");
        seen.assert_ended(3, says);
        seen.assert_asked(&[times]);
        seen.assert_refunded(0);
    }
}

/// The number of requests depends on random pauses.
#[rstest]
#[case::error_inside(json!({"errorInside": true}), "As the script says")]
#[case::cut(json!({"cut": "reset"}), "did not finish")]
#[case::stalled(json!({"stall": true}), "did not answer within 4 s")]
#[tokio::test]
async fn a_fault_that_outlasts_the_patience_ends_the_job(#[case] fault: Value, #[case] says: &str) {
    let mut fault = fault;
    fault["times"] = json!("always");
    let troubled = |_| conversation("A-17", [refund().fault(fault.clone())]);
    for seen in on_each_wire(Timeouts::for_fault(&fault, 1), troubled).await {
        seen.assert_ended(3, "ModelUnavailable");
        seen.assert_ended(3, says);
        assert!(seen.asked.len() == 1 && seen.asked[&0] >= 2, "{seen:#?}");
        seen.assert_refunded(0);
    }
}

/// An OpenAI response without choices is a fault, which is retried. An empty Anthropic response is an answer, which the gate
/// rejects.
#[tokio::test]
async fn an_empty_answer_is_retried_or_rejected() {
    let empty = |wire: Wire| {
        let answer = Turn::answer("A-17");
        match wire.provider {
            ModelProvider::Openai => conversation("A-17", [answer.fault(json!({"empty": true}))]),
            ModelProvider::Anthropic => {
                let nothing = say("x").fault(json!({"empty": true, "times": "always"}));
                conversation("A-17", [nothing, answer.after_feedback("cannot be used as it is")])
            }
        }
    };
    for seen in on_each_wire(Timeouts::brief(), empty).await {
        seen.assert_ended(0, "Succeeded");
        match seen.wire.provider {
            ModelProvider::Openai => seen.assert_asked(&[2]),
            ModelProvider::Anthropic => seen.assert_asked(&[1, 1]),
        }
    }
    let always = |_| conversation("A-17", [say("x").fault(json!({"empty": true, "times": "always"}))]);
    let seen = run_on_wire(WIRES[0], Timeouts::brief(), always(WIRES[0])).await;
    seen.assert_ended(3, "ModelUnavailable");
    seen.assert_asked(&[3]);
}

fn refund() -> Turn {
    call("process_refund", json!({"order_id": "A-17", "amount": 49.9}))
}

/// The answer takes longer than the timeout of a silent request.
#[tokio::test]
async fn a_slow_answer_is_accepted() {
    let slow = |_| refund_of("A-17").fault(2, json!({"slow": 500}));
    for seen in on_each_wire(Timeouts { silence: 2, patience: 1 }, slow).await {
        seen.assert_ended(0, "Succeeded");
        seen.assert_asked(&[1, 1, 1, 1]);
        seen.assert_refunded(1);
    }
}

#[tokio::test]
async fn unknown_fields_events_and_line_ends_are_ignored() {
    let unusual = |_| refund_of("A-17").thinking("Who is it?").unusual();
    for seen in on_each_wire(Timeouts::brief(), unusual).await {
        seen.assert_ended(0, "Succeeded");
        assert!(seen.result.out.starts_with("Order A-17 is refunded.\n"), "{seen:#?}");
        seen.assert_asked(&[1, 1, 1, 1]);
        seen.assert_refunded(1);
    }
}

/// The model gets the reason, and can correct the call. No request is repeated.
#[rstest]
#[case::one_key_twice(r#"{"order_id": "A-17", "amount": 1, "amount": 49.9}"#, "the key \"amount\" appears twice")]
#[case::one_key_twice_in_two_spellings(r#"{"order_id":"A-17","amount":1,"\u0061mount":49.9}"#, "appears twice")]
#[case::no_json(r#"{"order_id": "A-17", "amount": "#, "the arguments ")]
#[case::nothing("", "Denied")]
#[case::prose("Refund A-17, please", "the arguments ")]
#[case::no_object("[\"A-17\", 49.9]", "the arguments are not a JSON object")]
#[case::null("null", "the arguments are not a JSON object")]
#[case::a_number_that_readers_round(
    r#"{"order_id": "A-17", "amount": 0.10000000000000000001}"#,
    "cannot be represented"
)]
#[case::unknown_field(r#"{"order_id": "A-17", "amount": 49.9, "force": true}"#, "force")]
#[case::another_type(r#"{"order_id": "A-17", "amount": "49.9"}"#, "amount")]
#[tokio::test]
async fn invalid_arguments_are_reported_to_the_model(#[case] arguments: &str, #[case] reason: &str) {
    let mends = |_| {
        let turns = [
            raw_call("process_refund", arguments),
            refund().after_result(reason),
            Turn::answer("A-17").after_result("R-1"),
        ];
        conversation("A-17", turns)
    };
    for seen in on_each_wire(Timeouts::brief(), mends).await {
        seen.assert_ended(0, "Succeeded");
        seen.assert_asked(&[1, 1, 1]);
        seen.assert_refunded(1);
    }
}

#[tokio::test]
async fn arguments_that_are_too_long_are_reported_to_the_model() {
    let mends = |_| {
        let long = json!({"order_id": "A-17", "amount": 49.9, "note": "x".repeat(65_536)}).to_string();
        let turns = [
            raw_call("process_refund", &long),
            refund().after_result("bytes, more than 65536"),
            Turn::answer("A-17").after_result("R-1"),
        ];
        conversation("A-17", turns)
    };
    for seen in on_each_wire(Timeouts::brief(), mends).await {
        seen.assert_ended(0, "Succeeded");
        seen.assert_asked(&[1, 1, 1]);
        seen.assert_refunded(1);
    }
}

/// An answer that has reached its length limit may contain an incomplete call.
#[tokio::test]
async fn a_truncated_call_is_not_made() {
    let cut = |_| {
        let turns = [
            refund().with_stop_reason("length"),
            refund().after_result("cut off"),
            Turn::answer("A-17").after_result("R-1"),
        ];
        conversation("A-17", turns)
    };
    for seen in on_each_wire(Timeouts::brief(), cut).await {
        seen.assert_ended(0, "Succeeded");
        seen.assert_asked(&[1, 1, 1]);
        seen.assert_refunded(1);
    }
}

/// Anthropic marks a response that its filter stopped. OpenAI does not, so the refusal is an answer, which lacks the fields of
/// the contract.
#[tokio::test]
async fn a_refusal_ends_the_job_if_the_provider_marks_it() {
    let refuses = |_| {
        let turns = [
            say("I will not do that.").with_stop_reason("refusal"),
            Turn::answer("A-17").after_feedback("the answer has no ```json block"),
        ];
        conversation("A-17", turns)
    };
    for seen in on_each_wire(Timeouts::brief(), refuses).await {
        match seen.wire.provider {
            ModelProvider::Anthropic => {
                seen.assert_ended(3, "the provider's filter stopped it");
                seen.assert_asked(&[1]);
            }
            ModelProvider::Openai => {
                seen.assert_ended(0, "Succeeded");
                seen.assert_asked(&[1, 1]);
            }
        }
        seen.assert_refunded(0);
    }
}
