//! Measures a decision of the pre-tool gate, from the text of the model to the ruling.

use crate::figures::{Figures, us};
use crate::player::{Player, call_answer, tool};
use crate::times::{in_turns, ratio, repeated};
use crate::{script, skill};
use bloomery_crds::Digest;
use bloomery_crds::canonical::{self, CanonicalJson};
use bloomery_crds::v1alpha1::{ApprovalRule, CallPolicy, SkillSpec, Verdict, When};
use bloomery_engine::schema::Schema;
use bloomery_engine::stages::calls::gate::rule;
use bloomery_engine::{Event, Step, next};
use serde_json::{Value, json};
use std::time::Duration;

/// The tool that is called.
const TOOL: &str = "settle";

/// The length of its arguments, in bytes.
const ARGUMENT_BYTES: usize = 4096;

/// The length of the goal, in bytes.
const GOAL_BYTES: usize = 4096;

/// The number of other tools.
const OTHERS: usize = 32;

/// The number of measured decisions.
const TIMES: usize = 2_000;

/// The largest ratio of a decision with 100 rules to the libraries that read the arguments, check their schema and compute their digest.
const MAX_RATIO: f64 = 1.5;

/// Measures decisions with few rules and with many.
pub(crate) fn measure(figures: &mut Figures) {
    let (decision, libraries) = measure_decision(figures, &skill_with((100, 10)), "100 rules and 10 on the tool", 20.0);
    figures.report("gate", "reading, schema and digest alone (serde_json, jsonschema, sha2)", us(libraries), "us");
    figures.require("gate", "decision to libraries, 100 rules", (ratio(decision, libraries), "x"), MAX_RATIO);
    measure_libraries(figures);
    measure_decision(figures, &skill_with((1_000, 50)), "1000 rules and 50 on the tool", 100.0);
    measure_decision(
        figures,
        &with_sources((100, 10)),
        "100 rules and 10 on the tool that read the conversation",
        50.0,
    );
}

/// Measures each library without the engine, with the same arguments.
fn measure_libraries(figures: &mut Figures) {
    let arguments = arguments();
    let text = arguments.to_string();
    let schema = Schema::compile(&schema());
    let mut report = |what: &str, time| figures.report("gate", what, us(time), "us");
    report("reading alone (serde_json)", repeated(TIMES, || serde_json::from_str::<Value>(&text)));
    report("reading alone (canonical)", repeated(TIMES, || canonical::parse(&text)));
    report("writing alone (canonical)", repeated(TIMES, || canonical::to_string(&arguments)));
    report("reading, writing and digest (canonical)", repeated(TIMES, || CanonicalJson::parse(&text)));
    report("digest alone (sha2)", repeated(TIMES, || Digest::of_bytes(text.as_bytes())));
    report("schema alone (jsonschema)", repeated(TIMES, || schema.first_error(&arguments)));
}

/// Measures a decision by the rules of a Skill. `rules` is their number. The goal is a time of at most `max_us`. Returns the time of the
/// decision, and of the libraries alone that each decision needs.
fn measure_decision(figures: &mut Figures, skill: &SkillSpec, rules: &str, max_us: f64) -> (Duration, Duration) {
    let arguments = arguments();
    let text = arguments.to_string();
    let schema_of_tool = Schema::compile(&schema());
    let use_libraries = || {
        let read: Value = serde_json::from_str(&text).unwrap();
        (schema_of_tool.first_error(&read).is_none(), Digest::of_bytes(text.as_bytes()))
    };
    let mut run = skill::run(skill.clone());
    run.goal = format!("Settle the order A-17 of ada@example.org.\n{}", script::result(GOAL_BYTES));
    let mut player = Player::new(run, 100);
    player.listed.push(tool(TOOL, schema()));
    player.listed.extend((0..OTHERS).map(|n| tool(&format!("other_{n}"), json!({"type": "object"}))));
    player.fixed_answer = Some(call_answer(script::call_message(0), "call_0", TOOL, &arguments));
    player.play_to_answer();

    // The first step reads the arguments and computes their canonical form and digest. The second step rules.
    let (requested, libraries) = in_turns(TIMES, || next(&player.conversation), use_libraries);
    let Step::Record(events) = next(&player.conversation) else { panic!("the call was not requested") };
    assert!(matches!(events.as_slice(), [Event::ToolRequested { .. }]), "{events:?}");
    for event in events {
        player.record(event);
    }
    let (gated, libraries_again) = in_turns(TIMES, || next(&player.conversation), use_libraries);
    let Step::Record(events) = next(&player.conversation) else { panic!("the call was not ruled on") };
    assert!(matches!(events.as_slice(), [Event::ToolRuled { verdict: Verdict::Allow, .. }]), "{events:?}");
    let call = &player.conversation.calls()[0];
    let gate = player.conversation.pre_tool_gate();
    let ruling = repeated(TIMES, || rule(call, &gate));

    let name = |what: &str| format!("{what}, {rules}");
    figures.report("gate", name("arguments and digest"), us(requested), "us");
    figures.report("gate", name("ruling"), us(ruling), "us");
    figures.require("gate", name("decision"), (us(requested + gated), "us"), max_us);
    (requested + gated, (libraries + libraries_again) / 2)
}

/// Returns the Skill with these numbers of rules, and the called tool.
fn skill_with((in_skill, on_tool): (usize, usize)) -> SkillSpec {
    let mut skill = skill::skill();
    let policy = skill.policy.as_mut().unwrap();
    let guardrails = policy.guardrails.as_mut().unwrap();
    (guardrails.never, guardrails.always) = (Vec::new(), Vec::new());
    for n in 0..in_skill {
        match n % 10 {
            0..=3 => guardrails.never.push(format!("field_{n} > 1000")),
            4 => guardrails.never.push(format!(
                "{} > {}",
                ["amount", "priority", "price", "quantity"][n / 10 % 4],
                1_000 + n
            )),
            5 | 6 => guardrails.never.push(format!("Never use other_{}", n % OTHERS)),
            7 => guardrails.always.push(format!("other_{} requires approval", n % OTHERS)),
            _ => guardrails.always.push(format!("Always be kind to customer number {n}")),
        }
    }
    let condition = Some("amount > 0.0 && amount < 500.0 && order_id.startsWith(\"A-\")".to_owned());
    let call_policy = CallPolicy { allowed: Some(When::Conditional), requires_approval: None, condition, reason: None };
    skill.tools.push(serde_json::from_value(json!({ "name": TOOL })).unwrap());
    skill.tools.last_mut().unwrap().policy = Some(call_policy);
    policy.approvals = (1..on_tool).map(approval).collect();
    skill
}

/// Returns the Skill of [`skill_with`] whose rules on the tool read the conversation.
fn with_sources(rules: (usize, usize)) -> SkillSpec {
    let mut skill = skill_with(rules);
    let policy = skill.policy.as_mut().unwrap();
    policy.lists = [("currencies".to_owned(), vec!["USD".to_owned(), "EUR".to_owned()])].into();
    for (n, rule) in policy.approvals.iter_mut().enumerate() {
        let when = match n % 4 {
            0 => "!fromUser(order_id) && !fromTool(order_id, 'other_1')",
            1 => "!fromUser(customer.email) || domain(customer.email) == 'evil.com'",
            2 => "!(currency in lists.currencies) || order_id.matches('^B-[0-9]+$')",
            _ => "size(calls('settle')) >= 3 || results('other_2').exists(r, r == order_id)",
        };
        rule.when = Some(when.to_owned());
    }
    skill
}

fn approval(n: usize) -> ApprovalRule {
    let when = match n % 5 {
        0 => format!("amount > {}.0", 400 + n),
        1 => format!("size(items) > {}", 40 + n),
        2 => format!("currency != \"EUR\" && currency != \"USD\" && amount > {n}.5"),
        3 => format!("has(args.priority) && priority > {}", 5 + n),
        _ => format!("items.exists(line, line.quantity > {})", 100 + n),
    };
    ApprovalRule { tool_id: TOOL.into(), when: Some(when), reason: None, action: None, approver: Some("lead".into()) }
}

fn schema() -> Value {
    let line = json!({
        "type": "object", "required": ["sku", "quantity", "price"], "additionalProperties": false,
        "properties": {
            "sku": {"type": "string", "pattern": "^SKU-[0-9]{5}$"},
            "title": {"type": "string", "maxLength": 200},
            "quantity": {"type": "integer", "minimum": 1, "maximum": 99},
            "price": {"type": "number", "minimum": 0},
        },
    });
    json!({
        "type": "object", "required": ["order_id", "amount", "currency", "items"], "additionalProperties": false,
        "properties": {
            "order_id": {"type": "string", "pattern": "^A-[0-9]+$"},
            "amount": {"type": "number", "minimum": 0},
            "currency": {"enum": ["EUR", "USD", "GBP"]},
            "priority": {"type": "integer"},
            "customer": {
                "type": "object", "required": ["id"],
                "properties": {"id": {"type": "string"}, "email": {"type": "string"}},
            },
            "note": {"type": "string", "maxLength": 4096},
            "items": {"type": "array", "maxItems": 100, "items": line},
        },
    })
}

/// Returns an order of 24 lines with a note, which has 4 KiB as text.
fn arguments() -> Value {
    let items: Vec<Value> = (0..24)
        .map(|n| json!({"sku": format!("SKU-{n:05}"), "title": "A cup of blue porcelain", "quantity": n % 5 + 1, "price": 12.99}))
        .collect();
    let mut arguments = json!({
        "order_id": "A-17", "amount": 312.5, "currency": "EUR", "priority": 2, "note": "", "items": items,
        "customer": {"id": "c-4711", "name": "Ada Lovelace", "email": "ada@example.org", "vip": true},
    });
    let missing = ARGUMENT_BYTES - arguments.to_string().len();
    arguments["note"] = script::result(missing)[..missing].into();
    assert_eq!(arguments.to_string().len(), ARGUMENT_BYTES);
    arguments
}
