use super::*;
use axum::http::{Method, Request, Response};
use clap::Parser;
use k8s_openapi::jiff::Timestamp;
use kube::client::Body;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Mutex;

/// The timeout for a step that should take a second.
const STEP_TIMEOUT: Duration = Duration::from_mins(1);

/// An API server that has one lease, and counts how often it was read.
#[derive(Clone)]
struct LeaseApi {
    lease: Arc<Mutex<Value>>,
    reads: watch::Sender<usize>,
}

impl LeaseApi {
    /// An API server whose lease is held for another hour.
    fn held_by(holder: &str) -> Self {
        let now = Timestamp::now().to_string();
        let spec = json!({
            "holderIdentity": holder, "acquireTime": now, "renewTime": now, "leaseDurationSeconds": 3600,
        });
        let lease = json!({ "metadata": { "name": "bloomery-operator" }, "spec": spec });
        Self { lease: Arc::new(Mutex::new(lease)), reads: watch::Sender::new(0) }
    }

    fn client(&self) -> Client {
        let api = self.clone();
        Client::new(tower::service_fn(move |request| api.clone().serve(request)), "default")
    }

    async fn serve(self, request: Request<Body>) -> Result<Response<Body>, Infallible> {
        let method = request.method().clone();
        let body = request.into_body().collect_bytes().await.unwrap();
        let mut lease = self.lease.lock().unwrap();
        if method == Method::PATCH {
            let patch: Value = serde_json::from_slice(&body).unwrap();
            for (field, value) in patch["spec"].as_object().unwrap() {
                lease["spec"][field] = value.clone();
            }
        } else {
            assert_eq!(method, Method::GET);
            self.reads.send_modify(|reads| *reads += 1);
        }
        Ok(Response::new(Body::from(serde_json::to_vec(&*lease).unwrap())))
    }

    fn holder(&self) -> Value {
        self.lease.lock().unwrap()["spec"]["holderIdentity"].clone()
    }

    async fn read(&self, times: usize) {
        let mut reads = self.reads.subscribe();
        tokio::time::timeout(STEP_TIMEOUT, reads.wait_for(|reads| *reads >= times)).await.unwrap().unwrap();
    }
}

fn settings(pod: &str) -> Settings {
    let name = format!("--pod-name={pod}");
    let arguments = ["operator", &name, "--pod-namespace=bloomery", "--worker-image=worker:1"];
    Settings::try_parse_from(arguments).unwrap()
}

#[tokio::test]
async fn gained_and_lost_leadership_wakes_waiting_tasks() {
    let (sender, known) = Leadership::channel();
    assert!(!known.is_leader());
    sender.send_replace(true);
    known.wait_until_gained().await;
    assert!(known.is_leader());
    drop(sender);
    known.wait_until_lost().await;
}

#[tokio::test]
async fn a_released_lease_is_taken_over_and_released_at_the_shutdown() {
    let api = LeaseApi::held_by("op-0");
    let (sender, known) = Leadership::channel();
    let shutdown = CancellationToken::new();
    let competing = tokio::spawn({
        let (client, shutdown) = (api.client(), shutdown.clone());
        async move { compete(client, &settings("op-1"), sender, &Arc::new(Metrics::new()), shutdown).await }
    });
    // The creation of the manager reads the lease once, and the manager reads it again. Now the manager waits for its end.
    api.read(2).await;
    assert!(!known.is_leader());
    release(api.client(), &settings("op-0")).await.unwrap();
    tokio::time::timeout(STEP_TIMEOUT, known.wait_until_gained()).await.unwrap();
    assert_eq!(api.holder(), "op-1");
    shutdown.cancel();
    competing.await.unwrap();
    assert_eq!((api.holder(), known.is_leader()), (Value::Null, false));
}

#[tokio::test]
async fn a_held_lease_stays_with_its_holder() {
    let api = LeaseApi::held_by("op-0");
    let (client, waiting) = (api.client(), settings("op-1"));
    tokio::select! {
        _ = acquire(&client, &waiting) => panic!("it is held for another hour"),
        () = api.read(4) => {}
    }
    assert_eq!(api.holder(), "op-0");
}
