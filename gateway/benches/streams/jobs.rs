//! Jobs whose logs the bench writes. No process drives them.

use bloomery_embed::run::options::{ModelOptions, RunOptions};
use bloomery_embed::run::prepare;
use bloomery_engine::Event;
use bloomery_engine::line::{Chain, EventTime};
use bloomery_journal::Store;
use bloomery_journal::files::Disk;
use bloomery_redact::Redactor;
use std::fs;
use std::path::{Path, PathBuf};

/// The name of the Skill of all Jobs.
pub(crate) const SKILL: &str = "greeter";

/// The number of the event with which each log begins.
pub(crate) const FIRST: u64 = 1;

/// The text of each message: with it, an event is as large as most events of a Job.
const TEXT: &str =
    "The customer says that the parcel was open, and that a part of it is missing. Photographs came with the message.";

/// Creates a memory with the Skill.
pub(crate) fn new_memory(root: &Path) -> PathBuf {
    let memory = tempfile::tempdir_in(root).unwrap().keep();
    let manifest = serde_json::json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Skill", "metadata": { "name": SKILL },
        "spec": { "problem": { "statement": "Greet people" } },
    });
    fs::create_dir(memory.join(SKILL)).unwrap();
    fs::write(memory.join(SKILL).join("skill.yaml"), manifest.to_string()).unwrap();
    memory
}

/// The log of a Job, with its only writer.
pub(crate) struct JobLog {
    store: Store<Disk>,
    chain: Chain,
}

impl JobLog {
    /// Stores a new Job in a memory. Its log has one event.
    pub(crate) fn new(memory: &Path, key: &str) -> Self {
        let model = ModelOptions {
            model: Some("none".into()),
            model_url: Some("http://127.0.0.1:9/v1".into()),
            ..ModelOptions::default()
        };
        let options = RunOptions {
            goal: Some("Greet".into()),
            skill: Some(SKILL.into()),
            run_key: Some(key.into()),
            model,
            ..RunOptions::new(memory)
        };
        let (job, inputs) = prepare::new_job(&options, Redactor::default()).unwrap();
        let store = Store::open(Disk, &job.directory.dir, key, "bench").unwrap();
        let mut log = Self { store, chain: Chain::new(inputs.source()) };
        log.add(Event::EpochStarted { epoch: 1, attempt: 1, after_disruption: false });
        log
    }

    /// Adds a message of a person. Its event is durable when this returns.
    pub(crate) fn add_message(&mut self) {
        self.add(Event::UserMessage { text: TEXT.into(), by: "ada".into(), nth: None });
    }

    fn add(&mut self, event: Event) {
        let first = self.chain.events() + 1;
        let stamp = EventTime { time: "2026-01-01T00:00:00.000Z".into(), elapsed_ms: 1 };
        let (line, _) = self.chain.append(event, stamp).unwrap();
        self.store.add(first, format!("{line}\n").as_bytes()).unwrap();
    }
}
