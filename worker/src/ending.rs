//! Ends a pod: writes the termination message for the kubelet, and reports the end to the operator.

use crate::driver::Exit;
use crate::inputs::Inputs;
use crate::report::Reporter;
use crate::stop::Stop;
use bloomery_crds::report::{
    MAX_TERMINATION_MESSAGE_BYTES, MemoryFault, ParkReason, PodEnd, Projection, TerminationMessage,
};
use bloomery_crds::run::JobPart;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{AskedQuestion, Attempt};
use bloomery_redact::Redactor;
use std::path::Path;
use std::time::Duration;

/// The time limit for the operator's acknowledgement. The deadline of the pod is later.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_mins(2);

/// The time limit for the acknowledgement after the pod received a signal to end, counted from the signal. The grace period of the pod is
/// 60 s.
const ACKNOWLEDGE_TIMEOUT_IN_GRACE: Duration = Duration::from_secs(57);

/// The end of an attempt.
#[derive(Debug)]
pub struct AttemptEnd {
    /// How its run ended.
    pub exit: Exit,
    /// The final state of the conversation.
    pub projection: Projection,
    /// The epoch that the attempt has claimed.
    pub epoch: u64,
}

/// Writes the termination message to `file`, then reports the end to the operator. Once the operator has acknowledged it, the
/// termination message is written again and says so.
pub async fn report(end: AttemptEnd, inputs: &Inputs, file: &Path, reporter: Reporter, stop: &Stop) {
    let AttemptEnd { exit, projection, epoch } = end;
    let mut message = message(exit, &projection, &inputs.part, epoch);
    message.questions = redacted(&message.questions, &inputs.redactor);
    // The message has no room for the results of features. Without it, another attempt reads the log and reports them.
    let is_complete = !(inputs.part.validates && exit == Exit::Finished);
    if is_complete {
        write_message(&message, file);
    }
    if exit == Exit::Superseded {
        return;
    }
    let grace_over = async {
        let drained = stop.drained().await;
        tokio::time::sleep_until(drained + ACKNOWLEDGE_TIMEOUT_IN_GRACE).await;
    };
    message.acked = tokio::select! {
        acked = reporter.end(projection, message.end.clone(), ACKNOWLEDGE_TIMEOUT) => acked,
        () = grace_over => false,
    };
    if message.acked {
        write_message(&message, file);
    } else {
        tracing::warn!("the operator has not acknowledged the end; it is in the termination message");
    }
}

/// Writes the error of an attempt to the termination message, which `kubectl describe pod` shows.
pub fn write_failure(failure: &str, file: &Path) {
    write(&bounded(failure, MAX_TERMINATION_MESSAGE_BYTES), file);
}

/// Writes the termination message of an attempt that cannot write to the memory.
pub fn write_memory_fault(fault: &MemoryFault, file: &Path) {
    let bounded =
        MemoryFault { not_writable: bounded(&fault.not_writable, Attempt::MAX_MEMORY_FAULT_BYTES), ..fault.clone() };
    match serde_json::to_string(&bounded) {
        Ok(text) => write(&text, file),
        Err(error) => tracing::error!("the termination message cannot be written as JSON: {error}"),
    }
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
        // The log belongs to another attempt, so this one does not know the state of the Job.
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

/// Returns the questions without secrets, or none if redaction leaves no valid questions.
fn redacted(questions: &[AskedQuestion], redactor: &Redactor) -> Vec<AskedQuestion> {
    let Ok(mut text) = serde_json::to_value(questions) else { return Vec::new() };
    redactor.redact_json(&mut text);
    serde_json::from_value(text).unwrap_or_default()
}

fn write_message(message: &TerminationMessage, file: &Path) {
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
