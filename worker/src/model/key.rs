//! The key that requests carry: read anew for each, so that a rotated or mended Secret counts at once.

use bloomery_crds::report::ExternalWait;
use bloomery_crds::run::KeyFile;
use bloomery_redact::MAX_VALUE_BYTES;
use bloomery_redact::plain_file;
use reqwest::header::HeaderValue;
use std::io::ErrorKind;
use std::path::Path;

/// The most that a file with a key may hold: what is round the key, too.
const MAX_BYTES: u64 = 2 * MAX_VALUE_BYTES as u64;

/// A key of a Secret that is not there, or is empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("needs the key `{key}` of the Secret `{name}`, which is missing or empty: put it there")]
pub struct SecretMissing {
    /// Name of the Secret.
    pub name: String,
    /// The key in it.
    pub key: String,
}

impl From<SecretMissing> for ExternalWait {
    fn from(SecretMissing { name, key }: SecretMissing) -> Self {
        Self::SecretMissing { name, key }
    }
}

/// Why there is no key to send.
#[derive(Debug)]
pub(crate) enum Error {
    /// It is not there.
    Missing(SecretMissing),
    /// It is there and of no use.
    Unusable {
        /// Why.
        message: String,
    },
}

/// A key, or the knowledge that none is asked for. Has no `Debug`: it must not be printed.
pub(crate) struct Key {
    secret: String,
}

impl Key {
    /// Reads the file; what editors leave round a key is trimmed away.
    pub(crate) fn read(file: Option<&KeyFile>) -> Result<Self, Error> {
        let Some(file) = file else { return Ok(Self { secret: String::new() }) };
        let missing = || Error::Missing(SecretMissing { name: file.secret.clone(), key: file.key.clone() });
        // A read of a small file in memory (a Secret is mounted from tmpfs) is not worth a thread.
        let opened = plain_file::open(Path::new(&file.path));
        let secret = match opened.and_then(|opened| plain_file::whole(opened, MAX_BYTES)) {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => text.trim().to_owned(),
                Err(_) => return Err(unusable(file, "it is no text in UTF-8")),
            },
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(missing());
            }
            Err(error) => return Err(unusable(file, &error.to_string())),
        };
        if secret.is_empty() {
            return Err(missing());
        }
        if HeaderValue::from_str(&secret).is_err() {
            return Err(unusable(file, "it holds characters that no HTTP header can hold, such as a line break"));
        }
        Ok(Self { secret })
    }

    /// The key as the value of a header; none where none is asked for.
    pub(crate) fn header(&self, prefix: &str) -> Option<HeaderValue> {
        if self.secret.is_empty() {
            return None;
        }
        let mut header = HeaderValue::from_str(&format!("{prefix}{}", self.secret)).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// The key itself; empty where none is asked for.
    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }
}

fn unusable(file: &KeyFile, why: &str) -> Error {
    let message = format!("needs the key `{}` of the Secret `{}`, which cannot be used: {why}", file.key, file.secret);
    Error::Unusable { message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn file(content: Option<&[u8]>) -> (tempfile::TempDir, KeyFile) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let path = path.to_str().unwrap().to_owned();
        (dir, KeyFile { path, secret: "llm".into(), key: "token".into() })
    }

    #[test]
    fn a_key_is_trimmed_and_marked_as_sensitive() {
        let (_dir, file) = file(Some(b" sk-123\r\n"));
        let key = Key::read(Some(&file)).ok().unwrap();
        assert_eq!(key.header("Bearer ").unwrap(), "Bearer sk-123");
        assert_eq!(key.header("").unwrap(), "sk-123");
        assert!(key.header("").unwrap().is_sensitive());
    }

    #[rstest]
    #[case(None)]
    #[case(Some(b"".as_slice()))]
    #[case(Some(b" \n".as_slice()))]
    fn a_key_that_is_not_there_names_its_secret(#[case] content: Option<&[u8]>) {
        let (_dir, file) = file(content);
        let Err(Error::Missing(missing)) = Key::read(Some(&file)) else { panic!("not missing") };
        assert_eq!(missing, SecretMissing { name: "llm".into(), key: "token".into() });
    }

    #[rstest]
    #[case(b"sk-1\nsk-2".as_slice())]
    #[case(b"\xff\xfe".as_slice())]
    fn a_key_that_cannot_be_sent_is_told_apart(#[case] content: &[u8]) {
        let (_dir, file) = file(Some(content));
        let Err(Error::Unusable { message }) = Key::read(Some(&file)) else { panic!("usable") };
        assert!(message.contains("`token` of the Secret `llm`") && !message.contains("sk-"), "{message}");
    }

    #[rstest]
    #[case("/dev/zero", "it is no regular file")]
    #[case("/", "directory")]
    fn what_is_no_file_is_not_read(#[case] path: &str, #[case] why: &str) {
        let file = KeyFile { path: path.to_owned(), secret: "llm".into(), key: "token".into() };
        let Err(Error::Unusable { message }) = Key::read(Some(&file)) else { panic!("usable") };
        assert!(message.contains(why), "{message}");
    }

    #[test]
    fn a_key_is_read_within_bounds() {
        let (_dir, file) = file(Some("x".repeat(2 * MAX_VALUE_BYTES + 1).as_bytes()));
        let Err(Error::Unusable { message }) = Key::read(Some(&file)) else { panic!("usable") };
        assert!(message.contains("it is larger than 32768 bytes"), "{message}");
    }

    #[test]
    fn no_key_is_asked_for() {
        let key = Key::read(None).ok().unwrap();
        assert_eq!(key.header(""), None);
        assert_eq!(key.secret(), "");
    }
}
