//! The thoughts of the model. Each has a signature, which shows whether a client returns the thought unchanged.

use bloomery_crds::Digest;
use serde_json::Value;

/// Signs a thought.
pub(super) fn signature(thought: &str) -> String {
    let digest = Digest::of_bytes(format!("thought by this server: {thought}").as_bytes());
    format!("ErUB{}", digest.as_str().trim_start_matches("sha256:"))
}

/// Returns whether this server wrote a `thinking` block. Without the text of the thought, checks only the prefix of the
/// signature.
pub(super) fn is_from_this_server(block: &Value) -> bool {
    let field = |name: &str| block.get(name).and_then(Value::as_str);
    match (field("thinking"), field("signature")) {
        (Some(""), Some(signed)) => signed.starts_with("ErUB"),
        (Some(thought), Some(signed)) => signed == signature(thought),
        _ => false,
    }
}

/// Returns the mode of thinking that a request asks for.
pub(super) fn mode(body: &Value) -> Option<&str> {
    body.pointer("/thinking/type").and_then(Value::as_str)
}

/// Returns whether a request asks for thoughts without their text.
pub(super) fn omits_text(body: &Value) -> bool {
    body.pointer("/thinking/display").and_then(Value::as_str) == Some("omitted")
}
