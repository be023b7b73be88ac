//! Creates and deletes the pods of probes.

use super::build::{ProbeInputs, ProbedExternal, ProbedSidecar, build_pod};
use super::decide::{Plan, ProbeState, decide};
use super::observe::{self, ProbePod, observe};
use super::subject::{Wanted, wanted};
use crate::context::Context;
use crate::error::Error;
use crate::external_mcp::resolve_external_mcp;
use crate::mcp_container::sidecar::Sidecar;
use crate::owned;
use crate::pod_deletion;
use crate::settings::Settings;
use crate::skill::fetch::FetchedSkill;
use bloomery_crds::probe::{self, SkillIdentity};
use bloomery_crds::run::ReportEndpoint;
use bloomery_crds::v1alpha1::{McpServer, ResourceType, RevisionRef, Skill};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Api;
use kube::core::ResourceExt;

/// The interval for checking the CA of the report endpoint again: it is not watched.
const CA_RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(5);

/// The interval for retrying a pod that the API server refuses: quotas and admission rules are not watched.
const REFUSED_RETRY_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// Starts, replaces and deletes the probes of a Skill. Returns the state of the verification, and when to reconcile again.
///
/// # Errors
/// If a request fails for a reason that may be temporary.
pub async fn run(
    skill: &Skill,
    revision: &RevisionRef,
    is_available: bool,
    fetched: &FetchedSkill,
    context: &Context,
) -> Result<(ProbeState, Option<SignedDuration>), Error> {
    let wanted = wanted(skill, fetched);
    let pods: Vec<ProbePod> = own_pods(skill, fetched, context).collect();
    let Plan { delete, start, state, requeue_after } = decide(wanted.as_ref(), &pods, is_available, Timestamp::now());
    let mut retries = Vec::new();
    for metadata in &delete {
        retries.extend(pod_deletion::delete(context, skill, metadata, None).await?);
    }
    let (state, requeue_after) = match (wanted, start) {
        (Some(wanted), Some(number)) => create(skill, revision, wanted, number, (state, context)).await?,
        _ => (state, requeue_after),
    };
    Ok((state, retries.into_iter().chain(requeue_after).min()))
}

/// Returns the pods of the Skill's probes that the operator has created.
fn own_pods<'a>(
    skill: &'a Skill,
    fetched: &'a FetchedSkill,
    context: &'a Context,
) -> impl Iterator<Item = ProbePod> + 'a {
    let uid = skill.metadata.uid.as_deref().unwrap_or_default();
    let pods = fetched.probe_pods.iter().filter(move |pod| observe::is_probe_of(pod, uid));
    pods.filter(|pod| context.pod_seals.verify(pod)).filter_map(|pod| observe(pod))
}

/// Creates the pod of a try. A pod that exists already was created before, and the cache does not show it yet.
async fn create(
    skill: &Skill,
    revision: &RevisionRef,
    wanted: Wanted,
    number: u32,
    (state, context): (ProbeState, &Context),
) -> Result<(ProbeState, Option<SignedDuration>), Error> {
    let Some(ca) = context.report_ca_bundle.pem() else { return Ok((state, Some(CA_RETRY_INTERVAL))) };
    let (namespace, name) = (skill.namespace().unwrap_or_default(), skill.name_any());
    let (Some(uid), Some(owner)) = (skill.uid(), owned::owner_reference(skill)) else { return Ok((state, None)) };
    let sidecar = match sidecar(skill, &context.settings) {
        Ok(sidecar) => sidecar,
        // The Skill would not be accepted.
        Err(faults) => return Ok((ProbeState::Failed(faults.join(" ")), None)),
    };
    let report = ReportEndpoint { url: format!("{}{}", context.settings.report_url(), probe::PATH), ca };
    let inputs = ProbeInputs {
        skill: SkillIdentity { namespace: namespace.clone(), name, uid },
        owner,
        revision: revision.clone(),
        wanted,
        number,
        report,
        sidecar,
        external: external(skill, &context.settings),
        pod: skill.spec.pods.as_ref().and_then(|pods| pods.worker.clone()),
    };
    let unserializable = |source| Error::Json { what: "the input of a probe".to_owned(), source };
    let pod = build_pod(&inputs, &context.settings.worker).map_err(unserializable)?;
    let pod = context.pod_seals.sealed(pod);
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    context.metrics.count_write("Pod", "create");
    match api.create(&owned::post_params(), &pod).await {
        Ok(_) => Ok((state, None)),
        Err(kube::Error::Api(refusal)) if refusal.reason == "AlreadyExists" => {
            Ok((state, Some(REFUSED_RETRY_INTERVAL)))
        }
        Err(error) => {
            let error = Error::api(format!("create Pod {namespace}/{}", pod.name_any()))(error);
            let Some(why) = error.refusal() else { return Err(error) };
            Ok((ProbeState::Failed(format!("the API server refuses the pod: {why}")), Some(REFUSED_RETRY_INTERVAL)))
        }
    }
}

/// Returns the MCP server of a Skill, if it is outside of the cluster.
fn external(skill: &Skill, settings: &Settings) -> Option<ProbedExternal> {
    let server = resolve_external_mcp(skill.spec.mcp_server.as_ref())?;
    let shared_hosts = settings.network.shared_hosts();
    Some(ProbedExternal { server, shared_hosts, denied_ranges: settings.network.deny.clone() })
}

/// Returns the MCP server that each Job of a Skill has of its own.
fn sidecar(skill: &Skill, settings: &Settings) -> Result<Option<ProbedSidecar>, Vec<String>> {
    let Some(container) = skill.spec.mcp_server.as_ref().and_then(McpServer::sidecar) else { return Ok(None) };
    let filesystems = skill.spec.resources.iter().filter(|resource| resource.kind == ResourceType::Filesystem);
    let of_server = skill.spec.pods.as_ref().and_then(|pods| pods.mcp.as_ref());
    Ok(Some(ProbedSidecar {
        server: Sidecar::new(container, of_server, &settings.mcp)?.with_probe_values(),
        filesystems: filesystems.map(|resource| resource.name.clone()).collect(),
    }))
}
