//! The resources of an MCP server: those of its Skill, within the limits of the installation.

use crate::apply::quantity;
use crate::settings::{Amounts, McpSettings};
use k8s_openapi::api::core::v1::ResourceRequirements;

/// Returns the resources of a server: those of the Skill, or else the default of the installation. A limit that neither sets is that
/// of the installation.
///
/// # Errors
/// Returns a sentence for each amount that is above the largest one.
pub fn resolve(
    own: Option<&ResourceRequirements>,
    settings: &McpSettings,
) -> Result<ResourceRequirements, Vec<String>> {
    let mut resources = own.unwrap_or(&settings.resources).clone();
    let faults = own.map(|own| faults(own, &settings.max_resources)).unwrap_or_default();
    if !faults.is_empty() {
        return Err(faults);
    }
    if !settings.max_resources.is_empty() {
        let limits = resources.limits.get_or_insert_default();
        for (name, max) in &settings.max_resources {
            limits.entry(name.clone()).or_insert_with(|| max.clone());
        }
    }
    Ok(resources)
}

/// Returns a sentence for each amount that is above the largest one.
fn faults(own: &ResourceRequirements, max: &Amounts) -> Vec<String> {
    let amounts = [("requests", &own.requests), ("limits", &own.limits)];
    let amounts =
        amounts.into_iter().flat_map(|(kind, amounts)| amounts.iter().flatten().map(move |amount| (kind, amount)));
    let mut faults = Vec::new();
    for (kind, (name, amount)) in amounts {
        let Some(max) = max.get(name) else { continue };
        // A limit that cannot be compared does not allow.
        let is_within = quantity::parse(&amount.0).zip(quantity::parse(&max.0)).is_some_and(|(own, max)| own <= max);
        if !is_within {
            faults.push(format!(
                "spec.mcpServer.container.resources.{kind}.{name}: is {}, and the most is {} (mcp.maxResources of the chart).",
                amount.0, max.0
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn resolved(own: &Value, max: &str) -> Result<Value, Vec<String>> {
        let settings = McpSettings {
            pod: crate::settings::PodDefaults::default(),
            resources: serde_json::from_value(json!({"requests": {"cpu": "20m"}, "limits": {"memory": "512Mi"}}))
                .unwrap(),
            max_resources: serde_json::from_str(max).unwrap(),
        };
        let own: Option<ResourceRequirements> = serde_json::from_value(own.clone()).unwrap();
        let resolved = resolve(own.as_ref(), &settings)?;
        Ok(serde_json::to_value(resolved).unwrap())
    }

    #[test]
    fn a_skill_without_resources_gets_the_default() {
        let expected = json!({"requests": {"cpu": "20m"}, "limits": {"memory": "512Mi"}});
        assert_eq!(resolved(&Value::Null, "{}"), Ok(expected));
    }

    #[test]
    fn a_limit_that_the_skill_does_not_set_is_the_largest_one() {
        let own = json!({"requests": {"memory": "1Gi"}});
        let expected = json!({"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi", "cpu": "2"}});
        assert_eq!(resolved(&own, r#"{"memory": "1Gi", "cpu": "2"}"#), Ok(expected));
    }

    #[test]
    fn an_amount_above_the_largest_one_is_a_fault() {
        let own = json!({"requests": {"cpu": "3"}, "limits": {"memory": "1025Mi", "nvidia.com/gpu": "1"}});
        let faults = resolved(&own, r#"{"memory": "1Gi", "cpu": "2500m"}"#).unwrap_err();
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].starts_with("spec.mcpServer.container.resources.requests.cpu: is 3, and the most is 2500m"));
        assert!(
            faults[1].starts_with("spec.mcpServer.container.resources.limits.memory: is 1025Mi, and the most is 1Gi")
        );
    }
}
