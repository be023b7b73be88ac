//! The address of a call: the URL that the Job binds, and a path below it.
//!
//! Servers and proxies read `..`, `%2e`, `%2f`, `\` and `//` in different ways, some after decoding twice. A path
//! is an error if it leaves its base, or has other segments, in any of these readings.

use super::error::Error;
use std::fmt::Write;

/// The longest path of a call, in bytes.
const MAX_PATH_BYTES: usize = 2048;

/// The URL that a Job binds. Every call goes to a path below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    /// The scheme and the authority, as written.
    origin: String,
    path: Path,
    /// Whether the URL ends in `/`. The URL of a call without a path then ends in `/` too.
    has_slash: bool,
}

/// A path below a base, in its sent form and as decoded segments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Path {
    /// The path as it is sent: it begins with `/`, or is empty.
    sent: String,
    segments: Vec<String>,
}

impl Base {
    /// Parses a bound URL.
    pub(super) fn parse(url: &str) -> Result<Self, Error> {
        let (scheme, rest) = url.split_once("://").ok_or("it is not a URL")?;
        if !matches!(scheme, "http" | "https") {
            return Err("it is not an http or https URL".into());
        }
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '@' && c != '%';
        if authority.is_empty() || !authority.chars().all(is_plain) {
            return Err("its host is invalid".into());
        }
        if path.contains(['?', '#']) {
            return Err("it has a query or a fragment".into());
        }
        if path.contains("//") {
            return Err("its path has an empty segment (//)".into());
        }
        let (path, has_slash) = path.strip_suffix('/').map_or((path, false), |path| (path, true));
        let mut base = Path::parse(path)?;
        if path.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte)) {
            // Rules do not compare the base, so its spelling is kept.
            path.clone_into(&mut base.sent);
        }
        Ok(Self { origin: format!("{scheme}://{authority}"), path: base, has_slash })
    }

    /// Returns the URL of a path below the base.
    pub(super) fn join(&self, path: &Path) -> String {
        let Self { origin, path: base, has_slash } = self;
        let below = if path.sent.is_empty() && (*has_slash || base.sent.is_empty()) { "/" } else { &path.sent };
        format!("{origin}{}{below}", base.sent)
    }
}

/// Writes the sent form of the path.
impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.sent.is_empty() { "/" } else { &self.sent })
    }
}

impl Path {
    /// Parses the path of a call. A `/` at the beginning is optional; a `/` at the end is an empty segment.
    ///
    /// # Errors
    /// If the path is invalid or ambiguous.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > MAX_PATH_BYTES {
            return Err(format!("the path has {} bytes, and at most {MAX_PATH_BYTES} are allowed", text.len()).into());
        }
        if text.contains("://") || text.starts_with("//") {
            return Err("path must be a path below the URL of the resource, not a URL".into());
        }
        if text.contains(['?', '#']) {
            return Err("path must not have ? or #: pass a query as query".into());
        }
        let mut path = Self::default();
        let below = text.strip_prefix('/').unwrap_or(text);
        if below.is_empty() {
            return Ok(path);
        }
        let last = below.split('/').count() - 1;
        for (at, segment) in below.split('/').enumerate() {
            if segment.is_empty() && at < last {
                return Err("the path has an empty segment (//)".into());
            }
            let (sent, decoded) = read_segment(segment)?;
            path.sent.push('/');
            path.sent.push_str(&sent);
            path.segments.push(decoded);
        }
        Ok(path)
    }

    /// The decoded segments.
    pub(super) fn segments(&self) -> &[String] {
        &self.segments
    }
}

/// Returns the sent form of a segment, and the decoded segment.
fn read_segment(segment: &str) -> Result<(String, String), Error> {
    let mut sent = String::with_capacity(segment.len());
    let mut decoded = Vec::with_capacity(segment.len());
    for (byte, is_escaped) in decode(segment.as_bytes()) {
        if byte == b'%' && !is_escaped {
            return Err("a % in the path needs two hexadecimal digits; write %25 for the character".into());
        }
        // Escape by the byte's value, not by its spelling in the call: conditions compare one spelling.
        push_byte(&mut sent, byte, is_unreserved(byte) || b"!$&'()*+,;=:@".contains(&byte));
        decoded.push(byte);
    }
    if let Some(ambiguity) = ambiguity(&decoded) {
        return Err(ambiguity.into());
    }
    let decoded = String::from_utf8(decoded).map_err(|_| "the path is not UTF-8")?;
    if decoded.contains(char::is_control) {
        return Err("the path has a control character".into());
    }
    Ok((sent, decoded))
}

/// Returns the reason why servers may read a segment differently, as it is or after further decodings; or nothing.
fn ambiguity(decoded: &[u8]) -> Option<&'static str> {
    let mut layer = decoded.to_vec();
    loop {
        if layer.iter().any(|byte| matches!(byte, b'/' | b'\\')) {
            return Some("the path has an encoded slash or a backslash");
        }
        if std::str::from_utf8(&layer).is_err() {
            return Some("the path is not UTF-8");
        }
        if layer.iter().any(u8::is_ascii_control) {
            return Some("the path has a control character");
        }
        // Some servers first remove the text after a `;`, or white space.
        let name = layer.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if matches!(name, b"." | b"..") {
            return Some("the path has a segment . or ..");
        }
        // Each decoded escape makes the text shorter.
        let next: Vec<u8> = decode(&layer).map(|(byte, _)| byte).collect();
        if next.len() == layer.len() {
            return None;
        }
        layer = next;
    }
}

/// Returns the decoded bytes of a text, and whether each was escaped. An incomplete escape is not decoded.
fn decode(mut text: &[u8]) -> impl Iterator<Item = (u8, bool)> {
    std::iter::from_fn(move || {
        let (&byte, after) = text.split_first()?;
        let escaped = read_escape(text);
        text = if escaped.is_some() { text.get(3..).unwrap_or_default() } else { after };
        Some((escaped.unwrap_or(byte), escaped.is_some()))
    })
}

/// Returns the byte of the escape (`%2F`) at the beginning of a text, if there is one.
fn read_escape(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// Appends a byte, escaped unless `is_literal`.
fn push_byte(sent: &mut String, byte: u8, is_literal: bool) {
    if is_literal {
        sent.push(char::from(byte));
    } else {
        // Writing to a String cannot fail.
        let _ = write!(sent, "%{byte:02X}");
    }
}

/// Returns a name or value of a query in its escaped form.
pub(super) fn escape_query(text: &str) -> String {
    let mut sent = String::with_capacity(text.len());
    for byte in text.bytes() {
        push_byte(&mut sent, byte, is_unreserved(byte));
    }
    sent
}
