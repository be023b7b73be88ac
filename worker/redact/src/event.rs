//! Events: what becomes part of the log, and so of every later prompt.

use super::error::Error;
use super::redactor::Redactor;
use bloomery_engine::Event;

impl Redactor {
    /// An event without the values. Each call whose arguments held one is marked, so that the gate denies it: the raw
    /// value is in no log, and a replay rules as it was ruled.
    ///
    /// # Errors
    /// If the event means nothing without a value, because the value is a word that events are made of; or if there are
    /// values that cannot be kept out of it. Only the end of a conversation is let through then, which says so.
    pub fn event(&self, mut event: Event) -> Result<Event, Error> {
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
