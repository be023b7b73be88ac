//! Marks, which replace secrets in all texts that a model reads. Writing a mark back to the file would overwrite the secret.

use crate::Error;
use memchr::memmem;
use std::sync::Arc;

/// The marks of all secrets that a model may have read.
#[derive(Debug, Clone, Default)]
pub struct Marks(Arc<[String]>);

impl Marks {
    /// Returns a set of marks.
    pub fn new(marks: Vec<String>) -> Self {
        Self(marks.into())
    }

    /// Checks that a new text does not contain a mark more often than the text that it replaces. So a text that already
    /// contains marks can be edited.
    ///
    /// # Errors
    /// If a mark was added. The message is for the model.
    pub(crate) fn check_none_added(&self, file: &str, new: &[u8], old: &[u8]) -> Result<(), Error> {
        match self.first_added(new, old) {
            Some(mark) => Err(format!(
                "The new content of {file} contains `{mark}`, which replaces a secret that you cannot see. Writing it would \
                 overwrite the secret. Nothing was changed. Change only other parts of the file, with edit_file."
            ).into()),
            None => Ok(()),
        }
    }

    /// Returns the first mark that the new text contains more often than the old one.
    pub fn first_added(&self, new: &[u8], old: &[u8]) -> Option<&str> {
        let count = |mark: &str, text| memmem::find_iter(text, mark).count();
        self.0.iter().map(String::as_str).find(|mark| count(mark, new) > count(mark, old))
    }

    /// Returns a hint for a text that was not found because it contains a mark instead of the secret. The hint has a leading
    /// space. Returns an empty text if no mark is the cause.
    pub(crate) fn not_found_hint(&self, text: &str, content: &[u8]) -> String {
        let is_only_in_text =
            |mark: &&String| text.contains(mark.as_str()) && memmem::find(content, mark.as_bytes()).is_none();
        match self.0.iter().find(is_only_in_text) {
            Some(mark) => format!(
                " `{mark}` replaces a secret that you cannot see, and the file contains the secret itself. Leave out lines with \
                 `{mark}`."
            ),
            None => String::new(),
        }
    }

    /// Returns whether a text contains any of the marks.
    pub(crate) fn any_in(&self, text: &[u8]) -> bool {
        self.0.iter().any(|mark| memmem::find(text, mark.as_bytes()).is_some())
    }
}
