//! Converts the result of a tool to text for the model. Binary content is kept separately, and the text refers to it by its digest.

use crate::binary_text;
use crate::limits::MAX_ANSWER_BYTES;
use crate::structured;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bloomery_crds::Digest;
use bloomery_crds::text::bounded;
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};

/// The longest text of a result, in bytes. A longer text is cut, and the model sees an excerpt of a long text anyway.
pub(crate) const MAX_TEXT_BYTES: usize = MAX_ANSWER_BYTES;

/// The largest number of binary items of one result that are kept.
const MAX_MEDIA: usize = 16;

/// The longest URI, name or MIME type in a note, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// The content of a result.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    /// The texts, the structured content, and a note for each other item.
    pub(crate) text: String,
    /// The binary items. The note of each item holds its digest.
    pub(crate) media: Vec<Vec<u8>>,
}

/// Reads a result. Information that the content and the structured content both have is in the text once.
pub(crate) fn read(result: &CallToolResult) -> Content {
    let mut content = Content::default();
    let blocks = &result.content;
    let structured = result.structured_content.as_ref();
    // Without structured content, conditions read the text.
    let binary = |block: &ContentBlock| structured.and_then(|_| binary_text::read(&block.as_text()?.text));
    let mut parts: Vec<String> =
        blocks.iter().map(|block| content.part(binary(block).as_ref().unwrap_or(block))).collect();
    if let Some(structured) = structured.filter(|value| !structured::only_wraps(value, blocks)) {
        let rest = structured::without_repetitions(structured, blocks, &parts, &mut |block| content.part(block));
        // Servers send the JSON as a text, too, for clients that do not support structured content.
        let is_repeated =
            |block: &ContentBlock| block.as_text().is_some_and(|text| structured::is_json_of(&text.text, structured));
        let at = blocks.iter().position(is_repeated).unwrap_or(parts.len());
        let mut is_other = blocks.iter().map(|block| !is_repeated(block));
        parts.retain(|_| is_other.next().unwrap_or(true));
        parts.insert(at, rest.to_string());
    }
    // A large text, which usually is the only part, is not copied once more.
    let text = match parts.as_mut_slice() {
        [only] => std::mem::take(only),
        _ => parts.join("\n"),
    };
    content.text = if text.is_empty() { "[the result is empty]".to_owned() } else { truncated(text) };
    content
}

impl Content {
    /// Returns the text of an item. Keeps a binary item, and returns its note.
    fn part(&mut self, block: &ContentBlock) -> String {
        match block {
            ContentBlock::Text(text) => text.text.clone(),
            ContentBlock::Image(image) => self.keep("image", Some(&image.mime_type), &image.data),
            ContentBlock::Audio(audio) => self.keep("audio", Some(&audio.mime_type), &audio.data),
            ContentBlock::Resource(resource) => match &resource.resource {
                ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                    format!("[resource {}, {}]\n{text}", one_line(uri), type_name(mime_type.as_deref()))
                }
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    self.keep(&format!("resource {}", one_line(uri)), mime_type.as_deref(), blob)
                }
                _ => "[a resource of an unknown type]".to_owned(),
            },
            ContentBlock::ResourceLink(link) => link_note(link),
            _ => "[content of an unknown type]".to_owned(),
        }
    }

    /// Keeps a binary item, and returns its note.
    fn keep(&mut self, what: &str, mime_type: Option<&str>, base64: &str) -> String {
        let kind = type_name(mime_type);
        let Ok(data) = STANDARD.decode(base64) else {
            return format!("[{what}, {kind}, whose data is not base64]");
        };
        let bytes = data.len();
        if data.is_empty() || self.media.len() == MAX_MEDIA && !self.media.contains(&data) {
            return format!("[{what}, {kind}, {bytes} bytes, not kept]");
        }
        let handle = Digest::of_bytes(&data);
        if !self.media.contains(&data) {
            self.media.push(data);
        }
        format!("[{what}, {kind}, {bytes} bytes, kept as {handle}; it is not text]")
    }
}

/// Returns the note of a link. The client does not follow links: a tool has to read the target.
fn link_note(link: &Resource) -> String {
    let size = link.size.map(|size| format!(", {size} bytes")).unwrap_or_default();
    format!(
        "[link to the resource {} ({}), {}{size}; not read]",
        one_line(&link.uri),
        one_line(&link.name),
        type_name(link.mime_type.as_deref())
    )
}

fn type_name(mime_type: Option<&str>) -> String {
    mime_type.map_or_else(|| "type unknown".to_owned(), one_line)
}

/// Returns a text as one line for a note.
fn one_line(text: &str) -> String {
    let shown = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    bounded(&shown.collect::<Vec<_>>().join(" "), MAX_NAME_BYTES)
}

/// Cuts a text to [`MAX_TEXT_BYTES`], including the note about the cut.
fn truncated(mut text: String) -> String {
    let whole = text.len();
    if whole <= MAX_TEXT_BYTES {
        return text;
    }
    let note = |kept: usize| format!("\n[cut: {} of {whole} bytes are left out]", whole - kept);
    // The note is longest if no text is kept.
    let kept = text.floor_char_boundary(MAX_TEXT_BYTES - note(0).len());
    text.truncate(kept);
    text.push_str(&note(kept));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn content(result: Value) -> Content {
        read(&serde_json::from_value(result).unwrap())
    }

    fn text(result: Value) -> String {
        content(result).text
    }

    const HELLO: &str = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    #[rstest]
    #[case(json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), "a\nb")]
    #[case(json!({"content": [], "structuredContent": {"b": [1, 2], "a": null}}), r#"{"a":null,"b":[1,2]}"#)]
    #[case(json!({"content": []}), "[the result is empty]")]
    #[case::beside_text(
        json!({"content": [{"type": "text", "text": "22 degrees"}], "structuredContent": {"celsius": 22}}),
        "22 degrees\n{\"celsius\":22}"
    )]
    #[case::repeated_by_text(
        json!({"content": [
            {"type": "text", "text": "{\n  \"celsius\": 22.0\n}"}, {"type": "text", "text": "warm"},
        ], "structuredContent": {"celsius": 22.0}}),
        "{\"celsius\":22.0}\nwarm"
    )]
    #[case::a_wrapped_text(
        json!({"content": [{"type": "text", "text": "22 degrees"}], "structuredContent": {"result": "22 degrees"}}),
        "22 degrees"
    )]
    #[case::a_wrapped_number(json!({"content": [{"type": "text", "text": "5"}], "structuredContent": {"result": 5}}), "5")]
    #[case::a_wrapped_list(
        json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "{ \"b\": 1 }"}],
            "structuredContent": {"result": ["a", {"b": 1}]}}),
        "a\n{ \"b\": 1 }"
    )]
    #[case::wrapped_blocks(
        json!({"content": [{"type": "text", "text": "a"}], "structuredContent": {"content": [{"type": "text", "text": "a"}]}}),
        "a"
    )]
    #[case::a_wrapped_empty_list(json!({"content": [], "structuredContent": {"result": []}}), "{\"result\":[]}")]
    #[case::a_list_with_other_items(
        json!({"content": [{"type": "text", "text": "a"}], "structuredContent": {"result": ["a", "b"]}}),
        "a\n{\"result\":[\"a\",\"b\"]}"
    )]
    #[case::a_text_beside_other_fields(
        json!({"content": [{"type": "text", "text": "0123456789".repeat(7)}],
            "structuredContent": {"text": "0123456789".repeat(7), "lines": 1}}),
        "0123456789012345678901234567890123456789012345678901234567890123456789\n{\"lines\":1,\"text\":\"[the text above]\"}"
    )]
    #[case::embedded_text(
        json!({"content": [{"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/x", "text": "12"}}]}),
        "[resource file:///a, text/x]\n12"
    )]
    #[case::a_link_with_line_breaks(
        json!({"content": [{"type": "resource_link", "uri": "file:///c", "name": "c\n\n  d", "mimeType": "text/plain", "size": 9}]}),
        "[link to the resource file:///c (c d), text/plain, 9 bytes; not read]"
    )]
    #[case::no_base64(
        json!({"content": [{"type": "image", "data": "%%%", "mimeType": "image/png"}]}),
        "[image, image/png, whose data is not base64]"
    )]
    fn results_become_text(#[case] result: Value, #[case] expected: &str) {
        assert_eq!(content(result), Content { text: expected.to_owned(), media: Vec::new() });
    }

    #[rstest]
    #[case(json!({"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}), "image, image/png")]
    #[case(json!({"type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav"}), "audio, audio/wav")]
    #[case(
        json!({"type": "resource", "resource": {"uri": "file:///b", "blob": "aGVsbG8="}}),
        "resource file:///b, type unknown"
    )]
    fn binary_content_is_kept_and_the_text_has_its_digest(#[case] block: Value, #[case] what: &str) {
        let content = content(json!({"content": [block]}));
        assert_eq!(content.text, format!("[{what}, 5 bytes, kept as {HELLO}; it is not text]"));
        assert_eq!(content.media, [b"hello"]);
    }

    /// The filesystem server sends the content in the structured content, too.
    #[rstest]
    #[case::wrapped(|image: Value| json!({"content": [image.clone()], "structuredContent": {"content": [image]}}), "NOTE")]
    #[case::alone(|image: Value| json!({"content": [], "structuredContent": {"images": [image], "n": 1}}), "{\"images\":[\"NOTE\"],\"n\":1}")]
    #[case::data_only(
        |image: Value| json!({"content": [image.clone()], "structuredContent": {"png": image["data"], "n": 1}}),
        "NOTE\n{\"n\":1,\"png\":\"NOTE\"}"
    )]
    #[case::as_a_url(
        |image: Value| json!({"content": [image.clone()], "structuredContent":
            {"url": format!("data:image/png;base64,{}", image["data"].as_str().unwrap()), "n": 1}}),
        "NOTE\n{\"n\":1,\"url\":\"NOTE\"}"
    )]
    #[case::data_only_without_an_item(
        |image: Value| json!({"content": [{"type": "text", "text": "drawn"}], "structuredContent": {"image": image["data"]}}),
        "drawn\n{\"image\":\"NOTE\"}"
    )]
    #[case::a_wrapped_url(
        |image: Value| {
            let url = format!("data:image/png;base64,{}", image["data"].as_str().unwrap());
            json!({"content": [{"type": "text", "text": url}], "structuredContent": {"result": url}})
        },
        "NOTE"
    )]
    #[case::a_url_as_json(
        |image: Value| {
            let shown = json!({"url": format!("data:image/png;base64,{}", image["data"].as_str().unwrap()), "n": 1});
            json!({"content": [{"type": "text", "text": shown.to_string()}], "structuredContent": shown})
        },
        "{\"n\":1,\"url\":\"NOTE\"}"
    )]
    #[case::as_json(
        |image: Value| json!({"content": [{"type": "text", "text": json!({"a": image, "b": 1}).to_string()}],
            "structuredContent": {"a": image, "b": 1}}),
        "{\"a\":\"NOTE\",\"b\":1}"
    )]
    fn base64_in_structured_content_is_kept_like_other_binary_content(
        #[case] result: fn(Value) -> Value,
        #[case] expected: &str,
    ) {
        let bytes = [b"\x89PNG\r\n\x1a\n".as_slice(), &[7; 292]].concat();
        let image = json!({"type": "image", "data": STANDARD.encode(&bytes), "mimeType": "image/png"});
        let content = content(result(image));
        let note = format!("[image, image/png, 300 bytes, kept as {}; it is not text]", Digest::of_bytes(&bytes));
        assert_eq!((content.text, content.media), (expected.replace("NOTE", &note), vec![bytes]));
    }

    #[test]
    fn binary_items_beyond_the_limit_are_not_kept() {
        let image = |n: usize| json!({"type": "image", "data": STANDARD.encode([u8::try_from(n).unwrap()]), "mimeType": "image/png"});
        let images: Vec<_> = (0..=MAX_MEDIA).chain([0]).map(image).collect();
        let content = content(json!({ "content": images }));
        assert_eq!(content.media.len(), MAX_MEDIA);
        let kept = format!("kept as {}; it is not text]", Digest::of_bytes(&[0]));
        assert!(
            content
                .text
                .ends_with(&format!("[image, image/png, 1 bytes, not kept]\n[image, image/png, 1 bytes, {kept}"))
        );
    }

    #[rstest]
    #[case("x", MAX_TEXT_BYTES, MAX_TEXT_BYTES)]
    #[case("x", MAX_TEXT_BYTES + 1, MAX_TEXT_BYTES)]
    #[case("€", 12_000_000, MAX_TEXT_BYTES)]
    fn a_long_text_is_cut_and_notes_the_size_of_the_cut(#[case] part: &str, #[case] times: usize, #[case] max: usize) {
        let whole = part.repeat(times);
        let bounded = text(json!({"content": [{"type": "text", "text": whole}]}));
        assert!(bounded.len() <= max && bounded.len() > max - 8, "{}", bounded.len());
        if whole.len() > max {
            let (kept, note) = bounded.split_once("\n[cut: ").unwrap();
            assert!(whole.starts_with(kept));
            assert_eq!(note, format!("{} of {} bytes are left out]", whole.len() - kept.len(), whole.len()));
        }
    }
}
