use super::*;
use crate::job::fixtures::api::FakeApi;
use bloomery_crds::v1alpha1::Model;
use futures::channel::mpsc;
use kube::core::Status;
use serde_json::json;

fn model(name: &str, spec: &serde_json::Value) -> (String, serde_json::Value) {
    let path = format!("/apis/bloomery.dev/v1alpha1/namespaces/acme/models/{name}");
    let object = json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Model",
        "metadata": {"namespace": "acme", "name": name, "uid": format!("u-{name}")},
        "spec": spec,
    });
    (path, object)
}

fn good() -> serde_json::Value {
    json!({"provider": "openai", "model": "m", "baseUrl": "https://x/v1"})
}

/// Starts a controller of Models. Each reconcile sends the name of its Model to the returned receiver, and returns
/// `outcome`.
async fn started(
    api: &FakeApi,
    wakes: Vec<BoxStream<'static, Wake<Model>>>,
    outcome: fn() -> Result<Action, Error>,
    shutdown: &CancellationToken,
) -> (mpsc::UnboundedReceiver<String>, tokio::task::JoinHandle<()>) {
    let context = api.operator().await;
    let store = context.caches.models.store().clone();
    let (reconciled, names) = mpsc::unbounded();
    let controller = Controller { name: "model", store, wakes, concurrency: 1 };
    let one = move |model: Model, _| {
        let _ = reconciled.unbounded_send(model.name_any());
        futures::future::ready(outcome())
    };
    (names, tokio::spawn(controller.run(context, one, shutdown.clone())))
}

#[tokio::test]
async fn an_unreadable_object_does_not_stop_the_others() {
    let api = FakeApi::default();
    for (path, object) in [
        model("a-older", &json!({"provider": "telepathy"})),
        model("b-good", &good()),
        model("c-older", &json!("nonsense")),
        model("d-good", &good()),
    ] {
        api.put(&path, object);
    }
    let shutdown = CancellationToken::new();
    let (seen, running) = started(&api, vec![], || Ok(Action::await_change()), &shutdown).await;
    let mut names: Vec<String> = seen.take(2).collect().await;
    names.sort();
    assert_eq!(names, ["b-good", "d-good"]);
    shutdown.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_failed_reconcile_is_retried_without_a_wake() {
    let api = FakeApi::default();
    let (path, object) = model("only", &good());
    api.put(&path, object);
    let conflict = || {
        let status = Status::failure("changed", "Conflict").with_code(409);
        Err(Error::api("write")(kube::Error::Api(Box::new(status))))
    };
    let shutdown = CancellationToken::new();
    let (seen, _running) = started(&api, vec![], conflict, &shutdown).await;
    let names: Vec<String> = seen.take(3).collect().await;
    assert_eq!(names, ["only", "only", "only"]);
}

#[tokio::test]
async fn a_reconcile_counts_as_running_until_it_is_aborted() {
    let api = FakeApi::default();
    let (path, object) = model("only", &good());
    api.put(&path, object);
    let context = api.operator().await;
    let store = context.caches.models.store().clone();
    let (sender, mut starts) = mpsc::unbounded();
    let controller = Controller { name: "model", store, wakes: vec![], concurrency: 1 };
    let never_ends = move |_: Model, _: Arc<Context>| {
        let _ = sender.unbounded_send(());
        futures::future::pending::<Result<Action, Error>>()
    };
    let running = tokio::spawn(controller.run(context.clone(), never_ends, CancellationToken::new()));
    starts.next().await.unwrap();
    let is_running = |count: usize| {
        let line = format!("bloomery_reconciles_running{{controller=\"model\"}} {count}\n");
        context.metrics.to_text().contains(&line)
    };
    assert!(is_running(1));
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    assert!(is_running(0));
}

#[tokio::test]
async fn a_change_wakes_its_dependents_and_an_unknown_change_wakes_all() {
    let api = FakeApi::default();
    for (path, object) in [model("a", &good()), model("b", &good())] {
        api.put(&path, object);
    }
    let context = api.operator().await;
    let touched = Change::Touched(Arc::new("b"));
    let changes = stream::iter([touched, Change::Anything]).boxed();
    let find = |name: &&str| vec![ObjectRef::new(name).within("acme")];
    let mut woken: Vec<String> =
        wake_on(changes, context.caches.models.store(), find).map(|wake: Wake<Model>| wake.name).collect().await;
    assert_eq!(woken.remove(0), "b");
    woken.sort();
    assert_eq!(woken, ["a", "b"]);
}
