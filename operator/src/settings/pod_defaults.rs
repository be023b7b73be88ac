//! The fields that an installation sets in the pods of one kind: workers, or MCP servers.

use bloomery_crds::v1alpha1::{PodField, PodSettings};
use k8s_openapi::api::core::v1::{LocalObjectReference, PodSpec, Toleration};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The label that names Kueue's queue of a pod. Kueue holds the pod back by a scheduling gate until the queue has room.
const LABEL_KUEUE_QUEUE: &str = "kueue.x-k8s.io/queue-name";

/// Amounts of resources, by name.
pub type Amounts = BTreeMap<String, Quantity>;

/// The fields that an installation sets in each pod of one kind.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PodDefaults {
    /// Secrets of the pod's own namespace for pulling its image.
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Labels of the nodes that may run the pod.
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that the pod tolerates.
    pub tolerations: Vec<Toleration>,
    /// The priority class; the cluster's default if empty.
    pub priority_class_name: String,
    /// The runtime class; the cluster's default if empty.
    pub runtime_class_name: String,
    /// If false, the pod has a user namespace of its own. Default: true.
    pub host_users: Option<bool>,
    /// More labels of the pod. The operator's own labels win.
    pub pod_labels: BTreeMap<String, String>,
    /// More annotations of the pod. The operator's own annotations win.
    pub pod_annotations: BTreeMap<String, String>,
    /// The fields that a Skill may set too.
    pub skill_may_set: Vec<PodField>,
}

impl PodDefaults {
    /// Sets the fields in a pod. Empty fields stay absent.
    pub fn apply_to(&self, spec: &mut PodSpec) {
        let Self {
            image_pull_secrets,
            node_selector,
            tolerations,
            priority_class_name,
            runtime_class_name,
            host_users,
            pod_labels: _,
            pod_annotations: _,
            skill_may_set: _,
        } = self.clone();
        spec.image_pull_secrets = Some(image_pull_secrets).filter(|secrets| !secrets.is_empty());
        spec.node_selector = Some(node_selector).filter(|labels| !labels.is_empty());
        spec.tolerations = Some(tolerations).filter(|tolerations| !tolerations.is_empty());
        spec.priority_class_name = Some(priority_class_name).filter(|name| !name.is_empty());
        spec.runtime_class_name = Some(runtime_class_name).filter(|name| !name.is_empty());
        spec.host_users = host_users.filter(|host_users| !host_users);
    }

    /// Returns the fields with those of a Skill that it may set. The fields of the installation win.
    #[must_use]
    pub fn with_skill(&self, own: Option<&PodSettings>) -> Self {
        let mut merged = self.clone();
        let Some(own) = own else { return merged };
        let may = |field| self.skill_may_set.contains(&field);
        if may(PodField::ImagePullSecrets) {
            merged.image_pull_secrets.extend(own.image_pull_secrets.iter().cloned());
        }
        if may(PodField::Tolerations) {
            merged.tolerations.extend(own.tolerations.iter().cloned());
        }
        if may(PodField::HostUsers) && own.host_users == Some(false) {
            merged.host_users = Some(false);
        }
        for (field, own, merged) in [
            (PodField::RuntimeClassName, &own.runtime_class_name, &mut merged.runtime_class_name),
            (PodField::PriorityClassName, &own.priority_class_name, &mut merged.priority_class_name),
        ] {
            if let Some(own) = own.as_ref().filter(|_| may(field) && merged.is_empty()) {
                merged.clone_from(own);
            }
        }
        for (field, own, merged) in [
            (PodField::NodeSelector, &own.node_selector, &mut merged.node_selector),
            (PodField::Labels, &own.labels, &mut merged.pod_labels),
            (PodField::Annotations, &own.annotations, &mut merged.pod_annotations),
        ] {
            for (name, value) in own.iter().filter(|_| may(field)) {
                merged.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        merged
    }

    /// Returns the fields for pods that do not wait in a queue of Kueue, because the operator waits for them only for minutes.
    #[must_use]
    pub fn without_queue(&self) -> Self {
        let mut fields = self.clone();
        fields.pod_labels.remove(LABEL_KUEUE_QUEUE);
        fields
    }

    /// Returns the fields that a Skill sets and may not set.
    pub fn refused(&self, own: &PodSettings) -> Vec<PodField> {
        own.set_fields().filter(|field| !self.skill_may_set.contains(field)).collect()
    }

    /// Adds the labels and annotations to the metadata of a pod.
    pub fn label(&self, metadata: &mut ObjectMeta) {
        for (more, own) in
            [(&self.pod_labels, &mut metadata.labels), (&self.pod_annotations, &mut metadata.annotations)]
        {
            for (name, value) in more {
                own.get_or_insert_default().entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn own() -> PodSettings {
        serde_json::from_value(json!({
            "imagePullSecrets": [{"name": "team"}], "nodeSelector": {"disk": "hdd", "gpu": "yes"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "labels": {"team": "b", "tier": "web"}, "annotations": {"owner": "bea", "backup": "daily"},
        }))
        .unwrap()
    }

    /// The settings of the installation.
    fn installed(may_set: &[&str]) -> Value {
        json!({
            "imagePullSecrets": [{"name": "pull"}], "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "spot", "operator": "Exists"}],
            "podLabels": {"team": "a"}, "podAnnotations": {"owner": "ann"}, "skillMaySet": may_set,
        })
    }

    fn parsed(fields: Value) -> PodDefaults {
        serde_json::from_value(fields).unwrap()
    }

    fn defaults(may_set: &[&str]) -> PodDefaults {
        parsed(installed(may_set))
    }

    #[test]
    fn a_skill_adds_what_it_may_and_replaces_nothing() {
        let tolerations = json!([{"key": "spot", "operator": "Exists"}, {"key": "gpu", "operator": "Exists"}]);
        for (field, field_of_chart, merged) in [
            ("imagePullSecrets", "imagePullSecrets", json!([{"name": "pull"}, {"name": "team"}])),
            ("nodeSelector", "nodeSelector", json!({"disk": "ssd", "gpu": "yes"})),
            ("tolerations", "tolerations", tolerations),
            ("labels", "podLabels", json!({"team": "a", "tier": "web"})),
            ("annotations", "podAnnotations", json!({"owner": "ann", "backup": "daily"})),
        ] {
            let mut expected = installed(&[field]);
            expected[field_of_chart] = merged;
            assert_eq!(defaults(&[field]).with_skill(Some(&own())), parsed(expected), "{field}");
        }
        assert_eq!(defaults(&[]).with_skill(Some(&own())), defaults(&[]));
    }

    #[test]
    fn a_skill_chooses_only_what_the_installation_leaves_open() {
        let own = json!({"runtimeClassName": "gvisor", "priorityClassName": "high", "hostUsers": false});
        let own: PodSettings = serde_json::from_value(own).unwrap();
        let merged = |defaults: serde_json::Value| {
            let mut spec = PodSpec::default();
            serde_json::from_value::<PodDefaults>(defaults).unwrap().with_skill(Some(&own)).apply_to(&mut spec);
            (spec.runtime_class_name, spec.priority_class_name, spec.host_users)
        };
        let may_set = json!(["runtimeClassName", "priorityClassName", "hostUsers"]);
        let chosen = (Some("gvisor".to_owned()), Some("high".to_owned()), Some(false));
        assert_eq!(merged(json!({"skillMaySet": may_set, "hostUsers": true})), chosen);
        assert_eq!(merged(json!({"hostUsers": true})), (None, None, None));
        let set = json!({"skillMaySet": may_set, "runtimeClassName": "kata", "priorityClassName": "batch"});
        assert_eq!(merged(set), (Some("kata".to_owned()), Some("batch".to_owned()), Some(false)));
        let refused = defaults(&["hostUsers"]).refused(&own);
        assert_eq!(refused, [PodField::RuntimeClassName, PodField::PriorityClassName]);
        let keeps: PodSettings = serde_json::from_value(json!({"hostUsers": true})).unwrap();
        let forced: PodDefaults = serde_json::from_value(json!({"skillMaySet": may_set, "hostUsers": false})).unwrap();
        assert_eq!(forced.with_skill(Some(&keeps)).host_users, Some(false), "a Skill cannot leave the user namespace");
    }

    #[test]
    fn fields_that_a_skill_may_not_set_are_refused() {
        let refused = defaults(&["imagePullSecrets", "nodeSelector", "labels"]).refused(&own());
        assert_eq!(refused, [PodField::Tolerations, PodField::Annotations]);
        assert_eq!(defaults(&[]).refused(&own()).len(), 5);
    }
}
