use super::*;
use crate::fixture::{Server, claude, completion, endpoint, event_stream, request, response, retry_policy};
use bloomery_crds::run::KeyFile;
use bloomery_crds::v1alpha1::ModelProvider;
use bloomery_engine::history::{ModelMessage, Turn};
use bloomery_http::progress::Progress;
use bloomery_redact::Redactor;
use serde_json::{Value, json};

const LONG_TIMEOUT: Duration = Duration::from_mins(1);

fn clients(models: &[ModelEndpoint], total: Duration) -> Clients {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Clients::new(models, "uid-1", &retry_policy(total), AddressPolicy::for_local_machine(), &Redactor::default())
        .unwrap()
}

fn named(name: &str, url: &str, fallback: &[&str]) -> ModelEndpoint {
    let fallback = fallback.iter().map(|name| (*name).to_owned()).collect();
    ModelEndpoint { name: name.into(), fallback, ..endpoint(url) }
}

async fn ask(clients: &Clients, turns: &[Turn]) -> Result<Answer, Error> {
    clients.complete(&request(turns), LONG_TIMEOUT, &Pauses::new(&|_| {})).await
}

fn first_turn() -> Vec<Turn> {
    vec![Turn::User("Refund A-17".into())]
}

#[tokio::test]
async fn the_observer_gets_the_size_of_the_answer_so_far() {
    let delta = |content: &str| {
        let delta = json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": content}}]});
        format!("data: {delta}\n\n")
    };
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let body = format!("{}{}data: {end}\n\ndata: [DONE]\n\n", delta("Hello "), delta("Jane"));
    let (_server, url) = Server::start([event_stream(body)]).await;
    let (observer, seen) = recording_observer();
    let clients = clients(&[named("default", &url, &[])], Duration::ZERO).with_observer(&observer);
    assert_eq!(ask(&clients, &first_turn()).await.unwrap().text, "Hello Jane");
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0], Progress::ModelRequested(bloomery_crds::v1alpha1::Stage::Plan));
    let bytes = |progress: &Progress| if let Progress::ModelAnswering(bytes) = progress { *bytes } else { 0 };
    assert!(seen.len() > 2 && bytes(&seen[1]) > 0 && bytes(&seen[2]) > bytes(&seen[1]), "{seen:?}");
}

#[tokio::test]
async fn the_model_that_a_request_names_is_asked() {
    let (server, url) = Server::start([completion("Done")]).await;
    let fast = ModelEndpoint { model: "gpt-5-mini".into(), ..named("fast", &url, &[]) };
    let clients = clients(&[named("default", "http://127.0.0.1:1", &[]), fast], Duration::ZERO);
    let ask_model = async |model: &'static str| {
        clients.complete(&ModelRequest { model, ..request(&[]) }, LONG_TIMEOUT, &Pauses::new(&|_| {})).await
    };
    let answer = ask_model("fast").await.unwrap();
    assert_eq!((answer.text.as_str(), answer.model.as_deref()), ("Done", Some("fast")));
    let body: Value = serde_json::from_slice(&server.requests()[0].1).unwrap();
    assert_eq!(body["model"], "gpt-5-mini");
    let unknown = ask_model("other").await.unwrap_err();
    assert_eq!(unknown.kind, ModelFailure::Unavailable);
    assert!(unknown.message.contains("`other`"), "{unknown}");
    assert_eq!(clients.missing_secret("other"), None);
}

#[tokio::test]
async fn a_fallback_continues_the_conversation_and_is_asked_first_for_a_while() {
    let (first_server, first) = Server::start([completion("Let me see."), response(503, "down")]).await;
    let done = json!({"content": [{"type": "text", "text": "Done"}], "stop_reason": "end_turn"});
    let (second_server, second) = Server::start([response(200, done.to_string())]).await;
    let models = [named("default", &first, &["claude"]), claude(&second)];
    let clients = clients(&models, Duration::from_millis(200));
    let mut turns = first_turn();
    let answer = ask(&clients, &turns).await.unwrap();
    assert_eq!(answer.model.as_deref(), Some("default"));
    turns.push(Turn::Assistant(ModelMessage::from(&answer)));
    turns.push(Turn::User("Go on.".into()));
    let answer = ask(&clients, &turns).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.model.as_deref()), ("Done", Some("claude")));
    let body: Value = serde_json::from_slice(&second_server.requests()[0].1).unwrap();
    assert_eq!(body["messages"][1]["content"], json!([{"type": "text", "text": "Let me see."}]));
    let count = first_server.request_count();
    assert!(count > 2, "the first Model is retried before the fallback is asked");
    turns.push(Turn::Assistant(ModelMessage::from(&answer)));
    turns.push(Turn::User("Go on.".into()));
    assert_eq!(ask(&clients, &turns).await.unwrap().provider, ModelProvider::Anthropic);
    assert_eq!(first_server.request_count(), count, "the first Model is not asked again soon");
}

#[tokio::test]
async fn a_model_that_refuses_is_not_retried_and_the_error_has_all_reasons() {
    let (refusing, first) = Server::start([response(418, "teapot")]).await;
    let (_down, second) = Server::start([response(503, "down")]).await;
    let models = [named("default", &first, &["fast"]), named("fast", &second, &[])];
    let failure = ask(&clients(&models, Duration::from_millis(50)), &first_turn()).await.unwrap_err();
    assert_eq!((failure.kind, refusing.request_count()), (ModelFailure::Unavailable, 1));
    for part in ["No Model has answered in 0 s.", "HTTP 418: teapot", "HTTP 503: down", "start the Job again."] {
        assert!(failure.message.contains(part), "{part} is not in {failure}");
    }
}

#[tokio::test]
async fn an_error_that_the_engine_handles_does_not_lead_to_a_fallback() {
    for (body, kind) in [
        ("<html>", ModelFailure::Unreadable),
        (r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#, ModelFailure::TooLong),
    ] {
        let (_server, first) = Server::start([response(200, body)]).await;
        let (other, second) = Server::start([completion("Done")]).await;
        let models = [named("default", &first, &["fast"]), named("fast", &second, &[])];
        assert_eq!(ask(&clients(&models, LONG_TIMEOUT), &first_turn()).await.unwrap_err().kind, kind);
        assert_eq!(other.request_count(), 0);
    }
}

#[tokio::test]
async fn a_missing_key_is_reported_only_if_no_fallback_can_be_asked() {
    let key = |name: &str| Some(KeyFile { path: format!("/nowhere/{name}"), secret: name.into(), key: "token".into() });
    let without_key =
        |name: &str, fallback: &[&str]| ModelEndpoint { api_key: key(name), ..named(name, "http://x", fallback) };
    let both = clients(&[without_key("default", &["fast"]), without_key("fast", &[])], LONG_TIMEOUT);
    assert_eq!(
        both.missing_secret("default"),
        Some(ExternalWait::SecretMissing { name: "default".into(), key: "token".into(), until: None })
    );
    let one = clients(&[without_key("default", &["fast"]), named("fast", "http://x", &[])], LONG_TIMEOUT);
    assert_eq!(one.missing_secret("default"), None);
}

/// Returns an observer, and the progress that it has received so far.
fn recording_observer() -> (ProgressObserver, Arc<Mutex<Vec<Progress>>>) {
    let received = Arc::<Mutex<Vec<Progress>>>::default();
    let sink = received.clone();
    (ProgressObserver::new(move |progress| sink.lock().unwrap().push(progress)), received)
}
