//! Builds the `PodDisruptionBudget` of the MCP server of a Skill.

use super::super::validate::ValidSkill;
use super::mcp_deployment::selector;
use super::metadata::metadata;
use bloomery_crds::names;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Builds the budget: the drain of a node stops one pod at a time. A server with one replica never blocks a drain, because the limit
/// is on unavailable pods and not on available ones. So the budget does not depend on the number of replicas, which others may set.
pub fn build_mcp_budget(skill: &ValidSkill) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: metadata(skill, names::mcp_server(&skill.name), "mcp"),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(LabelSelector { match_labels: Some(selector(skill)), ..LabelSelector::default() }),
            // A pod that never becomes ready must not block a drain either.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::metadata::yaml;
    use super::*;
    use crate::skill::{fixtures, validate::validate};

    #[test]
    fn the_budget_allows_one_unavailable_pod() {
        let skill = validate(&fixtures::with_container()).unwrap();
        insta::assert_snapshot!("mcp_budget", yaml(&build_mcp_budget(&skill)));
    }
}
