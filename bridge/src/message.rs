//! JSON-RPC messages. Only the parts that the bridge changes are parsed: the rest is passed on byte by byte.

use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The error code of a request with an unknown method.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

/// The error code of a request that is not valid at this moment.
pub(crate) const INVALID_REQUEST: i64 = -32600;

/// The error code of a text that is no message.
pub(crate) const PARSE_ERROR: i64 = -32700;

/// The members of an object, unparsed.
type Members = BTreeMap<String, Box<RawValue>>;

/// A JSON-RPC message: a request, a notification or an answer.
#[derive(Debug, Clone)]
pub(crate) struct Message(Members);

/// The kind of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request with this method.
    Request(String),
    /// A notification with this method.
    Notification(String),
    /// A result or an error.
    Answer,
}

impl Message {
    /// Reads a message. Returns `None` if the text is not a single JSON-RPC message.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let message = Self(serde_json::from_str(text).ok()?);
        message.0.contains_key("jsonrpc").then_some(())?;
        message.kind().is_some().then_some(message)
    }

    /// Returns the kind.
    pub(crate) fn kind(&self) -> Option<Kind> {
        let has = |name| self.0.contains_key(name);
        let method = self.0.get("method").map(|raw| serde_json::from_str::<String>(raw.get()).ok());
        match method {
            Some(method) if self.id().is_some() => Some(Kind::Request(method?)),
            Some(method) => Some(Kind::Notification(method?)),
            None if has("result") || has("error") => Some(Kind::Answer),
            None => None,
        }
    }

    /// Returns whether it is an error.
    pub(crate) fn is_error(&self) -> bool {
        self.0.contains_key("error")
    }

    /// Returns the id; `None` if it has none.
    pub(crate) fn id(&self) -> Option<&RawValue> {
        self.0.get("id").map(AsRef::as_ref).filter(|id| id.get() != "null")
    }

    /// Replaces the id.
    pub(crate) fn set_id(&mut self, id: Box<RawValue>) {
        self.0.insert("id".to_owned(), id);
    }

    /// Returns the token with which the sender of a request wants to receive its progress.
    pub(crate) fn wanted_token(&self) -> Option<Box<RawValue>> {
        members(members(self.0.get("params")?)?.get("_meta")?)?.remove("progressToken")
    }

    /// Replaces the token of [`Self::wanted_token`].
    pub(crate) fn set_wanted_token(&mut self, token: Box<RawValue>) {
        let set = || {
            let mut params = members(self.0.get("params")?)?;
            let mut meta = members(params.get("_meta")?)?;
            meta.insert("progressToken".to_owned(), token);
            params.insert("_meta".to_owned(), raw(&meta)?);
            raw(&params)
        };
        if let Some(params) = set() {
            self.0.insert("params".to_owned(), params);
        }
    }

    /// Returns a member of the parameters.
    pub(crate) fn param(&self, name: &str) -> Option<Box<RawValue>> {
        members(self.0.get("params")?)?.remove(name)
    }

    /// Replaces a member of the parameters.
    pub(crate) fn set_param(&mut self, name: &str, value: Box<RawValue>) {
        let mut params = self.0.get("params").and_then(|params| members(params)).unwrap_or_default();
        params.insert(name.to_owned(), value);
        if let Some(params) = raw(&params) {
            self.0.insert("params".to_owned(), params);
        }
    }

    /// Returns the message as one line, without its line feed.
    pub(crate) fn to_line(&self) -> String {
        let line = serde_json::to_string(&self.0).unwrap_or_default();
        // JSON has line breaks only between its tokens, where a space means the same.
        if line.contains(['\n', '\r']) { line.replace(['\n', '\r'], " ") } else { line }
    }
}

/// Returns the number that the bridge used as an id or token. Some servers return a number as a text.
pub(crate) fn number(raw: &RawValue) -> Option<u64> {
    raw.get().trim_matches('"').parse().ok()
}

/// Returns a number as an id or token.
pub(crate) fn raw_number(number: u64) -> Option<Box<RawValue>> {
    RawValue::from_string(number.to_string()).ok()
}

/// Returns an error answer.
pub(crate) fn error(id: Option<&RawValue>, code: i64, message: &str) -> String {
    let id = id.map_or("null", RawValue::get);
    let message = serde_json::Value::from(message);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#)
}

/// Returns an answer with a result.
pub(crate) fn result(id: &RawValue, result: &serde_json::Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.get())
}

fn members(raw: &RawValue) -> Option<Members> {
    serde_json::from_str(raw.get()).ok()
}

fn raw(members: &Members) -> Option<Box<RawValue>> {
    RawValue::from_string(serde_json::to_string(members).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn value(message: &Message) -> Value {
        serde_json::from_str(&message.to_line()).unwrap()
    }

    #[rstest]
    #[case::request(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Some(Kind::Request("ping".into())))]
    #[case::notification(r#"{"jsonrpc":"2.0","method":"a/b"}"#, Some(Kind::Notification("a/b".into())))]
    #[case::result(r#"{"jsonrpc":"2.0","id":"x","result":{}}"#, Some(Kind::Answer))]
    #[case::error(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, Some(Kind::Answer))]
    #[case::log_line(r#"{"level":30,"id":1,"method":"tools/call"}"#, None)]
    #[case::text("listening", None)]
    #[case::batch(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, None)]
    #[case::nothing(r#"{"jsonrpc":"2.0","id":1}"#, None)]
    #[case::method_of_another_type(r#"{"jsonrpc":"2.0","id":1,"method":7}"#, None)]
    #[case::cut(r#"{"jsonrpc":"2.0","id":1,"resu"#, None)]
    fn messages_are_told_from_other_output(#[case] text: &str, #[case] kind: Option<Kind>) {
        assert_eq!(Message::read(text).and_then(|message| message.kind()), kind);
    }

    #[test]
    fn id_and_token_are_replaced_and_all_else_stays() {
        let text = r#"{"jsonrpc": "2.0", "id": "call-1", "method": "tools/call",
            "params": {"name": "pay", "arguments": {"amount": 1.10, "note": "a\nb"}, "_meta": {"progressToken": 9, "k": "v"}}}"#;
        let mut message = Message::read(text).unwrap();
        assert_eq!(message.wanted_token().unwrap().get(), "9");
        message.set_id(raw_number(5).unwrap());
        message.set_wanted_token(raw_number(5).unwrap());
        let params = json!({"name": "pay", "arguments": {"amount": 1.10, "note": "a\nb"}, "_meta": {"progressToken": 5, "k": "v"}});
        assert_eq!(value(&message), json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}));
        assert!(message.to_line().contains("1.10"), "numbers keep their digits");
        assert!(!message.to_line().contains('\n'));
    }

    #[test]
    fn a_request_without_a_token_gets_none() {
        let mut message = Message::read(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).unwrap();
        message.set_wanted_token(raw_number(5).unwrap());
        assert_eq!(value(&message), json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    }

    #[test]
    fn errors_quote_their_message() {
        let error: Value = serde_json::from_str(&error(None, -32600, "no \"session\"")).unwrap();
        assert_eq!(
            error,
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no \"session\""}})
        );
    }

    #[test]
    fn ids_that_servers_turned_into_texts_are_recognised() {
        let ids = ["7", "\"7\"", "-1", "\"x\""].map(|id| number(&RawValue::from_string(id.to_owned()).unwrap()));
        assert_eq!(ids, [Some(7), Some(7), None, None]);
    }
}
