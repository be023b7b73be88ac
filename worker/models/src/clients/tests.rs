use super::*;
use crate::fixture::{Act, Server, claude, completion, endpoint, patience, request, say};
use bloomery_crds::run::KeyFile;
use bloomery_crds::v1alpha1::ModelProvider;
use bloomery_engine::history::{ModelMessage, Turn};
use bloomery_http::progress::Progress;
use bloomery_redact::Redactor;
use serde_json::{Value, json};

const PLENTY: Duration = Duration::from_mins(1);

fn clients(models: &[ModelEndpoint], whole: Duration) -> Clients {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Clients::new(models, "uid-1", &patience(whole), &Redactor::default()).unwrap()
}

fn named(name: &str, url: &str, fallback: &[&str]) -> ModelEndpoint {
    let fallback = fallback.iter().map(|name| (*name).to_owned()).collect();
    ModelEndpoint { name: name.into(), fallback, ..endpoint(url) }
}

async fn ask(clients: &Clients, turns: &[Turn]) -> Result<Answer, Error> {
    clients.complete(&request(turns), PLENTY, &Pauses::new(&|_| {})).await
}

fn goal() -> Vec<Turn> {
    vec![Turn::User("Refund A-17".into())]
}

#[tokio::test]
async fn an_onlooker_sees_how_much_of_an_answer_is_there() {
    let delta = |content: &str| {
        let delta = json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": content}}]});
        format!("data: {delta}\n\n")
    };
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let body = format!("{}{}data: {end}\n\ndata: [DONE]\n\n", delta("Hello "), delta("Jane"));
    let kind = vec![("content-type", "text/event-stream".to_owned())];
    let (_server, url) = Server::start([Act::Say(200, kind, body)]).await;
    let (observer, seen) = recording_observer();
    let clients = clients(&[named("default", &url, &[])], Duration::ZERO).with_observer(&observer);
    assert_eq!(ask(&clients, &goal()).await.unwrap().text, "Hello Jane");
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0], Progress::ModelRequested(bloomery_crds::v1alpha1::Stage::Plan));
    let bytes = |progress: &Progress| if let Progress::ModelAnswering(bytes) = progress { *bytes } else { 0 };
    assert!(seen.len() > 2 && bytes(&seen[1]) > 0 && bytes(&seen[2]) > bytes(&seen[1]), "{seen:?}");
}

#[tokio::test]
async fn each_model_is_asked_by_its_name() {
    let (server, url) = Server::start([completion("Judged")]).await;
    let fast = ModelEndpoint { model: "gpt-5-mini".into(), ..named("fast", &url, &[]) };
    let clients = clients(&[named("default", "http://127.0.0.1:1", &[]), fast], Duration::ZERO);
    let asked = async |model: &'static str| {
        clients.complete(&ModelRequest { model, ..request(&[]) }, PLENTY, &Pauses::new(&|_| {})).await
    };
    let answer = asked("fast").await.unwrap();
    assert_eq!((answer.text.as_str(), answer.model.as_deref()), ("Judged", Some("fast")));
    let body: Value = serde_json::from_slice(&server.asked()[0].1).unwrap();
    assert_eq!(body["model"], "gpt-5-mini");
    let unknown = asked("other").await.unwrap_err();
    assert_eq!(unknown.kind, ModelFailure::Unavailable);
    assert!(unknown.message.contains("`other`"), "{unknown}");
    assert_eq!(clients.missing_secret("other"), None);
}

#[tokio::test]
async fn where_one_gives_no_answer_the_next_is_asked_in_its_own_form_and_stays_first_for_a_while() {
    let (down, first) = Server::start([completion("Let me see."), say(503, "down")]).await;
    let done = json!({"content": [{"type": "text", "text": "Done"}], "stop_reason": "end_turn"});
    let (up, second) = Server::start([say(200, done.to_string())]).await;
    let models = [named("default", &first, &["claude"]), claude(&second)];
    let clients = clients(&models, Duration::from_millis(200));
    let mut turns = goal();
    let answer = ask(&clients, &turns).await.unwrap();
    assert_eq!(answer.model.as_deref(), Some("default"));
    turns.push(Turn::Assistant(ModelMessage::from(&answer)));
    turns.push(Turn::User("Go on.".into()));
    let answer = ask(&clients, &turns).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.model.as_deref()), ("Done", Some("claude")));
    let body: Value = serde_json::from_slice(&up.asked()[0].1).unwrap();
    assert_eq!(body["messages"][1]["content"], json!([{"type": "text", "text": "Let me see."}]));
    let tried = down.times();
    assert!(tried > 2, "it was asked again before the other was");
    turns.push(Turn::Assistant(ModelMessage::from(&answer)));
    turns.push(Turn::User("Go on.".into()));
    assert_eq!(ask(&clients, &turns).await.unwrap().provider, ModelProvider::Anthropic);
    assert_eq!(down.times(), tried, "nobody waits for it anew with each question");
}

#[tokio::test]
async fn one_that_refuses_is_not_asked_again_and_all_reasons_are_told() {
    let (refusing, first) = Server::start([say(418, "teapot")]).await;
    let (_down, second) = Server::start([say(503, "down")]).await;
    let models = [named("default", &first, &["fast"]), named("fast", &second, &[])];
    let failure = ask(&clients(&models, Duration::from_millis(50)), &goal()).await.unwrap_err();
    assert_eq!((failure.kind, refusing.times()), (ModelFailure::Unavailable, 1));
    for part in ["No Model has answered in 0 s.", "HTTP 418: teapot", "HTTP 503: down", "make the Job anew."] {
        assert!(failure.message.contains(part), "{part} is not in {failure}");
    }
}

#[tokio::test]
async fn what_the_engine_has_to_decide_is_not_asked_of_another() {
    for (body, kind) in [
        ("<html>", ModelFailure::Unreadable),
        (r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#, ModelFailure::TooLong),
    ] {
        let (_server, first) = Server::start([say(200, body)]).await;
        let (other, second) = Server::start([completion("Done")]).await;
        let models = [named("default", &first, &["fast"]), named("fast", &second, &[])];
        assert_eq!(ask(&clients(&models, PLENTY), &goal()).await.unwrap_err().kind, kind);
        assert_eq!(other.times(), 0);
    }
}

#[tokio::test]
async fn a_key_is_waited_for_only_where_nobody_can_be_asked_without_it() {
    let key = |name: &str| Some(KeyFile { path: format!("/nowhere/{name}"), secret: name.into(), key: "token".into() });
    let without =
        |name: &str, fallback: &[&str]| ModelEndpoint { api_key: key(name), ..named(name, "http://x", fallback) };
    let both = clients(&[without("default", &["fast"]), without("fast", &[])], PLENTY);
    assert_eq!(
        both.missing_secret("default"),
        Some(ExternalWait::SecretMissing { name: "default".into(), key: "token".into() })
    );
    let one = clients(&[without("default", &["fast"]), named("fast", "http://x", &[])], PLENTY);
    assert_eq!(one.missing_secret("default"), None);
}

/// Returns an observer, and the progress that it has received so far.
fn recording_observer() -> (ProgressObserver, Arc<Mutex<Vec<Progress>>>) {
    let received = Arc::<Mutex<Vec<Progress>>>::default();
    let sink = received.clone();
    (ProgressObserver::new(move |progress| sink.lock().unwrap().push(progress)), received)
}
