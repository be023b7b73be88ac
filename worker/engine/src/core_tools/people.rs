//! `ask_user`: asks people a question.

use super::definition::{ToolEffect, core_tool};
use crate::run::Run;
use crate::tool::CatalogueTool;
pub use bloomery_crds::core_tools::ASK_USER;
use serde_json::json;

/// The longest question, in characters.
const MAX_TEXT_CHARS: usize = 1000;

/// The most choices of a question.
const MAX_CHOICES: usize = 8;

/// The longest choice, in characters.
const MAX_CHOICE_CHARS: usize = 128;

/// Returns `ask_user` if people can answer questions.
pub(super) fn offered(run: &Run) -> Vec<CatalogueTool> {
    run.people.then(ask_user).into_iter().collect()
}

pub(super) fn ask_user() -> CatalogueTool {
    core_tool(
        ASK_USER,
        "Asks the user a question and returns the answer in the user's own words. Ask only for what you cannot find \
         out with other tools. Several questions in one answer are asked together.",
        json!({
            "type": "object", "required": ["text"], "additionalProperties": false,
            "properties": {
                "text": {
                    "type": "string", "minLength": 1, "maxLength": MAX_TEXT_CHARS,
                    "description": "The complete question: the user does not see your other messages.",
                },
                "choices": {
                    "type": "array", "maxItems": MAX_CHOICES, "description": "Answers to choose from, if any.",
                    "items": {"type": "string", "minLength": 1, "maxLength": MAX_CHOICE_CHARS},
                },
            },
        }),
        ToolEffect::None,
    )
}
