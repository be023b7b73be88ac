//! `bloomery validate`: tests the features of Skills on this machine. Each test is a conversation with the engine, the driver and the log
//! of worker pods, in a memory of its own.

mod conversation;
mod junit;
mod plan;
mod report;
mod scratch;

use super::screen::Screen;
use super::{diagnostics, swallowed};
use crate::args::ValidateArgs;
use crate::error::Error;
use crate::exit::Exit;
use crate::{output, text};
use bloomery_crds::v1alpha1::Feature;
use bloomery_embed::run::execute::tokio_runtime;
use bloomery_embed::run::{scripts, server};
use bloomery_redact::Redactor;
use bloomery_worker::trace::Trace;
use conversation::Conversations;
use futures::{StreamExt, stream};
use plan::{Plan, TestedSkill};
use report::{FeatureReport, TestResult};
use scratch::Scratch;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// The largest number of conversations at once.
const AT_ONCE: usize = 4;

/// Tests the selected features, and prints their results.
///
/// # Errors
/// If a Skill cannot be used, a conversation cannot be stored, or the results cannot be written.
pub fn run(args: &ValidateArgs) -> Result<Exit, Error> {
    swallowed::report("validate", &args.mcp);
    let screen = Screen::for_stderr(true);
    let redactor = Redactor::default();
    diagnostics::start(&screen, &Trace::default(), &redactor);
    let plan = plan::read(args)?;
    for TestedSkill { revision, program, .. } in &plan.skills {
        let missing = server::missing_note(revision, program.as_ref());
        for note in missing.into_iter().chain(scripts::missing_note(revision, args.allow_scripts)) {
            text::inform(&note);
        }
    }
    // No conversation begins if the results cannot be written.
    let junit = args.junit.as_deref().map(create).transpose()?;
    let scratch = Scratch::new(args.keep.as_deref())?;
    let conversations = Conversations::new(&plan, &scratch, args, &screen, &redactor);
    let runtime = tokio_runtime()?;
    let reports = runtime.block_on(Box::pin(async {
        tokio::select! {
            reports = test_all(&plan, &conversations) => reports.map(Some),
            _ = tokio::signal::ctrl_c() => Ok(None),
        }
    }));
    // Dropping the handle of a program stops it.
    runtime.shutdown_background();
    let Some(reports) = reports? else { return Ok(Exit::Interrupted) };
    if let Some((mut file, path)) = junit {
        file.write_all(junit::render(&reports).as_bytes())
            .map_err(|error| Error::failed(format!("{} cannot be written: {error}", path.display())))?;
    }
    output::print(&report::render(&reports))?;
    let has_failed = reports.iter().any(|report| report.result == TestResult::Failed);
    Ok(if has_failed { Exit::Error } else { Exit::Success })
}

/// Creates the file of the results. An earlier one is emptied.
fn create(path: &Path) -> Result<(File, &Path), Error> {
    let file = File::create(path)
        .map_err(|error| Error::usage(format!("--junit: {} cannot be written: {error}", path.display())))?;
    Ok((file, path))
}

/// Tests all features, several at once, and prints the result of each test. Returns the reports in the order of the features.
async fn test_all(plan: &Plan, conversations: &Conversations<'_>) -> Result<Vec<FeatureReport>, Error> {
    let features = || plan.skills.iter().flat_map(|skill| skill.features.iter().map(move |feature| (skill, feature)));
    let mut reports: Vec<FeatureReport> = features()
        .map(|(skill, feature)| FeatureReport::new(&skill.revision.skill, feature, skill.criteria, &plan.read))
        .collect();
    let tested = features().enumerate().filter(|(_, (_, feature))| feature.subskill().is_none());
    let tests: Vec<(usize, (&TestedSkill, &Feature))> = tested
        .flat_map(|(at, (skill, feature))| (0..skill.criteria.runs).map(move |_| (at, (skill, feature))))
        .collect();
    let total = tests.len();
    let mut results = stream::iter(tests)
        .map(|(at, (skill, feature))| async move { (at, conversations.test(skill, feature).await) })
        .buffer_unordered(AT_ONCE);
    let mut done = 0;
    while let Some((at, test)) = results.next().await {
        let test = test?;
        done += 1;
        let Some(report) = reports.get_mut(at) else { continue };
        let word = if test.verdict.passed { "passed" } else { "failed" };
        text::inform(&format!("{word}: {}/{} ({done} of {total})", report.skill, report.feature));
        report.add(test);
    }
    Ok(reports)
}
