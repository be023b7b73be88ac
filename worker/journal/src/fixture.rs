//! What the tests of this crate share. The tests of bloomery-worker include `failing` and `faulty`.

pub(crate) mod failing;
#[allow(dead_code, reason = "the tests of bloomery-worker use the rest")]
pub(crate) mod faulty;

use bloomery_crds::Digest;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_engine::run::Run;
use serde_json::json;

/// A run of a Skill that tracks and refunds orders.
pub(crate) fn run() -> Run {
    let skill = json!({
        "problem": { "statement": "Help customers with their orders" },
        "tools": [{ "name": "lookup", "readOnly": true }, { "name": "verify", "readOnly": true }],
        "outputContract": { "requiredFields": ["status"] },
    });
    Run {
        run_key: "k-1".into(),
        skill_name: "cs-tier-1".into(),
        skill: serde_json::from_value(skill).unwrap(),
        revision: Digest::of_bytes(b"revision"),
        goal: "Refund order A-17".into(),
        limits: EffectiveLimits::DEFAULT,
        resources: Vec::new(),
        context_window: 128_000,
        continues: None,
        people: false,
        has_notes: false,
        max_output: 4_096,
    }
}

/// The conversation's name in its log.
pub(crate) const SOURCE: &str = "/namespaces/acme/skilljobs/refund/k-1";
