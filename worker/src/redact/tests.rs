use super::*;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_engine::Event;
use bloomery_engine::event::CallId;
use serde_json::json;
use std::io::Write;

fn of(values: &[(&str, &str)]) -> Redactor {
    let redactor = Redactor::default();
    for (name, value) in values {
        redactor.learn(name, value.as_bytes());
    }
    redactor
}

#[test]
fn a_file_is_read_again_when_it_changes_and_what_it_held_stays_out() {
    let dir = tempfile::tempdir().unwrap();
    let (file, next) = (dir.path().join("token"), dir.path().join("next"));
    let redactor = Redactor::default();
    redactor.watch("token", &file);
    let text = "first-value second-value third-value";
    assert_eq!(redactor.text(text), text);
    std::fs::write(&file, " first-value\n").unwrap();
    redactor.refresh();
    assert_eq!(redactor.text(text), "[redacted: token] second-value third-value");
    for value in ["second-value", "third-value"] {
        std::fs::write(&next, value).unwrap();
        std::fs::rename(&next, &file).unwrap();
        redactor.refresh();
    }
    assert_eq!(redactor.text(text), "[redacted: token] [redacted: token] [redacted: token]");
}

#[test]
fn of_one_value_the_first_name_counts() {
    let redactor = of(&[("one", "the-same-value"), ("other", "the-same-value"), ("short", "1234567"), ("empty", "")]);
    assert_eq!(redactor.text("the-same-value 1234567"), "[redacted: one] 1234567");
}

#[test]
fn a_value_in_hexadecimal_digits_is_found_within_others() {
    let redactor = of(&[("word", "hunter22")]);
    let text = "0a68756e7465723232ff 68756E7465723232 %368756e7465723232";
    assert_eq!(redactor.text(text), "0a[redacted: word]ff [redacted: word] [redacted: word]");
}

#[test]
fn a_quote_is_one_bounded_line_without_values() {
    let redactor = of(&[("key", "sk-12345")]);
    assert_eq!(redactor.quote("bad\n  key sk-12345!", 300), "bad key [redacted: key]!");
    for padding in 275..300 {
        let quote = redactor.quote(&format!("{}sk-12345{}", "x".repeat(padding), "y".repeat(300)), 300);
        assert!(quote.len() <= 300 && !quote.contains("sk"), "{quote}");
    }
}

#[test]
fn json_keeps_its_form() {
    let redactor = of(&[("pin", "1234567890"), ("word", "hunter22")]);
    let mut value = json!({"hunter22": [1_234_567_890, true, null, "x hunter22"], "n": 12.5});
    redactor.json(&mut value);
    assert_eq!(value, json!({"[redacted: word]": ["[redacted: pin]", true, null, "x [redacted: word]"], "n": 12.5}));
}

#[test]
fn what_is_written_is_redacted_first() {
    let redactor = of(&[("word", "hunter22")]);
    let mut out = Vec::new();
    redactor.writer(&mut out).write_all(b"a hunter22\n\xff\n").unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "a [redacted: word]\n\u{fffd}\n");
}

#[test]
fn it_shows_nothing_of_itself() {
    assert_eq!(format!("{:?}", of(&[("word", "hunter22")])), "Redactor");
}

impl Redactor {
    /// One that has values and cannot look for them.
    pub(crate) fn blind() -> Self {
        let redactor = Self::default();
        redactor.with(|known| known.patterns = Arc::new(Patterns::built([("word", &b"hunter22"[..])], |_| None)));
        redactor
    }
}

/// What cannot be looked through is not let through.
#[test]
fn without_what_finds_values_no_text_is_free_of_them() {
    let redactor = Redactor::blind();
    assert!(redactor.is_blind() && !Redactor::default().is_blind() && !of(&[("short", "x")]).is_blind());
    assert_eq!(redactor.text("anything at all"), "***");
    assert_eq!(redactor.json_text(r#"{"a": "b"}"#), r#"{"***":"***"}"#);
    assert_eq!((redactor.names_in("x"), redactor.text("")), (vec!["word".to_owned()], Cow::Borrowed("")));
    let event = Event::ToolFailed { call: CallId::new(1, 0), text: "x".into() };
    assert!(matches!(redactor.event(event), Err(Fault::Blind)));
    // A value that is learned anew may be what it takes.
    redactor.learn("word", b"hunter22");
    assert_eq!(redactor.text("a hunter22"), "a [redacted: word]");
}

#[test]
fn a_value_that_is_too_large_ends_what_would_be_told_beside_it() {
    let fits = "x1".repeat(MAX_VALUE / 2);
    let redactor = of(&[("fits", fits.as_str())]);
    let event = || Event::ToolFailed { call: CallId::new(1, 0), text: fits.clone() };
    assert!(matches!(redactor.event(event()), Ok(Event::ToolFailed { text, .. }) if text == "[redacted: fits]"));
    let redactor = of(&[("large", &format!("{fits}!"))]);
    let fault = redactor.event(event()).unwrap_err();
    assert!(matches!(&fault, Fault::Oversized(name) if name == "large") && fault.to_string().contains("16384 bytes"));
    let end = Event::Finished { outcome: Outcome::new(OutcomeCode::UserNeeded, "It is too large."), result: None };
    assert_eq!(redactor.event(end.clone()).unwrap(), end);
}
