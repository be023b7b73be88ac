//! A request as the rest of the server sees it, whichever provider's protocol it came in.

use serde_json::Value;

/// The user of requests that have none. They have no conversation to be held against.
pub(super) const ANONYMOUS: &str = "anonymous";

/// A provider's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protocol {
    /// Chat completions.
    Openai,
    /// Messages.
    Anthropic,
}

/// What was asked. The parts that are compared with the request before stay as they came.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// The protocol that it came in.
    pub(super) protocol: Protocol,
    /// The whole of it, for the checks of its protocol.
    pub(super) body: Value,
    /// The version of the API that is meant, where the protocol has some.
    pub(super) version: Option<String>,
    pub(super) model: String,
    /// Whose conversation it is: the worker sends the Job's UID.
    pub(super) user: Option<String>,
    /// The system prompt and what was said since, in their order.
    pub(super) items: Vec<Item>,
    /// The tools on offer, without marks of caches.
    pub(super) tools: Vec<Value>,
    /// Where in a tool its name stands, as a JSON pointer.
    pub(super) tool_name: &'static str,
    /// Whether the answer is wanted as a stream of events.
    pub(super) stream: bool,
    /// Whether the answer is to be JSON of a schema.
    pub(super) structured: bool,
}

/// One part of a prompt: a message, or a block of one where the protocol puts several into it.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    /// Where it stands in the request, for people.
    pub(super) at: String,
    pub(super) text: String,
    /// The call that a result answers.
    pub(super) call: Option<String>,
    /// The item as it came, without marks of caches.
    pub(super) raw: Value,
}

/// Who speaks in an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    System,
    User,
    Assistant,
    /// The result of a call.
    Result,
    /// Nobody that the protocol knows.
    Unknown,
}

impl Request {
    /// Returns the name of the user, for records.
    pub(super) fn user_name(&self) -> &str {
        self.user.as_deref().unwrap_or(ANONYMOUS)
    }

    /// Returns the turn that is asked for: the number of answers that the request already holds.
    pub(super) fn turn(&self) -> usize {
        self.items_of(Kind::Assistant).count()
    }

    /// Returns the items of a kind.
    pub(super) fn items_of(&self, kind: Kind) -> impl DoubleEndedIterator<Item = &Item> {
        self.items.iter().filter(move |item| item.kind == kind)
    }

    /// Returns the system prompt.
    pub(super) fn system_text(&self) -> Option<&str> {
        self.items_of(Kind::System).next().map(|item| item.text.as_str())
    }

    /// Returns the first words of the user: in the main loop, the Job's goal.
    pub(super) fn first_text(&self) -> &str {
        self.items_of(Kind::User).next().map_or("", |item| item.text.as_str())
    }

    /// Returns the names of the tools on offer.
    pub(super) fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().filter_map(|tool| tool.pointer(self.tool_name)?.as_str())
    }

    /// Whether the request has a field, named by its path with dots.
    pub(super) fn has(&self, path: &str) -> bool {
        let pointer = format!("/{}", path.replace('.', "/"));
        self.body.pointer(&pointer).is_some_and(|value| !value.is_null())
    }
}

/// Returns the text of a `content`: a string, or the text parts of a list one after the other.
pub(super) fn text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}
