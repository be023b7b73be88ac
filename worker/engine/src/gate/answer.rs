//! An answer's prose and its fields, kept apart from the moment that they are read.

use bloomery_crds::canonical;
use serde_json::{Map, Value};

/// Why an answer has no fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormError {
    /// There is no fenced JSON block.
    NoBlock,
    /// There are several, and nobody knows which one counts.
    SeveralBlocks(usize),
    /// The block is not a JSON object that everybody reads alike.
    Malformed(String),
}

impl FormError {
    /// What the model should do about it.
    pub fn advice(&self) -> String {
        match self {
            Self::NoBlock => "the answer has no ```json block".to_owned(),
            Self::SeveralBlocks(n) => format!("the answer has {n} ```json blocks: exactly one is needed"),
            Self::Malformed(why) => format!("the ```json block cannot be read: {why}"),
        }
    }
}

/// Reads the one fenced JSON block of an answer; the rest is prose.
pub fn split(text: &str) -> Result<(String, Map<String, Value>), FormError> {
    let blocks = blocks(text);
    match blocks.as_slice() {
        [] => Err(FormError::NoBlock),
        [block] => {
            let prose = format!("{}{}", block.before, block.after);
            let fields = object(block.content).map_err(FormError::Malformed)?;
            Ok((prose.trim().to_owned(), fields))
        }
        several => Err(FormError::SeveralBlocks(several.len())),
    }
}

/// The one JSON object that a text is: its keys appear once, its numbers are exact, and a line of the log takes it.
pub(crate) fn object(text: &str) -> Result<Map<String, Value>, String> {
    match canonical::parse(text.trim()) {
        Ok(value) if canonical::depth(&value) > canonical::MAX_DEPTH => {
            Err(format!("it is nested more than {} deep", canonical::MAX_DEPTH))
        }
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("it is not an object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

struct Block<'a> {
    before: &'a str,
    content: &'a str,
    after: &'a str,
}

/// Every block that a line of ```` ```json ```` opens and a line of ```` ``` ```` closes. One that is not
/// closed runs to the end, as in `CommonMark`.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut open: Option<(usize, usize, bool)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let fence = line.trim();
        match open {
            None => {
                if let Some(info) = fence.strip_prefix("```") {
                    open = Some((start, at, info.trim().eq_ignore_ascii_case("json")));
                }
            }
            Some((from, content, is_json)) if fence == "```" => {
                if is_json {
                    found.push(block(text, from, content, start, at));
                }
                open = None;
            }
            Some(_) => {}
        }
    }
    if let Some((from, content, true)) = open {
        found.push(block(text, from, content, text.len(), text.len()));
    }
    found
}

fn block(text: &str, from: usize, content: usize, end: usize, after: usize) -> Block<'_> {
    Block {
        before: text.get(..from).unwrap_or_default(),
        content: text.get(content..end).unwrap_or_default(),
        after: text.get(after..).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn prose_and_fields_are_kept_apart() {
        let (prose, fields) =
            split("Your refund is on its way.\n```json\n{\"order_id\": \"A-17\"}\n```\nAnything else?").unwrap();
        assert_eq!(prose, "Your refund is on its way.\nAnything else?");
        assert_eq!(Value::Object(fields), json!({"order_id": "A-17"}));
    }

    #[test]
    fn other_code_blocks_are_prose() {
        let (prose, fields) = split("```sh\n```json is a word here\n```\n```JSON\n{}\n```").unwrap();
        assert!(prose.starts_with("```sh"), "{prose}");
        assert!(fields.is_empty());
    }

    #[test]
    fn what_is_ambiguous_is_refused() {
        assert_eq!(split("plain"), Err(FormError::NoBlock));
        assert_eq!(split("```json\n{}\n```\n```json\n{}\n```"), Err(FormError::SeveralBlocks(2)));
        assert!(matches!(split("```json\n[1]\n```"), Err(FormError::Malformed(_))));
        assert!(matches!(split("```json\n{\"a\":1,\"a\":2}\n```"), Err(FormError::Malformed(_))));
        assert!(matches!(split("```json\n{\"a\":"), Err(FormError::Malformed(_))));
        let deep = format!("```json\n{{\"a\":{}{}}}\n```", "[".repeat(40), "]".repeat(40));
        assert!(matches!(split(&deep), Err(FormError::Malformed(_))));
    }

    proptest! {
        #[test]
        fn no_answer_panics(text in "(```|```json|\n|\\{|\\}|[a-z \"]|é){0,40}") {
            let _ = split(&text);
        }
    }
}
