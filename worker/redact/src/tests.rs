use super::*;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_engine::Event;
use bloomery_engine::event::{Answer, CallId, RequestedCall};
use serde_json::json;
use std::borrow::Cow;
use std::io::Write;

fn redactor(values: &[(&str, &str)]) -> Redactor {
    let redactor = Redactor::default();
    for (name, value) in values {
        redactor.learn(name, value.as_bytes());
    }
    redactor
}

#[test]
fn a_changed_file_is_read_again_and_its_earlier_values_stay_redacted() {
    let dir = tempfile::tempdir().unwrap();
    let (file, next) = (dir.path().join("token"), dir.path().join("next"));
    let redactor = Redactor::default();
    redactor.watch("token", &file);
    let text = "first-value second-value third-value";
    assert_eq!(redactor.redact_text(text), text);
    std::fs::write(&file, " first-value\n").unwrap();
    redactor.refresh();
    assert_eq!(redactor.redact_text(text), "[redacted: token] second-value third-value");
    for value in ["second-value", "third-value"] {
        std::fs::write(&next, value).unwrap();
        std::fs::rename(&next, &file).unwrap();
        redactor.refresh();
    }
    assert_eq!(redactor.redact_text(text), "[redacted: token] [redacted: token] [redacted: token]");
}

#[test]
fn the_mark_of_a_value_with_several_names_has_the_first_name() {
    let redactor =
        self::redactor(&[("one", "the-same-value"), ("other", "the-same-value"), ("short", "1234567"), ("empty", "")]);
    assert_eq!(redactor.redact_text("the-same-value 1234567"), "[redacted: one] 1234567");
}

#[test]
fn a_value_in_hexadecimal_digits_is_found_within_other_digits() {
    let redactor = self::redactor(&[("word", "hunter22")]);
    let text = "0a68756e7465723232ff 68756E7465723232 %368756e7465723232";
    assert_eq!(redactor.redact_text(text), "0a[redacted: word]ff [redacted: word] [redacted: word]");
}

#[test]
fn a_quote_is_one_bounded_line_without_values() {
    let redactor = self::redactor(&[("key", "sk-12345")]);
    assert_eq!(redactor.quote("bad\n  key sk-12345!", 300), "bad key [redacted: key]!");
    for padding in 275..300 {
        let quote = redactor.quote(&format!("{}sk-12345{}", "x".repeat(padding), "y".repeat(300)), 300);
        assert!(quote.len() <= 300 && !quote.contains("sk"), "{quote}");
    }
}

#[test]
fn redacted_json_stays_json() {
    let redactor = self::redactor(&[("pin", "1234567890"), ("word", "hunter22")]);
    let mut value = json!({"hunter22": [1_234_567_890, true, null, "x hunter22"], "n": 12.5});
    redactor.redact_json(&mut value);
    assert_eq!(value, json!({"[redacted: word]": ["[redacted: pin]", true, null, "x [redacted: word]"], "n": 12.5}));
}

#[test]
fn the_writer_redacts() {
    let redactor = self::redactor(&[("word", "hunter22")]);
    let mut out = Vec::new();
    redactor.writer(&mut out).write_all(b"a hunter22\n\xff\n").unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "a [redacted: word]\n\u{fffd}\n");
}

#[test]
fn debug_output_shows_no_value() {
    assert_eq!(format!("{:?}", redactor(&[("word", "hunter22")])), "Redactor");
}

#[test]
fn every_text_is_redacted_completely_if_the_values_are_too_large() {
    let redactor = Redactor::too_large();
    assert!(redactor.is_too_large());
    assert!(!Redactor::default().is_too_large() && !self::redactor(&[("short", "x")]).is_too_large());
    assert_eq!(redactor.redact_text("anything at all"), "***");
    assert_eq!(redactor.redact_json_text(r#"{"a": "b"}"#), r#"{"***":"***"}"#);
    assert_eq!((redactor.names_in("x"), redactor.redact_text("")), (vec!["word".to_owned()], Cow::Borrowed("")));
    let event = Event::ToolFailed { call: CallId::new(1, 0), text: "x".into() };
    assert!(matches!(redactor.redact_event(event), Err(Error::TooLarge)));
    // Adding a value builds the search again. This time it succeeds.
    redactor.learn("word", b"hunter22");
    assert_eq!(redactor.redact_text("a hunter22"), "a [redacted: word]");
}

#[test]
fn an_oversized_value_fails_every_event_except_the_last() {
    let fits = "x1".repeat(MAX_VALUE_BYTES / 2);
    let redactor = self::redactor(&[("fits", fits.as_str())]);
    let event = || Event::ToolFailed { call: CallId::new(1, 0), text: fits.clone() };
    assert!(matches!(redactor.redact_event(event()), Ok(Event::ToolFailed { text, .. }) if text == "[redacted: fits]"));
    let redactor = self::redactor(&[("large", &format!("{fits}!"))]);
    let fault = redactor.redact_event(event()).unwrap_err();
    assert!(matches!(&fault, Error::Oversized(name) if name == "large") && fault.to_string().contains("16384 bytes"));
    let end = Event::Finished { outcome: Outcome::new(OutcomeCode::UserNeeded, "It is too large."), result: None };
    assert_eq!(redactor.redact_event(end.clone()).unwrap(), end);
}

/// Returns a key in the format of `openssl`: lines of 64 characters, the last one shorter.
fn pem(lines: usize) -> String {
    let line = |n: usize| format!("{:A<64}\n", format!("{n:x}/{}", n * 7919));
    let body: String = (0..lines).map(line).collect();
    format!("-----BEGIN PRIVATE KEY-----\n{body}shortLast=\n-----END PRIVATE KEY-----\n")
}

#[test]
fn each_line_of_a_value_is_a_value() {
    let key = pem(3);
    let redactor = self::redactor(&[("key", key.as_str())]);
    assert_eq!(redactor.redact_text(&format!("<{}>", key.trim())), "<[redacted: key]>");
    for line in key.lines() {
        let expected = if line.starts_with("-----") { line } else { "[redacted: key]" };
        assert_eq!(redactor.redact_text(line), expected);
        assert_eq!(redactor.redact_text(&format!("  3: {line}\r\n")), format!("  3: {expected}\r\n"));
    }
    let line = key.lines().nth(2).unwrap();
    assert_eq!(redactor.redact_json_text(&json!({"a": line}).to_string()), r#"{"a":"[redacted: key]"}"#);
    // The name appears once, although several lines are found.
    assert_eq!(redactor.names_in(&key.replace("-----", "")), ["key"]);
}

#[test]
fn short_or_common_lines_of_a_value_are_not_redacted() {
    let redactor = self::redactor(&[("config", "user: x\n----------\n  token: abc  \nshort\n-----BEGIN KEY-----")]);
    let text = "user: x ---------- short -----BEGIN KEY----- ----------";
    assert_eq!(redactor.redact_text(text), text);
    assert_eq!(redactor.redact_text("a token: abc b"), "a [redacted: config] b");
}

/// Checks the limit that `docs/explanation/security.md` states.
#[test]
fn the_largest_value_of_many_lines_takes_little_memory() {
    let key = pem(249);
    assert!((MAX_VALUE_BYTES - 256..=MAX_VALUE_BYTES).contains(&key.trim().len()), "{}", key.trim().len());
    let redactor = self::redactor(&[("key", key.as_str())]);
    let text = key.lines().nth(200).unwrap();
    assert_eq!(redactor.redact_text(text), "[redacted: key]");
    assert!(
        !redactor.is_too_large() && redactor.patterns().memory() < 5 * 1024 * 1024,
        "{}",
        redactor.patterns().memory()
    );
    // Many short lines take little memory, too.
    let lines = (0..1800).map(|n| format!("{n:08}")).collect::<Vec<_>>().join("\n");
    let redactor = self::redactor(&[("key", lines.as_str())]);
    assert_eq!(redactor.redact_text("x 00001234"), "x [redacted: key]");
    assert!(redactor.patterns().memory() < 5 * 1024 * 1024, "{}", redactor.patterns().memory());
}

#[test]
fn each_name_of_a_value_has_a_mark() {
    let redactor = self::redactor(&[
        ("one", "the-same-value"),
        ("other", "the-same-value"),
        ("short", "1234567"),
        ("again", "1234567"),
    ]);
    assert_eq!(redactor.marks(), ["[redacted: one]", "[redacted: other]"]);
    assert_eq!(redactor.redact_text("the-same-value"), "[redacted: one]");
}

#[test]
fn the_beginning_of_a_text_contains_no_part_of_a_value() {
    let redactor = self::redactor(&[("word", "0123456789")]);
    let text = "ab 0123456789 cd 0123456789 ef";
    for max_bytes in 0..=text.len() {
        let shown = redactor.redact_beginning(text, max_bytes);
        assert!(!shown.contains("01") && "ab [redacted: word] cd [redacted: word] ef".starts_with(&*shown), "{shown}");
    }
    assert!(matches!(redactor.redact_beginning("abc", 2), Cow::Borrowed("ab")));
}

#[test]
fn a_number_in_the_arguments_of_a_call_becomes_a_string_and_the_arguments_stay_json() {
    let redactor = self::redactor(&[("pin", "1234567890")]);
    let arguments = r#"{"pin": 1234567890, "n": 1}"#.to_owned();
    let call = RequestedCall { id: "1".into(), name: "act".into(), arguments, secrets: Vec::new() };
    let answer = Answer { calls: vec![call], ..Answer::default() };
    let Event::ModelAnswered { answer } = redactor.redact_event(Event::ModelAnswered { answer }).unwrap() else {
        panic!("another event")
    };
    assert_eq!(answer.calls[0].arguments, r#"{"n":1,"pin":"[redacted: pin]"}"#);
    assert_eq!(answer.calls[0].secrets, ["pin"]);
}
