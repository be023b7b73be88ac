//! An API server with Approvals, and the admission policy that checks decisions.

use axum::http::StatusCode;
use bloomery_testkit::api_server::{ApiServer, Write, refusal};
use serde_json::{Value, json};
use std::ops::Deref;

const NAMESPACE: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme";

/// The API server. Users have the rights that tests grant.
pub struct Api(ApiServer);

impl Default for Api {
    fn default() -> Self {
        let api = ApiServer::default();
        api.require_grants();
        api.admit(policy);
        Self(api)
    }
}

impl Deref for Api {
    type Target = ApiServer;

    fn deref(&self) -> &ApiServer {
        &self.0
    }
}

impl Api {
    /// Stores an Approval, and its Job if there is none of that name.
    pub fn put_approval(&self, approval: Value) {
        let (job, uid) = (approval["spec"]["job"].clone(), approval["spec"]["jobUid"].clone());
        self.put(&approval_path(&approval), approval);
        let path = job_path(job.as_str().unwrap());
        if self.find(&path).is_none() {
            self.put_job(json!({"metadata": {"name": job, "uid": uid}}));
        }
    }

    pub fn put_job(&self, job: Value) {
        self.put(&job_path(job["metadata"]["name"].as_str().unwrap()), job);
    }

    /// Deletes a Job and leaves its Approvals. Creates another Job of that name if a UID is given.
    pub fn orphan(&self, job: &str, another: Option<&str>) {
        self.remove(&job_path(job));
        if let Some(uid) = another {
            self.put_job(json!({"metadata": {"name": job, "uid": uid}}));
        }
    }

    pub fn approval(&self, name: &str) -> Value {
        self.get(&format!("{NAMESPACE}/approvals/{name}"))
    }

    /// Lets another client write an Approval just before the next patch of it.
    pub fn overtake(&self, approval: Value) {
        self.meanwhile(&approval_path(&approval), approval);
    }
}

fn approval_path(approval: &Value) -> String {
    format!("{NAMESPACE}/approvals/{}", approval["metadata"]["name"].as_str().unwrap())
}

fn job_path(name: &str) -> String {
    format!("{NAMESPACE}/skilljobs/{name}")
}

/// Admits a decision that a person makes in their own name, with the right to approve for the approver.
fn policy(write: &Write<'_>) -> Result<(), Value> {
    let Write { user, body, stored: Some(stored), access, .. } = write else { return Ok(()) };
    assert!(!body["metadata"]["resourceVersion"].is_null(), "a decision needs the version that was read: {body}");
    assert_eq!(body["spec"]["decision"]["by"], *user, "a decision needs the name of its user");
    let approver = stored["spec"]["approver"].as_str().unwrap();
    if !user.starts_with("system:serviceaccount:") && access.may(user, "approve", "approvers", approver) {
        return Ok(());
    }
    let name = stored["metadata"]["name"].as_str().unwrap();
    let message = format!(
        "approvals.bloomery.dev \"{name}\" is forbidden: ValidatingAdmissionPolicy 'bloomery-approvals' with binding \
         'bloomery-approvals' denied request: {user} may not approve for {approver}"
    );
    Err(refusal(StatusCode::FORBIDDEN, "Forbidden", &message))
}
