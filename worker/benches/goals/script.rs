//! The answers of the model: many tool calls, and then an answer that passes all gates.

use bloomery_engine::core_tools::files::READ_FILE;
use serde_json::{Value, json};

/// The answers of the model to the stages around the main loop: intent, finalization gate, polisher.
pub(crate) const STAGES: [&str; 3] = [
    r#"{"intent": "refund", "entities": {"order_id": "A-17"}}"#,
    r#"{"passed": true, "score": 0.9, "reasons": [], "missing_fields": []}"#,
    "All orders of the list are refunded.",
];

/// The answer that ends the main loop.
pub(crate) const FINAL: &str =
    "All orders of the list are refunded.\n```json\n{\"order_id\": \"A-17\", \"status\": \"refunded\"}\n```\n";

/// Returns the tool and the arguments of the call in the `n`-th answer. Reads and effects alternate.
pub(crate) fn call(n: usize) -> (&'static str, Value) {
    let reason = "The customer says that the parcel was open, and that a part of it is missing. Photographs came with the \
                  message; the carrier confirms it.";
    let cents = u32::try_from(n % 100).unwrap();
    let amount = 12.5 + f64::from(cents) / 100.0;
    (crate::skill::TOOLS[n % 4], json!({ "order_id": format!("A-{n}"), "amount": amount, "reason": reason }))
}

/// Returns the id that a provider gives to that call.
pub(crate) fn call_id(n: usize) -> String {
    format!("call_{n:08}")
}

/// Returns the provider's message with that call.
pub(crate) fn call_message(n: usize) -> Value {
    let (name, arguments) = call(n);
    message_of_call(n, name, &arguments)
}

/// Returns the provider's message with a call that reads a file of the pod.
pub(crate) fn read_message(n: usize) -> Value {
    message_of_call(n, READ_FILE, &json!({ "path": crate::job::FILE }))
}

/// Returns the provider's message with this number of calls, all of which read.
pub(crate) fn reads_message(n: usize, count: usize) -> Value {
    let first = n * count;
    let reads = (first..first + count).map(|read| {
        // Every second call of the script is an effect.
        let (name, arguments) = call(2 * read);
        requested_call(2 * read, name, &arguments)
    });
    message_of_calls(&reads.collect::<Vec<_>>())
}

fn message_of_call(n: usize, name: &str, arguments: &Value) -> Value {
    message_of_calls(&[requested_call(n, name, arguments)])
}

fn message_of_calls(calls: &[Value]) -> Value {
    json!({ "role": "assistant", "content": null, "tool_calls": calls })
}

fn requested_call(n: usize, name: &str, arguments: &Value) -> Value {
    let function = json!({ "name": name, "arguments": arguments.to_string() });
    json!({ "id": call_id(n), "type": "function", "function": function })
}

/// Returns the provider's message with a text.
pub(crate) fn text_message(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

/// Returns the answer of a tool, with about this number of bytes.
pub(crate) fn result(bytes: usize) -> String {
    "The order has two lines and was paid by card. ".repeat(bytes / 46 + 1)
}
