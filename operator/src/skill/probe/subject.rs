//! What a probe verifies: pure.

use super::super::build::PORT_NAME;
use super::super::fetch::FetchedSkill;
use bloomery_crds::Digest;
use bloomery_crds::probe::Subject;
use bloomery_crds::probe::{rules_digest, server_digest};
use bloomery_crds::run::WORKER_LEVEL;
use bloomery_crds::v1alpha1::{Skill, VerifiedTools};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

/// What the next probe of a Skill verifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// What the probe verifies.
    pub subject: Subject,
    /// The digest that the pods of one probe share. It differs from the key of the subject if the same subject is verified again.
    pub probe: Digest,
    /// True if the server is outside of the cluster.
    pub is_outside: bool,
    /// True if the latest report is about this subject, and no Job has found other tools since.
    pub is_verified: bool,
}

/// Returns what the next probe of a Skill verifies. `None` if the Skill has no MCP server.
pub fn wanted(skill: &Skill, fetched: &FetchedSkill) -> Option<Wanted> {
    let server = skill.spec.mcp_server.as_ref()?;
    let (server_key, rules) = (server_digest(server), rules_digest(&skill.spec));
    let image = running_image(fetched);
    let key = Digest::of_value(&json!({
        "server": server_key, "accepted": server.tools_digest, "rules": rules, "image": image, "level": WORKER_LEVEL,
    }));
    let subject = Subject { server: server_key, rules, key };
    let tools = skill.status.as_ref().and_then(|status| status.tools.as_ref());
    let reported = tools.filter(|tools| tools.found.key == subject.key);
    let outdated =
        reported.filter(|tools| fetched.tools_changed_at.as_ref().is_some_and(|changed| is_outdated(tools, changed)));
    let round = outdated.map(|tools| tools.found.at.0.as_nanosecond().to_string());
    let probe = Digest::of_value(&json!([subject.key, round]));
    let is_verified = reported.is_some() && outdated.is_none();
    Some(Wanted { is_outside: server.uri.is_some(), is_verified, subject, probe })
}

/// Returns whether a Job that found a change of tools at this time has found other tools than the latest probe.
pub fn is_outdated(tools: &VerifiedTools, changed: &Time) -> bool {
    tools.found.changes.is_empty() && changed.0 > tools.found.at.0
}

/// Returns the image that the newest ready pod of the server runs. A tag may name another image after a restart.
fn running_image(fetched: &FetchedSkill) -> Option<&str> {
    let ready = fetched.mcp_pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let ready = ready.filter_map(|pod| Some((pod.metadata.creation_timestamp.as_ref(), image_of_ready(pod)?)));
    ready.max().map(|(_, image)| image)
}

fn image_of_ready(pod: &Pod) -> Option<&str> {
    let mut statuses = pod.status.as_ref()?.container_statuses.as_ref()?.iter();
    // Another container may be that of the bridge.
    let server = statuses.find(|status| status.name == PORT_NAME)?;
    server.ready.then_some(server.image_id.as_str())
}
