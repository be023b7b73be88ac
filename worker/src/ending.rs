//! The end of a pod: what is kept in memory, told to the operator, and left for the kubelet.

use crate::driver::Exit;
use crate::inputs::Inputs;
use crate::report::Reporter;
use crate::stop::Stop;
use bloomery_crds::report::{MAX_TERMINATION_MESSAGE, ParkReason, PodEnd, Projection, TerminationMessage};
use bloomery_crds::run::JobPart;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::AskedQuestion;
use bloomery_redact::Redactor;
use std::path::Path;
use std::time::Duration;

/// How long an end waits to be acknowledged. The pod's deadline leaves more.
const ACK: Duration = Duration::from_mins(2);

/// The same, from when the pod was asked to end: its grace is 60 s.
const ACK_IN_GRACE: Duration = Duration::from_secs(57);

/// Says how the pod ends: first to the kubelet, so that it stands whatever comes; then to the operator; then to
/// the kubelet again, whether the operator knows.
pub async fn tell(
    exit: Exit,
    projection: Projection,
    inputs: &Inputs,
    file: &Path,
    (epoch, reporter, stop): (u64, Reporter, &Stop),
) {
    let mut message = message(exit, &projection, &inputs.part, epoch);
    message.questions = redacted(&message.questions, &inputs.redactor);
    leave(&message, file);
    if exit == Exit::Superseded {
        return;
    }
    let grace_over = async {
        let drained = stop.drained().await;
        tokio::time::sleep_until(drained + ACK_IN_GRACE).await;
    };
    message.acked = tokio::select! {
        acked = reporter.end(projection, message.end.clone(), ACK) => acked,
        () = grace_over => false,
    };
    if message.acked {
        leave(&message, file);
    } else {
        tracing::warn!("the operator has not acknowledged the end; it is in the termination message");
    }
}

/// Leaves the reason why there was no epoch, or no more of it, where `kubectl describe pod` shows it.
pub fn leave_failure(failure: &str, file: &Path) {
    write(&bounded(failure, MAX_TERMINATION_MESSAGE), file);
}

fn message(exit: Exit, projection: &Projection, part: &JobPart, epoch: u64) -> TerminationMessage {
    let mut message = TerminationMessage {
        job: part.job.uid.clone(),
        attempt: part.attempt,
        epoch: Some(epoch),
        end: PodEnd::Superseded,
        outcome: None,
        log: None,
        usage: None,
        questions: Vec::new(),
        replies_heard: 0,
        acked: false,
    };
    message.end = match exit {
        // It says nothing about the Job: the log is another's.
        Exit::Superseded => return message,
        Exit::Finished => PodEnd::Finished,
        Exit::Parked(reason) => PodEnd::Parked(reason),
    };
    message.outcome.clone_from(&projection.outcome);
    message.log = Some(projection.log.clone());
    message.usage = Some(projection.usage.clone());
    message.replies_heard = projection.replies_heard;
    if exit == Exit::Parked(ParkReason::Reply) {
        message.questions =
            projection.waiting_for.as_ref().map(|waiting| waiting.questions.clone()).unwrap_or_default();
    }
    message
}

/// The questions without secrets; none where they cannot be read any more afterwards.
fn redacted(questions: &[AskedQuestion], redactor: &Redactor) -> Vec<AskedQuestion> {
    let Ok(mut text) = serde_json::to_value(questions) else { return Vec::new() };
    redactor.json(&mut text);
    serde_json::from_value(text).unwrap_or_default()
}

fn leave(message: &TerminationMessage, file: &Path) {
    match message.to_text() {
        Ok(text) => write(&text, file),
        Err(error) => tracing::error!("the termination message cannot be written as JSON: {error}"),
    }
}

fn write(text: &str, file: &Path) {
    if let Err(error) = std::fs::write(file, text) {
        tracing::error!("the termination message cannot be written to {}: {error}", file.display());
    }
}
