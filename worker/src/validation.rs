//! Validates a Skill in the pod of a Job: tests its features one after another, each in a conversation of its own with an empty memory. The
//! log of the Job has the results, so an attempt continues with the features that have none.

use crate::driver::{self, Environment, Exit, Model, NoChildren, Nobody, Observer, Recorder, Tools};
use crate::epoch::{Begin, BegunEpoch, Epoch, EpochEnd, write_record};
use crate::inputs::Inputs;
use crate::printer::{Format, Printer};
use crate::stop::StopReason;
use crate::tools::CoreTools;
use crate::trace::Trace;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::report::{ExternalWait, ParkReason, Projection};
use bloomery_crds::run::JobPart;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{Feature, FeatureResult, Usage};
use bloomery_engine::event::Directive;
use bloomery_engine::projection::project;
use bloomery_engine::stages::calls::ScriptEnds;
use bloomery_engine::stages::validation::{ValidationStep, next};
use bloomery_engine::validation::{FeatureVerdict, verdict};
use bloomery_engine::{Conversation, Event};
use bloomery_http::address::AddressPolicy;
use bloomery_journal::Error;
use bloomery_journal::files::{Disk, Files};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The largest focus cache of a test, in bytes. The volume of the scratch directory is small.
const MAX_FOCUS_CACHE_BYTES: u64 = 16 << 20;

/// The scratch directory of the conversations of tests, and their other settings.
#[derive(Debug, Clone)]
pub struct Scratch {
    /// The directory with the memory of the current test. It is in the pod's file system, and not in the memory of the Skill.
    pub dir: PathBuf,
    /// The addresses at which endpoints may be called.
    pub addresses: AddressPolicy,
    /// Receives the events of the tests.
    pub trace: Trace,
}

/// Tests the features that have no result yet, until all have one or the attempt has to stop. If the Job ends, its record is written to
/// the memory.
///
/// # Errors
/// If the log of the Job cannot be written.
pub async fn run<M: Model, T: Tools, F: Files>(
    epoch: Epoch<'_, M, T, F>,
    observer: &dyn Observer,
    printer: Printer,
    scratch: &Scratch,
) -> Result<EpochEnd, Error> {
    let BegunEpoch { inputs, environment, conversation, claimed } = match epoch.begin() {
        Begin::Begun(begun) => *begun,
        Begin::Ended(end) => return Ok(*end),
    };
    let recorder = Recorder::new(claimed, printer, &[], inputs.redactor.clone());
    let mut validation = Validation { inputs, environment: &environment, conversation, recorder, observer, scratch };
    let done = Box::pin(validation.test_features()).await;
    let exit = driver::close(&mut validation.recorder, done)?;
    let projection = validation.projection();
    if exit == Exit::Finished {
        write_record(inputs, &environment, &validation.conversation, &projection, validation.recorder.files());
    }
    Ok(EpochEnd { exit, projection, hold: None, result: None, scripts: ScriptEnds::new() })
}

/// The validation of a Skill, in one attempt of a Job.
struct Validation<'a, M, T, F> {
    inputs: &'a Inputs,
    environment: &'a Environment<'a, M, T>,
    /// The state of the Job. The conversations of tests have their own.
    conversation: Conversation,
    recorder: Recorder<F>,
    observer: &'a dyn Observer,
    scratch: &'a Scratch,
}

impl<M: Model, T: Tools, F: Files> Validation<'_, M, T, F> {
    async fn test_features(&mut self) -> Result<Exit, Error> {
        loop {
            // Lets the runtime deliver a signal that came while the log was written.
            tokio::task::yield_now().await;
            if self.conversation.outcome().is_none()
                && let Some(exit) = self.follow_stop()?
            {
                return Ok(exit);
            }
            let event = match next(&self.conversation) {
                ValidationStep::Done => return Ok(Exit::Finished),
                ValidationStep::Record(event) => event,
                ValidationStep::Test(feature, limits) => match self.test(feature, limits).await {
                    Some(tested) => tested,
                    None => continue,
                },
            };
            self.record(event)?;
        }
    }

    /// Follows a request to stop. Returns how the attempt ends; or nothing if no stop is requested, or the Job is to end.
    fn follow_stop(&mut self) -> Result<Option<Exit>, Error> {
        let Some(request) = self.environment.stop.requested() else { return Ok(None) };
        let reason = match request.reason {
            // The log belongs to another attempt, so nothing more is written.
            StopReason::Superseded => return Ok(Some(Exit::Superseded)),
            StopReason::Drain => ParkReason::Drain,
            StopReason::Suspended => {
                self.record(Event::DirectiveReceived { directive: Directive::Park })?;
                ParkReason::Suspension
            }
            StopReason::Cancelled | StopReason::SkillDeleted => {
                let directive = request.reason.directive().filter(|_| self.conversation.demanded_end().is_none());
                if let Some(directive) = directive {
                    self.record(Event::DirectiveReceived { directive })?;
                }
                return Ok(None);
            }
        };
        self.record(Event::Parked { reason })?;
        Ok(Some(Exit::Parked(reason)))
    }

    /// Records an event, and shows the state that follows from it.
    fn record(&mut self, event: Event) -> Result<(), Error> {
        let entry = self.recorder.append(event)?;
        self.recorder.make_durable()?;
        self.conversation.apply(&entry);
        self.recorder.print();
        self.observer.state_changed(self.projection());
        Ok(())
    }

    fn projection(&self) -> Projection {
        project(&self.conversation, self.recorder.position())
    }

    /// Tests a feature. Returns nothing if the test was interrupted by a request to stop. A test that cannot be carried out has failed.
    async fn test(&self, feature: &Feature, limits: EffectiveLimits) -> Option<Event> {
        let dir = self.scratch.dir.join(&feature.name);
        let ended = Box::pin(self.converse(feature, limits, &dir)).await;
        // If the directory stays, the next test of the feature cannot create it, and has failed.
        let _ = fs::remove_dir_all(&dir);
        let is_stopped = self.environment.stop.requested().is_some();
        if is_stopped && !ended.as_ref().is_ok_and(is_complete) {
            return None;
        }
        let (FeatureVerdict { passed, score, reason }, usage) = match ended {
            Ok(EpochEnd { projection, scripts, .. }) => (verdict(feature, &projection, &scripts), projection.usage),
            Err(reason) => (FeatureVerdict { passed: false, score: None, reason }, Usage::default()),
        };
        let reason = bounded(&reason, FeatureResult::MAX_REASON_BYTES);
        let result = FeatureResult {
            name: feature.name.clone(),
            passed,
            score,
            reason: Some(reason).filter(|reason| !reason.is_empty()),
            tokens: usage.tokens(),
            seconds: usage.seconds,
        };
        Some(Event::FeatureTested { result, usage })
    }

    /// Runs the conversation that tests a feature, in an empty memory.
    async fn converse(&self, feature: &Feature, limits: EffectiveLimits, dir: &Path) -> Result<EpochEnd, String> {
        let Inputs { revision, part, redactor, .. } = self.inputs;
        let unusable = |error: io::Error| format!("The scratch directory {} cannot be used: {error}", dir.display());
        fs::create_dir_all(&self.scratch.dir).and_then(|()| fs::create_dir(dir)).map_err(unusable)?;
        // The acknowledged position is that of the Job's log.
        let part = JobPart { limits, log: None, ..part.clone() };
        // The log has grown since the test before, also if that was interrupted.
        let test = self.recorder.position().events;
        let inputs = Inputs::for_feature(revision.clone(), part, (feature, test), redactor.clone());
        let inputs = inputs.map_err(|error| error.to_string())?;
        let Environment { writer, model, tools, cache, stop, patience, .. } = *self.environment;
        let core = CoreTools::for_job(&inputs, dir, writer, MAX_FOCUS_CACHE_BYTES, self.scratch.addresses.clone());
        let environment = Environment {
            memory: dir,
            writer,
            model,
            tools,
            core: &core,
            cache,
            people: &Nobody,
            children: &NoChildren,
            stop,
            patience,
        };
        let failed = |error: Error| format!("The log of the test cannot be written: {error}");
        let epoch = Epoch::claim(Disk, &inputs, environment).await.map_err(failed)?;
        let printer = Printer::new(Format::Text, Box::new(redactor.writer(self.scratch.trace.tee(io::sink()))));
        epoch.drive(&WaitsOnly(self.observer), printer).await.map_err(failed)
    }
}

/// Returns whether a conversation has ended by itself, and not because of a request to stop.
fn is_complete(end: &EpochEnd) -> bool {
    let code = end.projection.outcome.as_ref().map(|outcome| outcome.code);
    end.exit == Exit::Finished && !matches!(code, None | Some(OutcomeCode::Cancelled | OutcomeCode::SkillDeleted))
}

/// Passes on the waits of a test, and drops the states of its conversation: they are not states of the Job.
#[derive(Debug)]
struct WaitsOnly<'a>(&'a dyn Observer);

impl Observer for WaitsOnly<'_> {
    fn state_changed(&self, _: Projection) {}

    fn waiting(&self, waiting: Option<ExternalWait>) {
        self.0.waiting(waiting);
    }
}

#[cfg(test)]
mod tests;
