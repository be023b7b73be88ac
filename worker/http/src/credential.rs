//! Credentials that requests carry. They are read again for each request, so a rotated or corrected Secret takes effect at once.

use bloomery_crds::report::ExternalWait;
use bloomery_crds::run::KeyFile;
use bloomery_redact::{MAX_VALUE_BYTES, plain_file};
use reqwest::header::HeaderValue;
use std::io::ErrorKind;
use std::path::Path;

/// The largest file that may hold a credential, in bytes, including whitespace around the value.
const MAX_FILE_BYTES: u64 = 2 * MAX_VALUE_BYTES as u64;

/// A key of a Secret that is missing or empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("needs the key `{key}` of the Secret `{name}`, which is missing or empty. Add the key to the Secret")]
pub struct SecretMissing {
    /// The name of the Secret.
    pub name: String,
    /// The key in the Secret.
    pub key: String,
}

impl From<SecretMissing> for ExternalWait {
    fn from(SecretMissing { name, key }: SecretMissing) -> Self {
        Self::SecretMissing { name, key, until: None }
    }
}

/// The reason that a credential cannot be sent. Each message continues a clause that begins with what uses the credential, such as
/// "the Model `main`".
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The credential does not exist yet.
    #[error(transparent)]
    Missing(#[from] SecretMissing),
    /// The credential exists, but cannot be used.
    #[error("{message}")]
    Unusable {
        /// The Secret, its key, and the reason.
        message: String,
    },
}

/// A credential, or none. It has no `Debug`, because it must not be printed.
pub struct Credential {
    secret: String,
}

impl Credential {
    /// Reads the credential from a file, without surrounding whitespace. Without a file, there is no credential.
    pub fn read(file: Option<&KeyFile>) -> Result<Self, Error> {
        let Some(file) = file else { return Ok(Self { secret: String::new() }) };
        let missing = || SecretMissing { name: file.secret.clone(), key: file.key.clone() }.into();
        // Secrets are mounted from memory, so this read needs no thread of its own.
        let opened = plain_file::open(Path::new(&file.path));
        let secret = match opened.and_then(|opened| plain_file::read_bounded(opened, MAX_FILE_BYTES)) {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => text.trim().to_owned(),
                Err(_) => return Err(unusable(file, "it is not UTF-8 text")),
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
            return Err(unusable(
                file,
                "it contains characters that are not allowed in HTTP headers, such as a line break",
            ));
        }
        Ok(Self { secret })
    }

    /// Returns the value of a header: `prefix` followed by the credential, marked as sensitive. Returns `None` without a credential.
    pub fn header(&self, prefix: &str) -> Option<HeaderValue> {
        if self.secret.is_empty() {
            return None;
        }
        let mut header = HeaderValue::from_str(&format!("{prefix}{}", self.secret)).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// Returns the credential itself; an empty text without a credential.
    pub fn secret(&self) -> &str {
        &self.secret
    }
}

fn unusable(file: &KeyFile, reason: &str) -> Error {
    let message =
        format!("needs the key `{}` of the Secret `{}`, which cannot be used: {reason}", file.key, file.secret);
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
        let key = Credential::read(Some(&file)).ok().unwrap();
        assert_eq!(key.header("Bearer ").unwrap(), "Bearer sk-123");
        assert_eq!(key.header("").unwrap(), "sk-123");
        assert!(key.header("").unwrap().is_sensitive());
    }

    #[rstest]
    #[case(None)]
    #[case(Some(b"".as_slice()))]
    #[case(Some(b" \n".as_slice()))]
    fn the_error_of_a_missing_key_names_its_secret(#[case] content: Option<&[u8]>) {
        let (_dir, file) = file(content);
        let Err(Error::Missing(missing)) = Credential::read(Some(&file)) else { panic!("not missing") };
        assert_eq!(missing, SecretMissing { name: "llm".into(), key: "token".into() });
    }

    #[rstest]
    #[case(b"sk-1\nsk-2".as_slice())]
    #[case(b"\xff\xfe".as_slice())]
    fn the_error_of_a_key_that_cannot_be_sent_does_not_contain_it(#[case] content: &[u8]) {
        let (_dir, file) = file(Some(content));
        let Err(Error::Unusable { message }) = Credential::read(Some(&file)) else { panic!("usable") };
        assert!(message.contains("`token` of the Secret `llm`") && !message.contains("sk-"), "{message}");
    }

    #[rstest]
    #[case("/dev/zero", "it is not a regular file")]
    #[case("/", "directory")]
    fn only_regular_files_are_read(#[case] path: &str, #[case] reason: &str) {
        let file = KeyFile { path: path.to_owned(), secret: "llm".into(), key: "token".into() };
        let Err(Error::Unusable { message }) = Credential::read(Some(&file)) else { panic!("usable") };
        assert!(message.contains(reason), "{message}");
    }

    #[test]
    fn a_key_that_is_too_large_is_refused() {
        let (_dir, file) = file(Some("x".repeat(2 * MAX_VALUE_BYTES + 1).as_bytes()));
        let Err(Error::Unusable { message }) = Credential::read(Some(&file)) else { panic!("usable") };
        assert!(message.contains("it is larger than 32768 bytes"), "{message}");
    }

    #[test]
    fn without_a_file_there_is_no_credential() {
        let key = Credential::read(None).ok().unwrap();
        assert_eq!(key.header(""), None);
        assert_eq!(key.secret(), "");
    }
}
