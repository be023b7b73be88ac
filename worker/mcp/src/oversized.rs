//! Replaces a message that is too large to be read by a small message. The beginning of the large message shows what it is.
//!
//! The answer to a call proves that the call has happened, even if its result cannot be read.

use bloomery_crds::text::bounded;
use rmcp::model::{CallToolResult, ErrorCode, RequestId};
use serde_json::json;

/// The field of `_meta` that marks a result as the stand-in for a result that was too large. The value describes the size.
const UNREAD: &str = "bloomery.dev/unread";

/// The number of bytes that are kept of the beginning of a large message, and of its end. They show what the message is.
pub(crate) const SHOWN_BYTES: usize = 4096;

/// The largest number of values in a large message, where an object counts as [`OBJECT_VALUES`]. Values take much more memory than their
/// text: 520,000 numbers took 73 MiB, and 110,000 objects of three fields 190 MiB. With this limit, a message takes up to 45 MiB. A
/// worker has 256 MiB by default, and makes up to four calls at a time.
const MAX_VALUES: usize = 256 * 1024;

/// The number of other values that take as much memory as an object.
const OBJECT_VALUES: usize = 8;

/// The size of a message whose values are not counted, in bytes.
const MAX_UNCOUNTED_BYTES: usize = 512 * 1024;

/// What the beginning of an answer shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The id of the request, if the id comes before the result.
    pub(crate) id: Option<RequestId>,
    /// Whether the answer is an error.
    is_error: bool,
}

/// Reads the beginning of a message. Returns `None` if the beginning does not show that the message is an answer.
pub(crate) fn read_beginning(beginning: &[u8]) -> Option<Answer> {
    let mut rest = skip_space(beginning).strip_prefix(b"{")?;
    let mut id = None;
    loop {
        let (name, after) = split_value(skip_space(rest))?;
        let value = skip_space(skip_space(after).strip_prefix(b":")?);
        match name {
            b"\"result\"" => return Some(Answer { id, is_error: false }),
            b"\"error\"" if !value.starts_with(b"null") => return Some(Answer { id, is_error: true }),
            b"\"method\"" => return None,
            _ => {}
        }
        let (value, after) = split_value(value)?;
        if name == b"\"id\"" {
            id = Some(serde_json::from_slice(value).ok()?);
        }
        rest = skip_space(after).strip_prefix(b",")?;
    }
}

/// Returns the id of an answer whose end is `end`, if the id comes after the result.
pub(crate) fn id_at_end(end: &[u8]) -> Option<RequestId> {
    #[derive(serde::Deserialize)]
    struct Rest {
        id: RequestId,
    }
    let text = String::from_utf8_lossy(end);
    let fields = text.rfind("\"id\"").and_then(|at| text.get(at..))?;
    // This only parses if the id is a field of the message itself.
    serde_json::from_str::<Rest>(&format!("{{{fields}")).ok().map(|rest| rest.id)
}

impl Answer {
    /// Returns the message that stands for the answer to the request `id`. `size` describes the answer, such as "has more than 5 bytes".
    pub(crate) fn stand_in(&self, id: &RequestId, size: &str) -> String {
        let message = if self.is_error {
            let error = json!({"code": ErrorCode::INTERNAL_ERROR.0, "message": format!("the error {size}, so it was not read")});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        } else {
            let result = json!({"resultType": "complete", "content": [], "_meta": {UNREAD: size}});
            json!({"jsonrpc": "2.0", "id": id, "result": result})
        };
        message.to_string()
    }
}

/// Returns the message that stands for an answer with so many values that it would take too much memory. Returns `None` if the message
/// can be read.
pub(crate) fn with_too_many_values(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Fields {
        id: RequestId,
        result: Option<serde::de::IgnoredAny>,
    }
    if text.len() <= MAX_UNCOUNTED_BYTES || count_values(text.as_bytes()) <= MAX_VALUES {
        return None;
    }
    let Fields { id, result } = serde_json::from_str(text).ok()?;
    let answer = Answer { id: None, is_error: false };
    result.map(|_| answer.stand_in(&id, &format!("has {} bytes and too many values", text.len())))
}

/// Returns the message that stands for the answer to the request `id` whose beginning is given. Returns `None` if the beginning does
/// not show an answer, or shows the answer to another request.
pub(crate) fn answer_to(id: &RequestId, beginning: &[u8], limit: usize) -> Option<String> {
    let answer = read_beginning(beginning)?;
    let is_of_another = answer.id.as_ref().is_some_and(|own| own.to_string() != id.to_string());
    if is_of_another { None } else { Some(answer.stand_in(id, &format!("has more than {limit} bytes"))) }
}

/// Returns the first `room` bytes of a chunk, and the end of an event. No character is cut.
pub(crate) fn cut_event(chunk: &[u8], room: usize) -> Vec<u8> {
    let is_inside = |at: &usize| chunk.get(*at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    let end = (0..=room.min(chunk.len())).rev().find(|at| !is_inside(at)).unwrap_or_default();
    let mut cut = chunk.get(..end).unwrap_or_default().to_vec();
    cut.extend_from_slice(b"\n\n");
    cut
}

/// Returns whether a text is whole JSON.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Returns the size of the answer that a result stands for. Returns `None` if the result comes from the server itself.
pub(crate) fn size_of_unread(result: &CallToolResult) -> Option<&str> {
    result.meta.as_ref()?.get(UNREAD)?.as_str()
}

/// Returns the text that tells the model about a result that was not read.
pub(crate) fn note(size: &str) -> String {
    format!(
        "[The call has happened: the server answered it. But the answer {}, so it was not read, and it is not known whether the tool \
         reports an error. Do not repeat the call if it has an effect. If it only reads, ask for less at a time.]",
        bounded(size, 128)
    )
}

/// Counts the values of a JSON text, approximately. An object counts as [`OBJECT_VALUES`].
fn count_values(text: &[u8]) -> usize {
    let (mut count, mut in_string, mut is_escaped) = (1, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b',' | b'[' if !in_string => count += 1,
            b'{' if !in_string => count += OBJECT_VALUES,
            _ => {}
        }
    }
    count
}

fn skip_space(text: &[u8]) -> &[u8] {
    text.trim_ascii_start()
}

/// Splits a JSON value from the text after it. Returns `None` if the value does not end in the text.
fn split_value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' if depth > 0 => depth -= 1,
            b',' | b':' | b'}' | b']' if depth == 0 => return Some(text.split_at(at)),
            _ => continue,
        }
        let is_whole = depth == 0 && !in_string && matches!(byte, b'"' | b']' | b'}');
        if is_whole && !is_escaped {
            return text.split_at_checked(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn answer(id: Option<i64>, is_error: bool) -> Answer {
        Answer { id: id.map(RequestId::Number), is_error }
    }

    #[rstest]
    #[case::typescript(r#"{"result":{"content":[{"ty"#, Some(answer(None, false)))]
    #[case::python(r#"{"jsonrpc":"2.0","id":3,"result":{"con"#, Some(answer(Some(3), false)))]
    #[case::spaces(" { \"id\" : 3 , \"result\" : ", Some(answer(Some(3), false)))]
    #[case::error(r#"{"id":3,"error":{"code":1,"mess"#, Some(answer(Some(3), true)))]
    #[case::no_error(r#"{"id":3,"error":null,"result":{"mess"#, Some(answer(Some(3), false)))]
    #[case::nested(r#"{"x":{"result":[1,{"a":"}\""}]},"id":3,"result":{"#, Some(answer(Some(3), false)))]
    #[case::notification(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"result":"#, None)]
    #[case::params_first(r#"{"params":{"result":"xxxxx"#, None)]
    #[case::an_id_of_another_type(r#"{"id":[3],"result":{"#, None)]
    #[case::text("result", None)]
    #[case::array(r#"[{"result":"#, None)]
    #[case::nothing("", None)]
    fn the_beginning_shows_an_answer(#[case] beginning: &str, #[case] expected: Option<Answer>) {
        assert_eq!(read_beginning(beginning.as_bytes()), expected);
    }

    #[rstest]
    #[case(r#"xx"}]},"jsonrpc":"2.0","id":3}"#, Some(3))]
    #[case(r#"xx"}]},"id":3,"jsonrpc":"2.0"}"#, Some(3))]
    #[case(r#"{"id":5}]}}"#, None)]
    #[case(r#"xx\"id\":5}"#, None)]
    #[case("xx", None)]
    fn the_end_may_show_the_id(#[case] end: &str, #[case] expected: Option<i64>) {
        assert_eq!(id_at_end(end.as_bytes()), expected.map(RequestId::Number));
    }

    #[rstest]
    #[case("abcd", 2, "ab\n\n")]
    #[case("a€b", 2, "a\n\n")]
    #[case("a€b", 4, "a€\n\n")]
    #[case("€", 0, "\n\n")]
    fn a_cut_event_has_whole_characters(#[case] chunk: &str, #[case] room: usize, #[case] expected: &str) {
        assert_eq!(cut_event(chunk.as_bytes(), room), expected.as_bytes());
    }

    #[test]
    fn a_large_answer_with_too_many_values_is_replaced() {
        let with = |content: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":3,"result":{{"content":[],"structuredContent":{content}}}}}"#)
        };
        let values = format!("[{}0]", "0,".repeat(MAX_VALUES));
        let text = with_too_many_values(&with(&values)).unwrap();
        assert!(text.contains("\"id\":3") && text.contains(UNREAD), "{text}");
        assert_eq!(with_too_many_values(&with(&format!("{:?}", values.repeat(2)))), None);
        assert_eq!(with_too_many_values(&with("[0,0]")), None);
        let objects = format!("[{}0]", r#"{"name":"a customer"},"#.repeat(MAX_VALUES / OBJECT_VALUES));
        assert!(with_too_many_values(&with(&objects)).is_some());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(\\{|\\}|\\[|\\]|\"|\\\\|\"id\"|\"result\"|:|,|7|null| ){0,30}") {
            let _ = (read_beginning(text.as_bytes()), id_at_end(text.as_bytes()), count_values(text.as_bytes()));
        }

        #[test]
        fn a_whole_value_is_split_as_serde_json_reads_it(text in "(\\{|\\}|\\[|\\]|\"a\"|\"\\\\\"\"|:|,|7|null){1,12}") {
            if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
                let followed = format!("{text},\"more\"");
                prop_assert_eq!(split_value(followed.as_bytes()), Some((text.as_bytes(), &b",\"more\""[..])));
            }
        }
    }
}
