//! The fenced JSON block of an answer, which contains its fields. The rest of the answer is prose.

use bloomery_crds::canonical;
use serde_json::{Map, Value};

/// The reason why an answer has no fields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no fenced JSON block.
    #[error("the answer has no ```json block")]
    NoBlock,
    /// There are several blocks.
    #[error("the answer has {0} ```json blocks: exactly one is needed")]
    SeveralBlocks(usize),
    /// The block is not one unambiguous JSON object.
    #[error("the ```json block cannot be read: {0}")]
    Malformed(#[from] Malformed),
}

/// The reason why a text is not one unambiguous JSON object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The JSON is invalid, repeats a key, or has a number that an `i64`, `u64` or `f64` cannot hold without loss.
    #[error(transparent)]
    Json(#[from] canonical::Error),
    /// The object is nested too deep for a line of the log.
    #[error("it is nested more than {} deep", canonical::MAX_DEPTH)]
    TooDeep,
    /// The text is JSON, but not an object.
    #[error("it is not an object")]
    NotAnObject,
}

/// Splits an answer into its prose and the fields of its one fenced JSON block.
pub fn split(text: &str) -> Result<(String, Map<String, Value>), Error> {
    let blocks = blocks(text);
    match blocks.as_slice() {
        [] => Err(Error::NoBlock),
        [block] => {
            let prose = format!("{}{}", block.before, block.after);
            let fields = parse_object(block.content)?;
            Ok((prose.trim().to_owned(), fields))
        }
        several => Err(Error::SeveralBlocks(several.len())),
    }
}

/// Parses a text that is one JSON object. Keys appear once, no number loses precision, and the depth fits into a line of the log.
pub(crate) fn parse_object(text: &str) -> Result<Map<String, Value>, Malformed> {
    match canonical::parse(text.trim())? {
        value if canonical::depth(&value) > canonical::MAX_DEPTH => Err(Malformed::TooDeep),
        Value::Object(fields) => Ok(fields),
        _ => Err(Malformed::NotAnObject),
    }
}

/// A block, with the text around it. The fences are left out.
struct Block<'a> {
    before: &'a str,
    content: &'a str,
    after: &'a str,
}

/// Returns every block between a line of ```` ```json ```` and a line of ```` ``` ````. A block without closing line ends
/// at the end of the text, as in `CommonMark`.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    // The start of the open block, the start of its content, and whether it is JSON.
    let mut open: Option<(usize, usize, bool)> = None;
    let mut line_end = 0;
    for line in text.split_inclusive('\n') {
        let line_start = line_end;
        line_end += line.len();
        let fence = line.trim();
        match open {
            None => {
                if let Some(info) = fence.strip_prefix("```") {
                    open = Some((line_start, line_end, info.trim().eq_ignore_ascii_case("json")));
                }
            }
            Some((start, content, is_json)) if fence == "```" => {
                if is_json {
                    blocks.push(block(text, start, content, line_start, line_end));
                }
                open = None;
            }
            Some(_) => {}
        }
    }
    if let Some((start, content, true)) = open {
        blocks.push(block(text, start, content, text.len(), text.len()));
    }
    blocks
}

/// Builds a block from four offsets in `text`: the opening fence, the content, the end of the content, and the text after the block.
fn block(text: &str, start: usize, content: usize, content_end: usize, after: usize) -> Block<'_> {
    Block {
        before: text.get(..start).unwrap_or_default(),
        content: text.get(content..content_end).unwrap_or_default(),
        after: text.get(after..).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn an_answer_is_split_into_prose_and_fields() {
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
    fn an_ambiguous_answer_is_refused() {
        assert_eq!(split("plain"), Err(Error::NoBlock));
        assert_eq!(split("```json\n{}\n```\n```json\n{}\n```"), Err(Error::SeveralBlocks(2)));
        assert!(matches!(split("```json\n[1]\n```"), Err(Error::Malformed(_))));
        assert!(matches!(split("```json\n{\"a\":1,\"a\":2}\n```"), Err(Error::Malformed(_))));
        assert!(matches!(split("```json\n{\"a\":"), Err(Error::Malformed(_))));
        let deep = format!("```json\n{{\"a\":{}{}}}\n```", "[".repeat(40), "]".repeat(40));
        assert!(matches!(split(&deep), Err(Error::Malformed(_))));
    }

    proptest! {
        #[test]
        fn no_answer_panics(text in "(```|```json|\n|\\{|\\}|[a-z \"]|é){0,40}") {
            let _ = split(&text);
        }
    }
}
