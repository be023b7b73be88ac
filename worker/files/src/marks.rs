//! Marks: the placeholders of secrets in all text that a model reads. Writing a mark back to its file would replace the secret.

use crate::Error;
use memchr::memmem;
use std::sync::Arc;

/// The marks that a model may have read.
#[derive(Debug, Clone, Default)]
pub struct Marks(Arc<[String]>);

impl Marks {
    /// Returns a set of marks.
    pub fn new(marks: Vec<String>) -> Self {
        Self(marks.into())
    }

    /// Refuses a new text that contains a mark more often than the text that it replaces. A text that is about marks can therefore
    /// be edited.
    ///
    /// # Errors
    /// If a mark was added. The message is for the model.
    pub(crate) fn refuse(&self, shown: &str, new: &[u8], old: &[u8]) -> Result<(), Error> {
        match self.brought(new, old) {
            Some(mark) => Err(format!(
                "The new content of {shown} holds `{mark}`, which stands for a secret that you cannot see. Writing it would \
                 replace the secret. Change only other parts, with edit_file; nothing was done."
            ).into()),
            None => Ok(()),
        }
    }

    /// Returns the first mark that the new text contains more often than the old one.
    pub fn brought(&self, new: &[u8], old: &[u8]) -> Option<&str> {
        let count = |mark: &str, text| memmem::find_iter(text, mark).count();
        self.0.iter().map(String::as_str).find(|mark| count(mark, new) > count(mark, old))
    }

    /// Returns a hint, with a leading space, if a text was not found because it has a mark where the content has the secret.
    /// Otherwise it is empty.
    pub(crate) fn hint(&self, text: &str, content: &[u8]) -> String {
        let is_only_in_text =
            |mark: &&String| text.contains(mark.as_str()) && memmem::find(content, mark.as_bytes()).is_none();
        match self.0.iter().find(is_only_in_text) {
            Some(mark) => format!(
                " `{mark}` stands for a secret that you cannot see. The file has the secret instead: leave out lines with \
                 `{mark}`."
            ),
            None => String::new(),
        }
    }

    /// Returns whether a text contains any of the marks.
    pub(crate) fn are_in(&self, text: &[u8]) -> bool {
        self.0.iter().any(|mark| memmem::find(text, mark.as_bytes()).is_some())
    }
}
