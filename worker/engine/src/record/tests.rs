//! The record of a conversation, as conditions read it.

use super::*;
use crate::condition::{self, Arguments, Condition};
use crate::event::{QuestionId, ResourceSummary};
use crate::fixture;
use bloomery_crds::v1alpha1::ResourceType;
use rstest::rstest;
use serde_json::json;

/// A record of a Skill with this rule about payments.
fn record(when: &str) -> Record {
    let mut skill = fixture::skill();
    let policy = json!({
        "lists": {"payees": ["ada@own.com", "bob@own.com"]},
        "approvals": [{"toolId": "send_money", "when": when}],
    });
    skill.policy = Some(serde_json::from_value(policy).unwrap());
    Record::new(&skill)
}

fn id(n: u64) -> CallId {
    CallId::new(n, 0)
}

/// Returns the result of a condition about the call 99, whose arguments are `arguments`.
fn decide(record: &Record, when: &str, arguments: &Value) -> Result<bool, condition::Error> {
    let condition = Condition::compile(when).unwrap();
    let call = id(99);
    condition.decide(Arguments::check(arguments).unwrap(), &[], &record.for_call(&call))
}

#[rstest]
#[case::the_goal(Event::ConversationOpened {
    run_key: "k".into(), revision: bloomery_crds::Digest::of_bytes(b"r"), system: "bob@own.com".into(), goal: "Pay ada@own.com".into(),
    limits: bloomery_crds::limits::EffectiveLimits::DEFAULT,
})]
#[case::a_reply(Event::UserReplied { question: QuestionId::new(1), text: "ada@own.com".into(), by: "bob@own.com".into(), nth: None })]
#[case::a_message(Event::UserMessage { text: "to ada@own.com!".into(), by: "bob@own.com".into(), nth: None })]
#[case::a_resource(Event::ResourcesBound {
    resources: vec![ResourceSummary { name: "bob@own.com".into(), kind: ResourceType::ApiEndpoint, rendering: Some("ada@own.com".into()) }],
})]
fn what_people_wrote_or_bound_is_from_a_user(#[case] event: Event) {
    let when = "recipients.all(r, fromUser(r))";
    let mut record = record(when);
    record.apply(&event);
    assert_eq!(decide(&record, when, &json!({"recipients": ["ada@own.com"]})), Ok(true));
    assert_eq!(decide(&record, when, &json!({"recipients": ["ada@own.com", "bob@own.com"]})), Ok(false));
}

#[rstest]
#[case::structured(r#"{"payees": [{"name": "Ada", "iban": "DE89 3704 0044 0532 0130 00", "limit": 50}]}"#)]
#[case::several_values("{\"iban\": \"DE89370400440532013000\"}\n{\n  \"name\": \"ada\", \"limit\": 50.0}")]
fn the_values_of_a_result_are_from_its_tool(#[case] result: &str) {
    let when = "fromTool(iban, 'get_*') && fromTool(name, 'get_payees') && fromTool(limit, 'get_payees')";
    let mut record = record(when);
    let arguments = json!({"iban": "DE89370400440532013000", "name": "Ada", "limit": 50});
    record.add_result("read_mail", Some(result));
    assert_eq!(decide(&record, when, &arguments), Ok(false));
    record.add_result("get_payees", Some(result));
    assert_eq!(decide(&record, when, &arguments), Ok(true));
}

#[rstest]
#[case::a_part_of_a_value(r#"{"note": "pay to ada@own.com"}"#)]
#[case::a_name_of_a_field(r#"{"ada@own.com": 1}"#)]
#[case::text("ada@own.com")]
#[case::json_within_text("A mail:\n{\"to\": \"ada@own.com\"}")]
#[case::an_output_against_its_schema("[The call succeeded, but ...]\n{\"to\": \"ada@own.com\"}")]
fn anything_else_in_a_result_is_not_from_its_tool(#[case] result: &str) {
    let when = "fromTool(recipient, 'get_payees')";
    let mut record = record(when);
    record.add_result("get_payees", Some(result));
    assert_eq!(decide(&record, when, &json!({"recipient": "ada@own.com"})), Ok(false));
}

#[test]
fn earlier_calls_are_counted_without_the_call_itself() {
    let when = "size(calls('send_*')) >= 2 || calls('send_money').exists(c, c.iban == iban)";
    let mut record = record(when);
    let call = |n: u32| CanonicalJson::new(json!({"iban": format!("DE{n}")}));
    let of = |record: &Record, iban: &str| decide(record, when, &json!({"iban": iban})).unwrap();
    record.add_call("send_money", &id(1), &call(1));
    record.add_call("send_money", &id(1), &call(1));
    assert_eq!((of(&record, "DE1"), of(&record, "DE2")), (true, false));
    // The call itself was sent before, and its answer was lost.
    record.add_call("send_money", &id(99), &call(2));
    assert!(!of(&record, "DE2"));
    record.add_call("send_gift", &id(3), &call(3));
    assert!(of(&record, "DE2"));
    record.add_call("get_rent", &id(4), &call(4));
    assert_eq!(record.tools.len(), 2);
}

#[test]
fn results_are_json_or_text() {
    let when = "results('get_rent').exists(r, r.amount == amount)";
    let mut record = record(when);
    record.add_result("get_rent", Some(r#"{"amount": 1100}"#));
    assert_eq!(decide(&record, when, &json!({"amount": 1100.0})), Ok(true));
    record.add_result("get_rent", Some("no rent"));
    assert_eq!(decide(&record, when, &json!({"amount": 1100})), Ok(true));
    // A text has no field, so the condition has no result.
    assert!(decide(&record, when, &json!({"amount": 7})).is_err());
}

#[test]
fn what_is_not_known_completely_is_an_error() {
    let when = "size(results('get_rent')) == 1 || size(calls('send_money')) == 1000";
    let mut large = record(when);
    large.add_result("get_rent", Some("1"));
    large.add_result("get_rent", None);
    assert!(decide(&large, "size(results('get_rent')) == 1", &json!({})).is_err());
    let mut many = record(when);
    for n in 0..=1_000 {
        assert_eq!(decide(&many, "size(calls('send_money')) == 0", &json!({})), Ok(n == 0));
        many.add_call("send_money", &id(n), &CanonicalJson::new(json!({})));
    }
    assert!(decide(&many, "size(calls('send_money')) == 1000", &json!({})).is_err());
}

#[test]
fn named_lists_are_read() {
    let when = "!(recipient.lowerAscii() in lists.payees)";
    let record = record(when);
    assert_eq!(decide(&record, when, &json!({"recipient": "Ada@own.com"})), Ok(false));
    assert_eq!(decide(&record, when, &json!({"recipient": "eve@own.com"})), Ok(true));
    assert!(decide(&record, "recipient in lists.payee", &json!({"recipient": "x"})).is_err());
}

#[test]
fn a_record_keeps_only_what_a_rule_reads() {
    let mut record = record("amount > 500");
    record.apply(&Event::UserMessage { text: "ada@own.com".into(), by: "ada".into(), nth: None });
    record.add_call("send_money", &id(1), &CanonicalJson::new(json!({})));
    record.add_result("get_payees", Some("{}"));
    assert!(record.tools.is_empty());
    assert!(!record.writings.contain("ada@own.com"));
}
