//! Events: what becomes part of the log, and so of every later prompt.

use super::{MAX_VALUE, Redactor};
use bloomery_engine::Event;

/// Why an event cannot be told without the values of secrets.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It means nothing without a value.
    #[error(
        "it means nothing without the value of a secret ({0}): a secret of the Job is a word that events are made of. \
         Choose another value"
    )]
    Word(#[from] serde_json::Error),
    /// A value is too large to be looked for.
    #[error(
        "the value of the secret `{0}` has more than {MAX_VALUE} bytes, and cannot be kept out of texts: make it smaller"
    )]
    Oversized(String),
    /// All values together are too much to be looked for.
    #[error("the secrets of the Job are too large together to be kept out of texts")]
    Blind,
}

impl Redactor {
    /// An event without the values. Each call whose arguments held one is marked, so that the gate denies it: the raw
    /// value is in no log, and a replay rules as it was ruled.
    ///
    /// # Errors
    /// If the event means nothing without a value, because the value is a word that events are made of; or if there are
    /// values that cannot be kept out of it. Only the end of a conversation is let through then, which says so.
    pub fn event(&self, mut event: Event) -> Result<Event, Fault> {
        self.refresh();
        if !matches!(event, Event::Finished { .. })
            && let Some(fault) = self.fault()
        {
            return Err(fault);
        }
        if let Event::ModelAnswered { answer } = &mut event {
            for call in &mut answer.calls {
                call.secrets = self.names_in(&call.arguments);
                if !call.secrets.is_empty() {
                    // A number becomes a text: arguments that can be read stay so.
                    call.arguments = self.json_text(&call.arguments).into_owned();
                }
            }
        }
        // One look at the line that the event becomes finds whatever a look at each of its texts would.
        if !self.patterns().is_in(&serde_json::to_string(&event)?) {
            return Ok(event);
        }
        let mut value = serde_json::to_value(event)?;
        if let Some(data) = value.get_mut("data") {
            self.json(data);
        }
        Ok(serde_json::from_value(value)?)
    }
}
