//! Objects that this version may be unable to read.

use bloomery_crds::unknown::{self, Read};
use kube::core::error_boundary::InvalidObject;
use kube::core::{ObjectMeta, Resource};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;

/// A stored object, or the reason why this version cannot read it. An object whose spec has a field that this version does not know
/// cannot be read: a newer version wrote it, and the field may forbid what this version would allow.
#[derive(Debug, Clone)]
pub struct Guarded<K>(pub Result<K, InvalidObject>);

impl<'de, K: DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let Read { object, unknown } = unknown::read::<K>(&value);
        let error = match (object, unknown) {
            (Ok(object), None) => return Ok(Self(Ok(object))),
            (_, Some(field)) => format!("it has the field {field} of a newer version"),
            (Err(error), None) => error.to_string(),
        };
        let metadata = value.get("metadata").map(ObjectMeta::deserialize).transpose().map_err(D::Error::custom)?;
        Ok(Self(Err(InvalidObject { error, metadata: metadata.unwrap_or_default() })))
    }
}

impl<K: Resource> Resource for Guarded<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dynamic: &K::DynamicType) -> Cow<'_, str> {
        K::kind(dynamic)
    }

    fn group(dynamic: &K::DynamicType) -> Cow<'_, str> {
        K::group(dynamic)
    }

    fn version(dynamic: &K::DynamicType) -> Cow<'_, str> {
        K::version(dynamic)
    }

    fn plural(dynamic: &K::DynamicType) -> Cow<'_, str> {
        K::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.as_ref().map_or_else(|invalid| &invalid.metadata, K::meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.as_mut().map_or_else(|invalid| &mut invalid.metadata, K::meta_mut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::v1alpha1::{Approval, Skill};
    use rstest::rstest;
    use serde_json::json;

    fn skill(spec: &Value) -> Guarded<Skill> {
        serde_json::from_value(json!({
            "apiVersion": "bloomery.dev/v1alpha1", "kind": "Skill", "metadata": { "name": "s", "uid": "u" }, "spec": spec,
        }))
        .unwrap()
    }

    #[rstest]
    #[case::field(json!({ "problem": { "statement": "help" }, "policy": { "quorum": 2 } }), "it has the field spec.policy.quorum of a newer version")]
    #[case::value(json!({ "tools": [{ "name": "a", "policy": { "allowed": "by_vote" } }] }), "by_vote")]
    fn an_object_of_a_newer_version_cannot_be_read_but_named(#[case] spec: Value, #[case] reason: &str) {
        let guarded = skill(&spec);
        assert_eq!(guarded.meta().uid.as_deref(), Some("u"));
        let error = guarded.0.unwrap_err().error;
        assert!(error.contains(reason), "{error}");
    }

    #[test]
    fn an_object_of_this_version_can_be_read() {
        let spec = json!({ "problem": { "statement": "help" }, "policy": { "tools": { "blocked": ["a"] } } });
        assert_eq!(skill(&spec).0.unwrap().metadata.name.as_deref(), Some("s"));
        let approval = crate::job::fixtures::approval("supervisor");
        let read: Guarded<Approval> = serde_json::from_value(serde_json::to_value(&approval).unwrap()).unwrap();
        assert_eq!(read.0.unwrap().spec, approval.spec);
    }
}
