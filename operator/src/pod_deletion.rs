//! Deletes pods that the operator created. A refusal keeps the operator from nothing else.

use crate::context::Context;
use crate::error::Error;
use crate::events::EventMessage;
use bloomery_crds::conditions::Reason;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::SignedDuration;
use kube::core::Resource;

/// The interval for retrying a refused deletion: admission rules are not watched.
const RETRY_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// Deletes the pod with this name and UID, unless its deletion was requested already. Without `grace_seconds`, the pod's own grace period
/// applies. If the API server refuses, for example because of an admission webhook, an Event of `owner` says so. Then returns when to try
/// again.
///
/// # Errors
/// If the request fails for a reason that may be temporary.
pub async fn delete<K: Resource<DynamicType = ()>>(
    context: &Context,
    owner: &K,
    metadata: &ObjectMeta,
    grace_seconds: Option<u32>,
) -> Result<Option<SignedDuration>, Error> {
    let Err(error) = context.applier.delete_with_grace::<Pod>(metadata, grace_seconds).await else { return Ok(None) };
    let Some(why) = error.refusal() else { return Err(error) };
    let name = metadata.name.as_deref().unwrap_or_default();
    let note = format!(
        "the API server refuses to delete the pod {name}: {why}. Correct the cause, such as an admission webhook: the \
         operator tries again"
    );
    tracing::warn!(namespace = metadata.namespace, note);
    Box::pin(context.events.publish(owner, EventMessage::warning(Reason::Refused, note))).await;
    Ok(Some(RETRY_INTERVAL))
}
