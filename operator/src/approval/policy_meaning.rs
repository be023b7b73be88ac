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

/// The shipped admission policies that approvals depend on, as the chart passes them.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShippedPolicies {
    /// The user name of the operator, which the policies allow.
    pub operator: String,
    /// Validates Approvals and the decisions on them.
    pub approvals: ShippedPolicy,
    /// Reserves the label of worker pods for the operator.
    pub pods: ShippedPolicy,
    /// Reserves the tokens of workers for kubelets.
    pub tokens: ShippedPolicy,
    /// Computed once, because every check needs it.
    #[serde(skip)]
    meaning: OnceLock<ShippedMeaning>,
}

/// The meaning of the shipped policies.
#[derive(Debug, Clone)]
pub(super) struct ShippedMeaning {
    /// The name of each policy, and the meanings of the policy and of its binding; none of a `spec` that cannot be read.
    pub(super) policies: [(String, Option<Value>, Option<Value>); 3],
    /// The digest of all, which does not depend on the names of the installation.
    pub(super) digest: Digest,
}

impl ShippedPolicies {
    /// Returns the meaning of the policies.
    pub(super) fn meaning(&self) -> &ShippedMeaning {
        self.meaning.get_or_init(|| {
            let policies = [&self.approvals, &self.pods, &self.tokens]
                .map(|shipped| (shipped.name.clone(), of_policy(&shipped.policy), of_binding(&shipped.binding)));
            let without_names = policies.each_ref().map(|(name, policy, binding)| {
                replace_in_texts(json!([policy, binding]), &|text| {
                    if text == name { POLICY.to_owned() } else { text.replace(&self.operator, OPERATOR) }
                })
            });
            ShippedMeaning { policies, digest: Digest::of_value(&json!(without_names)) }
        })
    }
}

/// A shipped admission policy and its binding.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShippedPolicy {
    /// The name of the policy and of its binding.
    pub name: String,
    /// The `spec` of the policy.
    pub policy: Value,
    /// The `spec` of the binding.
    pub binding: Value,
}

/// The digests of the policies with `approvals.refuseServiceAccounts`, of this version and of earlier ones that are as strict. The
/// policies without it refuse less.
///
/// When a policy in the chart changes, its test fails. If the earlier policies were as strict as the new ones, add the new digests
/// here and to [`SERVICE_ACCOUNTS_MAY_DECIDE`], as the first ones, and the earlier template to the tests. If they were not, replace the
/// earlier digests: open calls are then asked again.
pub(super) const SERVICE_ACCOUNTS_REFUSED: [&str; 2] = [
    "sha256:3f3071000ce64d6bc3118a64fb2179192b308850e67504f0527761bea9294ec9",
    "sha256:d7acf548b1676886f6d3cb24851e5a041742c4dd7de5a4a750ef6808d6443c88",
];

/// The digests of the policies with `refuseServiceAccounts: false`, of the same versions.
pub(super) const SERVICE_ACCOUNTS_MAY_DECIDE: [&str; 2] = [
    "sha256:e1ff39b276fb4f26b3aa7623d4abe4d429f5bb48025924311ab59c965fe87179",
    "sha256:9136add6567893ca819365da03641c41e75c939693053294ade87b337524d88b",
];

/// Returns the digests of the known policies that are at least as strict as these. A decision that was made under such policies stays
/// valid after an upgrade.
pub(super) fn as_strict_as(shipped: &Digest) -> Vec<&'static str> {
    if SERVICE_ACCOUNTS_MAY_DECIDE.contains(&shipped.as_str()) {
        [&SERVICE_ACCOUNTS_REFUSED[..], &SERVICE_ACCOUNTS_MAY_DECIDE[..]].concat()
    } else {
        SERVICE_ACCOUNTS_REFUSED.to_vec()
    }
}

/// The texts that replace the operator's user name and the name of a policy before a digest is computed. So the digest is
/// the same in all installations.
const OPERATOR: &str = "OPERATOR";
const POLICY: &str = "POLICY";

/// Fields without an effect on the decision.
const TEXT_FIELDS: [&str; 4] = ["message", "messageExpression", "reason", "auditAnnotations"];

/// The field of a selector that contains labels.
const LABELS: &str = "matchLabels";

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
            let cleaned = significant.map(|(name, value)| {
                // Its fields are the names of labels.
                let value = if name == LABELS { value } else { without_insignificant_fields(value) };
                (name, value)
            });
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

    /// The earlier templates of the chart whose digests are listed, in the order of the lists.
    const EARLIER_TEMPLATES: [&str; SERVICE_ACCOUNTS_REFUSED.len() - 1] =
        [include_str!("earlier_policies/before_match_conditions.tpl")];

    /// The template of the chart.
    fn template() -> String {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/bloomery/templates/_policies.tpl");
        std::fs::read_to_string(path).unwrap()
    }

    /// The content of a `define` of a template, rendered for one installation. It uses few expressions.
    fn rendered(template: &str, define: &str, refuse_service_accounts: bool) -> Value {
        let (_, content) = template.split_once(&format!("define \"bloomery.{define}\" -}}}}\n")).unwrap();
        let content = content.split("\n{{- end }}\n\n").next().unwrap().trim_end_matches("{{- end }}\n").to_owned();
        let condition = "{{- if .Values.approvals.refuseServiceAccounts }}\n";
        let content = match content.split_once(condition) {
            None => content,
            Some((start, rest)) => {
                let (optional, end) = rest.split_once("{{- end }}\n").unwrap();
                [start, if refuse_service_accounts { optional } else { "" }, end].concat()
            }
        };
        let content = ["approvals", "pods", "tokens"].iter().fold(content, |content, kind| {
            content.replace(&format!("{{{{ include \"bloomery.{kind}PolicyName\" . }}}}"), &format!("b-{kind}"))
        });
        let user = "'system:serviceaccount:b:op'";
        let content = content.replace("{{ include \"bloomery.operatorUser\" . | squote }}", user);
        assert!(!content.contains("{{"), "the template has changed:\n{content}");
        serde_yaml::from_str(&content).unwrap()
    }

    /// The policies in the chart, rendered for one installation.
    fn of_chart(refuse_service_accounts: bool) -> ShippedPolicies {
        of_template(&template(), refuse_service_accounts)
    }

    /// The policies in a template, rendered for one installation.
    fn of_template(template: &str, refuse_service_accounts: bool) -> ShippedPolicies {
        let of = |kind: &str| ShippedPolicy {
            name: format!("b-{kind}"),
            policy: rendered(template, &format!("{kind}Policy"), refuse_service_accounts),
            binding: rendered(template, &format!("{kind}Binding"), refuse_service_accounts),
        };
        let operator = "system:serviceaccount:b:op".into();
        let (approvals, pods, tokens) = (of("approvals"), of("pods"), of("tokens"));
        ShippedPolicies { operator, approvals, pods, tokens, meaning: OnceLock::new() }
    }

    fn digest(shipped: &ShippedPolicies) -> &Digest {
        &shipped.meaning().digest
    }

    #[test]
    fn the_digest_of_each_variant_of_the_policies_of_the_chart_is_listed() {
        let (strict, lenient) = (SERVICE_ACCOUNTS_REFUSED[0], SERVICE_ACCOUNTS_MAY_DECIDE[0]);
        assert_eq!(digest(&of_chart(true)).as_str(), strict, "a policy has changed: see SERVICE_ACCOUNTS_REFUSED");
        assert_eq!(digest(&of_chart(false)).as_str(), lenient, "a policy has changed: see SERVICE_ACCOUNTS_REFUSED");
    }

    #[test]
    fn each_other_listed_digest_is_that_of_an_earlier_template_of_the_chart() {
        for (refuse_service_accounts, listed) in
            [(true, SERVICE_ACCOUNTS_REFUSED), (false, SERVICE_ACCOUNTS_MAY_DECIDE)]
        {
            let earlier = EARLIER_TEMPLATES.map(|template| of_template(template, refuse_service_accounts));
            assert_eq!(earlier.each_ref().map(|policies| digest(policies).as_str()), listed[1..]);
        }
    }

    #[test]
    fn policies_that_let_service_accounts_decide_are_not_as_strict_as_those_that_do_not() {
        assert_eq!(as_strict_as(digest(&of_chart(true))), SERVICE_ACCOUNTS_REFUSED);
        let all = [SERVICE_ACCOUNTS_REFUSED, SERVICE_ACCOUNTS_MAY_DECIDE].concat();
        assert_eq!(as_strict_as(digest(&of_chart(false))), all);
        assert_eq!(as_strict_as(&Digest::of_bytes(b"policies of no chart")), SERVICE_ACCOUNTS_REFUSED);
    }

    #[test]
    fn the_digest_depends_on_the_policies_and_not_on_the_installation() {
        let other_installation = |policy: ShippedPolicy| ShippedPolicy {
            name: policy.name.replace("b-", "other-"),
            policy: replace_in_texts(policy.policy, &|text| {
                text.replace("serviceaccount:b:op", "serviceaccount:other:op")
            }),
            binding: replace_in_texts(policy.binding, &|text| text.replace("b-", "other-")),
        };
        let shipped = of_chart(true);
        let [approvals, pods, tokens] = [shipped.approvals, shipped.pods, shipped.tokens].map(other_installation);
        let operator = "system:serviceaccount:other:op".into();
        let other_names = ShippedPolicies { operator, approvals, pods, tokens, meaning: OnceLock::new() };
        assert_eq!(digest(&other_names), digest(&of_chart(true)), "names of an installation are no part of it");
        let mut weaker = of_chart(true);
        weaker.tokens.policy["failurePolicy"] = json!("Ignore");
        assert_ne!(digest(&weaker), digest(&of_chart(true)));
    }

    #[test]
    fn texts_defaults_and_unknown_fields_do_not_change_the_meaning_and_expressions_do() {
        let spec = of_chart(true).approvals.policy;
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
            ("/matchConstraints/namespaceSelector", json!({"matchLabels": {"reason": "off"}})),
            ("/matchConstraints/objectSelector", json!({"matchLabels": {"scope": "*"}})),
            ("/matchConstraints/resourceRules/0/operations", json!(["CREATE"])),
        ] {
            let mut weaker = spec.clone();
            *weaker.pointer_mut(path).unwrap() = value;
            assert_ne!(of_policy(&weaker), of_policy(&spec), "{path}");
        }
    }
}
