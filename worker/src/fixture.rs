//! What the tests of this crate share.

pub(crate) mod desk;
#[path = "../journal/src/fixture/failing.rs"]
pub(crate) mod failing;
#[path = "../journal/src/fixture/faulty.rs"]
pub(crate) mod faulty;
pub(crate) mod frozen;
pub(crate) mod model_server;
pub(crate) mod operator;
pub(crate) mod shop;
pub(crate) mod sound;
pub(crate) mod stand;
pub(crate) mod tls;
pub(crate) mod twelve_steps;
pub(crate) mod volatile;

use bloomery_crds::Digest;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_engine::run::Run;
use serde_json::json;

/// A run of a Skill that tracks and refunds orders.
pub(crate) fn run() -> Run {
    Run {
        run_key: "k-1".into(),
        skill_name: "cs-tier-1".into(),
        skill: skill(),
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

pub(crate) fn skill() -> bloomery_crds::v1alpha1::SkillSpec {
    serde_json::from_value(json!({
        "problem": { "statement": "Help customers with their orders" },
        "tools": [{ "name": "lookup", "readOnly": true }, { "name": "verify", "readOnly": true }],
        "outputContract": { "requiredFields": ["status"] },
    }))
    .unwrap()
}

/// The conversation's name in its log.
pub(crate) const SOURCE: &str = "/namespaces/acme/skilljobs/refund/k-1";
