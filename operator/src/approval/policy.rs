//! Checks that the stored admission policies and their bindings mean what this installation shipped. They decide who may
//! approve, who makes worker pods, and who holds the token of a worker, so any difference in their meaning disables
//! approvals.

use super::policy_meaning;
pub use super::policy_meaning::ShippedPolicies;
use crate::caches::{AdmissionBinding, AdmissionPolicy, Caches, RawObject};
use bloomery_crds::Digest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::sync::Arc;

/// The state of the admission policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyState {
    /// The policies and their bindings are stored, with their shipped meaning.
    InForce(Guard),
    /// Approvals are not protected. Holds the reason, and the remedy.
    Missing(String),
}

/// Identifies the stored policies and their bindings by their meaning and their UIDs. It changes when the meaning of one
/// of them changes, and when one is created again, because decisions may have been made without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// The guard of new Approvals.
    pub digest: Digest,
    /// The guards of these objects with each known meaning that is at least as strict as theirs.
    as_strict: Vec<Digest>,
}

impl Guard {
    /// Creates the guard of policies with this meaning. `stored` is the metadata of the policies and their bindings.
    fn new(meaning: &Digest, stored: &[&ObjectMeta]) -> Self {
        let uids: Vec<&str> = stored.iter().map(|metadata| metadata.uid.as_deref().unwrap_or_default()).collect();
        let digest = |meaning: &str| Digest::of_bytes(format!("{meaning} {}", uids.join(" ")).as_bytes());
        let as_strict = policy_meaning::as_strict_as(meaning).into_iter().map(digest).collect();
        Self { digest: digest(meaning.as_str()), as_strict }
    }

    /// Returns whether decisions on an Approval with this guard count.
    pub fn accepts(&self, guard: Option<&Digest>) -> bool {
        guard.is_some_and(|guard| *guard == self.digest || self.as_strict.contains(guard))
    }
}

/// The reason why the admission policies are not in force.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the {kind} {name} does not exist")]
    Missing { kind: &'static str, name: String },
    #[error("the {kind} {name} differs from the shipped one")]
    Changed { kind: &'static str, name: String },
}

/// Returns the state of the admission policies, from the caches.
pub fn check(shipped: Option<&ShippedPolicies>, caches: &Caches) -> PolicyState {
    let Some(shipped) = shipped else {
        return PolicyState::Missing(
            "the operator has no admission policies that protect approvals: set BLOOMERY_APPROVALS, as the chart does"
                .to_owned(),
        );
    };
    compare(shipped, &caches.policies.store().state(), &caches.bindings.store().state())
}

/// Compares the stored policies and bindings with the shipped ones.
fn compare(
    shipped: &ShippedPolicies,
    policies: &[Arc<AdmissionPolicy>],
    bindings: &[Arc<AdmissionBinding>],
) -> PolicyState {
    let meaning = shipped.meaning();
    let mut stored = Vec::new();
    for (name, wanted, wanted_binding) in &meaning.policies {
        let found = check_meaning("ValidatingAdmissionPolicy", name, policies, |spec| {
            wanted.is_some() && policy_meaning::of_policy(spec) == *wanted
        });
        let found_binding = check_meaning("ValidatingAdmissionPolicyBinding", name, bindings, |spec| {
            wanted_binding.is_some() && policy_meaning::of_binding(spec) == *wanted_binding
        });
        match (found, found_binding) {
            (Ok(policy), Ok(binding)) => stored.extend([&policy.metadata, &binding.metadata]),
            (Err(error), _) | (_, Err(error)) => {
                return PolicyState::Missing(format!(
                    "{error}, so decisions cannot be trusted: nobody is asked, and the call waits. Install the chart again, and the Job continues by itself"
                ));
            }
        }
    }
    PolicyState::InForce(Guard::new(&meaning.digest, &stored))
}

/// Returns the object with this name, if its `spec` means what the shipped one means. An object that is being deleted does
/// not count.
fn check_meaning<'a, K>(
    kind: &'static str,
    name: &str,
    stored: &'a [Arc<RawObject<K>>],
    is_shipped_meaning: impl Fn(&Value) -> bool,
) -> Result<&'a RawObject<K>, Error> {
    let is_named = |object: &&Arc<RawObject<K>>| {
        object.metadata.name.as_deref() == Some(name) && object.metadata.deletion_timestamp.is_none()
    };
    match stored.iter().find(is_named) {
        None => Err(Error::Missing { kind, name: name.to_owned() }),
        Some(stored) if !is_shipped_meaning(&stored.spec) => Err(Error::Changed { kind, name: name.to_owned() }),
        Some(stored) => Ok(stored),
    }
}

/// Returns the state of policies that are stored as shipped, with these UIDs of the policies and their bindings.
#[cfg(test)]
pub(crate) fn in_force(shipped: &ShippedPolicies, policy_uid: &str, binding_uid: &str) -> PolicyState {
    fn stored<K>(name: &str, uid: &str, spec: &Value) -> Arc<RawObject<K>> {
        let (name, uid) = (Some(name.to_owned()), Some(uid.to_owned()));
        Arc::new(RawObject::new(ObjectMeta { name, uid, ..ObjectMeta::default() }, spec.clone()))
    }
    let all = [&shipped.approvals, &shipped.pods, &shipped.tokens];
    let policies = all.map(|policy| stored(&policy.name, policy_uid, &policy.policy));
    let bindings = all.map(|policy| stored(&policy.name, binding_uid, &policy.binding));
    compare(shipped, &policies, &bindings)
}

#[cfg(test)]
mod tests {
    use super::policy_meaning::{SERVICE_ACCOUNTS_MAY_DECIDE, SERVICE_ACCOUNTS_REFUSED};
    use super::*;
    use crate::job::fixtures::api::shipped_policies;
    use rstest::rstest;
    use serde_json::json;

    fn stored<K>(name: &str, spec: Value, uid: &str) -> Arc<RawObject<K>> {
        let (name, uid) = (Some(name.to_owned()), Some(uid.to_owned()));
        Arc::new(RawObject::new(ObjectMeta { name, uid, generation: Some(7), ..ObjectMeta::default() }, spec))
    }

    /// The current digest of a list, and the earliest one.
    fn ends(listed: &[&'static str]) -> [&'static str; 2] {
        [listed[0], listed[listed.len() - 1]]
    }

    fn guard(shipped: &ShippedPolicies, policy_uid: &str, binding_uid: &str) -> Guard {
        match in_force(shipped, policy_uid, binding_uid) {
            PolicyState::InForce(guard) => guard,
            PolicyState::Missing(why) => panic!("{why}"),
        }
    }

    /// The state if the policy `pods` and its binding are stored with these specs, and the others as shipped.
    fn state(policy: Option<Value>, binding: Option<Value>) -> PolicyState {
        let shipped = shipped_policies();
        let others = [&shipped.approvals, &shipped.tokens];
        let mut policies = others.map(|other| stored(&other.name, other.policy.clone(), "p")).to_vec();
        let mut bindings = others.map(|other| stored(&other.name, other.binding.clone(), "b")).to_vec();
        policies.extend(policy.map(|spec| stored("pods", spec, "p")));
        bindings.extend(binding.map(|spec| stored("pods", spec, "b")));
        compare(&shipped, &policies, &bindings)
    }

    #[test]
    fn the_guard_changes_when_a_policy_or_its_binding_is_replaced_or_means_something_else() {
        let first = guard(&shipped_policies(), "p", "b");
        assert!(first.accepts(Some(&guard(&shipped_policies(), "p", "b").digest)));
        let mut stricter = shipped_policies();
        stricter.tokens.policy["validations"] = json!([{"expression": "false"}, {"expression": "1 == 2"}]);
        let shipped = shipped_policies();
        for other in [guard(&shipped, "q", "b"), guard(&shipped, "p", "c"), guard(&stricter, "p", "b")] {
            assert!(!first.accepts(Some(&other.digest)));
        }
        assert!(!first.accepts(None));
    }

    #[test]
    fn a_message_or_a_new_field_of_kubernetes_changes_neither_the_state_nor_the_guard() {
        let policy = json!({"failurePolicy": "Fail", "validations": [{"expression": "false", "message": "no"}], "newField": "Default"});
        let state = state(Some(policy), Some(shipped_policies().pods.binding));
        assert_eq!(state, PolicyState::InForce(guard(&shipped_policies(), "p", "b")));
    }

    #[test]
    fn decisions_under_earlier_policies_that_are_as_strict_still_count() {
        let uid = |uid: &str| ObjectMeta { uid: Some(uid.to_owned()), ..ObjectMeta::default() };
        let (policy, binding) = (uid("p"), uid("b"));
        let stored = [&policy, &binding, &policy, &binding, &policy, &binding];
        let of_meaning = |digest: &str| Guard::new(&digest.parse().unwrap(), &stored);
        let [strict, earlier] = ends(&SERVICE_ACCOUNTS_REFUSED).map(of_meaning);
        let [lenient, earlier_lenient] = ends(&SERVICE_ACCOUNTS_MAY_DECIDE).map(of_meaning);
        for current in [&strict, &lenient, &guard(&shipped_policies(), "p", "b")] {
            assert!(current.accepts(Some(&earlier.digest)));
        }
        assert!(!guard(&shipped_policies(), "q", "b").accepts(Some(&earlier.digest)), "a policy was created again");
        assert!(lenient.accepts(Some(&earlier_lenient.digest)));
        assert!(!strict.accepts(Some(&earlier_lenient.digest)), "service accounts could decide");
    }

    fn policy() -> Value {
        shipped_policies().pods.policy
    }

    fn binding() -> Value {
        shipped_policies().pods.binding
    }

    #[rstest]
    #[case::no_policy(None, Some(binding()), "Policy pods does not exist")]
    #[case::no_binding(Some(policy()), None, "Binding pods does not exist")]
    #[case::weaker(Some(json!({"failurePolicy": "Ignore", "validations": [{"expression": "false"}]})), Some(binding()), "differs from the shipped one")]
    #[case::with_a_condition(Some(json!({"failurePolicy": "Fail", "validations": [{"expression": "false"}], "matchConditions": [{"name": "never", "expression": "false"}]})), Some(binding()), "differs from the shipped one")]
    #[case::only_warns(Some(policy()), Some(json!({"policyName": "pods", "validationActions": ["Warn"]})), "Binding pods differs from the shipped one")]
    #[case::of_some_namespaces(Some(policy()), Some(json!({"policyName": "pods", "validationActions": ["Deny"], "matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}})), "Binding pods differs from the shipped one")]
    fn one_missing_or_different_policy_is_enough(
        #[case] policy: Option<Value>,
        #[case] binding: Option<Value>,
        #[case] expected: &str,
    ) {
        let PolicyState::Missing(why) = state(policy, binding) else { panic!("the policies are in force") };
        assert!(why.contains(expected), "{why}");
    }
}
