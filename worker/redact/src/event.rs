//! Redacts events, before they become part of the log and of later prompts.

use super::error::Error;
use super::redactor::Redactor;
use bloomery_engine::Event;

impl Redactor {
    /// Returns an event with all values redacted. A call whose arguments contained a value gets the names of the secrets, and the
    /// gate denies it. A replay decides the same, although the log does not contain the value.
    ///
    /// # Errors
    /// If the event is invalid once redacted, or if some values are too large to be redacted. In the second case,
    /// [`Event::Finished`] is still accepted, so that the log can record the end of the conversation.
    pub fn redact_event(&self, mut event: Event) -> Result<Event, Error> {
        self.refresh();
        if !matches!(event, Event::Finished { .. })
            && let Some(error) = self.error()
        {
            return Err(error);
        }
        if let Event::ModelAnswered { answer } = &mut event {
            for call in &mut answer.calls {
                call.secrets = self.names_in(&call.arguments);
                if !call.secrets.is_empty() {
                    // Redacting the parsed JSON keeps the arguments valid: a number becomes a string.
                    call.arguments = self.redact_json_text(&call.arguments).into_owned();
                }
            }
        }
        // Most events contain no value. One search in the serialized event finds every value that a search in each text would.
        if !self.patterns().is_in(&serde_json::to_string(&event)?) {
            return Ok(event);
        }
        let mut value = serde_json::to_value(event)?;
        if let Some(data) = value.get_mut("data") {
            self.redact_json(data);
        }
        let redacted: Event = serde_json::from_value(value.clone())?;
        // Some codes of newer versions are read as a known one. A redacted code must not become another code.
        if serde_json::to_value(&redacted)? != value {
            return Err(Error::CodeChanged);
        }
        Ok(redacted)
    }
}
