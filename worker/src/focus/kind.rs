//! Detects the kind of content that is not text.

/// The signatures of the formats that tools return: offset, bytes, and name.
const SIGNATURES: [(usize, &[u8], &str); 11] = [
    (0, b"\x89PNG\r\n\x1a\n", "an image (PNG)"),
    (0, b"\xff\xd8\xff", "an image (JPEG)"),
    (0, b"GIF8", "an image (GIF)"),
    (8, b"WEBP", "an image (WebP)"),
    (8, b"WAVE", "audio (WAV)"),
    (0, b"ID3", "audio (MP3)"),
    (0, b"\xff\xfb", "audio (MP3)"),
    (0, b"OggS", "audio (Ogg)"),
    (0, b"%PDF-", "a document (PDF)"),
    (0, b"PK\x03\x04", "an archive (ZIP)"),
    (0, b"\x1f\x8b", "an archive (gzip)"),
];

/// Returns the kind of content by its first bytes, with an article.
pub(super) fn detect(content: &[u8]) -> &'static str {
    let begins =
        |(at, bytes, _): &&(usize, &[u8], &str)| content.get(*at..).is_some_and(|rest| rest.starts_with(bytes));
    SIGNATURES.iter().find(begins).map_or("binary data", |(_, _, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::detect;
    use rstest::rstest;

    #[rstest]
    #[case(b"\x89PNG\r\n\x1a\n\0", "an image (PNG)")]
    #[case(b"RIFF\x10\0\0\0WEBPVP8", "an image (WebP)")]
    #[case(b"RIFF\x10\0\0\0WAVEfmt", "audio (WAV)")]
    #[case(b"\x1f\x8b\x08", "an archive (gzip)")]
    #[case(b"\xff", "binary data")]
    #[case(b"", "binary data")]
    fn the_first_bytes_determine_the_kind(#[case] content: &[u8], #[case] kind: &str) {
        assert_eq!(detect(content), kind);
    }
}
