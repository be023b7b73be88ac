//! `ask_user`: what only the person knows.

use super::definition::{Effect, core_tool};
use crate::run::Run;
use crate::tool::CatalogueTool;
use serde_json::json;

/// Asks the person; its answer is the result.
pub const ASK_USER: &str = "ask_user";

/// The longest question of a model, in characters, and the most that it offers to choose from.
const MAX_TEXT: usize = 1000;
const MAX_CHOICES: usize = 8;
const MAX_CHOICE: usize = 128;

/// It is offered where there is somebody to ask.
pub(super) fn offered(run: &Run) -> Vec<CatalogueTool> {
    run.people.then(ask_user).into_iter().collect()
}

fn ask_user() -> CatalogueTool {
    core_tool(
        ASK_USER,
        "Asks the user a question and returns the answer in the user's own words. Ask only for what you cannot find \
         out with other tools. Several questions in one answer are asked together.",
        json!({
            "type": "object", "required": ["text"], "additionalProperties": false,
            "properties": {
                "text": {
                    "type": "string", "minLength": 1, "maxLength": MAX_TEXT,
                    "description": "The complete question: the user does not see your other messages.",
                },
                "choices": {
                    "type": "array", "maxItems": MAX_CHOICES, "description": "Answers to choose from, if any.",
                    "items": {"type": "string", "minLength": 1, "maxLength": MAX_CHOICE},
                },
            },
        }),
        Effect::None,
    )
}
