//! The run document: the parameters of a Job, stored beside its log. A resumed Job has the same Skill, goal and bindings, even if
//! `skill.yaml` has changed.

use crate::error::{Error, ErrorKind};
use crate::local::memory_error::log_error;
use crate::local::skill_directory::SkillDirectory;
use bloomery_crds::Digest;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::run::{BoundResource, ContinuedJob, JobIdentity, JobPart, ModelEndpoint, Revision, VERSION, seal};
use bloomery_crds::v1alpha1::CoreNote;
use bloomery_journal::files::{Disk, Files};
use bloomery_redact::plain_file;
use bloomery_worker::record;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;

/// The name of the file in the directory of a Job's log.
const FILE: &str = "run.json";

/// The namespace in the identity of Jobs that run without a cluster.
pub const NAMESPACE: &str = "local";

/// The parameters of a Job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunDocument {
    /// The compiled Skill.
    pub revision: Revision,
    /// The Job's part, as a worker pod would receive it. It has no keys from the environment.
    pub part: JobPart,
    /// The MCP server if it is a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<McpProgram>,
}

/// An MCP server that is a program on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpProgram {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The variables of the environment that are passed to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
}

/// The parameters of a Job that come from the command line and not from the Skill.
#[derive(Debug)]
pub struct JobParameters {
    /// The identity of the Job. Its name is the key.
    pub job: JobIdentity,
    /// The goal.
    pub goal: String,
    /// The limits.
    pub limits: EffectiveLimits,
    /// The models.
    pub models: Vec<ModelEndpoint>,
    /// The bound resources.
    pub resources: Vec<BoundResource>,
    /// The Job that is continued.
    pub continues: Option<ContinuedJob>,
    /// The core notes that the Job reads at its start.
    pub memory_scope: Option<Vec<CoreNote>>,
}

impl RunDocument {
    /// Combines a compiled Skill with the parameters of the command line.
    ///
    /// # Errors
    /// If the Skill cannot be serialized.
    pub fn new(revision: Revision, parameters: JobParameters, program: Option<McpProgram>) -> Result<Self, Error> {
        let JobParameters { job, goal, limits, models, resources, continues, memory_scope } = parameters;
        let part = JobPart {
            version: VERSION,
            run_key: job.name.clone(),
            named_run_key: false,
            job,
            attempt: 1,
            after_disruption: false,
            revision: digest(&revision)?,
            goal,
            validates: false,
            limits,
            models,
            external_mcp: None,
            resources,
            approvals: Vec::new(),
            void_approvals: None,
            asked: Vec::new(),
            pins: None,
            tenant_tools: None,
            replies: Vec::new(),
            continues,
            memory_scope,
            depth: 1,
            children: Vec::new(),
            child_wait_seconds: None,
            log: None,
            report: None,
        };
        Ok(Self { revision, part, program })
    }

    /// Stores the document beside the log, unless the Job has one already. Returns whether it was stored. It is durable once the first
    /// segment of the log is: the claim of an epoch syncs the directory above, and a new segment syncs the directory of both.
    ///
    /// # Errors
    /// If the document cannot be written.
    pub fn store(&self, directory: &SkillDirectory, writer: &str) -> Result<bool, Error> {
        let dir = directory.log(&self.part.run_key);
        let text = serde_json::to_vec_pretty(self).map_err(|error| Error::failed(error.to_string()))?;
        let temporary = dir.join(format!(".tmp-{writer}-{FILE}"));
        let result = fs::create_dir_all(&dir)
            .and_then(|()| Disk.create(&temporary, &text))
            .and_then(|()| Disk.link(&temporary, &dir.join(FILE)));
        // If this fails, the temporary file stays, which is harmless.
        let _ = fs::remove_file(&temporary);
        match result {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(log_error(&bloomery_journal::Error::from_io("write", &dir.join(FILE), error))),
        }
    }

    /// Returns the time at which a Job was stored, in RFC 3339. Returns `None` if it has no document.
    pub fn created(directory: &SkillDirectory, key: &str) -> Option<String> {
        let stored = fs::metadata(directory.log(key).join(FILE)).ok()?.modified().ok()?;
        let stored = jiff::Timestamp::try_from(stored).ok()?;
        Some(stored.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    }

    /// Reads the document of a Job.
    ///
    /// # Errors
    /// If there is no such Job, or the document cannot be read or was changed.
    pub fn read_required(directory: &SkillDirectory, key: &str) -> Result<Self, Error> {
        Self::read(directory, key)?.ok_or_else(|| not_found(directory, key))
    }

    /// Reads the document of a Job. Returns `None` if there is no such Job.
    ///
    /// # Errors
    /// If the document cannot be read, or was changed.
    pub fn read(directory: &SkillDirectory, key: &str) -> Result<Option<Self>, Error> {
        let file = directory.log(key).join(FILE);
        let unusable = |why: String| {
            Error::failed(format!(
                "{} cannot be used: {why}. The Job cannot be resumed: start a new one",
                file.display()
            ))
        };
        let text = match plain_file::open(&file).and_then(|opened| plain_file::read_bounded(opened, record::MAX_BYTES))
        {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(unusable(error.to_string())),
        };
        let document: Self = serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))?;
        if digest(&document.revision)? != document.part.revision || document.part.run_key != key {
            return Err(unusable("it was changed after the start of the Job".to_owned()));
        }
        Ok(Some(document))
    }
}

/// Returns the error for a Job that does not exist on this machine.
pub fn not_found(directory: &SkillDirectory, key: &str) -> Error {
    let log = directory.log(key);
    Error::new(ErrorKind::NotFound, format!("{} is not the log of a Job that ran on this machine", log.display()))
}

fn digest(revision: &Revision) -> Result<Digest, Error> {
    let sealed = seal(revision).map_err(|error| Error::failed(format!("the Skill cannot be serialized: {error}")))?;
    Ok(sealed.digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(goal: &str) -> RunDocument {
        let spec = serde_json::from_str(r#"{"problem": {"statement": "help"}}"#).unwrap();
        let revision = Revision::new("s", spec, None);
        let parameters = JobParameters {
            job: JobIdentity { namespace: NAMESPACE.into(), name: "k-1".into(), uid: "k-1-1".into() },
            goal: goal.into(),
            limits: EffectiveLimits::DEFAULT,
            models: Vec::new(),
            resources: Vec::new(),
            continues: None,
            memory_scope: None,
        };
        RunDocument::new(revision, parameters, Some(McpProgram { argv: vec!["x".into()], env: Vec::new() })).unwrap()
    }

    #[test]
    fn a_document_is_stored_once_and_read_unchanged() {
        let memory = tempfile::tempdir().unwrap();
        let directory = SkillDirectory::new(memory.path(), "s");
        directory.open("w").unwrap();
        assert_eq!(RunDocument::read(&directory, "k-1").unwrap(), None);
        assert_eq!(RunDocument::created(&directory, "k-1"), None);
        assert!(document("one").store(&directory, "w").unwrap());
        let created = RunDocument::created(&directory, "k-1").unwrap();
        assert!(created.parse::<jiff::Timestamp>().is_ok(), "{created}");
        assert!(!document("two").store(&directory, "w").unwrap());
        assert_eq!(RunDocument::read(&directory, "k-1").unwrap(), Some(document("one")));
        let names: Vec<_> =
            fs::read_dir(directory.log("k-1")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [FILE]);
    }

    #[test]
    fn a_changed_document_is_refused() {
        let memory = tempfile::tempdir().unwrap();
        let directory = SkillDirectory::new(memory.path(), "s");
        directory.open("w").unwrap();
        document("one").store(&directory, "w").unwrap();
        let file = directory.log("k-1").join(FILE);
        let text = fs::read_to_string(&file).unwrap();
        for changed in [text.replace("help", "harm"), text.replace("k-1", "k-2"), text.replace('{', "[")] {
            fs::write(&file, changed).unwrap();
            assert!(RunDocument::read(&directory, "k-1").unwrap_err().message.contains("cannot be used"));
        }
    }
}
