//! Where a call goes: the URL that the Job binds, and a path below it.
//!
//! Servers and proxies on the way read `..`, `%2e`, `%2f`, `\` and `//` each in their own way, some after decoding twice. So a
//! path that means a step up, or a segment more than it shows, in any of these readings is refused and not mended.

use std::fmt::Write;

/// The longest path of a call, in bytes.
const MAX_PATH: usize = 2048;

/// The URL that a Job binds: every call goes below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    /// Scheme and authority, as they are written.
    origin: String,
    path: Path,
    /// Whether it ends in a `/`: where a call has no path, that is what is called.
    has_slash: bool,
}

/// A path below a base: as it is sent, and what its segments mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Path {
    /// It begins with `/`, or is empty.
    sent: String,
    segments: Vec<String>,
}

impl Base {
    /// Reads a URL that was bound.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").ok_or("it is no URL")?;
        if !matches!(scheme, "http" | "https") {
            return Err("it is no http or https URL".to_owned());
        }
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '@' && c != '%';
        if authority.is_empty() || !authority.chars().all(is_plain) {
            return Err("its host cannot be read".to_owned());
        }
        if path.contains(['?', '#']) {
            return Err("it has a query or a fragment".to_owned());
        }
        if path.contains("//") {
            return Err("its path has an empty segment (//)".to_owned());
        }
        let (path, has_slash) = path.strip_suffix('/').map_or((path, false), |path| (path, true));
        let mut base = Path::parse(path)?;
        if path.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte)) {
            // Nobody compares it, so its escapes are those of whoever bound it.
            path.clone_into(&mut base.sent);
        }
        Ok(Self { origin: format!("{scheme}://{authority}"), path: base, has_slash })
    }

    /// The URL of a path below it.
    pub(super) fn join(&self, path: &Path) -> String {
        let Self { origin, path: base, has_slash } = self;
        let below = if path.sent.is_empty() && (*has_slash || base.sent.is_empty()) { "/" } else { &path.sent };
        format!("{origin}{}{below}", base.sent)
    }
}

/// As it is sent.
impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.sent.is_empty() { "/" } else { &self.sent })
    }
}

impl Path {
    /// Reads the path of a call. A `/` at its beginning means nothing; one at its end is an empty segment.
    ///
    /// # Errors
    /// Why it is not taken, for the model.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_PATH {
            return Err(format!("the path has {} bytes, and at most {MAX_PATH} are sent", text.len()));
        }
        if text.contains("://") || text.starts_with("//") {
            return Err("path is a path below the URL of the resource, and no URL of its own".to_owned());
        }
        if text.contains(['?', '#']) {
            return Err("path has no ? and no #: what is to be asked goes into query".to_owned());
        }
        let mut path = Self::default();
        let below = text.strip_prefix('/').unwrap_or(text);
        if below.is_empty() {
            return Ok(path);
        }
        let last = below.split('/').count() - 1;
        for (at, segment) in below.split('/').enumerate() {
            if segment.is_empty() && at < last {
                return Err("the path has an empty segment (//)".to_owned());
            }
            let (sent, meant) = read(segment)?;
            path.sent.push('/');
            path.sent.push_str(&sent);
            path.segments.push(meant);
        }
        Ok(path)
    }

    /// What its segments mean, decoded.
    pub(super) fn segments(&self) -> &[String] {
        &self.segments
    }
}

/// A segment as it is sent, and as it is meant.
fn read(segment: &str) -> Result<(String, String), String> {
    let mut sent = String::with_capacity(segment.len());
    let mut meant = Vec::with_capacity(segment.len());
    for (byte, is_escaped) in units(segment.as_bytes()) {
        if byte == b'%' && !is_escaped {
            return Err("a % in the path is followed by two hexadecimal digits; one that is meant is %25".to_owned());
        }
        // By what it means, however it was written: else there were two spellings, and conditions compare one.
        push(&mut sent, byte, is_unreserved(byte) || b"!$&'()*+,;=:@".contains(&byte));
        meant.push(byte);
    }
    if let Some(fault) = fault(&meant) {
        return Err(fault.to_owned());
    }
    let meant = String::from_utf8(meant).map_err(|_| "the path is no text in UTF-8")?;
    if meant.contains(char::is_control) {
        return Err("the path holds a control character".to_owned());
    }
    Ok((sent, meant))
}

/// Why a segment is refused, however often somebody on the way decodes it.
fn fault(meant: &[u8]) -> Option<&'static str> {
    let mut layer = meant.to_vec();
    loop {
        if layer.iter().any(|byte| matches!(byte, b'/' | b'\\')) {
            return Some("the path holds an encoded slash or a backslash");
        }
        if std::str::from_utf8(&layer).is_err() {
            return Some("the path is no text in UTF-8");
        }
        if layer.iter().any(u8::is_ascii_control) {
            return Some("the path holds a control character");
        }
        // Some servers take what follows a `;` away first, some white space.
        let name = layer.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if matches!(name, b"." | b"..") {
            return Some("the path holds a segment . or ..");
        }
        // Each escape makes it shorter.
        let decoded: Vec<u8> = units(&layer).map(|(byte, _)| byte).collect();
        if decoded.len() == layer.len() {
            return None;
        }
        layer = decoded;
    }
}

/// The bytes that a text means, and whether each was escaped. What only looks like an escape stands for itself.
fn units(mut text: &[u8]) -> impl Iterator<Item = (u8, bool)> {
    std::iter::from_fn(move || {
        let (&byte, after) = text.split_first()?;
        let escaped = escape(text);
        text = if escaped.is_some() { text.get(3..).unwrap_or_default() } else { after };
        Some((escaped.unwrap_or(byte), escaped.is_some()))
    })
}

/// The byte that an escape at the beginning of a text stands for.
fn escape(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn push(sent: &mut String, byte: u8, as_it_is: bool) {
    if as_it_is {
        sent.push(char::from(byte));
    } else {
        // Writing to a text cannot fail.
        let _ = write!(sent, "%{byte:02X}");
    }
}

/// A text as a part of a query: nothing in it means anything there.
pub(super) fn component(text: &str) -> String {
    let mut sent = String::with_capacity(text.len());
    for byte in text.bytes() {
        push(&mut sent, byte, is_unreserved(byte));
    }
    sent
}
