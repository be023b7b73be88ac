//! Serves Jobs over HTTP: REST and server-sent events, over a runtime of `bloomery-embed`.
//!
//! The gateway owns no state. Each request opens the tenant with the identity of its caller, which [`Access`] finds in the request, and all
//! rights are those of the caller. Errors are problem details (RFC 9457).
//!
//! | route | operation |
//! |---|---|
//! | `POST /api/chat` | start a Job; follow it if the client accepts `text/event-stream` |
//! | `GET /api/jobs` | list the Jobs |
//! | `GET /api/jobs/{job}` | the state of a Job |
//! | `GET /api/jobs/{job}/events` | follow a Job, after `Last-Event-ID` |
//! | `GET /api/jobs/{job}/projections/{key}` | `status`, `timeline`, `context`, `workflows` or `requests` |
//! | `POST /api/jobs/{job}/replies` | answer a question, or send a message |
//! | `POST /api/jobs/{job}/approvals/{call}` | decide on a held call |
//! | `POST /api/jobs/{job}/cancel` | cancel a Job |
//! | `GET /api/skills` | read the Skills again, and list them |
//! | `GET /api/skills/{skill}/tools` | the tools of a Skill, after its policy |
//! | `GET /api/session` | the caller and the namespace |
//! | `GET /v1/models`, `POST /v1/chat/completions` | the API of OpenAI: Skills as models, Jobs as answers |
//! | `GET /openapi.json` | the description of these routes; it needs no identity |
//! | `GET /`, `GET /page/{file}` | the page; it needs no identity |
//!
//! Each user has a bucket of tokens: requests that are too many get a 429. There is no CORS, so no page of another site reads anything.
//!
//! On a cluster, a request names its tenant with the query parameter `namespace`, or with the header `Bloomery-Namespace`. Without either,
//! it has the tenant of [`Gateway`].
//!
//! `bloomery serve` runs the router over a memory of this machine. The program `bloomery-gateway` ([`server`]) runs it over a cluster.

mod access;
mod body;
mod chat;
mod cluster_access;
mod connections;
mod events;
#[cfg(test)]
mod fixture;
mod input;
pub mod logs;
mod metrics;
mod namespace;
mod openai;
mod openapi;
mod page;
mod path;
mod problem;
mod rate;
mod read;
pub mod server;
mod session;
pub mod settings;
#[cfg(test)]
mod tests;

pub use access::{Access, Identity, LoopbackAccess, random_token};
pub use cluster_access::{ClusterAccess, ProxyTrust};
pub use connections::{Limits, serve};
pub use problem::Problem;
pub use session::Gateway;

use axum::extract::DefaultBodyLimit;
use axum::http::{Method, Uri};
use axum::middleware::from_fn;
use axum::routing::{get, post};
use axum::{Extension, Router};
use bloomery_embed::Runtime;
use rate::RateLimits;
use std::future::ready;
use std::sync::Arc;

/// The largest body of a request, in bytes.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// Returns the routes of a gateway.
pub fn router<R: Runtime, A: Access<Caller = R::Caller>>(gateway: Gateway<R, A>) -> Router {
    Router::<Arc<Gateway<R, A>>>::new()
        .route("/api/chat", post(chat::start::<R>))
        .route("/api/jobs", get(read::jobs::<R>))
        .route("/api/jobs/{job}", get(read::status::<R>))
        .route("/api/jobs/{job}/events", get(events::follow::<R>))
        .route("/api/jobs/{job}/projections/{key}", get(read::projection::<R>))
        .route("/api/jobs/{job}/replies", post(input::reply::<R>))
        .route("/api/jobs/{job}/approvals/{call}", post(input::decide::<R>))
        .route("/api/jobs/{job}/cancel", post(input::cancel::<R>))
        .route("/api/skills", get(read::skills::<R>))
        .route("/api/skills/{skill}/tools", get(read::tools::<R>))
        .route("/api/session", get(session::show::<R, A>))
        .route("/v1/models", get(openai::models::<R>))
        .route("/v1/chat/completions", post(openai::complete::<R>).layer(DefaultBodyLimit::max(openai::MAX_BODY_BYTES)))
        .route("/openapi.json", get(openapi::serve))
        .merge(page::routes::<Arc<Gateway<R, A>>>())
        .fallback(|uri: Uri| ready(problem::not_found(&uri)))
        .method_not_allowed_fallback(|method: Method, uri: Uri| ready(problem::method_not_allowed(&method, &uri)))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(Extension(Arc::new(RateLimits::default())))
        .layer(from_fn(openai::error::convert))
        .with_state(Arc::new(gateway))
}
