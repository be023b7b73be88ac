//! Asking people about a call that a worker reports as held.

use super::build;
use super::guard::{self, Guard};
use crate::context::Context;
use crate::error::Error;
use crate::owned;
use bloomery_crds::report::Hold;
use bloomery_crds::v1alpha1::{Approval, HeldCall, Job};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::core::ResourceExt;

/// Why nobody could be asked.
#[derive(Debug, thiserror::Error)]
pub enum Unasked {
    /// What was reported contradicts itself.
    #[error("{0}")]
    Invalid(String),
    /// The API server would not have it, or could not be reached.
    #[error(transparent)]
    Api(#[from] Error),
}

/// Makes the Approvals of a held call that are not there. None are made as long as nothing checks decisions: the Job
/// waits, and its worker tells the call again.
pub async fn ask(context: &Context, job: &Job, call: &HeldCall, hold: &Hold) -> Result<(), Unasked> {
    let settings = &context.settings.approvals;
    let guard = match guard::look(settings.shipped.as_ref(), &context.caches) {
        Guard::Stands(by) => by,
        Guard::Missing(why) => {
            tracing::warn!(namespace = job.namespace(), job = job.name_any(), "{why}");
            return Ok(());
        }
    };
    let until = (settings.expiry, Timestamp::now());
    let approvals = build::approvals(job, call, hold, until, &guard).map_err(Unasked::Invalid)?;
    let namespace = job.namespace().unwrap_or_default();
    let api: Api<Approval> = Api::namespaced(context.client.clone(), &namespace);
    for approval in &approvals {
        let name = approval.name_any();
        if context.caches.approvals.get(&namespace, &name).is_some() {
            continue;
        }
        context.metrics.wrote("Approval", "create");
        match api.create(&owned::posting(), approval).await {
            Ok(_) => {}
            // Made by an earlier report of the call. What it says is looked at before it counts.
            Err(kube::Error::Api(refusal)) if refusal.reason == "AlreadyExists" => {}
            Err(error) => return Err(Error::api(format!("create Approval {namespace}/{name}"))(error).into()),
        }
    }
    Ok(())
}
