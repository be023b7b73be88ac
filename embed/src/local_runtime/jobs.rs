//! Reads the Jobs of a memory.

use crate::error::{Error, ErrorKind};
use crate::event::JobEvent;
use crate::job::{JobStatus, JobSummary};
use crate::local::drive_mark::DriveMark;
use crate::local::job_state::{JobState, LogFold};
use crate::local::key::key_fault;
use crate::local::memory_error::log_error;
use crate::local::run_document::RunDocument;
use crate::local::skill_directory::SkillDirectory;
use crate::local::{memory, owner};
use crate::local_runtime::polls::is_missing;
use bloomery_crds::children::MAX_DEPTH;
use bloomery_engine::line::Chain;
use bloomery_journal::Segments;
use bloomery_journal::files::Disk;
use bloomery_redact::Redactor;
use bloomery_worker::inputs::Inputs;
use bloomery_worker::record::Record;
use std::path::{Path, PathBuf};

/// A Job of a memory, without its state.
#[derive(Debug)]
pub(super) struct StoredJob {
    /// The directory of its Skill.
    pub(super) directory: SkillDirectory,
    inputs: Inputs,
}

impl StoredJob {
    /// Finds a Job.
    ///
    /// # Errors
    /// If there is no such Job, several Skills have one, or it cannot be read.
    pub(super) fn find(memory: &Path, key: &str) -> Result<Self, Error> {
        if let Some(fault) = key_fault(key) {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no Job of that key: a key {fault}")));
        }
        owner::check(memory)?;
        Self::read(memory::find_log(memory, None, key)?, key)
    }

    fn read(directory: SkillDirectory, key: &str) -> Result<Self, Error> {
        let RunDocument { revision, part, .. } = RunDocument::read_required(&directory, key)?;
        let inputs = Inputs::new(revision, part, Redactor::default());
        let mut inputs = inputs.map_err(|error| Error::failed(error.to_string()))?;
        // As in the thread of the Job.
        inputs.run.people = true;
        inputs.run.can_have_children = inputs.part.depth < MAX_DEPTH;
        Ok(Self { directory, inputs })
    }

    /// Returns the key of the Job.
    pub(super) fn key(&self) -> &str {
        &self.inputs.part.run_key
    }

    /// Reads the state of the Job from its log.
    ///
    /// # Errors
    /// If the log cannot be read, or is broken.
    pub(super) fn state(&self) -> Result<JobState, Error> {
        JobState::read(&self.directory, &self.inputs)
    }

    /// Reads the log of the Job. The fold can read on later.
    ///
    /// # Errors
    /// As [`StoredJob::state`].
    pub(super) fn fold(&self) -> Result<LogFold, Error> {
        let mut fold = LogFold::new(&self.directory, &self.inputs);
        fold.read_rest(|_, _| ())?;
        Ok(fold)
    }

    /// Returns whether the Job has a record.
    pub(super) fn has_record(&self) -> bool {
        self.directory.record(&self.inputs.part.run_key).is_file()
    }

    /// Returns the Job with its state.
    ///
    /// # Errors
    /// As [`StoredJob::state`].
    pub(super) fn status(&self) -> Result<JobStatus, Error> {
        let status = self.state()?.projection;
        let Inputs { part, .. } = &self.inputs;
        let (job, skill, goal) = (part.run_key.clone(), self.directory.name.clone(), part.goal.clone());
        Ok(JobStatus { job, skill, goal, status, condition: None })
    }

    /// Opens the log of the Job.
    pub(super) fn log(&self) -> Log {
        Log::new(self.directory.log(self.key()), self.inputs.source())
    }
}

/// The log of a Job, read from its beginning.
#[derive(Debug)]
pub(super) struct Log {
    segments: Segments<Disk>,
    chain: Chain,
    source: String,
}

impl Log {
    /// Opens the log in a directory. Its events have this source.
    pub(super) fn new(dir: PathBuf, source: String) -> Self {
        Self { segments: Segments::new(Disk, dir), chain: Chain::new(source.clone()), source }
    }

    /// Reads the next segment in a thread, as [`Log::next_segment`] does. Also returns the file of the segment after it if that is missing.
    /// Returns `None` if the runtime of tokio ends.
    pub(super) async fn read(mut self) -> Option<(Self, Result<Option<Vec<JobEvent>>, Error>, Option<PathBuf>)> {
        let read = move || {
            let segment = self.next_segment();
            let next = Some(self.segments.next_file(&self.chain)).filter(|file| is_missing(file));
            (self, segment, next)
        };
        tokio::task::spawn_blocking(read).await.ok()
    }

    /// Reads the next segment. Returns `None` if the log has no more events yet.
    ///
    /// # Errors
    /// If the log cannot be read, or is broken.
    pub(super) fn next_segment(&mut self) -> Result<Option<Vec<JobEvent>>, Error> {
        let Self { segments, chain, source } = self;
        let mut events = Vec::new();
        let read = segments.read_segment(chain, &mut |_, entry| events.push(JobEvent::new(source, entry)));
        if !read.map_err(|error| log_error(&error))? {
            return Ok(None);
        }
        let events: Result<Vec<JobEvent>, _> = events.into_iter().collect();
        events.map(Some).map_err(|error| Error::failed(format!("an event of {source} cannot be shown: {error}")))
    }
}

/// Lists the Jobs of a memory, sorted by Skill and key. A memory that does not exist has none.
///
/// # Errors
/// If the memory cannot be read.
pub(super) fn list(memory: &Path) -> Result<Vec<JobSummary>, Error> {
    owner::check(memory)?;
    if !memory.exists() {
        return Ok(Vec::new());
    }
    let directories = memory::skill_directories(memory)?;
    let jobs =
        directories.iter().flat_map(|directory| directory.job_keys().into_iter().map(move |key| (directory, key)));
    // Jobs of an older memory, and Jobs that cannot be read, are left out.
    Ok(jobs.filter_map(|(directory, key)| summary(directory, key)).collect())
}

/// Returns the Jobs of a memory that have not ended and that no process drives, sorted by Skill and key. Children are left out, because
/// their parents drive them. A memory that does not exist has none.
///
/// # Errors
/// If the memory cannot be read.
pub(super) fn interrupted(memory: &Path) -> Result<Vec<JobSummary>, Error> {
    let mut jobs = list(memory)?;
    jobs.retain(|summary| !summary.phase.is_terminal() && is_interrupted(memory, summary));
    Ok(jobs)
}

/// Returns whether a Job that has not ended is one that no process drives, and no child.
fn is_interrupted(memory: &Path, JobSummary { job, skill, .. }: &JobSummary) -> bool {
    let directory = SkillDirectory::new(memory, skill);
    let is_marked = DriveMark::set(&directory.log(job)).is_none();
    let part = RunDocument::read_required(&directory, job).map(|document| document.part);
    !is_marked && part.is_ok_and(|part| part.depth == 1 && !part.validates)
}

fn summary(directory: &SkillDirectory, key: String) -> Option<JobSummary> {
    let (skill, created) = (directory.name.clone(), RunDocument::created(directory, &key));
    if let Ok(Record { goal, outcome: Some(outcome), .. }) = Record::read(&directory.dir, &key) {
        return Some(JobSummary { job: key, skill, goal, phase: outcome.phase(), created });
    }
    let JobStatus { job, skill, goal, status, condition: _ } =
        StoredJob::read(directory.clone(), &key).ok()?.status().ok()?;
    Some(JobSummary { job, skill, goal, phase: status.phase, created })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_that_does_not_exist_has_no_jobs() {
        let dir = tempfile::tempdir().unwrap();
        let memory = dir.path().join("memory");
        assert_eq!(list(&memory), Ok(Vec::new()));
        for key in ["k-1", "../k-1", ""] {
            assert_eq!(StoredJob::find(&memory, key).unwrap_err().kind, ErrorKind::NotFound, "{key:?}");
        }
    }
}
