//! The record of a Job in the memory of its skill directory, for people and for later Jobs: `jobs/<key>.json`.

use crate::inputs::Inputs;
use bloomery_crds::Digest;
use bloomery_crds::outcome::Outcome;
use bloomery_crds::report::Projection;
use bloomery_crds::run::{BoundResource, JobIdentity, ResourceSource};
use bloomery_crds::v1alpha1::{DetectedIntent, LogPosition, Usage};
use bloomery_engine::Conversation;
use bloomery_engine::event::FullResult;
use bloomery_journal::JOBS;
use bloomery_journal::files::{Files, replace};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The schema version of a record.
pub const VERSION: u32 = 1;

/// The largest record that is read, in bytes.
pub const MAX_BYTES: u64 = 16 << 20;

/// The record of a Job that has ended. It has the whole result; the Job's status has only what fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// [`VERSION`].
    pub version: u32,
    /// The Job.
    pub job: JobIdentity,
    /// The Skill.
    pub skill: String,
    /// The revision of the Skill.
    pub revision: Digest,
    /// The summary of earlier Jobs, if the Job continued another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<String>,
    /// The goal of the Job.
    pub goal: String,
    /// The resources that the Job binds. A secret is named by its Secret and key, without its value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<BoundResource>,
    /// The detected intent of the goal, if the Skill declares intents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<DetectedIntent>,
    /// The outcome; absent if the Job has not ended.
    pub outcome: Option<Outcome>,
    /// The answer or the draft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<FullResult>,
    /// The usage of tokens, steps and calls.
    pub usage: Usage,
    /// The end of the log at the time of the record.
    pub log: LogPosition,
}

/// Returns the file of a record in the memory of the Job's Skill.
pub fn file(memory: &Path, run_key: &str) -> PathBuf {
    memory.join(JOBS).join(name(run_key))
}

/// Returns the name of the file of a record.
pub fn name(run_key: &str) -> String {
    format!("{run_key}.json")
}

impl Record {
    /// Creates the record of a conversation that has ended.
    pub fn new(inputs: &Inputs, conversation: &Conversation, projection: Projection) -> Self {
        let (part, run) = (&inputs.part, conversation.run());
        let resources = part.resources.iter().cloned().map(|mut resource| {
            if let ResourceSource::Value(value) = &mut resource.source {
                *value = inputs.redactor.redact_text(value).into_owned();
            }
            resource
        });
        Self {
            version: VERSION,
            job: part.job.clone(),
            skill: run.skill_name.clone(),
            revision: run.revision.clone(),
            earlier: conversation.earlier().map(str::to_owned),
            goal: run.goal.clone(),
            resources: resources.collect(),
            intent: projection.gates.intent,
            outcome: projection.outcome,
            result: conversation.result().cloned(),
            usage: projection.usage,
            log: projection.log,
        }
    }

    /// Reads the record of a Job.
    ///
    /// # Errors
    /// If there is no record, or it is larger than [`MAX_BYTES`], not a regular file, or invalid.
    pub fn read(memory: &Path, run_key: &str) -> io::Result<Self> {
        let path = file(memory, run_key);
        if !path.symlink_metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut text = Vec::new();
        File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(io::Error::other(format!("it is larger than {MAX_BYTES} bytes")));
        }
        Ok(serde_json::from_slice(&text)?)
    }

    /// Writes the record and replaces an earlier one atomically. All events that it mentions must be durable.
    pub fn write(&self, files: &impl Files, memory: &Path, run_key: &str, writer: &str) -> io::Result<()> {
        let mut content = serde_json::to_vec_pretty(self)?;
        content.push(b'\n');
        replace(files, &memory.join(JOBS), &name(run_key), writer, &content)
    }
}
