//! Lines that no worker has written, and events in an order that the engine never produces.

use super::{Chain, Entry, Error};
use crate::conversation::Conversation;
use crate::fixture::{Reply, World, asks, good_answer, run};
use crate::next::next;
use crate::projection::project;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;
use std::sync::LazyLock;

/// The complete log of a refund.
static LOG: LazyLock<Vec<String>> = LazyLock::new(|| {
    let answers = vec![
        asks(&[("verify_identity", json!({"order_id": "A-17"})), ("check_eligibility", json!({"order_id": "A-17"}))]),
        asks(&[("process_refund", json!({"order_id": "A-17", "amount": 49.9})), ("note", json!({"order_id": "é"}))]),
        good_answer(),
    ];
    let mut world = World::new(run(), answers, |_, _| Reply::Completed("ok"));
    world.play_out();
    world.log
});

fn read<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Vec<Entry>, Error> {
    let mut chain = Chain::new("/test");
    lines.into_iter().map(|line| chain.read(line)).collect()
}

/// Returns the first line of the log, with a part replaced.
fn edited_first_line(from: &str, to: &str) -> String {
    assert!(LOG[0].contains(from), "{}", LOG[0]);
    LOG[0].replacen(from, to, 1)
}

#[test]
fn the_log_itself_is_read() {
    assert_eq!(read(LOG.iter().map(String::as_str)).unwrap().len(), LOG.len());
}

#[rstest]
#[case::of_the_envelope(edited_first_line(r#""seq":1"#, r#""seq":1,"seq":1"#))]
#[case::of_the_envelope_by_an_escape(edited_first_line(r#""seq":1"#, r#""seq":1,"se\u0071":1"#))]
#[case::the_hash(edited_first_line(r#""prevhash":"#, r#""prevhash":"","prevhash":"#))]
#[case::the_type(edited_first_line(r#""type":"epoch.started""#, r#""type":"parked","type":"epoch.started""#))]
#[case::the_data(edited_first_line(r#""data":"#, r#""data":{"epoch":9,"attempt":9},"data":"#))]
#[case::of_the_event(edited_first_line(r#""epoch":1"#, r#""epoch":1,"epoch":2"#))]
#[case::of_the_event_before_its_type(edited_first_line(
    r#""type":"epoch.started","data":{"epoch":1,"attempt":1}"#,
    r#""data":{"epoch":1,"epoch":2,"attempt":1},"type":"epoch.started""#
))]
fn a_duplicate_field_makes_the_line_unreadable(#[case] line: String) {
    let error = read([line.as_str()]).unwrap_err();
    assert!(error.to_string().contains("duplicate field"), "{error}");
}

#[rstest]
#[case::a_later_version(edited_first_line(r#""schemaversion":1"#, r#""schemaversion":2"#))]
#[case::an_unknown_event(edited_first_line("epoch.started", "epoch.paused"))]
#[case::a_negative_number(edited_first_line(r#""epoch":1"#, r#""epoch":-1"#))]
#[case::a_number_that_no_integer_holds(edited_first_line(r#""epoch":1"#, r#""epoch":18446744073709551616"#))]
#[case::two_lines_in_one(format!("{0}{0}", LOG[0]))]
#[case::half_a_line(LOG[0][..LOG[0].len() / 2].to_owned())]
#[case::nothing(String::new())]
#[case::zeros("\0".repeat(4096))]
fn a_line_that_is_not_of_this_version_is_unreadable(#[case] line: String) {
    assert!(matches!(read([line.as_str()]), Err(Error::Unreadable { seq: 1, .. })), "{line}");
}

/// Runs on a small stack: a reader that recurses as deep as its input would overflow it.
#[rstest]
#[case::lists("[")]
#[case::objects("{\"a\":")]
#[case::in_the_data("{\"type\":\"model.answered\",\"data\":{\"answer\":{\"message\":[")]
fn endless_nesting_is_unreadable(#[case] opening: &'static str) {
    let read = move || {
        let inner = opening.chars().last().unwrap().to_string();
        for line in [opening.repeat(200_000), format!("{opening}{}", inner.repeat(1_000_000))] {
            assert!(Chain::new("/test").read(&line).is_err());
        }
    };
    std::thread::Builder::new().stack_size(512 * 1024).spawn(read).unwrap().join().unwrap();
}

proptest! {
    #[test]
    fn one_changed_byte_is_found(line in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut lines: Vec<Vec<u8>> = LOG.iter().map(|line| line.clone().into_bytes()).collect();
        // Not the last line: its hash is not in a later line, but in the Job's status.
        let line = line.index(lines.len() - 1);
        let at = at.index(lines[line].len());
        prop_assume!(lines[line][at] != to);
        lines[line][at] = to;
        let lines: Vec<_> = lines.iter().map(|line| String::from_utf8_lossy(line)).collect();
        prop_assert!(read(lines.iter().map(|line| &**line)).is_err());
    }

    #[test]
    fn no_sequence_of_envelope_fragments_panics(words in prop::collection::vec(prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\"seq\":1", "\"type\":\"parked\"", "\"data\":", "\"specversion\":\"1.0\"",
        "\"id\":\"1\"", "\"source\":\"/test\"", "\"time\":\"\"", "\"schemaversion\":1", "\"elapsedms\":0", "null", "-1", "1e9",
        "\"reason\":\"Drain\"", "\\u0000", "é", "\"call\":", "\"answer\":",
    ]), 0..40)) {
        let _ = Chain::new("/test").read(&words.concat());
    }

    /// Events in any order are read back as they were written, and fold to a next step and a status.
    #[test]
    fn any_events_in_any_order_fold(order in prop::collection::vec(any::<prop::sample::Index>(), 0..60)) {
        let entries = read(LOG.iter().map(String::as_str)).unwrap();
        let mut chain = Chain::new("/test");
        let mut conversation = Conversation::new(run());
        for at in order {
            let Entry { stamp, event, .. } = at.get(&entries).clone();
            let mut reader = chain.clone();
            let (line, entry) = chain.append(event, stamp).unwrap();
            prop_assert_eq!(reader.read(&line), Ok(entry.clone()));
            conversation.apply(&entry);
            let _ = next(&conversation);
        }
        prop_assert!(serde_json::to_string(&project(&conversation, chain.position("/log"))).is_ok());
    }
}
