//! The reply polisher (seed 002, section 4.5): an answer that passed, in the persona's voice, its content unchanged.
//!
//! What a comparison of texts cannot see, such as a lost "not", it does not see (`docs/architecture.md`).

mod items;
mod values;

use crate::ask::{DATA, Prompt, data};
use bloomery_crds::text::bounded;
use items::Items;
use serde_json::{Map, Value};

/// The longest text that is compared, in bytes; a longer answer stands as it is.
const MAX_TEXT: usize = 128 * 1024;

/// The longest sentence of a refusal, in bytes.
const MAX_SENTENCE: usize = 256;

/// The question to say the prose as the rendered persona would. The fields of the answer are not shown.
pub fn prompt(persona: &str, prose: &str) -> Prompt {
    Prompt {
        system: format!("{ROLE}\n\n# Persona\n{}\n\n{RULES}\n\n{DATA}", persona.trim()),
        user: format!("Format this answer:\n\n{}", data("answer", prose)),
        form: None,
    }
}

const ROLE: &str = "You are a reply formatter. You rewrite a checked answer in the persona's voice, so that it is \
    pleasant to read. You neither check nor change its content.";

const RULES: &str = "# Rules\n\
    - Keep every fact, condition and \"not\".\n\
    - Keep every number, URL, e-mail address, code span and name as written, and as often. Add none, and do not spell out numbers.\n\
    - Answer with the formatted text only: no introduction, no tags.";

/// Whether a polished text says the same as the text before, as far as numbers, URLs, e-mail addresses, code spans
/// and the values of the answer's fields tell: each must stand as often in both. Numbers are compared by their
/// value (`1,000` is `1000`, `2.50` is `2.5`), and those that only count the items of a list are left out.
///
/// # Errors
/// The first difference, as a sentence for people; also where a text is empty or too long to be compared.
pub fn keeps_content(before: &str, after: &str, fields: &Map<String, Value>) -> Result<(), String> {
    if after.trim().is_empty() {
        return Err("the polished answer is empty".to_owned());
    }
    for (text, which) in [(before, "the answer"), (after, "the polished answer")] {
        if text.len() > MAX_TEXT {
            return Err(format!("{which} has {} bytes, and at most {MAX_TEXT} are compared", text.len()));
        }
    }
    let difference = Items::of(before).difference(&Items::of(after));
    let difference = match difference {
        Some(difference) => Some(difference),
        None => values::difference(before, after, fields)?,
    };
    match difference {
        Some(Difference { what, before, after }) => Err(bounded(
            &format!("the {what} stood {} before, and stands {} in the polished answer", times(before), times(after)),
            MAX_SENTENCE,
        )),
        None => Ok(()),
    }
}

/// Something that stands in one text more often than in the other.
struct Difference {
    what: String,
    before: usize,
    after: usize,
}

fn times(n: usize) -> String {
    match n {
        0 => "nowhere".to_owned(),
        1 => "once".to_owned(),
        n => format!("{n} times"),
    }
}

#[cfg(test)]
mod tests;
