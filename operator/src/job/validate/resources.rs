//! Resolves the bindings of a Job against the declarations of its Skill.

use super::attempt::{BoundResources, Filesystem};
use crate::job::paths::{self, key_file};
use crate::job::plan::Wait;
use crate::listing::{MAX_LIST_BYTES, join_sentences};
use bloomery_crds::conditions::Reason;
use bloomery_crds::memory_scope;
use bloomery_crds::names::MEMORY_CLAIM;
use bloomery_crds::resources::{faults, is_for_server, is_used_by_endpoint};
use bloomery_crds::run::{BoundResource, KeyFile, ResourceSource};
use bloomery_crds::v1alpha1::{Binding, ClaimBinding, JobSpec, McpServer, ResourceDeclaration, SkillSpec};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Resolves the bindings of a Job, in the order in which its Skill declares them. The wait lists every fault.
pub(super) fn resolve_resources(
    declared: &[ResourceDeclaration],
    server: Option<&McpServer>,
    bindings: &BTreeMap<String, Binding>,
    claims: &BTreeMap<String, Arc<PersistentVolumeClaim>>,
) -> Result<BoundResources, Wait> {
    let mut invalid = faults(declared, bindings);
    invalid.extend(memory_faults(bindings));
    let mut bound = BoundResources::default();
    let mut missing = BTreeSet::new();
    for resource in declared {
        let Some(binding) = bindings.get(&resource.name) else { continue };
        let Some(source) = source(&resource.name, binding) else { continue };
        let is_only_for_server =
            is_for_server(server, &resource.name) && !is_used_by_endpoint(declared, &resource.name);
        let source = if is_only_for_server { for_server(source) } else { source };
        bound.resources.push(BoundResource { name: resource.name.clone(), kind: resource.kind, source });
        let Some(claim) = &binding.persistent_volume_claim else { continue };
        let existing = claims.get(&claim.claim_name).filter(|claim| claim.metadata.deletion_timestamp.is_none());
        if existing.is_none() {
            missing.insert(claim.claim_name.as_str());
        }
        bound.filesystems.push(filesystem(&resource.name, claim, existing.map(AsRef::as_ref)));
    }
    if !invalid.is_empty() {
        return Err(Wait::new(Reason::ResourcesInvalid, join_sentences(&invalid, MAX_LIST_BYTES)));
    }
    if !missing.is_empty() {
        return Err(not_found(&missing));
    }
    Ok(bound)
}

/// Checks that the Job leaves out notes of the scope of its Skill, and adds none. The wait lists every fault.
pub(super) fn check_memory_scope(skill: &SkillSpec, job: &JobSpec) -> Result<(), Wait> {
    let faults = memory_scope::faults(skill, job.memory_scope.as_deref());
    if faults.is_empty() {
        return Ok(());
    }
    Err(Wait::new(Reason::ResourcesInvalid, join_sentences(&faults, MAX_LIST_BYTES)))
}

/// Returns a fault for each binding of the tenant's memory, because the memory holds the directories of all Skills. The
/// CRD has the same rule.
fn memory_faults(bindings: &BTreeMap<String, Binding>) -> Vec<String> {
    let is_memory = |binding: &Binding| {
        binding.persistent_volume_claim.as_ref().is_some_and(|claim| claim.claim_name == MEMORY_CLAIM)
    };
    let names = bindings.iter().filter(|(_, binding)| is_memory(binding)).map(|(name, _)| name);
    names
        .map(|name| format!("spec.resources.{name}: {MEMORY_CLAIM} is the tenant's memory, which no Job may bind."))
        .collect()
}

/// Returns how the worker reaches a resource; none for an empty binding, which is reported as a fault.
fn source(name: &str, binding: &Binding) -> Option<ResourceSource> {
    // Without `..`, so that a new kind of binding does not compile here until it is resolved.
    let Binding { value, secret_key_ref, persistent_volume_claim } = binding;
    let value = || value.clone().map(ResourceSource::Value);
    let secret = || secret_key_ref.as_ref().map(|reference| ResourceSource::Secret(key_file(reference)));
    let mount =
        |claim: &ClaimBinding| ResourceSource::Mount { path: paths::resource(name), read_only: claim.is_read_only() };
    persistent_volume_claim.as_ref().map(mount).or_else(secret).or_else(value)
}

/// Returns a secret as one that the worker does not get.
fn for_server(source: ResourceSource) -> ResourceSource {
    match source {
        ResourceSource::Secret(KeyFile { path: _, secret, key }) => ResourceSource::ForServer { secret, key },
        other => other,
    }
}

fn filesystem(name: &str, binding: &ClaimBinding, claim: Option<&PersistentVolumeClaim>) -> Filesystem {
    Filesystem {
        name: name.to_owned(),
        claim: binding.claim_name.clone(),
        sub_path: binding.sub_path.clone(),
        read_only: binding.is_read_only(),
        single_node: !has_access_mode(claim, &["ReadWriteMany", "ReadOnlyMany"]),
    }
}

fn not_found(claims: &BTreeSet<&str>) -> Wait {
    let sentences: Vec<String> = claims
        .iter()
        .map(|claim| {
            format!(
                "The PersistentVolumeClaim {claim} that the Job binds does not exist, or is being deleted: create it, and the Job continues by itself."
            )
        })
        .collect();
    Wait::new(Reason::ResourceNotFound, join_sentences(&sentences, MAX_LIST_BYTES))
}

/// Returns whether only one node at a time can mount this memory, so that all its pods must run on one node. The access
/// modes of the existing claim count, not the setting for new claims.
pub(crate) fn is_single_node(claim: Option<&PersistentVolumeClaim>) -> bool {
    !has_access_mode(claim, &["ReadWriteMany"])
}

/// Returns whether a claim has one of these access modes.
fn has_access_mode(claim: Option<&PersistentVolumeClaim>, modes_wanted: &[&str]) -> bool {
    let modes = claim.and_then(|claim| claim.spec.as_ref()?.access_modes.as_ref());
    modes.into_iter().flatten().any(|mode| modes_wanted.contains(&mode.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn declared() -> Vec<ResourceDeclaration> {
        serde_json::from_value(json!([
            { "name": "codebase", "type": "filesystem", "required": true },
            { "name": "token", "type": "credential" },
            { "name": "docs", "type": "api_endpoint" },
        ]))
        .unwrap()
    }

    fn resolved(bindings: Value, modes: &[&str]) -> Result<BoundResources, Wait> {
        let claim = json!({ "metadata": { "name": "src" }, "spec": { "accessModes": modes } });
        let claim: Arc<PersistentVolumeClaim> = Arc::new(serde_json::from_value(claim).unwrap());
        let bindings = serde_json::from_value(bindings).unwrap();
        resolve_resources(&declared(), None, &bindings, &BTreeMap::from([("src".to_owned(), claim)]))
    }

    fn all_bindings() -> Value {
        json!({
            "docs": { "value": "https://docs.example.com" },
            "codebase": { "persistentVolumeClaim": { "claimName": "src", "subPath": "app" } },
            "token": { "secretKeyRef": { "name": "ci", "key": "token" } },
        })
    }

    #[test]
    fn resources_are_in_the_order_of_the_skill_and_read_only_by_default() {
        let BoundResources { resources, filesystems } = resolved(all_bindings(), &["ReadWriteOnce"]).unwrap();
        insta::assert_snapshot!(serde_json::to_string_pretty(&resources).unwrap());
        let expected = Filesystem {
            name: "codebase".into(),
            claim: "src".into(),
            sub_path: Some("app".into()),
            read_only: true,
            single_node: true,
        };
        assert_eq!(filesystems, [expected]);
        for modes in [["ReadWriteMany"], ["ReadOnlyMany"]] {
            assert!(!resolved(all_bindings(), &modes).unwrap().filesystems[0].single_node);
        }
    }

    #[test]
    fn every_fault_is_listed_before_missing_claims() {
        let bindings = json!({
            "token": { "value": "abc" },
            "nothing": { "value": "https://x" },
            "codebase": { "persistentVolumeClaim": { "claimName": "bloomery-memory" } },
        });
        let wait = resolved(bindings, &[]).unwrap_err();
        assert_eq!(wait.reason, Reason::ResourcesInvalid);
        for field in ["spec.resources.token: ", "spec.resources.nothing: ", "spec.resources.codebase: bloomery-memory"]
        {
            assert!(wait.message.contains(field), "{field} is not in {}", wait.message);
        }
        assert!(!wait.message.contains("abc"), "it may be a secret: {}", wait.message);
    }

    #[test]
    fn a_claim_that_is_missing_or_being_deleted_is_named() {
        let mut bindings = all_bindings();
        bindings["codebase"]["persistentVolumeClaim"]["claimName"] = json!("gone");
        let wait = resolved(bindings, &[]).unwrap_err();
        assert_eq!(wait.reason, Reason::ResourceNotFound);
        assert!(wait.message.contains("PersistentVolumeClaim gone"), "{}", wait.message);
        let deleted_claim = json!({ "metadata": { "name": "src", "deletionTimestamp": "2026-01-01T00:00:00Z" } });
        let deleted_claim: Arc<PersistentVolumeClaim> = Arc::new(serde_json::from_value(deleted_claim).unwrap());
        let bindings = serde_json::from_value(all_bindings()).unwrap();
        let claims = BTreeMap::from([("src".to_owned(), deleted_claim)]);
        let wait = resolve_resources(&declared(), None, &bindings, &claims).unwrap_err();
        assert_eq!(wait.reason, Reason::ResourceNotFound);
    }

    #[test]
    fn a_scope_beyond_that_of_the_skill_is_invalid() {
        let skill = json!({"problem": {"statement": "help"}, "memory": {"scope": ["projectbrief", "progress"]}});
        let skill: SkillSpec = serde_json::from_value(skill).unwrap();
        let check = |scope: Value| {
            let job: JobSpec = serde_json::from_value(json!({"goal": "x", "memoryScope": scope})).unwrap();
            check_memory_scope(&skill, &job)
        };
        assert_eq!(check(json!(["progress"])), Ok(()));
        assert_eq!(check(json!(null)), Ok(()));
        let wait = check(json!(["techContext", "progress"])).unwrap_err();
        assert_eq!(wait.reason, Reason::ResourcesInvalid);
        assert!(wait.message.contains("spec.memoryScope[0]: ") && !wait.message.contains("[1]"), "{}", wait.message);
    }

    #[test]
    fn a_job_without_bindings_has_no_resources() {
        assert_eq!(resolve_resources(&[], None, &BTreeMap::new(), &BTreeMap::new()), Ok(BoundResources::default()));
    }

    #[test]
    fn a_secret_for_the_server_of_the_job_does_not_reach_the_worker_unless_an_endpoint_uses_it() {
        let server = json!({
            "scope": "Job", "container": {"image": "db:1", "bindings": [{"resource": "token", "env": "TOKEN"}]},
        });
        let server: McpServer = serde_json::from_value(server).unwrap();
        let bindings = serde_json::from_value(json!({
            "docs": { "value": "https://docs.example.com" }, "token": { "secretKeyRef": { "name": "ci", "key": "token" } },
        }))
        .unwrap();
        let source = |declared: &[ResourceDeclaration]| {
            let bound = resolve_resources(declared, Some(&server), &bindings, &BTreeMap::new()).unwrap();
            bound.resources.into_iter().find(|resource| resource.name == "token").unwrap().source
        };
        let mut declared = declared().split_off(1);
        assert_eq!(source(&declared), ResourceSource::ForServer { secret: "ci".into(), key: "token".into() });
        declared[1].auth = serde_json::from_value(json!({ "credential": "token" })).unwrap();
        assert!(matches!(source(&declared), ResourceSource::Secret(_)));
    }
}
