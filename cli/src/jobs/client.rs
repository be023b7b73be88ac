//! The client for Jobs of a command, and the decisions that a Job waits for.

pub use bloomery_embed::cluster::jobs::{Client, deleted_error};

use super::cluster_command::ClusterCommand;
use super::state::{self, DecisionState};
use crate::cluster;
use crate::error::Error;
use bloomery_crds::v1alpha1::{Approval, ApprovalVerdict, Job};
use jiff::Timestamp;
use kube::{Api, ResourceExt};

/// Creates a client for the namespace that the command line selects.
///
/// # Errors
/// If there is no usable kubeconfig.
pub async fn open(command: &ClusterCommand<'_>) -> Result<Client, Error> {
    cluster::open(command.cluster).await.map(Client::new)
}

/// Returns the state of the decision on a Job's held call. A single denial decides. An Approval that cannot be read counts as
/// open.
pub async fn decision_state(client: &Client, job: &Job) -> DecisionState {
    if let Some(reason) = state::not_requested_reason(job) {
        return DecisionState::NotRequested(reason.to_owned());
    }
    if state::approvals(job).is_empty() {
        return DecisionState::NoCall;
    }
    let (now, mut past_expiry) = (Timestamp::now(), false);
    let api: Api<Approval> = Api::namespaced(client.cluster.client.clone(), &client.cluster.namespace);
    let mut open = Vec::new();
    for name in state::approvals(job) {
        let named = api.get_opt(name).await.ok().flatten();
        let approval = named.filter(|approval| Some(&approval.spec.job_uid) == job.uid().as_ref());
        match approval.as_ref().and_then(state::verdict) {
            Some(ApprovalVerdict::Approve) => {}
            Some(ApprovalVerdict::Deny | ApprovalVerdict::Expired) => return DecisionState::Decided,
            None if approval.is_some_and(|approval| now >= approval.spec.expires_at.0) => past_expiry = true,
            None => open.push(name.clone()),
        }
    }
    match (past_expiry, open.is_empty()) {
        // An Approval is past its time and has no verdict yet. Like a denial, a single expiry decides.
        (true, _) => DecisionState::Expired,
        (false, true) => DecisionState::Decided,
        (false, false) => DecisionState::Open(open),
    }
}
