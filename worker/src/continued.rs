//! What a Job is told of the one that it follows up: the goal and the answer of that one, and what came before.

use crate::record::Record;
use bloomery_crds::run::ContinuedJob;
use bloomery_crds::text::bounded;
use bloomery_engine::event::{ContextKind, ContextPart};
use std::fmt::Write;
use std::path::Path;

/// The most that is told of one answer, in bytes: the whole of it stands in its record.
const MAX_ANSWER: usize = 8 * 1024;

/// The most that is told in all, in bytes. The oldest goes first.
const MAX_TOLD: usize = 24 * 1024;

/// Stands for what is left out.
const LEFT_OUT: &str = "[What was said before is left out.]\n";

/// What is told, from the record of that Job in the memory of the Skill.
pub fn told(memory: &Path, continued: &ContinuedJob) -> ContextPart {
    let (text, fault) = match Record::read(memory, &continued.run_key) {
        Ok(record) if record.outcome.is_some() => (conversation(&record), None),
        Ok(_) => (String::new(), Some("its record does not say how it ended.".to_owned())),
        Err(error) => (String::new(), Some(format!("its record cannot be read: {error}."))),
    };
    ContextPart { kind: ContextKind::Earlier, of: continued.name.clone(), text, fault }
}

fn conversation(record: &Record) -> String {
    let mut text = record.earlier.clone().unwrap_or_default();
    let _ = writeln!(text, "The person asked:\n{}\n", record.goal.trim());
    match (&record.result, &record.outcome) {
        (Some(result), _) => {
            let standing = if result.verified { "answered" } else { "had this draft, which passed no gate" };
            let _ = writeln!(text, "The agent {standing}:\n{}\n", bounded(result.text.trim(), MAX_ANSWER));
            if !result.fields.is_empty() {
                let fields = serde_json::to_string(&result.fields).unwrap_or_default();
                let _ = writeln!(text, "Fields of the answer: {}\n", bounded(&fields, MAX_ANSWER));
            }
        }
        (None, Some(outcome)) => {
            let _ = writeln!(text, "It ended without an answer ({}): {}\n", outcome.code, outcome.message);
        }
        (None, None) => {}
    }
    latest(text)
}

/// The end of a text, as much as is told.
fn latest(text: String) -> String {
    if text.len() <= MAX_TOLD {
        return text;
    }
    let from = text.ceil_char_boundary(text.len() - (MAX_TOLD - LEFT_OUT.len()));
    format!("{LEFT_OUT}{}", &text[from..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::Digest;
    use bloomery_crds::outcome::{Outcome, OutcomeCode};
    use bloomery_crds::run::JobIdentity;
    use bloomery_crds::v1alpha1::{LogPosition, Usage};
    use bloomery_engine::event::WholeResult;
    use serde_json::json;

    fn record(goal: &str, text: &str) -> Record {
        let result: WholeResult = serde_json::from_value(
            json!({"text": text, "fields": {"order_id": "A-17"}, "verified": true, "polished": false}),
        )
        .unwrap();
        Record {
            version: crate::record::VERSION,
            job: JobIdentity { namespace: "acme".into(), name: "refund-0".into(), uid: "uid-0".into() },
            skill: "cs-tier-1".into(),
            revision: Digest::of_bytes(b"r"),
            earlier: None,
            goal: goal.into(),
            resources: Vec::new(),
            intent: None,
            outcome: Some(Outcome::new(OutcomeCode::Succeeded, "It passed.")),
            result: Some(result),
            usage: Usage::default(),
            log: LogPosition { path: "jobs/uid-0".into(), events: 9, head: Digest::of_bytes(b"") },
        }
    }

    /// What is told of a Job whose file in the memory says this.
    fn told_of(content: &str) -> ContextPart {
        let memory = tempfile::tempdir().unwrap();
        std::fs::create_dir(memory.path().join("jobs")).unwrap();
        std::fs::write(memory.path().join("jobs/uid-0.json"), content).unwrap();
        told(memory.path(), &ContinuedJob { name: "refund-0".into(), run_key: "uid-0".into() })
    }

    fn text(record: &Record) -> String {
        told_of(&serde_json::to_string(record).unwrap()).text
    }

    #[test]
    fn what_was_asked_and_answered_is_told() {
        let first = record("Refund A-17", "Done.");
        insta::assert_snapshot!(text(&first), @r#"
        The person asked:
        Refund A-17

        The agent answered:
        Done.

        Fields of the answer: {"order_id":"A-17"}
        "#);
        let second = text(&Record { earlier: Some(text(&first)), ..record("And A-18?", "Done, too.") });
        assert!(second.starts_with(&text(&first)) && second.contains("And A-18?"), "{second}");
        let draft = WholeResult { verified: false, ..first.result.clone().unwrap() };
        assert!(text(&Record { result: Some(draft), ..first.clone() }).contains("passed no gate"));
        assert!(text(&Record { result: None, ..first }).contains("ended without an answer (Succeeded): It passed."));
    }

    #[test]
    fn the_oldest_is_left_out_first_and_what_is_told_is_bounded() {
        let mut earlier = None;
        for n in 0..20 {
            let goal = format!("Question {n}");
            earlier = Some(text(&Record { earlier, ..record(&goal, &"ü".repeat(30_000)) }));
        }
        let told = earlier.unwrap();
        assert!(told.len() <= MAX_TOLD, "{}", told.len());
        assert!(told.starts_with(LEFT_OUT) && told.contains("Question 19") && !told.contains("Question 3\n"));
    }

    #[test]
    fn what_cannot_be_read_is_a_fault() {
        let unended = Record { outcome: None, ..record("x", "y") };
        for content in ["", "{}", "[]", &serde_json::to_string(&unended).unwrap()] {
            assert!(told_of(content).fault.is_some(), "{content}");
        }
        let memory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(memory.path().join("jobs/uid-0.json")).unwrap();
        let continued = ContinuedJob { name: "refund-0".into(), run_key: "uid-0".into() };
        let fault = told(memory.path(), &continued).fault.unwrap();
        assert!(fault.contains("it is no file"), "{fault}");
    }
}
