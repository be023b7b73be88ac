//! What an admission policy and its binding mean: which requests they match, and which they refuse.
//!
//! Two specs with the same meaning decide alike. Messages are no part of it, and neither are fields that a later version
//! of Kubernetes adds: by the conventions of its API, the default of a new field keeps the behaviour.

use bloomery_crds::Digest;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::OnceLock;

/// The shipped admission policy, as the chart passes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShippedPolicy {
    /// The name of the policy and of its binding.
    pub name: String,
    /// The user name of the operator, which the policy allows.
    pub operator: String,
    /// The `spec` of the policy.
    pub policy: Value,
    /// The `spec` of the binding.
    pub binding: Value,
    /// Computed once, because every check needs it.
    #[serde(skip)]
    meaning: OnceLock<ShippedMeaning>,
}

/// The meaning of a shipped policy and its binding; none of a `spec` that cannot be read.
#[derive(Debug, Clone)]
pub(super) struct ShippedMeaning {
    pub(super) policy: Option<Value>,
    pub(super) binding: Option<Value>,
    /// The digest of both, which does not depend on the names of the installation.
    pub(super) digest: Digest,
}

impl ShippedPolicy {
    /// Returns what the policy and its binding mean.
    pub(super) fn meaning(&self) -> &ShippedMeaning {
        self.meaning.get_or_init(|| {
            let (policy, binding) = (of_policy(&self.policy), of_binding(&self.binding));
            let without_names = replace_in_texts(json!([policy, binding]), &|text| {
                if text == self.name { OPERATOR.to_owned() } else { text.replace(&self.operator, OPERATOR) }
            });
            ShippedMeaning { policy, binding, digest: Digest::of_value(&without_names) }
        })
    }
}

/// The digests of meanings that are at least as strict as the shipped one. A decision that was made under such a policy
/// stays valid after an upgrade.
///
/// When the policy in the chart changes, its test fails. If the earlier policy was as strict as the new one, add its
/// digest here. If it was not, remove the digests of all earlier policies: open calls are then asked again.
pub(super) const AS_STRICT: [&str; 1] = [
    // With `approvals.refuseServiceAccounts`: refuses what the policy without it refuses, and service accounts.
    "sha256:5ba33340f2b50df7c1fd1c81e3135c719d4b984fb7e0be9dbcfeedf44eb99c8f",
];

/// The name that replaces the operator's user name in a digest, so that all installations have the same digests.
const OPERATOR: &str = "OPERATOR";

/// Fields without an effect on the decision.
const TEXT_FIELDS: [&str; 4] = ["message", "messageExpression", "reason", "auditAnnotations"];

/// The values that the API server sets for absent fields.
const DEFAULTS: [(&str, &str); 3] = [("matchPolicy", "Equivalent"), ("failurePolicy", "Fail"), ("scope", "*")];

/// Returns the meaning of the `spec` of a policy; none if it cannot be read.
pub(super) fn of_policy(spec: &Value) -> Option<Value> {
    normalized::<ValidatingAdmissionPolicySpec>(spec)
}

/// Returns the meaning of the `spec` of a binding; none if it cannot be read.
pub(super) fn of_binding(spec: &Value) -> Option<Value> {
    normalized::<ValidatingAdmissionPolicyBindingSpec>(spec)
}

fn normalized<T: DeserializeOwned + Serialize>(spec: &Value) -> Option<Value> {
    // The type drops fields that this version of the operator does not know.
    let known: T = serde_json::from_value(spec.clone()).ok()?;
    let known = serde_json::to_value(known).ok()?;
    Some(without_insignificant_fields(known))
}

/// Removes texts, defaults and empty values. An empty selector selects everything, as an absent one does.
fn without_insignificant_fields(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let significant = fields.into_iter().filter(|(name, _)| !TEXT_FIELDS.contains(&name.as_str()));
            let cleaned = significant.map(|(name, value)| (name, without_insignificant_fields(value)));
            let is_default = |name: &str, value: &Value| {
                DEFAULTS.iter().any(|default| (name, value) == (default.0, &json!(default.1)))
            };
            Value::Object(cleaned.filter(|(name, value)| !is_empty(value) && !is_default(name, value)).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_insignificant_fields).collect()),
        other => other,
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null()
        || value.as_object().is_some_and(serde_json::Map::is_empty)
        || value.as_array().is_some_and(Vec::is_empty)
}

fn replace_in_texts(value: Value, replace: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(replace(&text)),
        Value::Array(items) => items.into_iter().map(|item| replace_in_texts(item, replace)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, replace_in_texts(value, replace))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policy in the chart, rendered for one installation. The template uses three expressions.
    fn of_chart(refuse_service_accounts: bool) -> ShippedPolicy {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/bloomery/templates/_approvals.tpl");
        let template = std::fs::read_to_string(path).unwrap();
        let after = |text: &str, mark: &str| text.split_once(mark).unwrap().1.to_owned();
        let until_end =
            |text: String| text.split("\n{{- end }}\n\n").next().unwrap().trim_end_matches("{{- end }}\n").to_owned();
        let policy = until_end(after(&template, "define \"bloomery.approvalPolicy\" -}}\n"));
        let (start, rest) = policy.split_once("{{- if .Values.approvals.refuseServiceAccounts }}\n").unwrap();
        let (optional, end) = rest.split_once("{{- end }}\n").unwrap();
        let policy = [start, if refuse_service_accounts { optional } else { "" }, end].concat();
        let policy =
            policy.replace("{{ include \"bloomery.operatorUser\" . | squote }}", "'system:serviceaccount:b:op'");
        let binding = until_end(after(&template, "define \"bloomery.approvalBinding\" -}}\n"));
        let binding = binding.replace("{{ include \"bloomery.approvalsName\" . }}", "b-approvals");
        assert!(!policy.contains("{{") && !binding.contains("{{"), "the template has changed:\n{policy}\n{binding}");
        ShippedPolicy {
            name: "b-approvals".into(),
            operator: "system:serviceaccount:b:op".into(),
            policy: serde_yaml::from_str(&policy).unwrap(),
            binding: serde_yaml::from_str(&binding).unwrap(),
            meaning: OnceLock::new(),
        }
    }

    fn digest(shipped: &ShippedPolicy) -> &Digest {
        &shipped.meaning().digest
    }

    #[test]
    fn the_digest_of_the_strict_policy_of_the_chart_is_listed() {
        assert_eq!(digest(&of_chart(true)).as_str(), AS_STRICT[0], "the policy has changed: see AS_STRICT");
        assert_ne!(digest(&of_chart(false)), digest(&of_chart(true)));
        let other_names = ShippedPolicy {
            name: "other".into(),
            operator: "system:serviceaccount:other:op".into(),
            policy: replace_in_texts(of_chart(true).policy, &|text| {
                text.replace("serviceaccount:b:op", "serviceaccount:other:op")
            }),
            binding: replace_in_texts(of_chart(true).binding, &|text| text.replace("b-approvals", "other")),
            meaning: OnceLock::new(),
        };
        assert_eq!(digest(&other_names), digest(&of_chart(true)), "names of an installation are no part of it");
    }

    #[test]
    fn texts_defaults_and_unknown_fields_do_not_change_the_meaning_and_expressions_do() {
        let spec = of_chart(true).policy;
        let mut other = spec.clone();
        other["validations"][0]["message"] = "another message".into();
        other["fieldOfKubernetes2"] = "Default".into();
        other["matchConstraints"].as_object_mut().unwrap().remove("matchPolicy");
        assert_eq!(of_policy(&other), of_policy(&spec));
        for (path, value) in [
            ("/validations/0/expression", json!("true")),
            ("/failurePolicy", json!("Ignore")),
            ("/matchConstraints/matchPolicy", json!("Exact")),
            ("/matchConstraints/namespaceSelector", json!({"matchLabels": {"a": "b"}})),
            ("/matchConstraints/resourceRules/0/operations", json!(["CREATE"])),
        ] {
            let mut weaker = spec.clone();
            *weaker.pointer_mut(path).unwrap() = value;
            assert_ne!(of_policy(&weaker), of_policy(&spec), "{path}");
        }
    }
}
