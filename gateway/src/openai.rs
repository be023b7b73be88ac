//! The OpenAI front: Skills as models, and Jobs as chat completions.
//!
//! The client sends the whole chat with each request. The Job that produced the last answer is found by its key, which begins with a digest
//! of the user's turns, and by the digest of its result; so the gateway stores nothing. [`find`] has the rules.
//!
//! No text reaches the client before the Job has ended or waits for a person. Until then, a stream has comments only.

mod answer;
pub(crate) mod error;
mod find;
mod request;
mod turns;
mod wire;

use crate::body::Body;
use crate::chat;
use crate::problem::Problem;
use crate::session::Session;
use answer::Answer;
use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bloomery_crds::v1alpha1::Usage;
use bloomery_embed::{Cursor, Input, NewJob, Runtime, Tenant};
use find::Found;
pub(crate) use request::CompletionRequest;
use turns::Turns;
pub(crate) use wire::{Completion, ModelList};

/// The largest body of a request, in bytes. A request has the whole chat.
pub(crate) const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Lists the Skills that Jobs can use.
pub(crate) async fn models<R: Runtime>(session: Session<R>) -> Result<Json<ModelList>, Problem> {
    let skills = session.tenant.skills().await?.into_iter();
    Ok(Json(ModelList::new(skills.filter(|skill| skill.fault.is_none()).map(|skill| skill.name))))
}

/// Answers the last message of a chat: continues the Job that produced the answer before it, or starts a Job.
pub(crate) async fn complete<R: Runtime>(
    session: Session<R>,
    headers: HeaderMap,
    Body(request): Body<CompletionRequest>,
) -> Result<Response, Problem> {
    request.check()?;
    let turns = Turns::new(&session.user, &request)?;
    session.tenant.check_following().await?;
    let begun = begin(&session.tenant, &turns, chat::run_key(&headers, &session.user)?).await?;
    let (tenant, job) = (session.tenant.clone(), begun.job.clone());
    let is_stream = request.stream.unwrap_or_default();
    let includes_usage = request.stream_options.is_some_and(|options| options.include_usage.unwrap_or_default());
    let answer = async move { begun.answer(&tenant, !is_stream || includes_usage).await };
    let head = wire::Head::new(&job, request.model);
    if is_stream {
        return Ok(wire::streamed(head, answer));
    }
    Ok(Json(Completion::new(head, answer.await?)).into_response())
}

/// A Job that has received the last message of a chat.
#[derive(Debug)]
struct Begun {
    job: String,
    /// The position in its log after which the answer is.
    after: Cursor,
    /// Whether the answer follows only after input of the person.
    awaits_input: bool,
    /// The usage before the message.
    before: Usage,
    /// The answer, if the message does not change it.
    known: Option<String>,
}

impl Begun {
    /// Waits for the answer. Reads the usage only if the response shows it, because the status of a Job may have it later than the log.
    async fn answer<T: Tenant>(self, tenant: &T, shows_usage: bool) -> Result<Answer, Problem> {
        let Self { job, after, awaits_input, before, known } = self;
        let (text, seq) = match known {
            Some(text) => (text, 0),
            None => answer::follow(tenant, &job, after, awaits_input, answer::SILENCE).await?,
        };
        let usage = if shows_usage { Some(answer::usage_since(tenant, &job, &before, seq).await?) } else { None };
        Ok(Answer { text, usage })
    }
}

/// Passes the last message of a chat to a Job: the one that produced the answer before it, or a new one.
async fn begin<T: Tenant>(tenant: &T, turns: &Turns, idempotency: Option<String>) -> Result<Begun, Problem> {
    match find::find(tenant, turns).await? {
        None => start(tenant, turns, turns.goal(), None, idempotency).await,
        Some(Found::Answered(job)) => start(tenant, turns, turns.last().to_owned(), Some(job), idempotency).await,
        Some(Found::Waiting(job)) => go_on(tenant, turns, job).await,
    }
}

/// Starts a Job with the last message of a chat.
async fn start<T: Tenant>(
    tenant: &T,
    turns: &Turns,
    goal: String,
    continues: Option<String>,
    idempotency: Option<String>,
) -> Result<Begun, Problem> {
    let has_idempotency_key = idempotency.is_some();
    let key = turns.new_key(idempotency.as_deref())?;
    if has_idempotency_key && find::is_used(tenant, &key).await? {
        let detail = "An earlier request with the same Idempotency-Key had other messages.";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
    }
    let skill = Some(turns.skill().to_owned());
    let started = tenant.start(NewJob { goal, skill, key: Some(key), continues, ..NewJob::default() }).await;
    let job = started.map_err(|error| chat::start_problem(error, has_idempotency_key))?;
    Ok(Begun { job, after: Cursor::START, awaits_input: false, before: Usage::default(), known: None })
}

/// Passes the last message of a chat to a Job that waited for a person when it produced the answer before. If the Job has ended meanwhile,
/// or waits for the answer to another question, the message is not passed on, because it may be a repeated request: the state of the Job is
/// the answer. A message does not end the wait for a decision, so the held calls are the answer again.
async fn go_on<T: Tenant>(tenant: &T, turns: &Turns, job: String) -> Result<Begun, Problem> {
    let status = tenant.status(&job).await?.status;
    let (after, before) = (Cursor::after(status.log.events), status.usage);
    if status.outcome.is_some() {
        return Ok(Begun { job, after: Cursor::START, awaits_input: false, before, known: None });
    }
    let text = turns.last().to_owned();
    let open = tenant.open_requests(&job).await?;
    let known = answer::of_requests(&job, &open);
    let (input, known) = match open.questions.into_iter().next() {
        None => (Input::Message { text }, known),
        Some(asked) if answer::asks(turns.answer_before(), &job, &asked.question.id) => {
            (Input::Reply { question: asked.question.id, text }, None)
        }
        Some(_) => return Ok(Begun { job, after, awaits_input: false, before, known }),
    };
    tenant.send(&job, input).await?;
    Ok(Begun { job, after, awaits_input: true, before, known })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Recorder;
    use serde_json::json;
    use std::time::Duration;

    #[tokio::test]
    async fn a_message_to_a_job_with_a_held_call_has_the_call_as_its_answer() {
        let messages = [("user", "Refund"), ("assistant", "The Job held waits."), ("user", "Is it done?")];
        let messages = messages.map(|(role, content)| json!({"role": role, "content": content}));
        let request = serde_json::from_value(json!({"model": "greeter", "messages": messages})).unwrap();
        let turns = Turns::new("ada", &request).unwrap();
        let tenant = Recorder::default();
        let begun = go_on(&tenant, &turns, "held".into()).await.unwrap();
        assert_eq!(tenant.sent(), [Input::Message { text: "Is it done?".into() }]);
        // The Job has no event before the decision.
        let answer = tokio::time::timeout(Duration::from_mins(2), begun.answer(&tenant, false)).await.unwrap().unwrap();
        assert!(answer.text.starts_with("The tool refund needs the approval of finance"), "{}", answer.text);
    }
}
