//! `bloomery approve`, `deny` and `can-approve`. People decide on held calls with their own kubeconfig, rights and name, and
//! the API server authorizes each decision.

mod page;

use crate::args::{CanApproveArgs, DecideArgs};
use crate::cluster::{self, block_on};
use crate::error::Error;
use crate::exit::Exit;
use crate::page::coloured;
use crate::{output, terminal, text};
use bloomery_crds::v1alpha1::{ApprovalDecision, ApprovalVerdict};
use bloomery_embed::cluster::approvals::{Client, rights, select};
use jiff::Timestamp;
use kube::ResourceExt;

/// Decides on an Approval: selects it, shows it, asks for confirmation, and writes the decision.
///
/// # Errors
/// If the decision cannot be made or written.
pub fn decide(args: &DecideArgs, verdict: ApprovalVerdict) -> Result<Exit, Error> {
    if !args.yes && !terminal::is_interactive() {
        return Err(Error::usage("there is no terminal to ask for confirmation: use --yes"));
    }
    block_on(decide_on_cluster(args, verdict))
}

/// Prints `yes` if this user may decide for an approver, and otherwise `no` and the missing rights.
///
/// # Errors
/// If the rights of the user cannot be determined.
pub fn can_approve(args: &CanApproveArgs) -> Result<Exit, Error> {
    // Exit code 1 means "no" and nothing else, so errors exit with 2.
    block_on(can_approve_on_cluster(args)).map_err(|Error { message, .. }| Error::usage(message))
}

async fn decide_on_cluster(args: &DecideArgs, verdict: ApprovalVerdict) -> Result<Exit, Error> {
    let client = Client::new(cluster::open(&args.cluster).await?);
    let approval = select::select_open(client.find(&args.name).await.map_err(Error::on_cluster)?, Timestamp::now())?;
    client.check_job_of(&approval).await.map_err(Error::on_cluster)?;
    let by = client.cluster.user().await?;
    anstream::eprint!("{}", coloured(&page::render(&approval, &by, Timestamp::now())));
    if !args.yes && !terminal::confirm(page::question(verdict)).await? {
        return Err(Error::failed("nothing was decided"));
    }
    let reason = args.reason.clone().filter(|reason| !reason.is_empty());
    let decided =
        client.decide(&approval, ApprovalDecision { verdict, by, reason }).await.map_err(Error::on_cluster)?;
    // The decision is recorded. So the note below is shown even if stdout cannot be written.
    let print_result = output::print(&page::decision_output(&decided, verdict, args.output)?);
    if verdict == ApprovalVerdict::Approve {
        // If the Approvals cannot be listed, the note is omitted.
        let of_job = client.approvals_of_same_job(&decided).await.unwrap_or_default();
        if let Some(note) = select::other_approvers_note(&decided, &of_job, Timestamp::now()) {
            text::inform(&note);
        }
    }
    print_result.map(|()| Exit::Success)
}

async fn can_approve_on_cluster(args: &CanApproveArgs) -> Result<Exit, Error> {
    let client = Client::new(cluster::open(&args.cluster).await?);
    let approval = match &args.name {
        Some(name) => Some(select::select_one(client.find(name).await.map_err(Error::on_cluster)?, Timestamp::now())?),
        None => None,
    };
    let approver = approval.as_ref().map_or(args.approver.as_deref(), |approval| Some(&approval.spec.approver));
    let Some(approver) = approver else { return Err(Error::usage("an Approval or an approver is needed")) };
    let name = approval.as_ref().map(ResourceExt::name_any);
    let missing = client.cluster.missing_rights(rights::to_decide(approver, name.as_deref())).await?;
    if missing.is_empty() {
        return output::print("yes\n").map(|()| Exit::Success);
    }
    let user = client.cluster.user().await?;
    output::print("no\n")?;
    text::report(&rights::missing_message(&user, &client.cluster.namespace, &missing));
    Ok(Exit::Error)
}
