//! Clients of the API server whose dead connections end.
//!
//! The stack of layers is that of `kube::client::ClientBuilder::try_from`, which does not let its caller set the options of a socket. Proxies
//! are left out: the operator calls the API server of its own cluster.

use axum::http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Client, Config};
use std::time::Duration;
use tower::retry::RetryLayer;
use tower::util::MapResultLayer;
use tower::{BoxError, ServiceBuilder, service_fn};

/// The time without a byte after which the kernel probes a connection. No read timeout runs while a pooled connection is idle.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

/// The time between two probes without an answer.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// The number of probes without an answer after which the kernel closes the connection.
const KEEPALIVE_RETRIES: u32 = 3;

/// Creates a client whose requests fail after this time without a byte. It calls `observe` with the status of each
/// response, also of one after which it repeats the request, and with `None` for each request without a response. With `retry`, it repeats
/// requests that the API server could not serve.
///
/// # Errors
/// Returns an error if the certificates, the headers or the credentials of the configuration are invalid.
pub fn create(
    config: &Config,
    read_timeout: Duration,
    retry: Option<RetryPolicy>,
    observe: impl Fn(Option<StatusCode>) + Clone + Send + 'static,
) -> Result<Client, kube::Error> {
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp_connector())?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(Some(read_timeout));
    connector.set_write_timeout(config.write_timeout);
    // The time during which a pooled connection is idle does not count.
    connector.set_reset_reader_on_write(true);
    let observe = MapResultLayer::new(move |result: Result<Response<Incoming>, BoxError>| {
        observe(result.as_ref().ok().map(Response::status));
        result
    });
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(retry.map(RetryLayer::new))
        .layer(observe)
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(HttpClient::builder(TokioExecutor::new()).build::<_, Body>(connector));
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).build())
}

/// Creates a client that sends its requests with `client`. It calls `observe` after each response, and after each request without a
/// response.
pub fn observed(client: &Client, observe: impl Fn() + Clone + Send + 'static) -> Client {
    let (client, default_namespace) = (client.clone(), client.default_namespace().to_owned());
    let service = service_fn(move |request: Request<Body>| {
        let (client, observe) = (client.clone(), observe.clone());
        async move {
            let result = client.send(request).await;
            observe();
            result
        }
    });
    Client::new(service, default_namespace)
}

/// Returns a connector whose connections are probed while they are idle. It also connects for `https`, whose TLS another layer adds.
fn tcp_connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_keepalive(Some(KEEPALIVE_IDLE));
    connector.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    connector
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caches::{Cache, CacheOptions, Watched};
    use axum::Router;
    use axum::body::Body as Answer;
    use axum::extract::{RawQuery, State};
    use axum::http::Uri;
    use futures::{StreamExt, stream};
    use k8s_openapi::api::core::v1::ServiceAccount;
    use kube::Api;
    use kube::runtime::watcher;
    use rustix::net::sockopt;
    use serde_json::json;
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::net::TcpListener;
    use tower::ServiceExt;

    /// Answers a list with no account. The first watch is silent after its headers, as on a half-open connection; a later one has the
    /// account `worker`.
    async fn answer(State(watches): State<Arc<AtomicUsize>>, RawQuery(query): RawQuery) -> Answer {
        if !query.is_some_and(|query| query.contains("watch=true")) {
            let list = json!({"apiVersion": "v1", "kind": "ServiceAccountList", "metadata": {"resourceVersion": "1"}, "items": []});
            return Answer::from(list.to_string());
        }
        let is_first = watches.fetch_add(1, Ordering::Relaxed) == 0;
        let metadata = json!({"name": "worker", "namespace": "acme", "resourceVersion": "2"});
        let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
        let event = json!({"type": "ADDED", "object": object}).to_string() + "\n";
        let begins = if is_first { "\n".to_owned() } else { event };
        Answer::from_stream(stream::iter([Ok::<_, Infallible>(begins)]).chain(stream::pending()))
    }

    #[tokio::test]
    async fn the_kernel_probes_an_idle_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url: Uri = format!("https://{}", listener.local_addr().unwrap()).parse().unwrap();
        let connection = tcp_connector().oneshot(url).await.unwrap().into_inner();
        assert!(sockopt::socket_keepalive(&connection).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&connection).unwrap(), KEEPALIVE_IDLE);
        assert_eq!(sockopt::tcp_keepintvl(&connection).unwrap(), KEEPALIVE_INTERVAL);
        assert_eq!(sockopt::tcp_keepcnt(&connection).unwrap(), KEEPALIVE_RETRIES);
    }

    #[tokio::test]
    async fn a_request_is_observed_once_whether_it_is_answered_or_fails() {
        let answers = service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Answer::empty())) });
        let fails = service_fn(|_: Request<Body>| async {
            Err::<Response<Answer>, _>(std::io::Error::other("connection refused"))
        });
        for (client, is_answered) in [(Client::new(answers, "default"), true), (Client::new(fails, "default"), false)] {
            let observations = Arc::new(AtomicUsize::new(0));
            let count = observations.clone();
            let client = observed(&client, move || {
                count.fetch_add(1, Ordering::Relaxed);
            });
            let result = client.request_text(Request::get("/version").body(Vec::new()).unwrap()).await;
            assert_eq!((result.is_ok(), observations.load(Ordering::Relaxed)), (is_answered, 1));
        }
    }

    #[tokio::test]
    async fn a_watch_on_a_half_open_connection_is_opened_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(Arc::default());
        let server = tokio::spawn(async { axum::serve(listener, router).await });
        let responses = Arc::new(AtomicUsize::new(0));
        let count = responses.clone();
        let client = create(&Config::new(url.parse().unwrap()), Duration::from_millis(100), None, move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let options = CacheOptions::trimmed(|_| {});
        let watched = Watched { api: Api::all(client.unwrap()), config: watcher::Config::default(), scope: None };
        let (cache, feed) = Cache::<ServiceAccount>::new(vec![watched], options);
        let mut changes = cache.changes();
        let feeding = tokio::spawn(feed.for_each(|()| async {}));
        let received = async {
            while cache.get("acme", "worker").is_none() {
                let _ = changes.next().await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), received).await.expect("the watch stays silent");
        assert!(responses.load(Ordering::Relaxed) >= 3, "a list and two watches");
        feeding.abort();
        server.abort();
    }
}
