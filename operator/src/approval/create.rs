//! Creates the Approvals of a call that a worker reports as held.

use super::build;
use super::policy::{self, PolicyState};
use crate::context::Context;
use crate::error;
use crate::owned;
use bloomery_crds::names;
use bloomery_crds::report::HeldCallDetails;
use bloomery_crds::v1alpha1::{Approval, ApprovalDecision, ApprovalVerdict, HeldCall, Job};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::PostParams;
use kube::core::ResourceExt;

/// The error of a failed creation of Approvals.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No Approvals can be built from the report.
    #[error(transparent)]
    Invalid(#[from] build::Error),
    /// The admission policy is missing or differs from the shipped one. Holds the reason, and the remedy.
    #[error("{0}")]
    PolicyMissing(String),
    /// The admission policy is stored, but the API server does not enforce it.
    #[error(
        "the API server does not enforce the admission policy {0} yet; if this persists, enable its admission plugin ValidatingAdmissionPolicy"
    )]
    Unenforced(String),
    /// The API server refused a request, or could not be reached.
    #[error(transparent)]
    Api(#[from] error::Error),
}

/// Creates the missing Approvals of a held call.
///
/// # Errors
/// If the admission policy is missing or differs from the shipped one, no Approval is created: the Job waits, and its
/// worker reports the call again.
pub async fn create(context: &Context, job: &Job, call: &HeldCall, hold: &HeldCallDetails) -> Result<(), Error> {
    let settings = &context.settings.approvals;
    let policy = match policy::check(settings.shipped_policies.as_ref(), &context.caches) {
        PolicyState::InForce(guard) => guard.digest,
        PolicyState::Missing(why) => return Err(Error::PolicyMissing(why)),
    };
    let mut approvals = build::approvals(job, call, hold, (settings.expiry, Timestamp::now()), &policy)?;
    let namespace = job.namespace().unwrap_or_default();
    approvals.retain(|approval| context.caches.approvals.get(&namespace, &approval.name_any()).is_none());
    let Some(first) = approvals.first() else { return Ok(()) };
    let api: Api<Approval> = Api::namespaced(context.client.clone(), &namespace);
    prove_enforced(&api, first, settings.policy_name()).await?;
    for approval in &approvals {
        context.metrics.count_write("Approval", "create");
        match api.create(&owned::post_params(), approval).await {
            Ok(_) => {}
            // Created for an earlier report of the call. Its content is checked before a decision counts.
            Err(error) if already_exists(&error) => {}
            Err(error) => return Err(request_error("create", approval)(error)),
        }
    }
    Ok(())
}

/// Proves that the API server enforces the admission policy for objects created from now on.
///
/// The API server enforces a policy only a moment after it is stored, and never if its admission plugin is disabled.
/// Therefore this function creates an Approval that is already decided, as a dry run. Only the policy refuses such an
/// Approval, so its refusal is the proof.
async fn prove_enforced(api: &Api<Approval>, approval: &Approval, policy: &str) -> Result<(), Error> {
    let mut decided = approval.clone();
    let (verdict, by) = (ApprovalVerdict::Approve, names::MANAGER.to_owned());
    decided.spec.decision = Some(ApprovalDecision { verdict, by, reason: None });
    let dry_run = PostParams { dry_run: true, ..owned::post_params() };
    let message_of_policy = format!("ValidatingAdmissionPolicy '{policy}' with binding '{policy}'");
    match api.create(&dry_run, &decided).await {
        Err(kube::Error::Api(refusal)) if refusal.message.contains(&message_of_policy) => Ok(()),
        // The API server answers `AlreadyExists` only to a request that the policy has let pass.
        Err(error) if !already_exists(&error) => Err(request_error("create (as a dry run)", approval)(error)),
        Ok(_) | Err(_) => Err(Error::Unenforced(policy.to_owned())),
    }
}

fn already_exists(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(refusal) if refusal.reason == "AlreadyExists")
}

/// Adds the request to a client error, for `map_err`.
fn request_error(verb: &str, approval: &Approval) -> impl FnOnce(kube::Error) -> Error {
    let (namespace, name) = (approval.namespace().unwrap_or_default(), approval.name_any());
    let request = format!("{verb} Approval {namespace}/{name}");
    move |error| error::Error::api(request)(error).into()
}
