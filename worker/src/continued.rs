//! The summary of the Job that this Job continues, for the model: its goal, its answer, and the summary of the Job before it.

use crate::log_reader;
use crate::record::Record;
use bloomery_crds::outcome::Outcome;
use bloomery_crds::run::ContinuedJob;
use bloomery_crds::text::bounded;
use bloomery_engine::Event;
use bloomery_engine::event::{ContextKind, ContextPart, FullResult};
use bloomery_http::Backoff;
use bloomery_journal::files::Disk;
use bloomery_journal::{JOBS, Segments};
use bloomery_redact::Redactor;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest goal in a summary, in bytes.
const MAX_GOAL_BYTES: usize = 8 * 1024;

/// The longest answer in a summary, in bytes. The record has the whole answer.
const MAX_ANSWER_BYTES: usize = 8 * 1024;

/// The longest fields of one answer in a summary, in bytes.
const MAX_FIELDS_BYTES: usize = 8 * 1024;

/// The longest summary, in bytes. The oldest part is left out first. The latest Job always fits with its goal, answer and fields.
const MAX_SUMMARY_BYTES: usize = 32 * 1024;

/// The mark in place of the part that is left out.
const LEFT_OUT: &str = "[Earlier parts are left out.]\n";

/// The reason why a summary cannot be made. The text is a clause about the continued Job, such as "its record cannot be read".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A retry is pointless: there is no record and no log, or the record is invalid.
    #[error("{0}")]
    Final(String),
    /// The file system reported an error that may be temporary.
    #[error("{0}")]
    Transient(String),
}

impl Error {
    fn unreadable(what: &str, error: &io::Error) -> Self {
        let why = format!("its {what} cannot be read: {error}.");
        if is_transient(error) { Self::Transient(why) } else { Self::Final(why) }
    }
}

/// Returns whether a retry may succeed. Errors of the operating system have a number. Errors in the content of a file have none, and are
/// permanent.
fn is_transient(error: &io::Error) -> bool {
    error.raw_os_error().is_some() && error.kind() != io::ErrorKind::NotFound
}

/// Returns the summary as a part of the context. Retries transient errors until `within` is over, because a missing summary ends the Job.
pub async fn context_part(
    memory: &Path,
    continued: &ContinuedJob,
    redactor: &Redactor,
    within: Duration,
) -> ContextPart {
    let mut why = format!("its record was not read within {within:?}.");
    let text =
        tokio::time::timeout(within, read_with_retries(memory, continued, redactor, &mut why)).await.ok().flatten();
    let fault = text.is_none().then_some(why);
    ContextPart { kind: ContextKind::Earlier, source: continued.name.clone(), text: text.unwrap_or_default(), fault }
}

/// Reads the summary, and retries after transient errors. `why` is set to the error of the last try.
async fn read_with_retries(
    memory: &Path,
    continued: &ContinuedJob,
    redactor: &Redactor,
    why: &mut String,
) -> Option<String> {
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
    loop {
        let (memory, job, redactor) = (memory.to_owned(), continued.clone(), redactor.clone());
        // On a separate thread, because the file system may block.
        let fault = match tokio::task::spawn_blocking(move || summary(&memory, &job, &redactor)).await {
            Ok(Ok(text)) => return Some(text),
            Ok(Err(fault)) => fault,
            Err(error) => Error::Final(format!("its record could not be read: {error}.")),
        };
        let is_final = matches!(fault, Error::Final(_));
        *why = fault.to_string();
        if is_final {
            return None;
        }
        tracing::warn!(
            "the summary of {}, which this Job continues, is not available: {why} The worker retries.",
            continued.name
        );
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

/// Returns the summary from the Job's record in the Skill's memory, or from its log if there is no record.
///
/// # Errors
/// If neither can be read, or the conversation was never opened.
pub fn summary(memory: &Path, continued: &ContinuedJob, redactor: &Redactor) -> Result<String, Error> {
    match Record::read(memory, &continued.run_key) {
        Ok(record) if record.outcome.is_some() => Ok(render(record.into(), redactor)),
        Ok(_) => Err(Error::Final("its record does not say how it ended.".to_owned())),
        // A worker writes the record. A Job that ended without a running worker has only its log.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            from_log(memory.join(JOBS).join(&continued.run_key)).map(|excerpt| render(excerpt, redactor))
        }
        Err(error) => Err(Error::unreadable("record", &error)),
    }
}

/// The parts of a conversation that the summary contains.
#[derive(Debug, Default)]
struct Excerpt {
    earlier: Option<String>,
    goal: String,
    outcome: Option<Outcome>,
    result: Option<FullResult>,
}

impl From<Record> for Excerpt {
    fn from(record: Record) -> Self {
        let Record { earlier, goal, outcome, result, .. } = record;
        Self { earlier, goal, outcome, result }
    }
}

impl Excerpt {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::ContextGathered { parts } => {
                let is_summary = |part: &&ContextPart| part.kind == ContextKind::Earlier && part.fault.is_none();
                self.earlier = parts.iter().find(is_summary).map(|part| part.text.clone());
            }
            Event::ConversationOpened { goal, .. } => self.goal.clone_from(goal),
            // A log without a record has this event if the worker stopped before it wrote the record.
            Event::Finished { outcome, result } => {
                self.outcome = Some(outcome.clone());
                self.result.clone_from(result);
            }
            _ => {}
        }
    }
}

/// Reads a conversation from the log in a directory. If the log is broken, the events before the break are used.
fn from_log(dir: PathBuf) -> Result<Excerpt, Error> {
    let chain = match log_reader::chain(&dir) {
        Ok(chain) => chain,
        Err(log_reader::Error::Unreadable { source, .. }) if is_transient(&source) => {
            return Err(Error::unreadable("log", &source));
        }
        // There is no directory, or its first file is not text.
        Err(_) => None,
    };
    let mut excerpt = Excerpt::default();
    if let Some(mut chain) = chain {
        match Segments::new(Disk, dir).read(&mut chain, |entry| excerpt.apply(&entry.event)) {
            Ok(()) | Err(bloomery_journal::Error::Broken { .. }) => {}
            Err(error) => return Err(Error::Transient(format!("its log cannot be read: {error}."))),
        }
    }
    // A goal is never empty, so the conversation was never opened.
    if excerpt.goal.is_empty() {
        return Err(Error::Final("it has no record and no log.".to_owned()));
    }
    Ok(excerpt)
}

/// Renders the summary. The continued Job may not have known this Job's secrets, so they are redacted here. Texts are redacted before they
/// are cut, so that no part of a secret is left.
fn render(excerpt: Excerpt, redactor: &Redactor) -> String {
    let bounded = |text: &str, max_bytes: usize| bounded(&redactor.redact_text(text), max_bytes);
    let Excerpt { earlier, goal, outcome, result } = excerpt;
    let mut text = redactor.redact_owned(earlier.unwrap_or_default());
    let _ = writeln!(text, "The person asked:\n{}\n", bounded(goal.trim(), MAX_GOAL_BYTES));
    match (result, outcome) {
        (Some(result), _) => {
            let status =
                if result.verified { "answered" } else { "had this draft, which did not pass the finalization gate" };
            let _ = writeln!(text, "The agent {status}:\n{}\n", bounded(result.text.trim(), MAX_ANSWER_BYTES));
            if !result.fields.is_empty() {
                let fields = serde_json::to_string(&result.fields).unwrap_or_default();
                let _ = writeln!(text, "Fields of the answer: {}\n", bounded(&fields, MAX_FIELDS_BYTES));
            }
        }
        (None, Some(outcome)) => {
            let message = bounded(&outcome.message, MAX_ANSWER_BYTES);
            let _ = writeln!(text, "The Job ended without an answer ({}): {message}\n", outcome.code);
        }
        (None, None) => text.push_str("The Job ended before it had an answer.\n\n"),
    }
    keep_end(text)
}

/// Returns the end of a text, at most [`MAX_SUMMARY_BYTES`] with the mark for what is left out.
fn keep_end(text: String) -> String {
    if text.len() <= MAX_SUMMARY_BYTES {
        return text;
    }
    let from = text.ceil_char_boundary(text.len() - (MAX_SUMMARY_BYTES - LEFT_OUT.len()));
    format!("{LEFT_OUT}{}", &text[from..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::Digest;
    use bloomery_crds::limits::EffectiveLimits;
    use bloomery_crds::outcome::OutcomeCode;
    use bloomery_crds::run::JobIdentity;
    use bloomery_crds::v1alpha1::{LogPosition, Usage};
    use bloomery_engine::line::{Chain, EventTime};
    use serde_json::json;
    use std::os::unix::fs::symlink;

    fn record(goal: &str, text: &str) -> Record {
        let result: FullResult = serde_json::from_value(
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

    fn continued() -> ContinuedJob {
        ContinuedJob { name: "refund-0".into(), run_key: "uid-0".into() }
    }

    /// Returns the summary of a Job whose record has this content.
    fn summary_of(content: &str) -> Result<String, Error> {
        let memory = tempfile::tempdir().unwrap();
        std::fs::create_dir(memory.path().join("jobs")).unwrap();
        std::fs::write(memory.path().join("jobs/uid-0.json"), content).unwrap();
        summary(memory.path(), &continued(), &Redactor::default())
    }

    fn text(record: &Record) -> String {
        summary_of(&serde_json::to_string(record).unwrap()).unwrap()
    }

    /// Returns the summary of a Job without a record. Its log has these events, and then the text `end`.
    fn summary_of_log(events: &[Event], end: &str) -> Result<String, Error> {
        let memory = tempfile::tempdir().unwrap();
        let dir = memory.path().join("jobs/uid-0");
        std::fs::create_dir_all(&dir).unwrap();
        let mut chain = Chain::new("/namespaces/acme/skilljobs/refund-0/uid-0");
        let mut lines = String::new();
        for event in events {
            let stamp = EventTime { time: "2026-01-01T00:00:00Z".into(), elapsed_ms: 1 };
            lines.push_str(&chain.append(event.clone(), stamp).unwrap().0);
            lines.push('\n');
        }
        std::fs::write(dir.join(bloomery_journal::segment::name(1)), lines + end).unwrap();
        summary(memory.path(), &continued(), &Redactor::default())
    }

    fn began() -> Event {
        Event::EpochStarted { epoch: 1, attempt: 1, after_disruption: false }
    }

    fn opened(goal: &str) -> Event {
        Event::ConversationOpened {
            run_key: "uid-0".into(),
            revision: Digest::of_bytes(b"r"),
            system: "You help.".into(),
            goal: goal.into(),
            limits: EffectiveLimits { steps: 1, tool_calls: 2, tokens: 3, duration_seconds: 4 },
        }
    }

    fn gathered_before(text: &str, fault: Option<&str>) -> Event {
        let (text, fault) = (text.to_owned(), fault.map(str::to_owned));
        let earlier = ContextPart { kind: ContextKind::Earlier, source: "refund".into(), text, fault };
        let structure = ContextPart {
            kind: ContextKind::ProjectStructure,
            source: "code".into(),
            text: "src\n".into(),
            fault: None,
        };
        Event::ContextGathered { parts: vec![structure, earlier] }
    }

    #[test]
    fn the_summary_has_the_goal_and_the_answer() {
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
        let draft = FullResult { verified: false, ..first.result.clone().unwrap() };
        assert!(text(&Record { result: Some(draft), ..first.clone() }).contains("did not pass the finalization gate"));
        assert!(text(&Record { result: None, ..first }).contains("ended without an answer (Succeeded): It passed."));
    }

    #[test]
    fn the_summary_is_bounded_and_leaves_out_the_oldest_part() {
        let mut earlier = None;
        for n in 0..20 {
            let goal = format!("Question {n}");
            earlier = Some(text(&Record { earlier, ..record(&goal, &"ü".repeat(30_000)) }));
        }
        let summary = earlier.unwrap();
        assert!(summary.len() <= MAX_SUMMARY_BYTES, "{}", summary.len());
        assert!(summary.starts_with(LEFT_OUT) && summary.contains("Question 19") && !summary.contains("Question 3\n"));
    }

    #[test]
    fn the_latest_job_is_always_complete() {
        let mut large = record(&"g".repeat(MAX_GOAL_BYTES), &"ü".repeat(30_000));
        large.result.as_mut().unwrap().fields.insert("all".into(), json!("f".repeat(30_000)));
        let alone = text(&large);
        assert!(alone.contains(&large.goal) && alone.contains("Fields of the answer: {"), "{alone}");
        assert!(
            alone.len() > MAX_GOAL_BYTES + MAX_ANSWER_BYTES + MAX_FIELDS_BYTES
                && alone.len() < MAX_SUMMARY_BYTES - LEFT_OUT.len()
        );
        let after = text(&Record { earlier: Some("e".repeat(MAX_SUMMARY_BYTES)), ..large });
        assert!(
            after.starts_with(LEFT_OUT) && after.ends_with(&alone) && after.len() <= MAX_SUMMARY_BYTES,
            "{}",
            after.len()
        );
    }

    #[test]
    fn a_job_without_a_record_is_summarized_from_its_log() {
        let ended = "The person asked:\nRefund A-17\n\nThe Job ended before it had an answer.\n\n";
        assert_eq!(summary_of_log(&[began(), opened("Refund A-17")], ""), Ok(ended.to_owned()));
        let followed = [began(), gathered_before("Before.\n", None), opened("Refund A-17")];
        assert_eq!(summary_of_log(&followed, ""), Ok(format!("Before.\n{ended}")));
        let lost = [gathered_before("", Some("it is gone.")), opened("Refund A-17")];
        assert_eq!(summary_of_log(&lost, ""), Ok(ended.to_owned()));
        // The events before a break are used.
        assert_eq!(summary_of_log(&followed, "{}\n"), Ok(format!("Before.\n{ended}")));

        let first = record("Refund A-17", "Done.");
        let finished = Event::Finished { outcome: first.outcome.clone().unwrap(), result: first.result.clone() };
        assert_eq!(summary_of_log(&[opened("Refund A-17"), finished], ""), Ok(text(&first)));
    }

    #[test]
    fn a_job_without_a_record_and_a_goal_in_its_log_has_no_summary() {
        let nothing: Result<String, Error> = Err(Error::Final("it has no record and no log.".to_owned()));
        assert_eq!(summary_of_log(&[], ""), nothing);
        assert_eq!(summary_of_log(&[began()], ""), nothing);
        assert_eq!(summary_of_log(&[], "{}\n"), nothing);
        let memory = tempfile::tempdir().unwrap();
        assert_eq!(summary(memory.path(), &continued(), &Redactor::default()), nothing);
        std::fs::create_dir_all(memory.path().join("jobs/uid-0")).unwrap();
        assert_eq!(summary(memory.path(), &continued(), &Redactor::default()), nothing);
        std::fs::write(memory.path().join("jobs/uid-0").join(bloomery_journal::segment::name(1)), b"\xff\n").unwrap();
        assert_eq!(summary(memory.path(), &continued(), &Redactor::default()), nothing);
    }

    #[tokio::test]
    async fn a_transient_error_is_retried_until_the_time_limit() {
        let memory = tempfile::tempdir().unwrap();
        let (path, continued) = (memory.path(), continued());
        // A link to itself cannot be read. `repair` replaces it later.
        symlink("jobs", path.join("jobs")).unwrap();
        assert!(matches!(summary(path, &continued, &Redactor::default()), Err(Error::Transient(_))));
        let part = context_part(path, &continued, &Redactor::default(), Duration::from_millis(50)).await;
        assert!(part.fault.is_some() && part.text.is_empty(), "{part:?}");

        let first = record("Refund A-17", "Done.");
        let repair = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            std::fs::create_dir(path.join("repaired")).unwrap();
            std::fs::write(path.join("repaired/uid-0.json"), serde_json::to_string(&first).unwrap()).unwrap();
            symlink("repaired", path.join("link")).unwrap();
            std::fs::rename(path.join("link"), path.join("jobs")).unwrap();
        };
        let redactor = Redactor::default();
        let (part, ()) = tokio::join!(context_part(path, &continued, &redactor, Duration::from_mins(1)), repair);
        assert_eq!((part.text, part.fault), (text(&first), None));
    }

    #[tokio::test]
    async fn a_final_error_is_not_retried() {
        let memory = tempfile::tempdir().unwrap();
        let continued = continued();
        let redactor = Redactor::default();
        let part = context_part(memory.path(), &continued, &redactor, Duration::from_hours(1));
        let part = tokio::time::timeout(Duration::from_mins(1), part).await.unwrap();
        assert_eq!(part.fault.as_deref(), Some("it has no record and no log."));
    }

    #[test]
    fn an_invalid_record_is_a_final_error() {
        let unfinished = Record { outcome: None, ..record("x", "y") };
        for content in ["", "{}", "[]", &serde_json::to_string(&unfinished).unwrap()] {
            assert!(matches!(summary_of(content), Err(Error::Final(_))), "{content}");
        }
        let memory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(memory.path().join("jobs/uid-0.json")).unwrap();
        let fault = summary(memory.path(), &continued(), &Redactor::default()).unwrap_err();
        assert_eq!(fault, Error::Final("its record cannot be read: it is not a regular file.".to_owned()));
    }

    /// The continued Job may not have known the secrets of this one.
    #[test]
    fn a_cut_does_not_leave_a_part_of_a_secret() {
        let redactor = Redactor::default();
        redactor.learn("key", b"0123456789");
        for before in [MAX_GOAL_BYTES - 12, MAX_GOAL_BYTES - 5, MAX_GOAL_BYTES] {
            let said = format!("{}0123456789{}", "#".repeat(before), "#".repeat(99));
            let earlier = format!("{said}{}", "#".repeat(MAX_SUMMARY_BYTES - before));
            let text = render(Excerpt::from(Record { earlier: Some(earlier), ..record(&said, &said) }), &redactor);
            assert!(!text.contains("01") && !text.contains("89"), "{text}");
        }
    }
}
