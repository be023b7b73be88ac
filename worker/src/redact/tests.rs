use super::*;
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
