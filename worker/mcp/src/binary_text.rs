//! Recognizes texts that are binary data in base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{ContentBlock, ResourceContents};

/// The shortest text that is recognized, in bytes. The model may read a shorter one.
const MIN_BYTES: usize = 64;

/// The number of characters of base64 from which the type of an image is read. They are 12 bytes.
const HEAD_CHARS: usize = 16;

/// Returns the block that a text stands for: a `data:` URL with base64, or the base64 of a PNG, JPEG, GIF or WebP image.
pub(crate) fn read(text: &str) -> Option<ContentBlock> {
    if text.len() < MIN_BYTES {
        return None;
    }
    let (mime_type, data) = match text.strip_prefix("data:") {
        Some(url) => {
            let (parameters, data) = url.split_once(";base64,")?;
            (parameters.split(';').next().unwrap_or_default(), data)
        }
        None => (image_type(text)?, text),
    };
    // Some encoders break the lines.
    let data: String = data.split_ascii_whitespace().collect();
    let is_base64 = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
    is_base64.then(|| match mime_type.split('/').next() {
        Some("image") => ContentBlock::image(data, mime_type),
        Some("audio") => ContentBlock::audio(data, mime_type),
        _ => ContentBlock::resource(ResourceContents::blob(data, "data:").with_mime_type(mime_type)),
    })
}

/// Returns the MIME type of the image that begins with this base64.
fn image_type(base64: &str) -> Option<&'static str> {
    match STANDARD.decode(base64.get(..HEAD_CHARS)?).ok()?.as_slice() {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// Returns the base64 of data with this beginning.
    fn encoded(beginning: &[u8]) -> String {
        STANDARD.encode([beginning, &[7; 90]].concat())
    }

    #[rstest]
    #[case::png(b"\x89PNG\r\n\x1a\n", "image/png")]
    #[case::jpeg(b"\xff\xd8\xff\xe0", "image/jpeg")]
    #[case::gif(b"GIF89a", "image/gif")]
    #[case::webp(b"RIFF\x01\x02\x03\x04WEBP", "image/webp")]
    fn the_base64_of_an_image_is_recognized(#[case] beginning: &[u8], #[case] mime_type: &str) {
        let data = encoded(beginning);
        let broken = data.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap());
        for text in [data.clone(), format!("data:{mime_type};base64,{data}"), broken.collect::<Vec<_>>().join("\n")] {
            assert_eq!(read(&text), Some(ContentBlock::image(data.clone(), mime_type)), "{text}");
        }
    }

    #[test]
    fn data_urls_of_other_types_are_recognized() {
        let data = encoded(b"");
        assert_eq!(
            read(&format!("data:audio/wav;base64,{data}")),
            Some(ContentBlock::audio(data.clone(), "audio/wav"))
        );
        let pdf = ResourceContents::blob(data.clone(), "data:").with_mime_type("application/pdf");
        assert_eq!(read(&format!("data:application/pdf;name=a.pdf;base64,{data}")), Some(ContentBlock::resource(pdf)));
    }

    #[rstest]
    #[case::other_base64(encoded(b"%PDF-1.7"))]
    #[case::short("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7".to_owned())]
    #[case::a_data_url_as_text(format!("data:text/plain,{}", "word ".repeat(20)))]
    #[case::prose(format!("data:image/png;base64,{} is shown as follows: ...", encoded(b"")))]
    #[case::words("The quick brown fox jumps over the lazy dog, ".repeat(2))]
    fn other_texts_are_not_recognized(#[case] text: String) {
        assert_eq!(read(&text), None);
    }
}
