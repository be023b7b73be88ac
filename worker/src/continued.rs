//! What a Job is told of the one that it follows up: the goal and the answer of that one, and what came before.

use crate::record::Record;
use crate::telling;
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

/// The most that is told of one goal, in bytes.
const MAX_GOAL: usize = 8 * 1024;

/// The most that is told of one answer, in bytes: the whole of it stands in its record.
const MAX_ANSWER: usize = 8 * 1024;

/// The most that is told of the fields of one answer, in bytes.
const MAX_FIELDS: usize = 8 * 1024;

/// The most that is told in all, in bytes. The oldest goes first; the latest Job has room for all that is told of it.
const MAX_TOLD: usize = 32 * 1024;

/// Stands for what is left out.
const LEFT_OUT: &str = "[What was said before is left out.]\n";

/// Why nothing can be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It stays so: nothing was kept, or what was kept is no record.
    #[error("{0}")]
    Final(String),
    /// The file system did not let it be read, which may pass.
    #[error("{0}")]
    Passing(String),
}

impl Fault {
    fn of(what: &str, error: &io::Error) -> Self {
        let why = format!("its {what} cannot be read: {error}.");
        if may_pass(error) { Self::Passing(why) } else { Self::Final(why) }
    }
}

/// Whether another try may read it. What the system said has a number; what was found wrong in a file that was read has
/// none, and stays wrong.
fn may_pass(error: &io::Error) -> bool {
    error.raw_os_error().is_some() && error.kind() != io::ErrorKind::NotFound
}

/// What is told of that Job, as a part of the context. A fault ends the follow-up for good, so one that may pass is one
/// only when `within` is over.
pub async fn gathered(memory: &Path, continued: &ContinuedJob, redactor: &Redactor, within: Duration) -> ContextPart {
    let mut why = format!("its record was not read within {within:?}.");
    let text = tokio::time::timeout(within, read(memory, continued, redactor, &mut why)).await.ok().flatten();
    let fault = text.is_none().then_some(why);
    ContextPart { kind: ContextKind::Earlier, source: continued.name.clone(), text: text.unwrap_or_default(), fault }
}

/// Tries until it is read, or cannot be; `why` is the fault of the last try.
async fn read(memory: &Path, continued: &ContinuedJob, redactor: &Redactor, why: &mut String) -> Option<String> {
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
    loop {
        let (memory, job, redactor) = (memory.to_owned(), continued.clone(), redactor.clone());
        // On a thread of its own: the file system may block.
        let fault = match tokio::task::spawn_blocking(move || told(&memory, &job, &redactor)).await {
            Ok(Ok(text)) => return Some(text),
            Ok(Err(fault)) => fault,
            Err(error) => Fault::Final(format!("its record could not be read: {error}.")),
        };
        let is_final = matches!(fault, Fault::Final(_));
        *why = fault.to_string();
        if is_final {
            return None;
        }
        tracing::warn!("of {}, which this Job continues: {why} It is tried again.", continued.name);
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

/// What is told, from the record of that Job in the memory of the Skill, or else from its log.
pub fn told(memory: &Path, continued: &ContinuedJob, redactor: &Redactor) -> Result<String, Fault> {
    match Record::read(memory, &continued.run_key) {
        Ok(record) if record.outcome.is_some() => Ok(conversation(record.into(), redactor)),
        Ok(_) => Err(Fault::Final("its record does not say how it ended.".to_owned())),
        // A worker writes it: a Job that was ended while it had none has only its log.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            logged(memory.join(JOBS).join(&continued.run_key)).map(|said| conversation(said, redactor))
        }
        Err(error) => Err(Fault::of("record", &error)),
    }
}

/// What was asked in a Job, and what came of it.
#[derive(Debug, Default)]
struct Said {
    earlier: Option<String>,
    goal: String,
    outcome: Option<Outcome>,
    result: Option<FullResult>,
}

impl From<Record> for Said {
    fn from(record: Record) -> Self {
        let Record { earlier, goal, outcome, result, .. } = record;
        Self { earlier, goal, outcome, result }
    }
}

impl Said {
    fn hear(&mut self, event: &Event) {
        match event {
            Event::ContextGathered { parts } => {
                let is_told = |part: &&ContextPart| part.kind == ContextKind::Earlier && part.fault.is_none();
                self.earlier = parts.iter().find(is_told).map(|part| part.text.clone());
            }
            Event::ConversationOpened { goal, .. } => self.goal.clone_from(goal),
            // The worker was lost before it wrote the record.
            Event::Finished { outcome, result } => {
                self.outcome = Some(outcome.clone());
                self.result.clone_from(result);
            }
            _ => {}
        }
    }
}

/// What the log in a directory says, up to where it breaks. Nothing is written.
fn logged(dir: PathBuf) -> Result<Said, Fault> {
    let chain = match telling::chain(&dir) {
        Ok(chain) => chain,
        Err(telling::Error::Unreadable { source, .. }) if may_pass(&source) => return Err(Fault::of("log", &source)),
        // There is no directory, or what its first file holds is no text.
        Err(_) => None,
    };
    let mut said = Said::default();
    if let Some(mut chain) = chain {
        match Segments::new(Disk, dir).read(&mut chain, |entry| said.hear(&entry.event)) {
            Ok(()) | Err(bloomery_journal::Error::Broken { .. }) => {}
            Err(error) => return Err(Fault::Passing(format!("its log cannot be read: {error}."))),
        }
    }
    // No goal is empty: the conversation was never opened.
    if said.goal.is_empty() {
        return Err(Fault::Final("it has no record and no log.".to_owned()));
    }
    Ok(said)
}

/// That Job may not have known the secrets of this one: they are taken out before anything is cut.
fn conversation(said: Said, redactor: &Redactor) -> String {
    let bounded = |text: &str, most: usize| bounded(&redactor.text(text), most);
    let Said { earlier, goal, outcome, result } = said;
    let mut text = redactor.owned(earlier.unwrap_or_default());
    let _ = writeln!(text, "The person asked:\n{}\n", bounded(goal.trim(), MAX_GOAL));
    match (result, outcome) {
        (Some(result), _) => {
            let standing = if result.verified { "answered" } else { "had this draft, which passed no gate" };
            let _ = writeln!(text, "The agent {standing}:\n{}\n", bounded(result.text.trim(), MAX_ANSWER));
            if !result.fields.is_empty() {
                let fields = serde_json::to_string(&result.fields).unwrap_or_default();
                let _ = writeln!(text, "Fields of the answer: {}\n", bounded(&fields, MAX_FIELDS));
            }
        }
        (None, Some(outcome)) => {
            let message = bounded(&outcome.message, MAX_ANSWER);
            let _ = writeln!(text, "It ended without an answer ({}): {message}\n", outcome.code);
        }
        (None, None) => text.push_str("It was ended before it had an answer.\n\n"),
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

    /// What is told of a Job whose file in the memory says this.
    fn told_of(content: &str) -> Result<String, Fault> {
        let memory = tempfile::tempdir().unwrap();
        std::fs::create_dir(memory.path().join("jobs")).unwrap();
        std::fs::write(memory.path().join("jobs/uid-0.json"), content).unwrap();
        told(memory.path(), &continued(), &Redactor::default())
    }

    fn text(record: &Record) -> String {
        told_of(&serde_json::to_string(record).unwrap()).unwrap()
    }

    /// What is told of a Job without a record, whose log has these events and then this.
    fn told_of_log(events: &[Event], end: &str) -> Result<String, Fault> {
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
        told(memory.path(), &continued(), &Redactor::default())
    }

    fn began() -> Event {
        Event::EpochStarted { epoch: 1, attempt: 1 }
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
        let draft = FullResult { verified: false, ..first.result.clone().unwrap() };
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
    fn the_latest_is_told_whole_whatever_came_before() {
        let mut large = record(&"g".repeat(MAX_GOAL), &"ü".repeat(30_000));
        large.result.as_mut().unwrap().fields.insert("all".into(), json!("f".repeat(30_000)));
        let alone = text(&large);
        assert!(alone.contains(&large.goal) && alone.contains("Fields of the answer: {"), "{alone}");
        assert!(alone.len() > MAX_GOAL + MAX_ANSWER + MAX_FIELDS && alone.len() < MAX_TOLD - LEFT_OUT.len());
        let after = text(&Record { earlier: Some("e".repeat(MAX_TOLD)), ..large });
        assert!(after.starts_with(LEFT_OUT) && after.ends_with(&alone) && after.len() <= MAX_TOLD, "{}", after.len());
    }

    #[test]
    fn a_job_without_a_record_is_told_from_its_log() {
        let ended = "The person asked:\nRefund A-17\n\nIt was ended before it had an answer.\n\n";
        assert_eq!(told_of_log(&[began(), opened("Refund A-17")], ""), Ok(ended.to_owned()));
        let followed = [began(), gathered_before("Before.\n", None), opened("Refund A-17")];
        assert_eq!(told_of_log(&followed, ""), Ok(format!("Before.\n{ended}")));
        let lost = [gathered_before("", Some("it is gone.")), opened("Refund A-17")];
        assert_eq!(told_of_log(&lost, ""), Ok(ended.to_owned()));
        // What stands before a break counts.
        assert_eq!(told_of_log(&followed, "{}\n"), Ok(format!("Before.\n{ended}")));

        let first = record("Refund A-17", "Done.");
        let finished = Event::Finished { outcome: first.outcome.clone().unwrap(), result: first.result.clone() };
        assert_eq!(told_of_log(&[opened("Refund A-17"), finished], ""), Ok(text(&first)));
    }

    #[test]
    fn without_a_record_and_an_open_conversation_there_is_nothing_to_tell() {
        let nothing: Result<String, Fault> = Err(Fault::Final("it has no record and no log.".to_owned()));
        assert_eq!(told_of_log(&[], ""), nothing);
        assert_eq!(told_of_log(&[began()], ""), nothing);
        assert_eq!(told_of_log(&[], "{}\n"), nothing);
        let memory = tempfile::tempdir().unwrap();
        assert_eq!(told(memory.path(), &continued(), &Redactor::default()), nothing);
        std::fs::create_dir_all(memory.path().join("jobs/uid-0")).unwrap();
        assert_eq!(told(memory.path(), &continued(), &Redactor::default()), nothing);
        std::fs::write(memory.path().join("jobs/uid-0").join(bloomery_journal::segment::name(1)), b"\xff\n").unwrap();
        assert_eq!(told(memory.path(), &continued(), &Redactor::default()), nothing);
    }

    #[tokio::test]
    async fn a_fault_that_may_pass_is_one_only_when_the_time_is_over() {
        let memory = tempfile::tempdir().unwrap();
        let (path, continued) = (memory.path(), continued());
        // A link to itself cannot be read, until another one replaces it.
        symlink("jobs", path.join("jobs")).unwrap();
        assert!(matches!(told(path, &continued, &Redactor::default()), Err(Fault::Passing(_))));
        let part = gathered(path, &continued, &Redactor::default(), Duration::from_millis(50)).await;
        assert!(part.fault.is_some() && part.text.is_empty(), "{part:?}");

        let first = record("Refund A-17", "Done.");
        let mend = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            std::fs::create_dir(path.join("mended")).unwrap();
            std::fs::write(path.join("mended/uid-0.json"), serde_json::to_string(&first).unwrap()).unwrap();
            symlink("mended", path.join("link")).unwrap();
            std::fs::rename(path.join("link"), path.join("jobs")).unwrap();
        };
        let redactor = Redactor::default();
        let (part, ()) = tokio::join!(gathered(path, &continued, &redactor, Duration::from_mins(1)), mend);
        assert_eq!((part.text, part.fault), (text(&first), None));
    }

    #[tokio::test]
    async fn a_fault_that_stays_is_one_at_once() {
        let memory = tempfile::tempdir().unwrap();
        let continued = continued();
        let redactor = Redactor::default();
        let part = gathered(memory.path(), &continued, &redactor, Duration::from_hours(1));
        let part = tokio::time::timeout(Duration::from_mins(1), part).await.unwrap();
        assert_eq!(part.fault.as_deref(), Some("it has no record and no log."));
    }

    #[test]
    fn what_cannot_be_read_is_a_fault() {
        let unended = Record { outcome: None, ..record("x", "y") };
        for content in ["", "{}", "[]", &serde_json::to_string(&unended).unwrap()] {
            assert!(matches!(told_of(content), Err(Fault::Final(_))), "{content}");
        }
        let memory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(memory.path().join("jobs/uid-0.json")).unwrap();
        let fault = told(memory.path(), &continued(), &Redactor::default()).unwrap_err();
        assert_eq!(fault, Fault::Final("its record cannot be read: it is no file.".to_owned()));
    }

    /// The Job that is followed up may not have known the secrets of this one.
    #[test]
    fn no_cut_leaves_a_part_of_a_secret() {
        let redactor = Redactor::default();
        redactor.learn("key", b"0123456789");
        for before in [MAX_GOAL - 12, MAX_GOAL - 5, MAX_GOAL] {
            let said = format!("{}0123456789{}", "#".repeat(before), "#".repeat(99));
            let earlier = format!("{said}{}", "#".repeat(MAX_TOLD - before));
            let text = conversation(Said::from(Record { earlier: Some(earlier), ..record(&said, &said) }), &redactor);
            assert!(!text.contains("01") && !text.contains("89"), "{text}");
        }
    }
}
