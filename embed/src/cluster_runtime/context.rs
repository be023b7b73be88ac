//! The conversation of a Job as its model reads it, from the whole log.

use super::reader_pod::ReaderPod;
use crate::cluster::{Cluster, Right};
use crate::error::Error;
use crate::job::ModelContext;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::run::{self, JobIdentity, JobPart, ModelEndpoint, REVISION_KEY, Revision};
use bloomery_crds::v1alpha1::{Job, ModelProvider, RevisionRef};
use bloomery_engine::{Conversation, line};
use bloomery_redact::Redactor;
use bloomery_worker::inputs::Inputs;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt};

/// Reads the log of a Job with a reader pod, and folds it.
///
/// # Errors
/// If the Job has no log yet, the caller lacks a right, or the log or the revision of the Skill cannot be read.
pub(super) async fn read(cluster: &Cluster, job: &Job, image: Option<String>) -> Result<ModelContext, Error> {
    let Some(revision) = job.status.as_ref().and_then(|status| status.skill_revision.as_ref()) else {
        return Ok(ModelContext { system: None, turns: Vec::new() });
    };
    let mut conversation = conversation(job, read_revision(cluster, revision).await?, revision)?;
    let mut pod = ReaderPod::create(cluster, job, image).await?;
    let folded = fold(&mut pod, &mut conversation).await;
    pod.delete().await;
    folded.map(|()| ModelContext::new(&conversation))
}

async fn fold(pod: &mut ReaderPod, conversation: &mut Conversation) -> Result<(), Error> {
    while let Some(text) = pod.next_line().await? {
        let text = str::from_utf8(text).map_err(|error| Error::failed(error.to_string()))?;
        let (_, entry) = line::read_alone(text)
            .map_err(|reason| Error::failed(format!("a line of the log cannot be read: {reason}")))?;
        conversation.apply(&entry);
    }
    Ok(())
}

/// Reads the revision on which the Job runs.
async fn read_revision(cluster: &Cluster, revision: &RevisionRef) -> Result<Revision, Error> {
    let RevisionRef { name, digest } = revision;
    let api: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let found = match api.get(name).await {
        Ok(found) => found,
        Err(error) => {
            let right = Right { group: "", verb: "get", resource: "configmaps", name: Some(name.clone()) };
            return Err(cluster.refusal_error("reading the revision of the Skill", &error, vec![right]).await);
        }
    };
    let text = found.data.unwrap_or_default().remove(REVISION_KEY).unwrap_or_default();
    run::open_revision(&text, digest).map_err(|error| Error::failed(format!("the ConfigMap {name}: {error}")))
}

/// Returns the empty conversation of a Job. Its turns come from the log, so the parameters of the pods, such as the Models, do not
/// matter.
fn conversation(job: &Job, revision: Revision, reference: &RevisionRef) -> Result<Conversation, Error> {
    let models = revision.spec.model_names().into_iter().map(|name| ModelEndpoint {
        name: name.to_owned(),
        provider: ModelProvider::Openai,
        model: String::new(),
        base_url: String::new(),
        timeout_seconds: 0,
        context_window: u64::from(u32::MAX),
        max_output_tokens: None,
        api_key: None,
        ca: None,
        proxy: None,
        fallback: Vec::new(),
    });
    let uid = job.uid().unwrap_or_default();
    let part = JobPart {
        version: run::VERSION,
        job: JobIdentity { namespace: job.namespace().unwrap_or_default(), name: job.name_any(), uid },
        attempt: 1,
        after_disruption: false,
        run_key: job.run_key().unwrap_or_default().to_owned(),
        named_run_key: job.spec.run_key.is_some(),
        revision: reference.digest.clone(),
        goal: job.spec.goal.clone(),
        validates: job.spec.validates(),
        limits: EffectiveLimits::DEFAULT,
        models: models.collect(),
        external_mcp: None,
        resources: Vec::new(),
        log: None,
        approvals: Vec::new(),
        void_approvals: None,
        asked: Vec::new(),
        replies: Vec::new(),
        pins: None,
        tenant_tools: None,
        continues: None,
        memory_scope: None,
        depth: 1,
        children: Vec::new(),
        child_wait_seconds: None,
        report: None,
    };
    let inputs = Inputs::new(revision, part, Redactor::default());
    inputs.map(|inputs| Conversation::new(inputs.run)).map_err(|error| Error::failed(error.to_string()))
}
