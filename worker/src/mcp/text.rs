//! The result of a tool as text, which is all that a model reads.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// The longest text of a result, in bytes. The model sees an excerpt of a long one.
pub(super) const MAX_TEXT: usize = super::MAX_BODY;

/// The text of a result: its texts, else its structured content, and a note for whatever else it holds.
pub(super) fn of(result: &CallToolResult) -> String {
    let mut parts: Vec<String> = result.content.iter().map(part).collect();
    let has_text = result.content.iter().any(|block| block.as_text().is_some());
    if let Some(structured) = result.structured_content.as_ref().filter(|_| !has_text) {
        parts.insert(0, structured.to_string());
    }
    let text = parts.join("\n");
    if text.is_empty() { "[the result is empty]".to_owned() } else { cut(text) }
}

fn part(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => note("image", Some(&image.mime_type), decoded(&image.data)),
        ContentBlock::Audio(audio) => note("audio", Some(&audio.mime_type), decoded(&audio.data)),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                note(&format!("resource {uri}"), mime_type.as_deref(), text.len())
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                note(&format!("resource {uri}"), mime_type.as_deref(), decoded(blob))
            }
            _ => "[a resource]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => {
            let size = link.size.map(|size| format!(", {size} bytes")).unwrap_or_default();
            let kind = link.mime_type.as_ref().map(|kind| format!(", {kind}")).unwrap_or_default();
            format!("[link to the resource {}{kind}{size}]", link.uri)
        }
        _ => "[content of an unknown type]".to_owned(),
    }
}

fn note(what: &str, kind: Option<&str>, bytes: usize) -> String {
    format!("[{what}, {}, {bytes} bytes]", kind.unwrap_or("type unknown"))
}

/// How many bytes a text in base64 stands for.
fn decoded(base64: &str) -> usize {
    let digits = base64.trim_end_matches('=').len();
    digits / 4 * 3 + (digits % 4).saturating_sub(1)
}

/// Cuts a text to [`MAX_TEXT`], the note that says so included.
fn cut(mut text: String) -> String {
    let whole = text.len();
    if whole <= MAX_TEXT {
        return text;
    }
    let note = |kept: usize| format!("\n[cut: {} of {whole} bytes are left out]", whole - kept);
    // The note is longest where nothing is kept.
    let kept = text.floor_char_boundary(MAX_TEXT - note(0).len());
    text.truncate(kept);
    text.push_str(&note(kept));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn text(result: Value) -> String {
        of(&serde_json::from_value(result).unwrap())
    }

    #[rstest]
    #[case(json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), "a\nb")]
    #[case(json!({"content": [{"type": "text", "text": "ok"}], "structuredContent": {"x": 1}}), "ok")]
    #[case(json!({"content": [], "structuredContent": {"b": [1, 2], "a": null}}), r#"{"a":null,"b":[1,2]}"#)]
    #[case(json!({"content": []}), "[the result is empty]")]
    #[case(
        json!({"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}], "structuredContent": {"x": 1}}),
        "{\"x\":1}\n[image, image/png, 5 bytes]"
    )]
    #[case(
        json!({"content": [
            {"type": "text", "text": "see"},
            {"type": "audio", "data": "aGVsbG8x", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "12345"}},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "x/y", "blob": "aGk="}},
            {"type": "resource_link", "uri": "file:///c", "name": "c", "mimeType": "text/plain", "size": 9},
        ]}),
        "see\n[audio, audio/wav, 6 bytes]\n[resource file:///a, type unknown, 5 bytes]\n\
         [resource file:///b, x/y, 2 bytes]\n[link to the resource file:///c, text/plain, 9 bytes]"
    )]
    fn every_kind_of_content_has_a_text(#[case] result: Value, #[case] expected: &str) {
        assert_eq!(text(result), expected);
    }

    #[rstest]
    #[case("x", MAX_TEXT, MAX_TEXT)]
    #[case("x", MAX_TEXT + 1, MAX_TEXT)]
    #[case("€", 400_000, MAX_TEXT)]
    fn a_text_is_bounded_and_says_how_much_is_left_out(#[case] of: &str, #[case] times: usize, #[case] max: usize) {
        let whole = of.repeat(times);
        let bounded = text(json!({"content": [{"type": "text", "text": whole}]}));
        assert!(bounded.len() <= max && bounded.len() > max - 8, "{}", bounded.len());
        if whole.len() > max {
            let (kept, note) = bounded.split_once("\n[cut: ").unwrap();
            assert!(whole.starts_with(kept));
            assert_eq!(note, format!("{} of {} bytes are left out]", whole.len() - kept.len(), whole.len()));
        }
    }
}
