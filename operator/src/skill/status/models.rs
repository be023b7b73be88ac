//! Checks whether the Models of a Skill are ready, by the rule that keeps its Jobs from starting.

use super::super::fetch::FetchedSkill;
use super::finding::Finding;
use crate::job::plan::Wait;
use crate::job::validate::resolve_models;
use bloomery_crds::conditions::{ConditionType, Reason};
use bloomery_crds::run::ModelEndpoint;
use bloomery_crds::v1alpha1::{SecretKeyRef, Skill};

/// The condition that this module computes.
const KIND: ConditionType = ConditionType::ModelsReady;

/// Describes the state of the Models. The Skill becomes ready by itself once they are.
///
/// The operator cannot read Secrets, so it knows that a key is missing only while a worker waits for it.
pub(super) fn finding(skill: &Skill, fetched: &FetchedSkill) -> Finding {
    let names = skill.spec.model_names();
    match resolve_models(&names, |name| fetched.models.get(name).cloned()) {
        Err(Wait { reason, message, .. }) => Finding::waits(KIND, reason, message),
        Ok(models) => match models.iter().find_map(|model| missing_key(model, &fetched.key_waits)) {
            Some(message) => Finding::waits(KIND, Reason::SecretMissing, message),
            None => Finding::healthy(KIND, Reason::Ready, ready_message(&models)),
        },
    }
}

/// Describes the missing key of a Model; none if no worker waits for it.
fn missing_key(model: &ModelEndpoint, waits: &[SecretKeyRef]) -> Option<String> {
    let key = model
        .api_key
        .as_ref()
        .filter(|key| waits.iter().any(|wait| (&wait.name, &wait.key) == (&key.secret, &key.key)));
    key.map(|key| {
        format!(
            "a Job waits for the key {} of the Secret {}, which the Model {} names: add it, and the Job continues by itself",
            key.key, key.secret, model.name
        )
    })
}

fn ready_message(models: &[ModelEndpoint]) -> String {
    let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
    let (noun, verb) = if names.len() == 1 { ("Model", "is") } else { ("Models", "are") };
    format!("the {noun} {} {verb} ready", names.join(", "))
}
