//! Reads the lines of a damaged or foreign log, with events in any order.
//!
//! The target first reads each line unchanged. Then it reads the line with a correct envelope, because the fuzzer cannot guess hashes. An
//! accepted line must be the same after it is written and read again, must fold, and must lead to a next step. At a line `...`, the
//! engine performs its own steps.
#![no_main]

use bloomery_engine::line::{Chain, SCHEMA_VERSION};
use bloomery_engine::next;
use bloomery_fuzz::Driven;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut driven = Driven::default();
    for line in text.lines() {
        if line == "..." {
            driven.advance();
            continue;
        }
        let _ = driven.chain().clone().read(line);
        let Some(repaired) = with_valid_envelope(line, driven.chain()) else { continue };
        if let Ok(entry) = driven.chain().clone().read(&repaired) {
            driven.record(entry.event, entry.stamp);
            let _ = next(driven.conversation());
        }
    }
    driven.advance();
});

/// Returns the line with the envelope that fits its position in the log.
fn with_valid_envelope(line: &str, chain: &Chain) -> Option<String> {
    let mut line: Map<String, Value> = serde_json::from_str(line).ok()?;
    let head = chain.position("").head;
    line.entry("time").or_insert_with(|| json!("2026-01-01T00:00:00Z"));
    line.entry("elapsedms").or_insert_with(|| json!(10));
    let envelope = [
        ("specversion", json!("1.0")),
        ("id", json!((chain.events() + 1).to_string())),
        ("source", json!("/namespaces/acme/skilljobs/refund/run-1")),
        ("schemaversion", json!(SCHEMA_VERSION)),
        ("seq", json!(chain.events() + 1)),
        ("prevhash", json!(head)),
    ];
    line.extend(envelope.map(|(name, value)| (name.to_owned(), value)));
    serde_json::to_string(&line).ok()
}
