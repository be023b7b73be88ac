//! Admission checks and defaults for writes, which a test provides.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::access::Access;

/// A write that an admission check allows or refuses.
#[derive(Debug)]
pub struct Write<'a> {
    /// The user who writes.
    pub user: &'a str,
    /// `create`, `apply`, `patch`, `replace`, `status` or `delete`.
    pub kind: &'a str,
    /// The path of the object.
    pub path: &'a str,
    /// The body of the request: an object, a patch or the options of a deletion.
    pub body: &'a Value,
    /// The stored object, if there is one.
    pub stored: Option<&'a Value>,
    /// True for a dry run, which stores nothing.
    pub is_dry_run: bool,
    /// The access rules, for checks that depend on rights.
    pub access: &'a Access,
}

/// An admission check. To refuse a write, it returns a `Status` object.
pub(super) type Admission = Box<dyn Fn(&Write<'_>) -> Result<(), Value> + Send + Sync>;

/// Completes an object that is being created, as the defaults of an API server and the controllers of a cluster do.
pub(super) type Defaults = Box<dyn Fn(&mut Value) + Send + Sync>;

/// Returns the `Status` object with which an API server refuses a request.
pub fn refusal(code: StatusCode, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": code.as_u16(), "reason": reason, "message": message})
}
