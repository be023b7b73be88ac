//! Every reference to a Secret in a spec is known, and is in the admission policy that checks who may name a Secret.

use bloomery_crds::v1alpha1::{Approval, Job, Model, Skill};
use kube::CustomResourceExt;
use serde_json::Value;

/// The references, by kind. `[]` stands for each item of a list or a map.
const REFERENCES: [&str; 4] = [
    "Job spec.resources[].secretKeyRef",
    "Model spec.apiKey.secretKeyRef",
    "Model spec.ca.secretKeyRef",
    "Skill spec.mcpServer.container.env[].valueFrom.secretKeyRef",
];

/// Collects the paths of all properties below a schema whose name contains `secret`.
fn collect(schema: &Value, path: &str, found: &mut Vec<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        if name.to_lowercase().contains("secret") {
            found.push(path);
        } else {
            collect(property, &path, found);
        }
    }
    for items in ["items", "additionalProperties"].into_iter().filter_map(|name| schema.get(name)) {
        collect(items, &format!("{path}[]"), found);
    }
}

#[test]
fn the_admission_policy_checks_every_reference_to_a_secret() {
    let mut found = Vec::new();
    for crd in [Approval::crd(), Job::crd(), Model::crd(), Skill::crd()] {
        let crd = serde_json::to_value(crd).unwrap();
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap();
        collect(spec, &format!("{kind} spec"), &mut found);
    }
    assert_eq!(found, REFERENCES, "a new reference belongs into charts/bloomery/templates/secrets.yaml");

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/bloomery/templates/secrets.yaml");
    let policy = std::fs::read_to_string(path).unwrap().replace('?', "");
    for reference in REFERENCES {
        let (_, path) = reference.split_once(' ').unwrap();
        for part in path.split("[]") {
            assert!(policy.contains(part), "{part} of {reference} is not in the policy");
        }
    }
}
