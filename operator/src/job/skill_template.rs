//! Creates the Skill of a Job from its template. The chart ships the templates in a ConfigMap, which the operator's pod mounts.
//!
//! The created Skill belongs to the people of its namespace: it has no owner, so it outlives the Job, and the operator never changes
//! it. A label names its template.

use super::fetch::FetchedJob;
use super::plan::Wait;
use crate::context::Context;
use crate::error::Error;
use crate::owned;
use bloomery_crds::conditions::Reason;
use bloomery_crds::names;
use bloomery_crds::unknown::{self, Read};
use bloomery_crds::v1alpha1::Skill;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::SignedDuration;
use kube::Api;
use serde_json::Value;
use std::io;
use std::path::Path;

/// The interval for trying again: templates, quotas and admission policies are not watched.
const RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(60);

/// Creates the Skill of a Job. A Skill that exists by now counts as created, because other Jobs may ask for it at the same time. Returns
/// a wait if there is no template, or if the API server refuses the Skill.
pub(super) async fn create_skill(context: &Context, fetched: &FetchedJob) -> Result<Result<(), Wait>, Error> {
    let (namespace, name) = (&fetched.namespace, &fetched.job.spec.skill);
    let skill = match read_template(context.settings.skill_templates.as_deref(), name) {
        Ok(template) => new_skill(template, namespace, name),
        Err(why) => return Ok(Err(not_created(name, &why))),
    };
    let api: Api<Skill> = Api::namespaced(context.client.clone(), namespace);
    context.metrics.count_write("Skill", "create");
    match api.create(&owned::post_params(), &skill).await {
        Ok(_) => {
            tracing::info!("created Skill {namespace}/{name} from its template, for Job {namespace}/{}", fetched.name);
            Ok(Ok(()))
        }
        Err(kube::Error::Api(refusal)) if refusal.reason == "AlreadyExists" => Ok(Ok(())),
        Err(error) => {
            let error = Error::api(format!("create Skill {namespace}/{name}"))(error);
            match error.refusal() {
                Some(why) => {
                    Ok(Err(not_created(name, &format!("the API server refuses to create it from its template: {why}"))))
                }
                None => Err(error),
            }
        }
    }
}

fn not_created(name: &str, why: &str) -> Wait {
    let message = format!("the Skill {name} does not exist, and {why}. Create it, and the Job starts by itself");
    Wait::new(Reason::SkillNotFound, message).retry_after(RETRY_INTERVAL)
}

/// Reads the template of a name from the mounted directory. Returns why it cannot be used. `name` is the name of a Skill, so it cannot
/// be a path to another directory.
fn read_template(directory: Option<&Path>, name: &str) -> Result<Skill, String> {
    let none = || format!("the installation has no template {name}");
    let file = directory.ok_or_else(none)?.join(format!("{name}.yaml"));
    let text = std::fs::read_to_string(&file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => none(),
        _ => format!("its template cannot be read from {}: {error}", file.display()),
    })?;
    parse_template(&text).map_err(|why| format!("its template cannot be used: {why}"))
}

/// Parses a template. A field that this version does not know may forbid a call, so the template is not used without it.
fn parse_template(text: &str) -> Result<Skill, String> {
    // The lines after the first one quote the file.
    let first_line = |error: serde_yaml::Error| error.to_string().lines().next().unwrap_or_default().to_owned();
    let value: Value = serde_yaml::from_str(text).map_err(first_line)?;
    let Read { object, unknown } = unknown::read::<Skill>(&value);
    match unknown {
        Some(field) => Err(format!("this version does not know the field {field}")),
        None => object.map_err(|error| error.to_string()),
    }
}

/// Returns the Skill to create.
fn new_skill(template: Skill, namespace: &str, name: &str) -> Skill {
    let metadata = ObjectMeta {
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        labels: Some([(names::LABEL_TEMPLATE.to_owned(), name.to_owned())].into()),
        ..ObjectMeta::default()
    };
    Skill { metadata, spec: template.spec, status: None }
}

#[cfg(test)]
mod tests;
