//! Marks: the placeholders of secrets in all text that a model reads. A mark that is written back would replace
//! the secret itself.

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

    /// Refuses a new text that holds more of a mark than what it takes the place of: a text about marks may be edited.
    ///
    /// # Errors
    /// A message for the model, which says that nothing was done.
    pub(crate) fn refuse(&self, shown: &str, new: &[u8], old: &[u8]) -> Result<(), Error> {
        match self.brought(new, old) {
            Some(mark) => Err(format!(
                "What is to stand in {shown} holds `{mark}`, which stands for a secret that you cannot see, and would be \
                 written in its place: change only other parts, with edit_file; nothing was done."
            ).into()),
            None => Ok(()),
        }
    }

    /// The first mark of which a new text holds more than what it takes the place of.
    pub fn brought(&self, new: &[u8], old: &[u8]) -> Option<&str> {
        let count = |mark: &str, text| memmem::find_iter(text, mark).count();
        self.0.iter().map(String::as_str).find(|mark| count(mark, new) > count(mark, old))
    }

    /// What is said of a text that is not found in a content, because it has a mark where the secret is; with a blank before
    /// it.
    pub(crate) fn hint(&self, text: &str, content: &[u8]) -> String {
        let is_no_text =
            |mark: &&String| text.contains(mark.as_str()) && memmem::find(content, mark.as_bytes()).is_none();
        match self.0.iter().find(is_no_text) {
            Some(mark) => format!(
                " `{mark}` stands for a secret that you cannot see, and is not what is there: include only other lines."
            ),
            None => String::new(),
        }
    }

    /// Returns whether a text holds any mark.
    pub(crate) fn are_in(&self, text: &[u8]) -> bool {
        self.0.iter().any(|mark| memmem::find(text, mark.as_bytes()).is_some())
    }
}
