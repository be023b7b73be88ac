//! Deletes objects that a Skill no longer needs: earlier revisions, and an MCP server that it no longer has.

use super::apply::{AppliedMcp, AppliedNetwork, AppliedSkill};
use super::fetch::FetchedSkill;
use crate::apply::Applier;
use crate::error::Error;
use crate::owned;
use bloomery_crds::names;
use bloomery_crds::v1alpha1::Skill;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::Resource;
use std::cmp::Reverse;

/// The number of unused revisions that are kept. A new Job may already use one of them, although the status of the Job does
/// not record it yet.
const MAX_UNUSED_REVISIONS: usize = 2;

/// Deletes objects that a Skill owns and no longer needs.
pub async fn prune(
    skill: &Skill,
    applied_skill: &AppliedSkill,
    fetched: &FetchedSkill,
    applier: &Applier,
) -> Result<(), Error> {
    let Some(uid) = skill.metadata.uid.as_deref() else { return Ok(()) };
    for revision in deletable_revisions(uid, &applied_skill.revision_ref.name, fetched) {
        applier.delete::<ConfigMap>(revision).await?;
    }
    if matches!(applied_skill.mcp, AppliedMcp::Managed { .. })
        || fetched.is_earlier_revision_in_use(&applied_skill.revision_ref.name)
    {
        return Ok(());
    }
    if let Some(service) = owned_metadata(uid, fetched.mcp_service.as_deref()) {
        applier.delete::<Service>(service).await?;
    }
    if let Some(deployment) = owned_metadata(uid, fetched.mcp_deployment.as_deref()) {
        applier.delete::<Deployment>(deployment).await?;
    }
    if let Some(budget) = owned_metadata(uid, fetched.mcp_budget.as_deref()) {
        applier.delete::<PodDisruptionBudget>(budget).await?;
    }
    let policy = skill.metadata.name.as_deref().and_then(|name| fetched.network_policies.get(&names::mcp_server(name)));
    if let Some(policy) = owned_metadata(uid, policy.map(|policy| &**policy)) {
        applier.delete::<NetworkPolicy>(policy).await?;
    }
    if let Some(account) = owned_metadata(uid, fetched.mcp_account.as_deref()) {
        applier.delete::<ServiceAccount>(account).await?;
    }
    Ok(())
}

/// Deletes all network policies if the installation has none any more. Those that exist would still restrict the network.
pub async fn prune_policies(network: &AppliedNetwork, fetched: &FetchedSkill, applier: &Applier) -> Result<(), Error> {
    if network.policies.is_some() {
        return Ok(());
    }
    for policy in fetched.network_policies.values().filter(|policy| owned::is_managed(&policy.metadata)) {
        applier.delete::<NetworkPolicy>(&policy.metadata).await?;
    }
    Ok(())
}

/// The metadata of an existing object that the Skill owns.
fn owned_metadata<'a, K: Resource>(uid: &str, object: Option<&'a K>) -> Option<&'a ObjectMeta> {
    object.map(Resource::meta).filter(|metadata| owned::is_owned_by(metadata, uid))
}

/// The revisions that no new or unfinished Job uses, except the newest [`MAX_UNUSED_REVISIONS`] of them.
fn deletable_revisions<'a>(uid: &str, current: &str, fetched: &'a FetchedSkill) -> Vec<&'a ObjectMeta> {
    let is_used = |name: &str| name == current || fetched.revisions_in_use.contains(name);
    let mut unused: Vec<&ObjectMeta> = fetched
        .revisions
        .iter()
        .map(|revision| &revision.metadata)
        .filter(|metadata| owned::is_owned_by(metadata, uid))
        .filter(|metadata| metadata.name.as_deref().is_some_and(|name| !is_used(name)))
        .collect();
    unused.sort_by_key(|metadata| Reverse((metadata.creation_timestamp.clone(), metadata.name.clone())));
    unused.into_iter().skip(MAX_UNUSED_REVISIONS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn fetched(revisions: &[(&str, u32, &str)], in_use: &[&str]) -> FetchedSkill {
        let revisions = revisions.iter().map(|(name, minute, owner)| {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {
                    "namespace": "acme", "name": name, "creationTimestamp": format!("2026-01-01T00:{minute:02}:00Z"),
                    "ownerReferences": [{"apiVersion": "v1", "kind": "Skill", "name": "orders", "uid": owner, "controller": true}],
                },
            });
            Arc::new(serde_json::from_value(object).unwrap())
        });
        FetchedSkill {
            revisions: revisions.collect(),
            revisions_in_use: in_use.iter().map(ToString::to_string).collect(),
            ..FetchedSkill::default()
        }
    }

    fn names_of<'a>(found: &[&'a ObjectMeta]) -> Vec<&'a str> {
        found.iter().map(|metadata| metadata.name.as_deref().unwrap()).collect()
    }

    #[test]
    fn only_old_unused_revisions_of_this_skill_are_deleted() {
        let all = [
            ("r-1", 1, "u-skill"),
            ("r-2", 2, "u-skill"),
            ("r-3", 3, "u-skill"),
            ("r-4", 4, "u-skill"),
            ("r-5", 5, "u-skill"),
            ("foreign", 0, "u-other"),
        ];
        assert_eq!(names_of(&deletable_revisions("u-skill", "r-5", &fetched(&all, &[]))), ["r-2", "r-1"]);
        assert_eq!(names_of(&deletable_revisions("u-skill", "r-5", &fetched(&all, &["r-1"]))), ["r-2"]);
        assert_eq!(names_of(&deletable_revisions("u-skill", "r-1", &fetched(&all, &["r-2"]))), ["r-3"]);
    }

    #[test]
    fn an_object_of_another_owner_is_not_deleted() {
        let service: Service =
            serde_json::from_value(json!({"metadata": {"name": "orders-mcp", "namespace": "acme"}})).unwrap();
        assert_eq!(owned_metadata("u-skill", Some(&service)), None);
    }
}
