//! Prepares the child of a Job, which runs in the same process.

use super::{PreparedJob, check_usable, identity, inputs, without_ram_key};
use crate::error::Error;
use crate::local::run_document::{JobParameters, RunDocument};
use crate::local::writer::unique_writer;
use crate::run::model::Models;
use crate::run::server;
use crate::run::skill::{LoadedSkill, SelectedSkill, invoked};
use bloomery_crds::children::{ChildRequest, run_key};
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::run::{BoundResource, JobPart, Revision};
use bloomery_crds::v1alpha1::SkillSpec;
use bloomery_redact::Redactor;
use bloomery_worker::inputs::Inputs;
use std::path::Path;

/// Prepares the child that a Job requests. If an earlier attempt of the Job has started it, the child goes on. `part` is the Job's part of the
/// parent, with the keys of its models, and `file` the file of its Skill.
///
/// # Errors
/// If the Skill or the resources cannot be used, or the child cannot be stored.
pub fn prepare<'a>(
    parent: &PreparedJob<'a>,
    part: &JobPart,
    file: &Path,
    request: &ChildRequest,
    redactor: Redactor,
) -> Result<(PreparedJob<'a>, Inputs), Error> {
    let options = parent.options;
    let key = run_key(&parent.document.revision.skill, &part.run_key, &request.call);
    let skill = invoked::find(&options.memory, file, &request.skill).ok_or_else(|| {
        Error::invalid(format!("the Skill {} cannot be used: `bloomery lint` shows why", request.skill))
    })?;
    let directory = &skill.directory;
    check_usable(directory, &options.memory)?;
    let existing = RunDocument::read(directory, &key)?;
    let spec = existing.as_ref().map_or(&skill.loaded.spec, |existing| &existing.revision.spec);
    let models = Models::for_child(&spec.model_names(), &part.models);
    let mut document = match existing {
        Some(existing) => existing,
        None => new_document(&key, &skill.loaded, part, request, &models)?,
    };
    let inputs = inputs(&document, &models, redactor)?;
    // The document has the redacted goal, like the log.
    document.part.goal = inputs.redactor.redact_owned(document.part.goal);
    let writer = unique_writer();
    directory.open(&writer)?;
    skill.store()?;
    document.store(directory, &writer)?;
    directory.sync()?;
    let SelectedSkill { directory, loaded, .. } = skill;
    let (skill, skill_note, warnings) = (Some(loaded), None, Vec::new());
    Ok((PreparedJob { options, directory, skill, document, _models: models, writer, skill_note, warnings }, inputs))
}

/// Returns the run document of a new child.
fn new_document(
    key: &str,
    skill: &LoadedSkill,
    part: &JobPart,
    request: &ChildRequest,
    models: &Models,
) -> Result<RunDocument, Error> {
    let server = server::from_skill(skill)?;
    let parameters = JobParameters {
        job: identity(None, key),
        goal: request.goal.clone(),
        limits: EffectiveLimits::resolve(skill.spec.limits(), Some(&request.limits)),
        models: models.endpoints.iter().map(without_ram_key).collect(),
        resources: passed_resources(&skill.name, &skill.spec, part, request)?,
        continues: None,
        memory_scope: None,
    };
    let revision = Revision::new(skill.name.clone(), skill.spec.clone(), server.mcp);
    let mut document = RunDocument::new(revision, parameters, server.program)?;
    document.part.depth = part.depth.saturating_add(1);
    Ok(document)
}

/// Returns the bindings of the parent that the child gets, in the order of its Skill.
fn passed_resources(
    skill: &str,
    spec: &SkillSpec,
    part: &JobPart,
    request: &ChildRequest,
) -> Result<Vec<BoundResource>, Error> {
    let is_declared = |name: &&String| spec.resources.iter().any(|declared| declared.name == **name);
    if let Some(name) = request.resources.iter().find(|name| !is_declared(name)) {
        return Err(Error::invalid(format!("the Skill {skill} has no resource {name:?}: do not pass it")));
    }
    let mut passed = Vec::new();
    for declared in &spec.resources {
        let name = &declared.name;
        if !request.resources.contains(name) {
            if declared.required == Some(true) {
                return Err(Error::invalid(format!(
                    "the Skill {skill} needs the resource {name:?}: pass it in resources"
                )));
            }
            continue;
        }
        match part.resources.iter().find(|bound| bound.name == *name) {
            Some(bound) if bound.kind == declared.kind => passed.push(bound.clone()),
            _ => {
                let kind = declared.kind;
                return Err(Error::invalid(format!("the Job has no resource {name:?} of the type {kind}")));
            }
        }
    }
    Ok(passed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::run_document::NAMESPACE;
    use bloomery_crds::Digest;
    use bloomery_crds::run::{JobIdentity, ResourceSource, VERSION};
    use bloomery_crds::v1alpha1::{Limits, ResourceType};
    use rstest::rstest;
    use serde_json::json;

    fn part() -> JobPart {
        let source = ResourceSource::Value("https://shop.example".into());
        let shop = BoundResource { name: "shop".into(), kind: ResourceType::ApiEndpoint, source };
        let job = JobIdentity { namespace: NAMESPACE.into(), name: "k".into(), uid: "u".into() };
        let part = json!({
            "version": VERSION, "job": job, "attempt": 1, "runKey": "k", "revision": Digest::of_bytes(b""), "goal": "x",
            "limits": EffectiveLimits::DEFAULT, "models": [], "resources": [shop],
        });
        serde_json::from_value(part).unwrap()
    }

    #[rstest]
    #[case::passed(&["shop"], Ok(1))]
    #[case::not_passed(&[], Err("the Skill billing needs the resource \"shop\": pass it in resources"))]
    #[case::not_declared(&["shop", "mail"], Err("the Skill billing has no resource \"mail\": do not pass it"))]
    #[case::of_another_type(&["shop", "files"], Err("the Job has no resource \"files\" of the type filesystem"))]
    fn a_child_gets_the_bindings_that_are_passed(#[case] names: &[&str], #[case] expected: Result<usize, &str>) {
        let spec: SkillSpec = serde_json::from_value(json!({
            "problem": {"statement": "x"},
            "resources": [
                {"name": "shop", "type": "api_endpoint", "required": true}, {"name": "files", "type": "filesystem"},
            ],
        }))
        .unwrap();
        let request = ChildRequest {
            call: "7-0".into(),
            digest: Digest::of_bytes(b""),
            skill: "billing".into(),
            goal: "x".into(),
            resources: names.iter().map(|name| (*name).into()).collect(),
            limits: Limits::default(),
        };
        let passed = passed_resources("billing", &spec, &part(), &request);
        let passed = passed.as_ref().map(Vec::len).map_err(|error| error.message.as_str());
        assert_eq!(passed, expected);
    }
}
