//! An API server in memory, for the tests of Kubernetes clients.
//!
//! It stores objects of every resource by path, with UIDs and versions, and serves lists with selectors and pages,
//! watches, pod logs, server-side apply, merge patches, updates, deletion with preconditions, access reviews and token
//! reviews. The user of a request is the impersonated user. A test can prepare failures (a concurrent write of another
//! client, a lost response, denied rights) and inspect the received requests.
//!
//! Unlike a real API server, it does not validate objects. Server-side apply replaces the whole object, as if one field
//! manager owned all fields. Kubernetes Events are accepted and not stored.

mod access;
mod admission;
mod handler;
mod query;
mod server;
mod store;
mod target;

pub use self::access::Access;
pub use self::admission::{Write, refusal};
pub use self::server::ApiServer;
