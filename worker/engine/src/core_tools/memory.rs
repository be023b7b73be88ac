//! The memory bank of the skill directory: notes that the Jobs of a Skill share.

use super::definition::{ToolEffect, core_tool};
use crate::run::Run;
use crate::tool::CatalogueTool;
pub use bloomery_crds::core_tools::{MEMORY_READ, MEMORY_WRITE};
use bloomery_crds::v1alpha1::BankUse;
use serde_json::{Value, json};

/// Returns the tools that the Skill's use of the bank allows. A Skill that may only read gets no tool as long as there is no note.
pub(super) fn offered(run: &Run) -> Vec<CatalogueTool> {
    match run.skill.bank() {
        BankUse::Read if run.has_notes => vec![memory_read()],
        BankUse::Off | BankUse::Read => Vec::new(),
        BankUse::Write => vec![memory_read(), memory_write()],
    }
}

pub(super) fn memory_read() -> CatalogueTool {
    core_tool(
        MEMORY_READ,
        "Reads a note of the memory bank, which the Jobs of this Skill share. The result ends with the note's hash.",
        json!({
            "type": "object", "required": ["file"], "additionalProperties": false,
            "properties": {"file": file_schema()},
        }),
        ToolEffect::None,
    )
}

pub(super) fn memory_write() -> CatalogueTool {
    core_tool(
        MEMORY_WRITE,
        "Replaces a whole note of the memory bank for later Jobs of this Skill, which read the core notes when they \
         begin. Write when something has changed that they must know, in about 300 words for each core note. Put \
         longer text into details/NAME.md. If another Job has changed the note, nothing is written: read the note \
         again.",
        json!({
            "type": "object", "required": ["file", "content", "expect"], "additionalProperties": false,
            "properties": {
                "file": file_schema(),
                "content": {"type": "string", "description": "All of the note, in Markdown."},
                "expect": {"type": "string", "minLength": 1, "maxLength": 64, "description": "The hash of the note as you read it, or none if the note does not exist."},
            },
        }),
        ToolEffect::Idempotent,
    )
}

fn file_schema() -> Value {
    json!({
        "type": "string", "maxLength": 80,
        "description": "projectbrief.md, productContext.md, systemPatterns.md, techContext.md, activeContext.md, progress.md, or details/NAME.md.",
    })
}
