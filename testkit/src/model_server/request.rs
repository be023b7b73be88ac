//! A request, independent of the provider's protocol.

use serde_json::Value;

/// The name for requests without a user. They are not compared with earlier requests.
pub(super) const ANONYMOUS: &str = "anonymous";

/// A provider's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protocol {
    /// Chat completions.
    Openai,
    /// Messages.
    Anthropic,
}

/// A request. `items` and `tools` keep the JSON of the request, because they are compared with the previous request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// The protocol of the request.
    pub(super) protocol: Protocol,
    /// The whole body, for the checks of the protocol.
    pub(super) body: Value,
    /// The requested version of the API, if the protocol has versions.
    pub(super) version: Option<String>,
    pub(super) model: String,
    /// The user. The worker sends the Job's UID.
    pub(super) user: Option<String>,
    /// The system prompt and the messages, in their order.
    pub(super) items: Vec<Item>,
    /// The offered tools, without cache marks.
    pub(super) tools: Vec<Value>,
    /// The JSON pointer to the name within a tool.
    pub(super) tool_name: &'static str,
    /// True if the client wants the answer as a stream of events.
    pub(super) stream: bool,
    /// True if the client wants JSON that follows a schema.
    pub(super) structured: bool,
}

/// One part of a prompt: a message, or one of its blocks if the protocol divides messages into blocks.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    /// The path of the item in the request, for messages.
    pub(super) at: String,
    pub(super) text: String,
    /// The call that a result answers.
    pub(super) call: Option<String>,
    /// The unchanged JSON of the item, without cache marks.
    pub(super) raw: Value,
}

/// The author of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    System,
    User,
    Assistant,
    /// The result of a call.
    Result,
    /// An author that the protocol does not define.
    Unknown,
}

impl Request {
    /// Returns the name of the user, for records.
    pub(super) fn user_name(&self) -> &str {
        self.user.as_deref().unwrap_or(ANONYMOUS)
    }

    /// Returns the requested turn, which is the number of answers that the request already contains.
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

    /// Returns the first message of the user. In the main loop, this is the Job's goal.
    pub(super) fn first_text(&self) -> &str {
        self.items_of(Kind::User).next().map_or("", |item| item.text.as_str())
    }

    /// Returns the names of the offered tools.
    pub(super) fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().filter_map(|tool| tool.pointer(self.tool_name)?.as_str())
    }

    /// Returns whether the request has the field at a dotted path, such as `output_config.format`.
    pub(super) fn has(&self, path: &str) -> bool {
        let pointer = format!("/{}", path.replace('.', "/"));
        self.body.pointer(&pointer).is_some_and(|value| !value.is_null())
    }
}

/// Returns the text of a `content`, which is a string or a list of parts.
pub(super) fn text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}
