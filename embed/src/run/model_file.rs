//! Models from a file with manifests.

use crate::check::check_document;
use crate::error::{Error, Errors};
use crate::findings::{self, Tally};
use crate::run::options::ModelOptions;
use crate::source;
use bloomery_crds::fallback;
use bloomery_crds::lists::ConfigMaps;
use bloomery_crds::run::ModelEndpoint;
use bloomery_crds::v1alpha1::{Model, ModelSpec, whole_seconds};
use bloomery_skills::{Form, ImportOptions, yaml};
use std::path::Path;

/// Returns the endpoint of each Model that the Skill names, or of every Model in the file if `names` is `None`. If a
/// file has only one Model, and this Model has no fallback, it serves all names. `origin` names the file in messages.
///
/// # Errors
/// If the file cannot be used, or lacks a Model.
pub fn endpoints(
    file: &str,
    origin: &str,
    options: &ModelOptions,
    names: Option<&[&str]>,
) -> Result<Vec<ModelEndpoint>, Error> {
    let models = read(Path::new(file), origin)?;
    let all: Vec<&str> = models.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.unwrap_or(&all);
    let mut errors = Errors::default();
    if models.iter().any(|(_, model)| model.spec.api_key.is_some()) && options.api_key_file.is_empty() {
        errors.add(Error::invalid(format!(
            "{origin}: a Model has its key in a Secret, which exists only on a cluster: use \
             `options.model.api_key_file`"
        )));
    }
    if models.iter().any(|(_, model)| model.spec.ca.is_some()) {
        errors.add(Error::invalid(format!(
            "{origin}: a Model has certificates (`ca`) that exist only on a cluster: remove `ca` to \
             use those of this machine"
        )));
    }
    if !errors.is_empty() {
        return Err(errors.into_error());
    }
    if let [(_, only)] = models.as_slice()
        && only.spec.fallback.is_empty()
    {
        return Ok(names.iter().map(|name| endpoint(name, only, Vec::new())).collect());
    }
    select(origin, &models, names)
}

/// Returns the endpoints of the named Models, followed by those of their fallbacks.
fn select(origin: &str, models: &[(String, Model)], names: &[&str]) -> Result<Vec<ModelEndpoint>, Error> {
    let find = |name: &str| models.iter().find(|(known, _)| known == name).map(|(_, model)| model);
    let mut endpoints: Vec<ModelEndpoint> = Vec::new();
    let mut wanted: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut next = 0;
    while let Some(name) = wanted.get(next).cloned() {
        next += 1;
        let model = find(&name).ok_or_else(|| {
            let known: Vec<&str> = models.iter().map(|(name, _)| name.as_str()).collect();
            Error::invalid(format!("{origin} has no Model {name}, which the Skill uses. It has {}", known.join(", ")))
        })?;
        let fallback = fallback::resolve(&name, |name| find(name).map(|model| model.spec.fallback.clone()))
            .map_err(|fault| Error::invalid(format!("{origin}: {fault}")))?;
        for other in &fallback {
            if !wanted.contains(other) {
                wanted.push(other.clone());
            }
        }
        endpoints.push(endpoint(&name, model, fallback));
    }
    Ok(endpoints)
}

/// Returns the endpoint of a Model, without a key.
fn endpoint(name: &str, model: &Model, fallback: Vec<String>) -> ModelEndpoint {
    let ModelSpec {
        provider,
        model,
        base_url,
        api_key: _,
        context_window,
        max_output_tokens,
        timeout,
        ca: _,
        proxy,
        fallback: _,
    } = &model.spec;
    ModelEndpoint {
        name: name.to_owned(),
        provider: *provider,
        model: model.clone(),
        base_url: base_url.clone(),
        timeout_seconds: timeout.as_ref().map_or(ModelSpec::DEFAULT_TIMEOUT_SECONDS, whole_seconds),
        context_window: context_window.unwrap_or(ModelSpec::DEFAULT_CONTEXT_WINDOW),
        max_output_tokens: *max_output_tokens,
        api_key: None,
        ca: None,
        proxy: proxy.clone(),
        fallback,
    }
}

/// Reads the Models in a file, by name. Other documents are skipped.
fn read(file: &Path, origin: &str) -> Result<Vec<(String, Model)>, Error> {
    let source = source::read(file).map_err(|error| Error::invalid(format!("{origin} cannot be read: {error}")))?;
    let parsed = yaml::read(&source.bytes);
    let mut findings = parsed.findings;
    let mut models = Vec::new();
    for document in parsed.documents.iter().filter(|document| document.form() == Form::Manifest) {
        let checked = check_document(document, &ImportOptions::default(), &[], &ConfigMaps::new());
        if checked.kind.as_deref() == Some("Model") {
            findings.extend(checked.findings);
            models.push(checked.object);
        }
    }
    let tally = Tally::count(&findings);
    if tally.errors > 0 {
        let message = format!("{origin}: {}: nothing was run", tally.summary());
        return Err(Error { findings: findings::in_file(&source.name, findings), ..Error::invalid(message) });
    }
    let with_name = |object| {
        let model: Model = serde_json::from_value(object)
            .map_err(|error| Error::invalid(format!("{origin} has an invalid Model: {error}")))?;
        Ok((model.metadata.name.clone().unwrap_or_default(), model))
    };
    let models: Vec<(String, Model)> = models.into_iter().map(with_name).collect::<Result<_, Error>>()?;
    if models.is_empty() {
        return Err(Error::invalid(format!("{origin} has no Model")));
    }
    Ok(models)
}
