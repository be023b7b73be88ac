//! The rights that a caller lacks for the input of a Job.

use crate::cluster::approvals::Client;
use crate::cluster::approvals::rights::to_decide;
use crate::cluster::{Cluster, Right};
use crate::requests::MissingRights;
use bloomery_crds::v1alpha1::{Approval, Job};
use kube::ResourceExt;
use std::collections::BTreeMap;
use tokio::sync::OnceCell;

/// Returns the rights that the caller lacks to send input to a Job, and to decide on its Approvals.
pub(super) async fn missing(cluster: &Cluster, job: &Job, approvals: &[Approval]) -> MissingRights {
    let patch = Right { name: Some(job.name_any()), ..Right::on_jobs("patch") };
    let reply = describe_missing(cluster, vec![patch]).await;
    let (user, mut decide) = (OnceCell::new(), BTreeMap::new());
    for approval in approvals {
        let approver = &approval.spec.approver;
        let mut missing = describe_missing(cluster, to_decide(approver, Some(&approval.name_any()))).await;
        if missing.is_none()
            && let Some(user) = user.get_or_init(|| async { cluster.user().await.ok() }).await
        {
            // An admission policy may refuse a user who has the rights, such as a service account.
            missing = refused_by_policy(cluster, approval, user).await;
        }
        decide.extend(missing.map(|missing| (approver.clone(), missing)));
    }
    MissingRights { cancel: reply.clone(), reply, decide }
}

/// Describes the consent of the API server that the caller lacks, if the API server refuses decisions of the caller on an Approval.
async fn refused_by_policy(cluster: &Cluster, approval: &Approval, user: &str) -> Option<String> {
    let message = Client::new(cluster.clone()).refusal(approval, user).await?;
    Some(format!("the consent of the API server, which says: {message}"))
}

/// Describes the rights that the caller lacks. Returns `None` if the caller has all of them, or if they cannot be checked.
async fn describe_missing(cluster: &Cluster, rights: Vec<Right>) -> Option<String> {
    let missing = cluster.missing_rights(rights).await.unwrap_or_default();
    (!missing.is_empty()).then(|| Right::descriptions(&missing))
}
