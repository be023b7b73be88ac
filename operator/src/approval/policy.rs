//! Checks that the admission policy and its binding are stored exactly as this installation shipped them. They decide
//! who may approve, so any difference disables approvals.

use crate::caches::{AdmissionBinding, AdmissionPolicy, Caches, RawObject};
use bloomery_crds::Digest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// The shipped admission policy, as the chart passes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
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
}

/// The state of the admission policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyState {
    /// The policy and its binding are stored as shipped. The digest identifies these two objects: it changes when
    /// either is changed or created again.
    InForce(Digest),
    /// Decisions are not validated. Holds the reason, and the remedy.
    Missing(String),
}

/// The reason why the admission policy is not in force.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the {kind} {name} does not exist")]
    Missing { kind: &'static str, name: String },
    #[error("the {kind} {name} differs from the shipped one")]
    Changed { kind: &'static str, name: String },
}

/// Returns the state of the admission policy, from the caches.
pub fn check(shipped: Option<&ShippedPolicy>, caches: &Caches) -> PolicyState {
    let Some(shipped) = shipped else {
        return PolicyState::Missing(
            "the operator has no admission policy that validates decisions: set BLOOMERY_APPROVALS, as the chart does"
                .to_owned(),
        );
    };
    let policy = find_by_name(&caches.policies.store().state(), &shipped.name);
    let binding = find_by_name(&caches.bindings.store().state(), &shipped.name);
    compare(shipped, policy.as_deref(), binding.as_deref())
}

/// Returns the object with this name, unless it is being deleted.
fn find_by_name<K>(objects: &[Arc<RawObject<K>>], name: &str) -> Option<Arc<RawObject<K>>> {
    objects
        .iter()
        .find(|object| object.metadata.name.as_deref() == Some(name) && object.metadata.deletion_timestamp.is_none())
        .cloned()
}

/// Compares the stored policy and binding with the shipped ones.
fn compare(
    shipped: &ShippedPolicy,
    policy: Option<&AdmissionPolicy>,
    binding: Option<&AdmissionBinding>,
) -> PolicyState {
    let checked = check_as_shipped("ValidatingAdmissionPolicy", shipped, &shipped.policy, policy).and_then(|policy| {
        let binding = check_as_shipped("ValidatingAdmissionPolicyBinding", shipped, &shipped.binding, binding)?;
        Ok(Digest::of_bytes(format!("{} {}", identity(&policy.metadata), identity(&binding.metadata)).as_bytes()))
    });
    match checked {
        Ok(digest) => PolicyState::InForce(digest),
        Err(error) => PolicyState::Missing(format!(
            "{error}, so decisions cannot be validated: nobody is asked, and the call waits. Install the chart again, and the Job continues by itself"
        )),
    }
}

/// Returns the stored object if its `spec` is the shipped one.
fn check_as_shipped<'a, K>(
    kind: &'static str,
    shipped: &ShippedPolicy,
    shipped_spec: &Value,
    stored: Option<&'a RawObject<K>>,
) -> Result<&'a RawObject<K>, Error> {
    match stored {
        None => Err(Error::Missing { kind, name: shipped.name.clone() }),
        Some(stored) if stored.spec != *shipped_spec => Err(Error::Changed { kind, name: shipped.name.clone() }),
        Some(stored) => Ok(stored),
    }
}

/// Returns a text that changes if the object is created again, or if its spec changes.
fn identity(metadata: &ObjectMeta) -> String {
    format!("{}/{}", metadata.uid.as_deref().unwrap_or_default(), metadata.generation.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn shipped() -> ShippedPolicy {
        serde_json::from_value(json!({
            "name": "bloomery-approvals",
            "operator": "system:serviceaccount:bloomery:bloomery",
            "policy": {"failurePolicy": "Fail", "validations": [{"expression": "false"}]},
            "binding": {"policyName": "bloomery-approvals", "validationActions": ["Deny"]},
        }))
        .unwrap()
    }

    fn stored<K>(spec: Value, uid: &str, generation: i64) -> RawObject<K> {
        let metadata = ObjectMeta { uid: Some(uid.into()), generation: Some(generation), ..ObjectMeta::default() };
        RawObject::new(metadata, spec)
    }

    #[test]
    fn the_digest_changes_when_the_policy_or_its_binding_is_replaced_or_changed() {
        let ShippedPolicy { policy, binding, .. } = shipped();
        let digest = |of_policy: (&str, i64), of_binding: (&str, i64)| {
            let policy = stored(policy.clone(), of_policy.0, of_policy.1);
            let binding = stored(binding.clone(), of_binding.0, of_binding.1);
            let PolicyState::InForce(digest) = compare(&shipped(), Some(&policy), Some(&binding)) else {
                panic!("the policy is not in force")
            };
            digest
        };
        let first = digest(("p", 1), ("b", 1));
        assert_eq!(digest(("p", 1), ("b", 1)), first);
        let changes = [(("q", 1), ("b", 1)), (("p", 3), ("b", 1)), (("p", 1), ("c", 1)), (("p", 1), ("b", 2))];
        for other in changes.map(|(policy, binding)| digest(policy, binding)) {
            assert_ne!(other, first);
        }
    }

    #[rstest]
    #[case::no_policy(None, Some(json!({"policyName": "bloomery-approvals", "validationActions": ["Deny"]})), "Policy bloomery-approvals does not exist")]
    #[case::no_binding(Some(shipped().policy), None, "Binding bloomery-approvals does not exist")]
    #[case::weaker(Some(json!({"failurePolicy": "Ignore", "validations": [{"expression": "false"}]})), Some(shipped().binding), "differs from the shipped one")]
    #[case::with_a_condition(Some(json!({"failurePolicy": "Fail", "validations": [{"expression": "false"}], "matchConditions": [{"name": "never", "expression": "false"}]})), Some(shipped().binding), "differs from the shipped one")]
    #[case::with_an_unknown_field(Some(json!({"failurePolicy": "Fail", "validations": [{"expression": "false"}], "off": true})), Some(shipped().binding), "differs from the shipped one")]
    #[case::only_warns(Some(shipped().policy), Some(json!({"policyName": "bloomery-approvals", "validationActions": ["Warn"]})), "Binding bloomery-approvals differs from the shipped one")]
    #[case::of_some_namespaces(Some(shipped().policy), Some(json!({"policyName": "bloomery-approvals", "validationActions": ["Deny"], "matchResources": {}})), "Binding bloomery-approvals differs from the shipped one")]
    fn a_missing_or_different_policy_is_not_in_force(
        #[case] policy: Option<Value>,
        #[case] binding: Option<Value>,
        #[case] expected: &str,
    ) {
        let (policy, binding) = (policy.map(|spec| stored(spec, "p", 1)), binding.map(|spec| stored(spec, "b", 1)));
        let PolicyState::Missing(why) = compare(&shipped(), policy.as_ref(), binding.as_ref()) else {
            panic!("the policy is in force")
        };
        assert!(why.contains(expected), "{why}");
    }
}
