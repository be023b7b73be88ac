//! Sends the input of people to a Job, and waits until it is durable.

use super::effect;
use super::inbox::Letter;
use super::shared::Shared;
use super::statement::{self, Delivery};
use super::thread::Begin;
use crate::error::{Error, ErrorKind};
use crate::input::Input;
use crate::local::job_state::LogFold;
use crate::requests::OpenRequests;
use bloomery_crds::outcome::Phase;
use bloomery_engine::people::Statement;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The time in which a Job must record input. A Job records input between two steps, and a step may be a slow answer of a model.
const RECORD_TIMEOUT: Duration = Duration::from_mins(1);

/// Sends the input of `by` to a Job. Returns once it is durable.
///
/// # Errors
/// If the input changes nothing, or is not durable in time.
pub(super) async fn send(shared: &Arc<Shared>, key: &str, by: String, input: Input) -> Result<(), Error> {
    let checked = shared.with_job(key, move |job| {
        let fold = Box::new(job.fold()?);
        if fold.conversation.outcome().is_some() {
            return Err(has_ended(job.key()));
        }
        Ok((statement::delivery(input, &by, &OpenRequests::new(&fold.conversation))?, fold))
    });
    match checked.await? {
        (Delivery::Statement(statement), fold) => record(shared, key, statement, fold).await,
        (Delivery::Cancel, _) => cancel(shared, key).await,
    }
}

/// Passes a statement to a Job, and waits until its event is durable. If no thread drives the Job, one begins. `fold` is at the position at
/// which the statement was checked.
///
/// Another person may have made a statement about the same request since then. The Job discards the later one, so the rest of the log
/// decides whether this one is recorded.
async fn record(shared: &Arc<Shared>, key: &str, statement: Statement, mut fold: Box<LogFold>) -> Result<(), Error> {
    let (letter, recorded) = Letter::new(statement.clone());
    if let Some(letter) = shared.running.deliver(key, letter) {
        shared.resume(None, Begin::Resume(key.to_owned(), letter)).await?;
    }
    match timeout(RECORD_TIMEOUT, recorded).await {
        Ok(Ok(event)) => shared.blocking(move |_| effect::check(&statement, &event, &mut fold)).await,
        Ok(Err(_)) => Err(match phase_of_end(shared, key).await? {
            Some(_) => has_ended(key),
            None => Error::new(
                ErrorKind::Unavailable,
                format!("the Job {key} has stopped before it recorded the input: send the input again"),
            ),
        }),
        Err(_) => Err(not_yet(key)),
    }
}

/// Cancels a Job, and waits until its thread has ended. If no thread drives the Job, one begins, and records the cancellation.
async fn cancel(shared: &Arc<Shared>, key: &str) -> Result<(), Error> {
    let mut inbox = shared.running.cancel(key);
    if inbox.is_none() {
        shared.resume(None, Begin::Cancel(key.to_owned())).await?;
        inbox = shared.running.cancel(key);
    }
    if let Some(inbox) = inbox
        && timeout(RECORD_TIMEOUT, inbox.closed()).await.is_err()
    {
        return Err(not_yet(key));
    }
    match phase_of_end(shared, key).await? {
        Some(Phase::Cancelled) => Ok(()),
        Some(_) => Err(has_ended(key)),
        None => Err(Error::failed(format!(
            "the Job {key} has stopped before it recorded the cancellation: see its log, and cancel it again"
        ))),
    }
}

/// Returns the phase of a Job that has ended.
async fn phase_of_end(shared: &Arc<Shared>, key: &str) -> Result<Option<Phase>, Error> {
    let phase = shared.with_job(key, |job| {
        let projection = job.state()?.projection;
        Ok(projection.outcome.is_some().then_some(projection.phase))
    });
    phase.await
}

fn has_ended(key: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("the Job {key} has ended, and accepts no input"))
}

fn not_yet(key: &str) -> Error {
    let seconds = RECORD_TIMEOUT.as_secs();
    let message = format!(
        "the Job {key} has the input, but has not recorded it within {seconds} s, because its current step goes on. It records the \
         input after the step. If the runtime stops before, the input is lost: read the events of the Job before you send it again"
    );
    Error::new(ErrorKind::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Cursor;
    use crate::job::NewJob;
    use crate::local_runtime::{LocalRuntime, LocalTenant};
    use crate::run::options::{ModelOptions, RunOptions};
    use crate::runtime::{Runtime, Tenant};
    use bloomery_engine::event::Decision;
    use bloomery_testkit::greeter::SKILL;
    use bloomery_testkit::model_server::ModelServer;
    use bloomery_testkit::model_server::script::Script;
    use futures::StreamExt;
    use std::collections::BTreeMap;
    use std::fs;

    const ASKS_TWICE: &str = "
conversations:
  - name: asks twice
    turns:
      - {calls: [{name: ask_user, arguments: {text: 'Whom?'}}]}
      - {calls: [{name: ask_user, arguments: {text: 'How?'}}]}
";

    /// Waits until the Job has the requests.
    async fn wait_for(tenant: &LocalTenant, has: fn(&OpenRequests) -> bool) -> OpenRequests {
        let found = async {
            let mut events = tenant.events("k-1", Cursor::START).await.unwrap();
            loop {
                events.next().await.unwrap().unwrap();
                let open = tenant.open_requests("k-1").await.unwrap();
                if has(&open) {
                    return open;
                }
            }
        };
        timeout(RECORD_TIMEOUT, found).await.unwrap()
    }

    /// Records two statements that have both passed the check of [`send`].
    async fn record_both(tenant: &LocalTenant, first: Statement, later: Statement) -> [Result<(), Error>; 2] {
        let shared = &tenant.shared;
        let fold = || shared.with_job("k-1", |job| job.fold().map(Box::new));
        let (of_first, of_later) = (fold().await.unwrap(), fold().await.unwrap());
        let recorded = tokio::join!(record(shared, "k-1", first, of_first), record(shared, "k-1", later, of_later));
        recorded.into()
    }

    #[tokio::test]
    async fn of_two_statements_about_one_request_the_later_one_is_refused() {
        let model = ModelServer::new(Script::from_yaml(ASKS_TWICE).unwrap());
        let model = model.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let memory = tempfile::tempdir().unwrap();
        fs::create_dir(memory.path().join("greeter")).unwrap();
        let policy = "  policy: {approvals: [{toolId: ask_user, action: require_approval, approver: host}]}\n";
        fs::write(memory.path().join("greeter/skill.yaml"), format!("{SKILL}{policy}")).unwrap();
        let model_options = ModelOptions {
            model: Some("scripted".into()),
            model_url: Some(format!("{}/v1", model.url())),
            ..ModelOptions::default()
        };
        let options = RunOptions { model: model_options, ..RunOptions::new(memory.path()) };
        let runtime = LocalRuntime::new(BTreeMap::from([("acme".to_owned(), options)])).unwrap();
        let tenant = runtime.open("acme", "ada".into()).await.unwrap();
        let job = NewJob { skill: Some("greeter".into()), key: Some("k-1".into()), ..NewJob::new("Greet") };
        tenant.start(job).await.unwrap();

        let held = wait_for(&tenant, |open| !open.approvals.is_empty()).await.approvals.remove(0);
        let decision = |by: &str| Decision { approver: "host".into(), by: by.into(), reason: None };
        let approval =
            Statement::Approval { call: held.call.clone(), digest: held.digest.clone(), decision: decision("ada") };
        let denial = Statement::Denial { call: held.call, decision: decision("bob") };
        let [first, later] = record_both(&tenant, approval, denial).await;
        assert_eq!(first, Ok(()));
        let error = later.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict);
        assert!(error.message.contains("was decided already by ada"), "{error}");

        let question = wait_for(&tenant, |open| !open.questions.is_empty()).await.questions.remove(0).question.id;
        let reply = |text: &str, by: &str| Statement::Reply {
            question: question.clone(),
            text: text.into(),
            by: by.into(),
            nth: None,
        };
        let [first, later] = record_both(&tenant, reply("Jane", "ada"), reply("Joe", "bob")).await;
        assert_eq!(first, Ok(()));
        let error = later.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict);
        assert!(error.message.contains("was answered already by ada"), "{error}");
        tenant.close().await;
    }
}
