//! An API server in memory, for the tests of Kubernetes clients.
//!
//! It stores objects of every resource by path, with UIDs and versions, and serves lists with selectors and pages,
//! watches, pod logs, server-side apply, merge patches, updates, deletion with preconditions, access reviews and token
//! reviews. The user of a request is the one whom it impersonates. A test prepares failures (a write of another client
//! just before the next one, a lost response, denied rights), and reads which requests were made.
//!
//! It differs from an API server in this: it does not validate objects; server-side apply replaces the whole object, as
//! if there were one field manager; Events are accepted and not stored.

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
