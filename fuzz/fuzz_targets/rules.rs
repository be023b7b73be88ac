//! Reads the texts of a Skill's author: guardrails, conditions and personas. The second part of the input is the arguments of a
//! call.
//!
//! The target runs in a thread with a small stack, so that deep recursion is a finding.
#![no_main]

use bloomery_crds::persona;
use bloomery_crds::v1alpha1::{ResourceDeclaration, Verdict};
use bloomery_engine::rules::guardrails::Guardrails;
use bloomery_engine::rules::guardrail::{RuleList, compile};
use bloomery_engine::condition::Condition;
use bloomery_engine::lint;
use bloomery_fuzz::{arguments, listed, parts, skill};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The size of the thread's stack, in bytes. The worker, the operator and `bloomery lint` have larger stacks.
const STACK_BYTES: usize = 256 * 1024;

fuzz_target!(|data: &[u8]| {
    let Some((text, call)) = parts(data) else { return };
    let read = || {
        let arguments = arguments(call);
        check_guardrail(text, &arguments);
        check_condition(text, &arguments);
        check_persona(text);
        check_lint(text);
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, read);
        thread.expect("a thread can be started").join().expect("nothing panics");
    });
});

/// Checks that a rule is compiled or stays text, and that a compiled rule never has the verdict Allow and always gives the same result.
fn check_guardrail(text: &str, arguments: &Value) {
    let tools = listed();
    let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    for list in [RuleList::Never, RuleList::Always] {
        let rule = compile(text, list, &names);
        assert!(rule.stays_text || !rule.effects.is_empty(), "the rule is lost");
    }
    let rules: Vec<String> = text.lines().map(str::to_owned).collect();
    let catalogue = || tools.iter().map(|tool| (tool.name.as_str(), &tool.input_schema));
    let guardrails = Guardrails::compile(&rules, &rules, catalogue());
    for name in names {
        let violations = guardrails.violations(name, arguments);
        assert!(violations.iter().all(|violation| violation.verdict != Verdict::Allow));
        assert_eq!(violations, guardrails.violations(name, arguments));
    }
}

/// Checks that a condition beyond the limits is not compiled, and that a compiled one always gives the same result.
fn check_condition(text: &str, arguments: &Value) {
    let checked = bloomery_cel::check(text);
    let compiled = Condition::compile(text);
    assert!(checked.is_ok() || compiled.is_err(), "a condition beyond the limits was compiled");
    let Ok(condition) = compiled else { return };
    let answer = condition.evaluate(arguments, &[]);
    assert_eq!(answer, condition.evaluate(arguments, &[]));
    let _ = condition.arguments();
}

/// Checks that an accepted template can be rendered if all resources are bound, and that the result is bounded.
fn check_persona(text: &str) {
    let declared: Vec<ResourceDeclaration> = serde_json::from_value(json!([
        {"name": "codebase", "type": "filesystem", "required": true}, {"name": "docs", "type": "api_endpoint"},
        {"name": "token", "type": "credential"},
    ]))
    .expect("these are declarations");
    let all = declared.iter().map(|resource| (resource.name.clone(), "{{x}}".to_owned()));
    let rendered = persona::render(text, &all.collect());
    if persona::check(text, &declared).is_ok() {
        assert!(rendered.is_ok(), "{rendered:?}");
    }
    assert!(rendered.map_or(0, |text| text.len()) <= persona::MAX_TEMPLATE_BYTES + persona::MAX_TAGS * persona::MAX_VALUE_BYTES);
    let _ = persona::render(text, &BTreeMap::new());
}

/// Checks that each finding of lint is short.
fn check_lint(text: &str) {
    let mut skill = skill();
    let words = json!({
        "guardrails": {"never": [text], "always": [text]},
        "tools": {"allowed": [text], "blocked": [text]},
        "approvals": [{"toolId": "process_refund", "when": text}],
        "workflows": [{
            "name": text, "steps": [text, "process_refund"], "required": true, "expect": [{"step": "process_refund", "condition": text}],
        }],
        "lists": {text: [text]},
    });
    skill.policy = serde_json::from_value(words).ok();
    for finding in lint::skill(&skill, []) {
        assert!(finding.message.len() <= 512, "{finding:?}");
    }
}
