//! Shared code of the fuzz targets: a Skill, a Job of it, and a driver of conversations.

mod drive;

pub use drive::Driven;

use bloomery_crds::Digest;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::v1alpha1::SkillSpec;
use bloomery_engine::decisions::Decisions;
use bloomery_engine::run::Run;
use bloomery_engine::tool::ListedTool;
use bloomery_skills::{ImportOptions, import, yaml};
use serde_json::{Value, json};
use std::sync::LazyLock;

static SKILL: LazyLock<SkillSpec> = LazyLock::new(|| {
    let read = yaml::read(include_bytes!("../../skills/tests/seeds/002-complete.yaml"));
    let options = ImportOptions { name: Some("cs-tier-1".to_owned()), ..ImportOptions::default() };
    let skill = read.documents.first().and_then(|document| import(document, &options).skill);
    skill.expect("the file is a valid Skill").spec
});

/// Returns the Skill in `skills/tests/seeds/002-complete.yaml`.
pub fn skill() -> SkillSpec {
    SKILL.clone()
}

/// Returns the engine's input for a Job of that Skill.
pub fn run() -> Run {
    Run {
        run_key: "run-1".to_owned(),
        job: None,
        skill_name: "cs-tier-1".to_owned(),
        skill: skill(),
        revision: Digest::of_bytes(b"revision"),
        goal: "Refund order A-17, it arrived broken".to_owned(),
        limits: EffectiveLimits::DEFAULT,
        resources: Vec::new(),
        context_window: 16_000,
        pins: None,
        tenant_tools: Vec::new(),
        allowed_effects: None,
        people: true,
        decisions: Decisions::Log,
        depth: 1,
        can_have_children: false,
        has_notes: true,
        continues: None,
        max_output: 4_096,
    }
}

/// Returns the tools that the Skill's MCP server lists.
pub fn listed() -> Vec<ListedTool> {
    let tool = |name: &str| ListedTool {
        name: name.to_owned(),
        description: format!("The tool {name}"),
        input_schema: json!({
            "type": "object", "required": ["order_id"],
            "properties": {"order_id": {"type": "string"}, "amount": {"type": "number"}},
        }),
        ..ListedTool::default()
    };
    ["verify_identity", "check_eligibility", "process_refund", "deleteFile"].map(tool).to_vec()
}

/// Splits an input at its first line `%%`. Without such a line, the second part is empty. Returns `None` if the input is not UTF-8.
pub fn parts(data: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(data).ok()?;
    Some(text.split_once("\n%%\n").unwrap_or((text, "")))
}

/// Parses the arguments of a call. If the text is invalid, returns the arguments of a large refund.
pub fn arguments(text: &str) -> Value {
    match bloomery_crds::canonical::parse(text) {
        Ok(value) => value,
        Err(_) => json!({"order_id": "A-17", "amount": 600, "items": [{"price": 1.5}], "tags": ["late"], "a-b": null}),
    }
}
