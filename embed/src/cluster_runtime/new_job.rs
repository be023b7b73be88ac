//! The Job object of the parameters of a new Job. The functions are pure.

use crate::error::{Error, ErrorKind};
use crate::job::NewJob;
use bloomery_crds::names::{MAX_NAME_BYTES, is_name};
use bloomery_crds::resources;
use bloomery_crds::v1alpha1::{Binding, ClaimBinding, Job, JobSpec, SecretKeyRef, Skill};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use std::collections::BTreeMap;

/// The forms of a binding, for people.
const BINDING_FORMS: &str = "Write claim:NAME or claim:NAME/PATH for a PersistentVolumeClaim of the namespace (writable-claim: if the Job \
                             may write), secret:NAME/KEY for a Secret, or a URL";

/// The number of characters that the API server adds to a generated name.
const GENERATED_BYTES: usize = 5;

/// Returns the Job object. Its name and its run key are the key of the Job. Without a key, the API server generates the name.
///
/// # Errors
/// If the key is no name, or a resource is no binding.
pub(super) fn build(new: NewJob) -> Result<Job, Error> {
    let NewJob { goal, skill, resources, limits, key, continues } = new;
    let skill = skill.unwrap_or_else(|| JobSpec::DEFAULT_SKILL.to_owned());
    if let Some(key) = key.as_ref().filter(|key| !is_name(key)) {
        return Err(Error::invalid(format!(
            "the key {key:?} cannot be the name of a Job: a name has at most {MAX_NAME_BYTES} lower-case letters, digits and '-', \
             and begins with a letter"
        )));
    }
    let metadata = match &key {
        Some(key) => ObjectMeta { name: Some(key.clone()), ..ObjectMeta::default() },
        None => ObjectMeta { generate_name: Some(name_prefix(&skill)), ..ObjectMeta::default() },
    };
    let bound = resources.iter().map(|(name, text)| binding(name, text).map(|binding| (name.clone(), binding)));
    let resources = bound.collect::<Result<BTreeMap<_, _>, _>>()?;
    let spec = JobSpec { skill, run_key: key, goal, resources, limits, continues, ..JobSpec::default() };
    Ok(Job { metadata, spec, status: None })
}

/// Checks that a new Job binds the resources of its Skill, by the rules of the operator.
///
/// # Errors
/// If it does not. The error names each resource.
pub(super) fn check_resources(job: &Job, skill: &Skill) -> Result<(), Error> {
    let faults = resources::faults(&skill.spec.resources, &job.spec.resources);
    if faults.is_empty() {
        return Ok(());
    }
    // Requests have the same names, without the place in the object.
    let faults: Vec<&str> = faults.iter().map(|fault| fault.strip_prefix("spec.").unwrap_or(fault)).collect();
    Err(Error::invalid(format!(
        "the Skill {} cannot run: {}. {BINDING_FORMS}",
        job.spec.skill,
        faults.join(" ").trim_end_matches('.')
    )))
}

/// Checks that the Job of a key has the parameters of this start.
///
/// # Errors
/// If it has others.
pub(super) fn check_same(existing: &Job, wanted: &Job) -> Result<(), Error> {
    let parameters = |job: &Job| {
        let JobSpec { skill, run_key, goal, resources, limits, continues, mode, parent, .. } = job.spec.clone();
        (skill, run_key, goal, resources, limits, (continues, mode, parent))
    };
    if parameters(existing) == parameters(wanted) {
        return Ok(());
    }
    let message = format!("the Job {} has other parameters: use another `options.run_key`", existing.name_any());
    Err(Error::new(ErrorKind::Conflict, message))
}

/// Returns the prefix of the generated name of a Job.
fn name_prefix(skill: &str) -> String {
    let dash = 1;
    let skill = skill.get(..MAX_NAME_BYTES - dash - GENERATED_BYTES).unwrap_or(skill);
    format!("{skill}-")
}

/// Parses a binding.
///
/// # Errors
/// If the text is no binding, such as a path of a machine.
fn binding(resource: &str, text: &str) -> Result<Binding, Error> {
    let bound = if text.starts_with("https://") || text.starts_with("http://") {
        Some(Binding { value: Some(text.to_owned()), ..Binding::default() })
    } else if let Some(rest) = text.strip_prefix("secret:") {
        secret(rest)
    } else if let Some(rest) = text.strip_prefix("writable-claim:") {
        claim(rest, Some(false))
    } else {
        text.strip_prefix("claim:").and_then(|rest| claim(rest, None))
    };
    bound.ok_or_else(|| {
        Error::invalid(format!(
            "resources.{resource}: {text:?} is no binding. A cluster has no paths of your machine. {BINDING_FORMS}"
        ))
    })
}

fn secret(text: &str) -> Option<Binding> {
    let (name, key) = text.split_once('/').filter(|(name, key)| !name.is_empty() && !key.is_empty())?;
    let secret = SecretKeyRef { name: name.to_owned(), key: key.to_owned() };
    Some(Binding { secret_key_ref: Some(secret), ..Binding::default() })
}

fn claim(text: &str, read_only: Option<bool>) -> Option<Binding> {
    let (name, path) = text.split_once('/').unwrap_or((text, ""));
    let sub_path = Some(path.to_owned()).filter(|path| !path.is_empty());
    let claim = ClaimBinding { claim_name: name.to_owned(), sub_path, read_only };
    (!name.is_empty()).then(|| Binding { persistent_volume_claim: Some(claim), ..Binding::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn with_resource(text: &str) -> Result<Job, Error> {
        build(NewJob { resources: [("codebase".to_owned(), text.to_owned())].into(), ..NewJob::new("Fix it") })
    }

    #[rstest]
    #[case::url("https://api.example/v1", json!({"value": "https://api.example/v1"}))]
    #[case::secret("secret:erp/token", json!({"secretKeyRef": {"name": "erp", "key": "token"}}))]
    #[case::claim("claim:code", json!({"persistentVolumeClaim": {"claimName": "code"}}))]
    #[case::path("claim:code/shop/web", json!({"persistentVolumeClaim": {"claimName": "code", "subPath": "shop/web"}}))]
    #[case::writable("writable-claim:code", json!({"persistentVolumeClaim": {"claimName": "code", "readOnly": false}}))]
    fn a_text_names_a_binding(#[case] text: &str, #[case] expected: Value) {
        let job = with_resource(text).unwrap();
        assert_eq!(serde_json::to_value(&job.spec.resources["codebase"]).unwrap(), expected);
    }

    #[rstest]
    #[case("/src")]
    #[case("../shop")]
    #[case("claim:")]
    #[case("claim:/src")]
    #[case("secret:erp")]
    #[case("secret:/token")]
    #[case("file:///src")]
    #[case("")]
    fn a_path_of_a_machine_is_refused_with_the_bindings(#[case] text: &str) {
        let error = with_resource(text).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
        assert!(error.message.contains("resources.codebase") && error.message.contains("claim:NAME/PATH"), "{error}");
    }

    #[test]
    fn the_key_is_the_name_and_the_run_key() {
        let job = build(NewJob { key: Some("i-17".into()), ..NewJob::new("Fix it") }).unwrap();
        assert_eq!((job.metadata.name.as_deref(), job.spec.run_key.as_deref()), (Some("i-17"), Some("i-17")));
        assert_eq!(job.spec.skill, JobSpec::DEFAULT_SKILL);
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        for key in ["", "17", "a/b", "A", long.as_str()] {
            let error = build(NewJob { key: Some(key.into()), ..NewJob::new("Fix it") }).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Invalid, "{key}");
        }
    }

    #[test]
    fn a_generated_name_is_a_valid_name() {
        for skill in ["desk".to_owned(), "x".repeat(MAX_NAME_BYTES)] {
            let job = build(NewJob { skill: Some(skill), ..NewJob::new("Fix it") }).unwrap();
            assert_eq!((job.metadata.name, job.spec.run_key), (None, None));
            assert!(is_name(&format!("{}x7f2k", job.metadata.generate_name.unwrap())));
        }
    }

    #[test]
    fn another_goal_or_resource_is_another_job() {
        let new = |goal: &str| build(NewJob { key: Some("i-17".into()), ..NewJob::new(goal) }).unwrap();
        let mut existing = new("Fix it");
        existing.spec.cancel = Some(true);
        assert_eq!(check_same(&existing, &new("Fix it")), Ok(()));
        assert_eq!(check_same(&existing, &new("Break it")).unwrap_err().kind, ErrorKind::Conflict);
        existing.spec.resources = with_resource("claim:code").unwrap().spec.resources;
        assert_eq!(check_same(&existing, &new("Fix it")).unwrap_err().kind, ErrorKind::Conflict);
    }
}
