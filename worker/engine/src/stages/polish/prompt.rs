//! The prompt of the reply polisher.

use crate::stage_prompt::{DATA, StagePrompt, data};

/// Returns the prompt to rewrite the prose of an answer in the persona's voice. It does not contain the fields of the answer.
pub(super) fn prompt(persona: &str, prose: &str) -> StagePrompt {
    StagePrompt {
        system: format!("{ROLE}\n\n# Persona\n{}\n\n{RULES}\n\n{DATA}", persona.trim()),
        user: format!("Format this answer:\n\n{}", data("answer", prose)),
        answer_schema: None,
    }
}

const ROLE: &str = "You are a reply formatter. You rewrite a checked answer in the persona's voice, so that it is \
    pleasant to read. You neither check nor change its content.";

const RULES: &str = "# Rules\n\
    - Keep every fact, condition and \"not\".\n\
    - Keep every number, URL, e-mail address, code span and name as written, and as often. Add none, and do not spell out numbers.\n\
    - Answer with the formatted text only: no introduction, no tags.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_prompt() {
        let prompt =
            prompt("Friendly and empathetic customer support specialist", "Refund of 12.50 for A-17 is on its way.");
        insta::assert_snapshot!(format!("{}\n=====\n{}", prompt.system, prompt.user));
    }
}
