//! Expires Approvals whose Job is gone, for example after `kubectl delete --cascade=orphan`.

use super::evaluate::is_open;
use super::store;
use crate::caches::Guarded;
use crate::context::Context;
use crate::controller::{Controller, Wake, wake_on};
use crate::error::Error;
use crate::owned;
use bloomery_crds::v1alpha1::{Approval, Job};
use kube::Api;
use kube::core::{Resource, ResourceExt};
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The maximum number of concurrent reconciles.
const MAX_CONCURRENT_RECONCILES: u16 = 4;

/// Expires Approvals without a Job until the shutdown.
pub async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let store = context.caches.approvals.store().clone();
    let context_for_wakes = context.clone();
    let wakes = vec![
        wake_on(context.caches.approvals.changes(), &store, |approval| vec![ObjectRef::from_obj(approval)]),
        wake_on(context.caches.jobs.changes(), &store, move |job| approvals_of_deleted(&context_for_wakes, job)),
    ];
    let controller = Controller { name: "approval", store, wakes, concurrency: MAX_CONCURRENT_RECONCILES };
    controller.run(context, reconcile, shutdown).await;
}

/// Returns the Approvals of a Job that was deleted; none for a Job that exists.
fn approvals_of_deleted(context: &Context, job: &Guarded<Job>) -> Vec<Wake<Approval>> {
    let (Some(namespace), Some(uid)) = (&job.meta().namespace, &job.meta().uid) else { return Vec::new() };
    if is_known(context, namespace, &job.name_any(), uid) {
        return Vec::new();
    }
    let approvals = context.caches.approvals.find_by_key(namespace, uid);
    approvals.iter().map(|approval| ObjectRef::from_obj(approval.as_ref())).collect()
}

async fn reconcile(approval: Approval, context: Arc<Context>) -> Result<Action, Error> {
    let (namespace, name) = (approval.namespace().unwrap_or_default(), approval.name_any());
    let (job, job_uid) = (&approval.spec.job, &approval.spec.job_uid);
    // An Approval that is still owned by its Job is deleted with it.
    let is_orphan = is_open(&approval) && !owned::is_owned_by(&approval.metadata, job_uid);
    if let Some(uid) = approval.metadata.uid.as_deref().filter(|_| is_orphan)
        && is_gone(&context, &namespace, job, job_uid).await?
    {
        let why = format!("the Job {job} is gone");
        store::withdraw(&context, &namespace, (&name, uid), &why).await?;
    }
    Ok(Action::await_change())
}

/// Returns whether the cache has the Job with this UID.
fn is_known(context: &Context, namespace: &str, name: &str, uid: &str) -> bool {
    context.caches.jobs.get(namespace, name).is_some_and(|job| job.meta().uid.as_deref() == Some(uid))
}

/// Returns whether the API server has no Job with this UID.
async fn is_gone(context: &Context, namespace: &str, name: &str, uid: &str) -> Result<bool, Error> {
    if is_known(context, namespace, name, uid) {
        return Ok(false);
    }
    let api: Api<Job> = Api::namespaced(context.client.clone(), namespace);
    let stored = api.get_metadata_opt(name).await.map_err(Error::api(format!("read Job {namespace}/{name}")))?;
    Ok(stored.is_none_or(|stored| stored.metadata.uid.as_deref() != Some(uid)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caches::Guarded;
    use crate::job::fixtures::api::FakeApi;
    use crate::job::fixtures::open::{approval_path, open_approval, put_approval};
    use crate::job::fixtures::{counted, decided, job};
    use bloomery_crds::v1alpha1::ApprovalVerdict;
    use serde_json::{Value, json};

    const JOB: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/refund";

    /// The Approval after `kubectl delete --cascade=orphan` of its Job.
    fn orphan(mut approval: Approval) -> Approval {
        approval.metadata.owner_references = None;
        approval
    }

    /// Reconciles an Approval. Returns the writes, and the Approval afterwards.
    async fn reconciled(api: &FakeApi, approval: &Approval) -> (Vec<String>, Value) {
        put_approval(api, approval);
        let context = api.operator().await;
        let cached = context.caches.approvals.get("acme", &approval.name_any()).unwrap();
        reconcile(cached.0.as_ref().unwrap().clone(), context).await.unwrap();
        (api.writes(), api.get(&approval_path(approval)))
    }

    #[tokio::test]
    async fn an_orphaned_approval_expires_with_the_reason_that_the_job_is_gone() {
        let (open, decided) =
            (orphan(open_approval("supervisor")), orphan(decided(open_approval("finance"), ApprovalVerdict::Approve)));
        let open_path = approval_path(&open);
        let (writes, after) = reconciled(&FakeApi::default(), &open).await;
        assert_eq!(writes, [format!("replace {open_path}"), format!("status {open_path}")]);
        assert_eq!(after["spec"]["decision"]["reason"], "the Job refund is gone");
        assert_eq!(after["status"]["conditions"][0]["message"], "the Job refund is gone: the call is not made");

        let (writes, after) = reconciled(&FakeApi::default(), &decided).await;
        assert_eq!(writes, [format!("status {}", approval_path(&decided))]);
        assert_eq!(after["status"]["counted"]["verdict"], "Expired");
        let message = after["status"]["conditions"][0]["message"].as_str().unwrap();
        assert_eq!(
            message,
            "the Job refund is gone: the decision of jane@acme.io came too late, and the call is not made"
        );
    }

    #[tokio::test]
    async fn a_new_job_of_the_same_name_does_not_keep_the_approval_open() {
        let api = FakeApi::default();
        let mut another = serde_json::to_value(job()).unwrap();
        another["metadata"]["uid"] = json!("another");
        api.put(JOB, another);
        assert_eq!(reconciled(&api, &orphan(open_approval("supervisor"))).await.0.len(), 2);
    }

    #[tokio::test]
    async fn an_approval_with_a_job_or_an_owner_or_a_counted_decision_is_left_unchanged() {
        let api = FakeApi::default();
        assert_eq!(
            reconciled(&api, &open_approval("supervisor")).await.0,
            [""; 0],
            "Kubernetes deletes it with its Job"
        );
        let settled = orphan(counted(open_approval("supervisor"), ApprovalVerdict::Approve));
        assert_eq!(reconciled(&api, &settled).await.0, [""; 0]);
        api.put(JOB, serde_json::to_value(job()).unwrap());
        assert_eq!(reconciled(&api, &orphan(open_approval("supervisor"))).await.0, [""; 0]);
        assert!(!api.reads().iter().any(|read| read == JOB), "the cached Job is enough");
    }

    #[tokio::test]
    async fn only_a_deleted_job_wakes_its_approvals() {
        let api = FakeApi::default();
        put_approval(&api, &orphan(open_approval("supervisor")));
        let deleted = Guarded(Ok(job()));
        assert_eq!(approvals_of_deleted(&*api.operator().await, &deleted).len(), 1);
        api.put(JOB, serde_json::to_value(job()).unwrap());
        assert_eq!(approvals_of_deleted(&*api.operator().await, &deleted), []);
    }
}
