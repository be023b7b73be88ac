//! Objects in every state, as a golden file. The story `kstatus` computes their status with kstatus itself.

use crate::job::fixtures;
use crate::job::status::{finish, phase_health, with_conditions};
use crate::status::StatusStamp;
use bloomery_crds::conditions::{Health, Reason, merge};
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::v1alpha1::{Approval, ApprovalStatus, Job, JobStatus, Model, ModelStatus, Skill, SkillStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::CustomResourceExt;
use serde_json::{Value, json};
use strum::IntoEnumIterator;

const GENERATION: i64 = 3;

fn stamp() -> StatusStamp {
    StatusStamp { now: Time(Timestamp::UNIX_EPOCH), generation: Some(GENERATION) }
}

/// An object with a status.
fn object<K: CustomResourceExt>(name: &str, status: impl serde::Serialize) -> Value {
    let kind = K::crd().spec.names.kind;
    json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": kind, "metadata": {"name": name, "generation": GENERATION},
        "status": status,
    })
}

fn conditions(health: Health) -> Vec<Condition> {
    merge(&[], &health.observations(), Some(GENERATION), &stamp().now)
}

/// The name of an object in a state of this name: `AwaitingReply` becomes `awaiting-reply`.
fn name_of(state: &impl ToString) -> String {
    let mut name = String::new();
    for letter in state.to_string().chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// A Job in each phase, and one for each code of an outcome.
fn jobs() -> Vec<Value> {
    let working = Phase::iter().filter(|phase| !phase.is_terminal()).map(|phase| {
        let status = fixtures::status(1, phase);
        let health = phase_health(&status);
        object::<Job>(&name_of(&phase), with_conditions(status, health.observations(), &stamp()))
    });
    let ended = OutcomeCode::iter().map(|code| {
        let status = fixtures::status(1, Phase::Running);
        let status = finish(status, Outcome::new(code, "the reason"), None, Vec::new(), &stamp());
        object::<Job>(&format!("ended-{}", name_of(&code)), status)
    });
    working.chain(ended).collect()
}

/// An object of each kind that the operator has not seen, with the status that the CRD gives it.
fn new_objects() -> Vec<Value> {
    let definitions = bloomery_crds::v1alpha1::definitions();
    let new = definitions.map(|definition| {
        let kind = &definition.spec.names.kind;
        let schema = bloomery_crds::v1alpha1::schema_of(kind).unwrap();
        let default = &schema.properties.as_ref().unwrap()["status"].default.as_ref().unwrap().0;
        json!({
            "apiVersion": "bloomery.dev/v1alpha1", "kind": kind, "metadata": {"name": "new", "generation": 1},
            "status": default,
        })
    });
    new.collect()
}

/// A Skill, Model and Approval in each health, and objects that were edited after their status was written.
fn others() -> Vec<Value> {
    let health = [
        ("ready", Health::Ready(Reason::Ready, "it is ready".into())),
        ("reconciling", Health::Reconciling(Reason::ModelNotFound, "the Model is missing".into())),
        ("stalled", Health::Stalled(Reason::Invalid, "the spec is invalid".into())),
    ];
    let observed_generation = Some(GENERATION);
    let mut objects = Vec::new();
    for (name, health) in health {
        let conditions = conditions(health);
        let skill = SkillStatus { observed_generation, conditions: conditions.clone(), ..SkillStatus::default() };
        objects.push(object::<Skill>(name, skill));
        objects.push(object::<Model>(name, ModelStatus { observed_generation, conditions }));
    }
    let decided = conditions(Health::Ready(Reason::Denied, "the call is denied".into()));
    let decided = ApprovalStatus { observed_generation, conditions: decided, ..ApprovalStatus::default() };
    objects.push(object::<Approval>("decided", decided));
    let ready = conditions(Health::Ready(Reason::Ready, "it is ready".into()));
    let earlier =
        SkillStatus { observed_generation: Some(GENERATION - 1), conditions: ready, ..SkillStatus::default() };
    objects.push(object::<Skill>("edited", earlier));
    let ended = finish(JobStatus::default(), Outcome::new(OutcomeCode::Succeeded, "done"), None, Vec::new(), &stamp());
    objects.push(object::<Job>("edited", JobStatus { observed_generation: Some(GENERATION - 1), ..ended }));
    objects
}

#[test]
fn objects_in_every_state() {
    let objects = new_objects().into_iter().chain(jobs()).chain(others());
    let documents: Vec<String> = objects.map(|object| serde_yaml::to_string(&object).unwrap()).collect();
    insta::assert_snapshot!("objects", documents.join("---\n"));
}
