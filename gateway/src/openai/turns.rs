//! The turns of a chat.

use super::request::{CompletionRequest, Role, refused};
use crate::access::random_token;
use crate::problem::Problem;
use axum::http::StatusCode;
use bloomery_crds::Digest;
use serde_json::json;

/// The first part of the keys of Jobs that chats started.
const KEY_PREFIX: &str = "chat";

/// The number of hex digits of the digest of the user's turns in a key.
const TURNS_DIGITS: usize = 24;

/// The number of hex digits that make a key unique.
const UNIQUE_DIGITS: usize = 16;

/// The turns of a chat, which end with one of the user. Neighbouring messages of one author are one turn.
#[derive(Debug)]
pub(super) struct Turns {
    user: String,
    skill: String,
    /// The messages of the application.
    instructions: Vec<String>,
    /// The turns before the last one.
    earlier: Vec<Turn>,
    /// The last turn, which is the user's.
    last: String,
}

/// A turn of the user or the Skill.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Turn {
    is_of_user: bool,
    text: String,
}

impl Turns {
    /// Reads the turns of a request.
    ///
    /// # Errors
    /// If a message is no text, or the last one is not the user's.
    pub(super) fn new(user: &str, request: &CompletionRequest) -> Result<Self, Problem> {
        let (mut instructions, mut earlier) = (Vec::new(), Vec::<Turn>::new());
        for (nth, message) in request.messages.iter().enumerate() {
            let text = message.text(&format!("messages[{nth}]"))?;
            let is_of_user = match message.role {
                Role::System | Role::Developer => {
                    instructions.push(text);
                    continue;
                }
                Role::User => true,
                Role::Assistant => false,
            };
            match earlier.last_mut().filter(|turn| turn.is_of_user == is_of_user) {
                Some(turn) => turn.text = [turn.text.as_str(), text.as_str()].join("\n\n"),
                None => earlier.push(Turn { is_of_user, text }),
            }
        }
        match earlier.pop() {
            Some(Turn { is_of_user: true, text: last }) if !last.trim().is_empty() => {
                Ok(Self { user: user.to_owned(), skill: request.model.clone(), instructions, earlier, last })
            }
            _ => Err(refused("messages", "must end with a message of the user that has a text")),
        }
    }

    /// The name of the Skill.
    pub(super) fn skill(&self) -> &str {
        &self.skill
    }

    /// The last message of the user.
    pub(super) fn last(&self) -> &str {
        &self.last
    }

    /// The answer before the last message; empty if there is none.
    pub(super) fn answer_before(&self) -> &str {
        self.earlier.last().map_or("", |turn| turn.text.as_str())
    }

    /// Returns the beginnings of the keys that the Job which produced the answer before can have: one for each of the user's earlier turns
    /// with which it may have begun, the latest first. There are none without an answer.
    pub(super) fn earlier_prefixes(&self) -> Vec<String> {
        if self.answer_before().is_empty() {
            return Vec::new();
        }
        let turns: Vec<&str> = self.user_turns().collect();
        (1..=turns.len()).rev().filter_map(|count| turns.get(..count)).map(|turns| self.prefix(turns)).collect()
    }

    /// Returns the key of a new Job. Without a unique part, it is random.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(super) fn new_key(&self, unique: Option<&str>) -> Result<String, Problem> {
        let random = |error: std::io::Error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
        let unique = unique.map_or_else(random_token, |unique| Ok(unique.to_owned())).map_err(random)?;
        let unique = Digest::of_bytes(unique.as_bytes());
        let turns: Vec<&str> = self.user_turns().chain([self.last.as_str()]).collect();
        Ok(format!("{}{}", self.prefix(&turns), unique.short(UNIQUE_DIGITS)))
    }

    /// Returns the goal of a Job that continues no other one. It has the whole chat: nothing that the client sent is dropped.
    pub(super) fn goal(&self) -> String {
        let mut parts = self.instructions.clone();
        if !self.earlier.is_empty() {
            parts.push("The chat so far:".to_owned());
            parts.extend(self.earlier.iter().map(|turn| {
                let author = if turn.is_of_user { "User" } else { "Assistant" };
                format!("{author}: {}", turn.text)
            }));
            parts.push("The next message of the user:".to_owned());
        }
        parts.push(self.last.clone());
        parts.join("\n\n")
    }

    /// The turns of the user before the last one.
    fn user_turns(&self) -> impl Iterator<Item = &str> {
        self.earlier.iter().filter(|turn| turn.is_of_user).map(|turn| turn.text.as_str())
    }

    /// Returns the beginning of the key of a Job that began with the last one of these turns of the user.
    fn prefix(&self, turns: &[&str]) -> String {
        let Self { user, skill, instructions, .. } = self;
        let digest = Digest::of_value(&json!([user, skill, instructions, turns]));
        format!("{KEY_PREFIX}-{}-", digest.short(TURNS_DIGITS))
    }
}

/// Returns the part of a key that makes it unique, if a chat started the Job.
pub(super) fn unique_part(key: &str) -> Option<&str> {
    key.strip_prefix(KEY_PREFIX)?.rsplit_once('-').map(|(_, unique)| unique)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn turns(messages: &Value) -> Result<Turns, Problem> {
        let request = serde_json::from_value(json!({"model": "greeter", "messages": messages})).unwrap();
        Turns::new("ada", &request)
    }

    fn chat(texts: &[&str]) -> Turns {
        let role = |nth: usize| if nth.is_multiple_of(2) { "user" } else { "assistant" };
        let messages = texts.iter().enumerate().map(|(nth, text)| json!({"role": role(nth), "content": text}));
        turns(&messages.collect()).unwrap()
    }

    #[test]
    fn the_key_of_a_job_is_found_in_the_later_turns_of_its_chat() {
        let first = chat(&["Greet me"]).new_key(None).unwrap();
        assert!(first.len() <= 50 && first.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{first}");
        assert_ne!(chat(&["Greet me"]).new_key(None).unwrap(), first);
        assert!(chat(&["Greet me"]).earlier_prefixes().is_empty());
        let second = chat(&["Greet me", "Hello.", "Again"]);
        let third = chat(&["Greet me", "Hello.", "Again", "Hi.", "More"]);
        assert!(matches!(second.earlier_prefixes().as_slice(), [prefix] if first.starts_with(prefix)));
        let key = second.new_key(None).unwrap();
        let prefixes = third.earlier_prefixes();
        assert!(matches!(prefixes.as_slice(), [late, early] if key.starts_with(late) && first.starts_with(early)));
        let other = chat(&["Greet him", "Hello.", "Again"]);
        assert!(other.earlier_prefixes().iter().all(|prefix| !first.starts_with(prefix)));
    }

    #[test]
    fn an_idempotency_key_makes_the_key_of_the_same_chat_the_same() {
        let key = |texts: &[&str], unique: &str| chat(texts).new_key(Some(unique)).unwrap();
        assert_eq!(key(&["hi"], "i-1"), key(&["hi"], "i-1"));
        assert_ne!(key(&["hi"], "i-1"), key(&["hi"], "i-2"));
        let other = key(&["ho"], "i-1");
        assert_ne!(key(&["hi"], "i-1"), other);
        assert_eq!(unique_part(&key(&["hi"], "i-1")), unique_part(&other));
        assert_eq!(unique_part("20260101-120000-ab12c"), None);
    }

    #[test]
    fn a_new_job_has_the_whole_chat_in_its_goal() {
        let messages = json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Greet me"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "Again"},
            {"role": "user", "content": "and again"},
        ]);
        let expected = "Be brief.\n\nThe chat so far:\n\nUser: Greet me\n\nAssistant: Hello.\n\nThe next message of the user:\n\n\
                        Again\n\nand again";
        assert_eq!(turns(&messages).unwrap().goal(), expected);
        assert_eq!(chat(&["hi"]).goal(), "hi");
    }

    #[test]
    fn other_instructions_are_another_chat() {
        let with = |text: &str| {
            let messages = json!([{"role": "developer", "content": text}, {"role": "user", "content": "hi"}]);
            turns(&messages).unwrap().prefix(&["hi"])
        };
        assert_ne!(with("Be brief."), with("Be kind."));
        assert_ne!(with("Be brief."), chat(&["hi"]).prefix(&["hi"]));
    }

    #[test]
    fn a_chat_ends_with_a_text_of_the_user() {
        for messages in [
            json!([]),
            json!([{"role": "system", "content": "Be brief."}]),
            json!([{"role": "user", "content": " "}]),
            json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello."}]),
        ] {
            assert!(turns(&messages).unwrap_err().detail().starts_with("messages must end"), "{messages}");
        }
    }
}
