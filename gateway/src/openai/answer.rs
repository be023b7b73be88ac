//! The answers of Jobs, as text for chats.

use crate::problem::Problem;
use axum::http::StatusCode;
use bloomery_crds::outcome::{Outcome, Phase};
use bloomery_crds::report::result_digest;
use bloomery_crds::v1alpha1::{JobResult, Usage};
use bloomery_embed::{Cursor, Error, ErrorKind, HeldCall, JobEvent, JobStatus, OpenRequests, Question, Tenant};
use bloomery_engine::event::{FullResult, QuestionId};
use futures::StreamExt;
use serde_json::{Map, Value};
use std::pin::pin;
use std::time::Duration;
use tokio::time::Instant;

/// The longest wait for a status that includes the answer.
const STATUS_WAIT: Duration = Duration::from_secs(3);

/// The interval between two reads of the status.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);

/// The interval between two reads of the requests of a Job that may wait for a person.
const REQUESTS_INTERVAL: Duration = Duration::from_millis(500);

/// The time without an event after which the answer of a Job without a worker says that it waits.
pub(super) const SILENCE: Duration = Duration::from_mins(1);

/// The answer to the last message of a chat.
#[derive(Debug)]
pub(super) struct Answer {
    /// The text.
    pub(super) text: String,
    /// The usage of the Job since the message, if the response shows it.
    pub(super) usage: Option<Usage>,
}

/// Returns the usage of a Job between `before` and its event `seq`.
pub(super) async fn usage_since<T: Tenant>(tenant: &T, job: &str, before: &Usage, seq: u64) -> Result<Usage, Problem> {
    let mut usage = usage_at(tenant, job, seq).await?;
    usage.input_tokens = usage.input_tokens.saturating_sub(before.input_tokens);
    usage.cached_input_tokens = usage.cached_input_tokens.saturating_sub(before.cached_input_tokens);
    usage.output_tokens = usage.output_tokens.saturating_sub(before.output_tokens);
    Ok(usage)
}

/// Returns the usage of a Job, once its status includes an event. On a cluster, the status follows the log after a moment. A status that
/// does not follow within [`STATUS_WAIT`] is used as it is.
async fn usage_at<T: Tenant>(tenant: &T, job: &str, seq: u64) -> Result<Usage, Problem> {
    let end = Instant::now() + STATUS_WAIT;
    loop {
        let JobStatus { status, .. } = tenant.status(job).await?;
        if status.log.events >= seq || Instant::now() >= end {
            return Ok(status.usage);
        }
        tokio::time::sleep(STATUS_INTERVAL).await;
    }
}

/// The state of a Job while its answer is awaited.
#[derive(Debug)]
struct Followed {
    /// The number of the latest event; 0 before the first one.
    seq: u64,
    /// The time of the latest event, or of the begin.
    at: Instant,
    /// Whether the requests that are open now count.
    has_input: bool,
    /// Whether a request may be open.
    may_wait: bool,
    /// The time without an event after which the answer of a Job without a worker says that it waits.
    silence: Duration,
}

impl Followed {
    fn apply(&mut self, event: &JobEvent) {
        (self.seq, self.at) = (event.seq, Instant::now());
        match event.kind.as_str() {
            "user.replied" | "user.message" => (self.has_input, self.may_wait) = (true, true),
            "user.asked" | "tool.held" => self.may_wait = true,
            // Nothing was open.
            "conversation.model.requested" => self.may_wait = false,
            _ => {}
        }
    }

    fn awaits_request(&self) -> bool {
        self.has_input && self.may_wait
    }

    /// Returns the longest wait for the next event before the state of the Job is read again.
    fn patience(&self) -> Duration {
        if self.awaits_request() { REQUESTS_INTERVAL } else { self.silence }
    }

    /// Returns the answer of a Job that waits for a person, or that no worker runs for a while. `None` for any other Job, and while its status
    /// does not include the latest event: the requests before it may be answered.
    async fn wait<T: Tenant>(&self, tenant: &T, job: &str) -> Result<Option<String>, Error> {
        let is_silent = self.at.elapsed() >= self.silence;
        if !self.awaits_request() && !is_silent {
            return Ok(None);
        }
        let JobStatus { status, condition, .. } = tenant.status(job).await?;
        if self.awaits_request() && status.log.events >= self.seq && status.waiting_for.is_some() {
            // On a cluster, the Approvals of a held call exist after its status.
            let open = of_requests(job, &tenant.open_requests(job).await?);
            if open.is_some() {
                return Ok(open);
            }
        }
        Ok((is_silent && has_no_worker(status.phase)).then(|| without_worker(job, status.phase, condition.as_deref())))
    }
}

/// Follows a Job after a position in its log until it ends, waits for a person, or has no worker and no event for `silence`. Returns its answer, and the
/// number of the latest event. If `awaits_input` is true, the requests that are open before the first input after the position do not count.
/// All others are those that are open now.
pub(super) async fn follow<T: Tenant>(
    tenant: &T,
    job: &str,
    after: Cursor,
    awaits_input: bool,
    silence: Duration,
) -> Result<(String, u64), Problem> {
    let mut events = pin!(tenant.events(job, after).await?);
    let mut followed = Followed { seq: 0, at: Instant::now(), has_input: !awaits_input, may_wait: false, silence };
    loop {
        // A timeout is the time to read the state again.
        if let Ok(next) = tokio::time::timeout(followed.patience(), events.next()).await {
            let Some(event) = next else { break };
            let event = event?;
            if event.is_last {
                return Ok((end(job, &event), event.seq));
            }
            followed.apply(&event);
        }
        match followed.wait(tenant, job).await {
            Ok(Some(text)) => return Ok((text, followed.seq)),
            Ok(None) => {}
            // The state is read again. The events end if the runtime stays unavailable.
            Err(error) if error.kind == ErrorKind::Unavailable => {}
            Err(error) => return Err(error.into()),
        }
    }
    let detail = format!("The events of the Job {job} ended before the Job. Send the request again.");
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail))
}

/// Returns the answer of a Job with open requests. `None` if there are none.
pub(super) fn of_requests(
    job: &str,
    OpenRequests { approvals, questions, missing: _ }: &OpenRequests,
) -> Option<String> {
    let mut parts: Vec<String> = approvals.iter().map(|held| approval(job, held)).collect();
    // The next message is the reply to the first question. The next answer has the next one.
    parts.extend(questions.first().map(|asked| question(job, asked)));
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Returns whether no worker runs a Job in this phase. A Job that waits for another one is not meant.
fn has_no_worker(phase: Phase) -> bool {
    phase.awaits_people() || matches!(phase, Phase::Pending | Phase::Queued | Phase::Starting)
}

/// Returns the answer of a Job that no worker runs.
fn without_worker(job: &str, phase: Phase, condition: Option<&str>) -> String {
    let why = condition.map(|condition| format!(", {condition}")).unwrap_or_default();
    format!(
        "The Job {job} has no answer yet, because no worker runs it: {phase}{why}\n\nThe Job goes on by itself as soon as it can. Then \
         send a message to read its answer."
    )
}

fn question(job: &str, Question { question, refused }: &Question) -> String {
    let mut parts = Vec::new();
    parts.extend(refused.as_ref().map(|reason| format!("The last reply was not accepted: {reason}")));
    parts.push(question.text.clone());
    if !question.choices.is_empty() {
        parts.push(question.choices.iter().map(|choice| format!("- {choice}")).collect::<Vec<_>>().join("\n"));
    }
    parts.push(format!("{} Your next message is the reply.", asked(job, &question.id)));
    parts.join("\n\n")
}

fn approval(job: &str, held: &HeldCall) -> String {
    let HeldCall { call, tool, arguments, digest: _, reasons, approvers } = held;
    let approvers = approvers.join(", ");
    let reasons: Vec<&str> = reasons.iter().map(|reason| reason.detail.as_str()).collect();
    format!(
        "The tool {tool} needs the approval of {approvers}: {}.\n\nIts arguments are:\n\n    {arguments}\n\nThe Job {job} waits for the \
         decision on the call {call}. A message here decides nothing. After the decision, send a message to read the answer.",
        reasons.join("; ")
    )
}

/// Returns whether an answer of a Job asks a question.
pub(super) fn asks(said: &str, job: &str, question: &QuestionId) -> bool {
    said.contains(&asked(job, question))
}

/// The sentence that identifies a question of a Job. Its last character ends the id.
fn asked(job: &str, question: &QuestionId) -> String {
    format!("The Job {job} waits for the answer to {question}.")
}

/// Returns the answer of a Job from its last event. The event has only a result that the gates have passed.
fn end(job: &str, event: &JobEvent) -> String {
    let part = |name: &str| event.data.get(name).cloned().unwrap_or_default();
    if let Ok(FullResult { text, fields, .. }) = serde_json::from_value(part("result")) {
        return with_fields(&text, &fields);
    }
    match serde_json::from_value(part("outcome")) {
        Ok(outcome) => without_result(job, &outcome),
        Err(_) => format!("The Job {job} has ended."),
    }
}

/// The message may mention the `result` in the status, which a chat does not show.
fn without_result(job: &str, Outcome { code, message, .. }: &Outcome) -> String {
    format!(
        "{message}\n\nThe Job {job} has ended without an answer: {code}. GET /api/jobs/{job} returns its status, with the unverified draft in \
         `result` if there is one."
    )
}

fn with_fields(text: &str, fields: &Map<String, Value>) -> String {
    let parts = [text.to_owned(), block(fields)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Returns the fields of a result as a block of code; empty if there are none.
fn block(fields: &Map<String, Value>) -> String {
    if fields.is_empty() {
        return String::new();
    }
    format!("```json\n{:#}\n```", Value::Object(fields.clone()))
}

/// Returns whether a text is the answer of a Job that has ended. The status has the beginning of a long result only, and its digest.
pub(super) fn is_last_answer(JobStatus { job, status, .. }: &JobStatus, said: &str) -> bool {
    match (&status.outcome, &status.result) {
        (None, _) => false,
        (Some(outcome), Some(JobResult { fields, digest: Some(digest), .. }))
            if outcome.phase() == Phase::Succeeded =>
        {
            let text = said.strip_suffix(&block(fields));
            let text =
                if fields.is_empty() { text } else { text.map(|text| text.strip_suffix("\n\n").unwrap_or(text)) };
            text.is_some_and(|text| result_digest(text, fields) == *digest)
        }
        (Some(outcome), _) => said == without_result(job, outcome),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::job_status;
    use crate::tests::Recorder;
    use bloomery_crds::Digest;
    use bloomery_crds::outcome::OutcomeCode;
    use bloomery_crds::v1alpha1::GateReason;
    use bloomery_engine::Event;
    use bloomery_engine::event::{CallId, RulingReason, UserQuestion};
    use bloomery_engine::line::{Entry, EventTime};
    use rstest::rstest;
    use serde_json::json;

    fn ended(code: OutcomeCode, result: &FullResult) -> JobStatus {
        job_status("k-1", Some(Outcome::new(code, "It ended.")), Some(result.bounded()))
    }

    fn end_of(code: OutcomeCode, result: &FullResult) -> String {
        let stamp = EventTime { time: "2026-01-01T00:00:00Z".into(), elapsed_ms: 0 };
        let event = Event::Finished { outcome: Outcome::new(code, "It ended."), result: Some(result.clone()) };
        end("k-1", &JobEvent::new("/k-1", &Entry { seq: 2, stamp, event }).unwrap())
    }

    #[tokio::test]
    async fn the_usage_is_that_of_a_status_with_the_last_event() {
        let before = Usage { output_tokens: 1, ..Usage::default() };
        let usage = usage_since(&Recorder::default(), "slow", &before, 3).await.unwrap();
        assert_eq!(usage.output_tokens, 2, "the first status with 3 events has 3 tokens");
    }

    /// Before the status of the Job `lags` has its three events, its open request is one that the first event answers. Then it has none for a
    /// while.
    #[tokio::test]
    async fn the_requests_before_a_reply_are_no_answer_to_it() {
        let tenant = Recorder::default();
        let answered = follow(&tenant, "lags", Cursor::START, true, SILENCE);
        let (text, seq) = tokio::time::timeout(SILENCE, answered).await.unwrap().unwrap();
        assert!(asks(&text, "lags", &QuestionId::new(2)) && !asks(&text, "lags", &QuestionId::new(1)), "{text}");
        assert_eq!(seq, 3);
    }

    #[tokio::test]
    async fn a_job_without_a_worker_answers_with_the_reason() {
        let tenant = Recorder::default();
        let answered = follow(&tenant, "pending", Cursor::START, false, Duration::from_millis(100));
        let (text, _) = tokio::time::timeout(SILENCE, answered).await.unwrap().unwrap();
        let says = "The Job pending has no answer yet, because no worker runs it: Pending, ModelMissing: there is no Model x\n";
        assert!(text.starts_with(says), "{text}");
    }

    #[rstest]
    #[case::text("Hello.", json!({}), "Hello.")]
    #[case::blank_end("Hello.\n\n", json!({}), "Hello.\n\n")]
    #[case::fields("Hello.", json!({"name": "Jane"}), "Hello.\n\n```json\n{\n  \"name\": \"Jane\"\n}\n```")]
    #[case::fields_only("", json!({"n": 1}), "```json\n{\n  \"n\": 1\n}\n```")]
    fn the_answer_that_a_client_sends_back_has_the_digest_of_the_result(
        #[case] text: &str,
        #[case] fields: Value,
        #[case] expected: &str,
    ) {
        let result = FullResult {
            text: text.into(),
            fields: fields.as_object().unwrap().clone(),
            verified: true,
            polished: false,
        };
        assert_eq!(end_of(OutcomeCode::Succeeded, &result), expected);
        let status = ended(OutcomeCode::Succeeded, &result);
        assert!(is_last_answer(&status, expected));
        assert!(!is_last_answer(&status, &format!("{expected}!")) && !is_last_answer(&status, ""));
    }

    #[test]
    fn a_long_answer_is_found_by_its_digest() {
        let result = FullResult { text: "long ".repeat(2000), ..FullResult::default() };
        assert!(is_last_answer(&ended(OutcomeCode::Succeeded, &result), &result.text));
    }

    #[test]
    fn the_draft_of_a_job_without_an_answer_is_not_shown() {
        let draft = FullResult { text: "a draft".into(), ..FullResult::default() };
        let text = end_of(OutcomeCode::GateFailed, &draft);
        let expected = "It ended.\n\nThe Job k-1 has ended without an answer: GateFailed. GET /api/jobs/k-1 returns its status, with the \
                        unverified draft in `result` if there is one.";
        assert_eq!(text, expected);
        let status = ended(OutcomeCode::GateFailed, &draft);
        assert!(is_last_answer(&status, &text) && !is_last_answer(&status, "a draft"));
    }

    #[test]
    fn an_answer_shows_the_held_call_and_decides_nothing() {
        let reason = RulingReason {
            layer: GateReason::Approval,
            detail: "amount > 500".into(),
            approver: Some("finance".into()),
            rule: None,
        };
        let held = HeldCall {
            call: CallId::new(7, 0),
            tool: "refund".into(),
            arguments: "{\"amount\":700}".into(),
            digest: Digest::of_bytes(b"{}"),
            reasons: vec![reason],
            approvers: vec!["finance".into()],
        };
        let text = approval("k-1", &held);
        assert!(text.starts_with("The tool refund needs the approval of finance: amount > 500."), "{text}");
        assert!(text.contains("    {\"amount\":700}\n") && text.contains("The Job k-1 waits"), "{text}");
        assert!(!asks(&text, "k-1", &QuestionId::new(1)));
    }

    #[test]
    fn an_answer_identifies_its_question() {
        let choices = vec!["Jane".into(), "Joe".into()];
        let question_1 = UserQuestion { id: QuestionId::new(1), text: "Whom?".into(), choices };
        let text = question("k-1", &Question { question: question_1, refused: Some("Jim is no choice".into()) });
        let expected = "The last reply was not accepted: Jim is no choice\n\nWhom?\n\n- Jane\n- Joe\n\n\
                        The Job k-1 waits for the answer to q-1. Your next message is the reply.";
        assert_eq!(text, expected);
        assert!(asks(&text, "k-1", &QuestionId::new(1)));
        assert!(!asks(&text, "k-1", &QuestionId::new(11)) && !asks(&text, "k-2", &QuestionId::new(1)));
    }
}
