//! What the model thought: signed, so that it comes back as it was.

use bloomery_crds::Digest;
use serde_json::Value;

/// Signs a thought.
pub(super) fn signature(thought: &str) -> String {
    let digest = Digest::of_bytes(format!("thought by this server: {thought}").as_bytes());
    format!("ErUB{}", digest.as_str().trim_start_matches("sha256:"))
}

/// Whether a block of thinking is one that this server wrote. One whose text was left out has its signature only.
pub(super) fn is_ours(block: &Value) -> bool {
    let field = |name: &str| block.get(name).and_then(Value::as_str);
    match (field("thinking"), field("signature")) {
        (Some(""), Some(signed)) => signed.starts_with("ErUB"),
        (Some(thought), Some(signed)) => signed == signature(thought),
        _ => false,
    }
}

/// What a request says of thinking.
pub(super) fn mode(body: &Value) -> Option<&str> {
    body.pointer("/thinking/type").and_then(Value::as_str)
}

/// Whether a request wants to see nothing of it but the signature.
pub(super) fn is_left_out(body: &Value) -> bool {
    body.pointer("/thinking/display").and_then(Value::as_str) == Some("omitted")
}
