//! Checks that the stored admission policy and its binding mean what this installation shipped. They decide who may
//! approve, so any difference in their meaning disables approvals.

pub use super::policy_meaning::ShippedPolicy;
use super::policy_meaning::{self, AS_STRICT};
use crate::caches::{AdmissionBinding, AdmissionPolicy, Caches, RawObject};
use bloomery_crds::Digest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::sync::Arc;

/// The state of the admission policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyState {
    /// The policy and its binding are stored, with their shipped meaning.
    InForce(Guard),
    /// Decisions are not validated. Holds the reason, and the remedy.
    Missing(String),
}

/// Identifies a stored policy and its binding by their meaning and their UIDs. It changes when the meaning of either
/// changes, and when either is created again, because decisions may have been made without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// The guard of new Approvals.
    pub digest: Digest,
    /// The guards of these objects when they had an earlier meaning that is as strict.
    as_strict: Vec<Digest>,
}

impl Guard {
    fn new(meaning: &Digest, policy: &ObjectMeta, binding: &ObjectMeta) -> Self {
        let uid = |metadata: &ObjectMeta| metadata.uid.clone().unwrap_or_default();
        let (policy, binding) = (uid(policy), uid(binding));
        let digest = |meaning: &str| Digest::of_bytes(format!("{meaning} {policy} {binding}").as_bytes());
        Self { digest: digest(meaning.as_str()), as_strict: AS_STRICT.map(digest).to_vec() }
    }

    /// Returns whether decisions on an Approval with this guard count.
    pub fn accepts(&self, guard: Option<&Digest>) -> bool {
        guard.is_some_and(|guard| *guard == self.digest || self.as_strict.contains(guard))
    }
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
    let wanted = shipped.meaning();
    let checked = check_meaning("ValidatingAdmissionPolicy", shipped, policy, |spec| {
        wanted.policy.is_some() && policy_meaning::of_policy(spec) == wanted.policy
    })
    .and_then(|policy| {
        let binding = check_meaning("ValidatingAdmissionPolicyBinding", shipped, binding, |spec| {
            wanted.binding.is_some() && policy_meaning::of_binding(spec) == wanted.binding
        })?;
        Ok(Guard::new(&wanted.digest, &policy.metadata, &binding.metadata))
    });
    match checked {
        Ok(guard) => PolicyState::InForce(guard),
        Err(error) => PolicyState::Missing(format!(
            "{error}, so decisions cannot be validated: nobody is asked, and the call waits. Install the chart again, and the Job continues by itself"
        )),
    }
}

/// Returns the stored object if its `spec` means what the shipped one means.
fn check_meaning<'a, K>(
    kind: &'static str,
    shipped: &ShippedPolicy,
    stored: Option<&'a RawObject<K>>,
    is_shipped_meaning: impl Fn(&Value) -> bool,
) -> Result<&'a RawObject<K>, Error> {
    match stored {
        None => Err(Error::Missing { kind, name: shipped.name.clone() }),
        Some(stored) if !is_shipped_meaning(&stored.spec) => Err(Error::Changed { kind, name: shipped.name.clone() }),
        Some(stored) => Ok(stored),
    }
}

/// Returns the state of a policy that is stored as shipped, with these UIDs of the policy and its binding.
#[cfg(test)]
pub(crate) fn in_force(shipped: &ShippedPolicy, policy_uid: &str, binding_uid: &str) -> PolicyState {
    let stored = |uid: &str| ObjectMeta { uid: Some(uid.to_owned()), ..ObjectMeta::default() };
    let policy = RawObject::new(stored(policy_uid), shipped.policy.clone());
    let binding = RawObject::new(stored(binding_uid), shipped.binding.clone());
    compare(shipped, Some(&policy), Some(&binding))
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

    fn guard(shipped: &ShippedPolicy, policy_uid: &str, binding_uid: &str) -> Guard {
        let policy = stored(shipped.policy.clone(), policy_uid, 1);
        let binding = stored(shipped.binding.clone(), binding_uid, 1);
        let PolicyState::InForce(guard) = compare(shipped, Some(&policy), Some(&binding)) else {
            panic!("the policy is not in force")
        };
        guard
    }

    #[test]
    fn the_guard_changes_when_the_policy_or_its_binding_is_replaced_or_means_something_else() {
        let first = guard(&shipped(), "p", "b");
        assert!(first.accepts(Some(&guard(&shipped(), "p", "b").digest)));
        let mut stricter = shipped();
        stricter.policy["validations"] = json!([{"expression": "false"}, {"expression": "1 == 2"}]);
        for other in [guard(&shipped(), "q", "b"), guard(&shipped(), "p", "c"), guard(&stricter, "p", "b")] {
            assert!(!first.accepts(Some(&other.digest)));
        }
        assert!(!first.accepts(None));
    }

    #[test]
    fn a_message_or_a_new_field_of_kubernetes_changes_neither_the_state_nor_the_guard() {
        let policy = json!({"failurePolicy": "Fail", "validations": [{"expression": "false", "message": "no"}], "newField": "Default"});
        let (policy, binding) = (stored(policy, "p", 7), stored(shipped().binding, "b", 2));
        let state = compare(&shipped(), Some(&policy), Some(&binding));
        assert_eq!(state, PolicyState::InForce(guard(&shipped(), "p", "b")));
    }

    #[test]
    fn decisions_under_an_earlier_policy_that_is_as_strict_still_count() {
        let (policy, binding) = (stored::<()>(Value::Null, "p", 1), stored::<()>(Value::Null, "b", 1));
        let earlier = Guard::new(&AS_STRICT[0].parse().unwrap(), &policy.metadata, &binding.metadata);
        assert!(guard(&shipped(), "p", "b").accepts(Some(&earlier.digest)));
        assert!(!guard(&shipped(), "q", "b").accepts(Some(&earlier.digest)), "the policy was created again");
    }

    #[rstest]
    #[case::no_policy(None, Some(json!({"policyName": "bloomery-approvals", "validationActions": ["Deny"]})), "Policy bloomery-approvals does not exist")]
    #[case::no_binding(Some(shipped().policy), None, "Binding bloomery-approvals does not exist")]
    #[case::weaker(Some(json!({"failurePolicy": "Ignore", "validations": [{"expression": "false"}]})), Some(shipped().binding), "differs from the shipped one")]
    #[case::with_a_condition(Some(json!({"failurePolicy": "Fail", "validations": [{"expression": "false"}], "matchConditions": [{"name": "never", "expression": "false"}]})), Some(shipped().binding), "differs from the shipped one")]
    #[case::only_warns(Some(shipped().policy), Some(json!({"policyName": "bloomery-approvals", "validationActions": ["Warn"]})), "Binding bloomery-approvals differs from the shipped one")]
    #[case::of_some_namespaces(Some(shipped().policy), Some(json!({"policyName": "bloomery-approvals", "validationActions": ["Deny"], "matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}})), "Binding bloomery-approvals differs from the shipped one")]
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
