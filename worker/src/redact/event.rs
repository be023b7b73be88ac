//! Events: what becomes part of the log, and so of every later prompt.

use super::Redactor;
use bloomery_engine::Event;

impl Redactor {
    /// An event without the values. Each call whose arguments held one is marked, so that the gate denies it: the raw
    /// value is in no log, and a replay rules as it was ruled.
    ///
    /// # Errors
    /// If the event means nothing without a value, because the value is a word that events are made of.
    pub fn event(&self, mut event: Event) -> serde_json::Result<Event> {
        self.refresh();
        if let Event::ModelAnswered { answer } = &mut event {
            for call in &mut answer.calls {
                call.secrets = self.names_in(&call.arguments);
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
        serde_json::from_value(value)
    }
}
