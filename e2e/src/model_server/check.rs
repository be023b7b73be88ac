//! The protocol check: what a provider would refuse, and what would break its prompt cache.
//!
//! Pure: a request, the request before it, and what is wrong.

mod messages;

use bloomery_crds::v1alpha1::Stage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::request::{Request, role, text};

/// One request that broke the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// Whose request it was: its `user` field, or `anonymous`.
    pub user: String,
    /// The stage that asked.
    #[serde(default)]
    pub stage: Stage,
    /// The turn that it asked for.
    pub turn: usize,
    /// What was broken.
    pub rule: Rule,
    /// What is wrong with the request, for people.
    pub message: String,
}

/// The rules that every request is checked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    /// The body is a chat-completions request, not a stream.
    Readable,
    /// The first message is the system message.
    SystemFirst,
    /// Each message has a known role and the content that goes with it.
    MessageShape,
    /// Each tool call has one result before the next assistant or user message.
    OneResultPerCall,
    /// Each result has its call.
    ResultHasCall,
    /// No call id occurs twice.
    UniqueCallIds,
    /// The arguments of calls are text.
    ArgumentsAreText,
    /// Names of tools and calls are what providers take.
    ToolNames,
    /// The messages begin with those of the request before.
    SamePrefix,
    /// The tools are those of the request before.
    SameTools,
    /// The script has an answer for the request.
    Scripted,
    /// The request holds what the script expects.
    Expected,
}

/// What is wrong with one request: the rule and the sentence.
pub(super) type Broken = (Rule, String);

/// The part of a request that later ones are held against.
#[derive(Clone, Debug)]
pub(super) struct Earlier {
    messages: Vec<Value>,
    tools: Vec<Value>,
}

impl Earlier {
    pub(super) fn of(request: &Request) -> Self {
        Self { messages: request.messages.clone(), tools: request.tools.clone() }
    }
}

/// Finds everything that is wrong with a request, given the one before it in its conversation.
pub(super) fn check(request: &Request, earlier: Option<&Earlier>) -> Vec<Broken> {
    let mut broken = Vec::new();
    if request.stream == Some(true) {
        broken.push((Rule::Readable, "`stream` is not supported by this server".to_owned()));
    }
    messages::check(&request.messages, &mut broken);
    check_tools(request, &mut broken);
    if let Some(earlier) = earlier {
        check_prefix(request, earlier, &mut broken);
    }
    broken
}

fn check_tools(request: &Request, broken: &mut Vec<Broken>) {
    let mut names = std::collections::BTreeSet::new();
    for (index, tool) in request.tools.iter().enumerate() {
        let Some(name) = tool.pointer("/function/name").and_then(Value::as_str) else {
            broken.push((Rule::ToolNames, format!("tools[{index}]: it has no `function.name`")));
            continue;
        };
        if tool.get("type").and_then(Value::as_str) != Some("function") {
            broken.push((Rule::ToolNames, format!("tools[{index}]: `type` is not `function`")));
        }
        if !is_tool_name(name) {
            broken.push((Rule::ToolNames, format!("tools[{index}]: `{name}` does not match ^[A-Za-z0-9_-]{{1,64}}$")));
        }
        if !names.insert(name) {
            broken.push((Rule::ToolNames, format!("tools[{index}]: `{name}` is offered twice")));
        }
    }
}

fn check_prefix(request: &Request, earlier: &Earlier, broken: &mut Vec<Broken>) {
    let pairs = earlier.messages.iter().zip(&request.messages);
    let same = pairs.take_while(|(before, now)| before == now || is_put_aside(before, now)).count();
    if same < earlier.messages.len() {
        let sentence = format!(
            "messages[{same}] differs from the request before, which had {} messages; this one has {}",
            earlier.messages.len(),
            request.messages.len()
        );
        broken.push((Rule::SamePrefix, sentence));
    }
    if earlier.tools != request.tools {
        broken.push((Rule::SameTools, "`tools` differ from the request before".to_owned()));
    }
}

/// Whether a result gave way to an excerpt of it: the one change of a prefix that is meant.
fn is_put_aside(before: &Value, now: &Value) -> bool {
    let (whole, excerpt) = (text(before), text(now));
    role(before) == Some("tool")
        && role(now) == Some("tool")
        && before.get("tool_call_id") == now.get("tool_call_id")
        && excerpt.len() < whole.len()
        && excerpt.contains("focus_read, handle sha256:")
}

/// What every provider takes as a name.
fn is_tool_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
