use super::*;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::core::PartialObjectMeta;
use kube::core::Status;
use rstest::rstest;
use serde_json::json;

fn account(owner_uid: &str, managed: bool) -> ServiceAccount {
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {
            "namespace": "acme", "name": "orders-worker", "uid": "u-account",
            "labels": if managed { json!({"app.kubernetes.io/managed-by": "bloomery"}) } else { json!({}) },
            "ownerReferences": [
                {"apiVersion": "bloomery.dev/v1alpha1", "kind": "Skill", "name": "orders", "uid": owner_uid, "controller": true}
            ],
        },
    }))
    .unwrap()
}

fn obstacle(existing: &ServiceAccount) -> Option<ApplyResult<ServiceAccount>> {
    Target::new(&account("u-skill", true)).unwrap().obstacle(&existing.metadata)
}

#[test]
fn an_own_object_may_be_written_unless_it_is_being_deleted() {
    assert_eq!(obstacle(&account("u-skill", true)), None);
    // A removed label is set again.
    assert_eq!(obstacle(&account("u-skill", false)), None);
    let mut deleting = account("u-skill", true);
    deleting.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    assert_eq!(obstacle(&deleting), Some(ApplyResult::BeingDeleted));
}

#[test]
fn an_object_of_a_deleted_skill_of_the_same_name_counts_as_being_deleted() {
    assert_eq!(obstacle(&account("u-earlier", true)), Some(ApplyResult::BeingDeleted));
}

#[test]
fn an_object_of_another_owner_is_left_unchanged() {
    assert_eq!(obstacle(&account("u-foreign", false)), Some(ApplyResult::NameTaken));
    let mut unowned = account("u-skill", true);
    unowned.metadata.owner_references = None;
    assert_eq!(obstacle(&unowned), Some(ApplyResult::NameTaken));
}

#[test]
fn an_object_without_an_owner_is_not_applied() {
    let mut unowned = account("u-skill", true);
    unowned.metadata.owner_references = None;
    let Err(error) = Target::new(&unowned) else { panic!("it has an owner") };
    assert!(error.to_string().ends_with("this is a bug of the operator"), "{error}");
}

#[test]
fn only_the_metadata_of_an_immutable_object_is_compared() {
    let wanted = serde_json::to_value(account("u-skill", true)).unwrap();
    let seen: PartialObjectMeta<ServiceAccount> = serde_json::from_value(wanted.clone()).unwrap();
    let mut more = wanted;
    more["automountServiceAccountToken"] = json!(false);
    assert!(KnownObject::metadata(&seen).unwrap().satisfies(&more));
    more["metadata"]["labels"]["app.kubernetes.io/component"] = json!("worker");
    assert!(!KnownObject::metadata(&seen).unwrap().satisfies(&more));
}

#[test]
fn a_field_that_is_no_longer_wanted_makes_a_difference() {
    let mut before = json!({"metadata": {"name": "a"}, "spec": {"args": ["x"], "replicas": 1}});
    add_digest(&mut before);
    let live = before.clone();
    let mut same = json!({"metadata": {"name": "a"}, "spec": {"args": ["x"], "replicas": 1}});
    add_digest(&mut same);
    assert!(subset::contains(&same, &live));
    let mut fewer = json!({"metadata": {"name": "a"}, "spec": {"replicas": 1}});
    add_digest(&mut fewer);
    assert!(!subset::contains(&fewer, &live));
}

#[rstest]
#[case(403, "exceeded quota: pods", true)]
#[case(422, "spec.ports: Required value", true)]
#[case(500, "failed to create typed patch object (acme/a; apps/v1, Kind=Deployment): duplicate entries for key", true)]
#[case(500, "Internal error occurred: failed calling webhook \"pods.example.com\": connection refused", true)]
#[case(409, "admission webhook \"pods.example.com\" denied the request: not now", true)]
#[case(500, "etcdserver: request timed out", false)]
#[case(409, "the object has been modified", false)]
#[case(429, "too many requests", false)]
fn a_refusal_is_a_result_and_a_temporary_failure_is_an_error(
    #[case] code: u16,
    #[case] message: &str,
    #[case] refused: bool,
) {
    let status = Status::failure(message, "Reason").with_code(code);
    let result = refusal_or_error::<ServiceAccount>(Error::api("apply it")(kube::Error::Api(Box::new(status))));
    assert_eq!(matches!(result, Ok(ApplyResult::Refused(why)) if why == message), refused);
}

#[test]
fn a_change_by_another_writer_differs_from_a_new_wanted_state() {
    let mut wanted = serde_json::to_value(account("u-skill", true)).unwrap();
    add_digest(&mut wanted);
    let mut existing = account("u-skill", true);
    assert!(!KnownObject::full(&existing).unwrap().was_applied(&wanted));
    let applied = wanted["metadata"]["annotations"][ANNOTATION_APPLIED].as_str().unwrap().to_owned();
    existing.annotations_mut().insert(ANNOTATION_APPLIED.to_owned(), applied);
    assert!(KnownObject::full(&existing).unwrap().was_applied(&wanted));
    wanted["automountServiceAccountToken"] = json!(false);
    add_digest(&mut wanted);
    assert!(!KnownObject::full(&existing).unwrap().was_applied(&wanted));
}
