//! Checks the arguments of a model against the argument schema of an MCP server. The input is `<schema>`, `%%`, `<arguments>`.
#![no_main]

use bloomery_crds::canonical;
use bloomery_engine::rules::guardrails::Guardrails;
use bloomery_engine::schema::Schema;
use bloomery_fuzz::{arguments, parts};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((schema, call)) = parts(data) else { return };
    let Ok(schema) = canonical::parse(schema) else { return };
    let call = arguments(call);
    let compiled = Schema::compile(&schema);
    let fault = compiled.first_error(&call);
    assert!(fault.as_ref().map_or(0, String::len) <= 4096, "{fault:?}");
    assert!(compiled.compile_error().is_none() || fault.is_some(), "a call is accepted although its schema cannot be used");
    let rules = ["amount > 500".to_owned()];
    let guardrails = Guardrails::compile(&rules, &[], [("tool", &schema)]);
    let _ = guardrails.violations("tool", &call);
});
