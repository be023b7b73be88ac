//! `bloomery approve`, `deny` and `can-approve`: people decide on held calls, through their own kubeconfig, with their
//! own rights and in their own name. Whether they may is the API server's to say.

mod client;
#[cfg(test)]
mod fixtures;
mod page;
mod rights;
mod select;

use crate::args::{CanApproveArgs, DecideArgs};
use crate::cluster::{Cluster, on_a_runtime};
use crate::exit::{Exit, Trouble};
use crate::page::coloured;
use crate::{output, terminal, text};
use bloomery_crds::v1alpha1::{ApprovalDecision, ApprovalVerdict};
use client::Client;
use jiff::Timestamp;
use kube::ResourceExt;

/// Decides on an Approval.
///
/// # Errors
/// If it is not decided, with the reason.
pub fn decide(args: &DecideArgs, verdict: ApprovalVerdict) -> Result<Exit, Trouble> {
    if !args.yes && !terminal::is_here() {
        return Err(Trouble::usage("there is no terminal at which you could be asked: --yes decides without"));
    }
    on_a_runtime(deciding(args, verdict))
}

/// Says whether this user may decide.
///
/// # Errors
/// If that cannot be known.
pub fn can_approve(args: &CanApproveArgs) -> Result<Exit, Trouble> {
    // 1 says no, and nothing else.
    on_a_runtime(asking(args)).map_err(|Trouble { message, .. }| Trouble::usage(message))
}

async fn deciding(args: &DecideArgs, verdict: ApprovalVerdict) -> Result<Exit, Trouble> {
    let client = Client::new(Cluster::find(&args.cluster).await?);
    let approval = select::open(client.named(&args.name).await?, Timestamp::now())?;
    client.finds_the_job_of(&approval).await?;
    let by = client.cluster.user().await?;
    anstream::eprint!("{}", coloured(&page::of(&approval, &by, Timestamp::now())));
    if !args.yes && !terminal::confirmed(page::question(verdict)).await? {
        return Err(Trouble::failed("nothing was decided"));
    }
    let reason = args.reason.clone().filter(|reason| !reason.is_empty());
    let decided = client.decide(&approval, ApprovalDecision { verdict, by, reason }).await?;
    let printed = output::print(&page::decided(&decided, verdict, args.output)?);
    if verdict == ApprovalVerdict::Approve {
        // Whoever may not list Approvals is not told: it is decided all the same.
        let of_job = client.of_same_job(&decided).await.unwrap_or_default();
        if let Some(told) = select::others(&decided, &of_job, Timestamp::now()) {
            text::say(&told);
        }
    }
    printed.map(|()| Exit::Good)
}

async fn asking(args: &CanApproveArgs) -> Result<Exit, Trouble> {
    let client = Client::new(Cluster::find(&args.cluster).await?);
    let approval = match &args.name {
        Some(name) => Some(client.named(name).await?),
        None => None,
    };
    let approval = approval.map(|named| select::one(named, Timestamp::now())).transpose()?;
    let approver = approval.as_ref().map_or(args.approver.as_deref(), |approval| Some(&approval.spec.approver));
    let Some(approver) = approver else { return Err(Trouble::usage("an Approval or an approver is needed")) };
    let name = approval.as_ref().map(ResourceExt::name_any);
    let missing = client.cluster.missing(rights::to_decide(approver, name.as_deref())).await?;
    if missing.is_empty() {
        return output::print("yes\n").map(|()| Exit::Good);
    }
    let by = client.cluster.user().await?;
    output::print("no\n")?;
    text::note(&rights::told(&by, &client.cluster.namespace, &missing));
    Ok(Exit::Bad)
}
