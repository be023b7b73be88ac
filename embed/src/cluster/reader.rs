//! A temporary pod that reads a Job's log from the memory. It mounts only the skill directory, read-only.

mod build;

use super::{Cluster, Right, list_all, pods, watch};
use crate::error::Error;
use bloomery_crds::names::{LABEL_COMPONENT, LABEL_MANAGED_BY, MANAGER};
use bloomery_crds::pod;
use bloomery_crds::v1alpha1::Job;
use build::{DEADLINE_SECONDS, Template};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use std::time::Duration;

/// The state of a reader pod.
enum PodState {
    /// Its container has started, so it has a log.
    Started,
    /// It cannot start, for this reason.
    Stuck(String),
    /// It was deleted.
    Deleted,
}

/// Creates the pod, which prints the log of a Job, and returns its name. Without an image, it has the image of a worker pod.
///
/// # Errors
/// If the Job has no log, or the pod cannot be created.
pub async fn create(cluster: &Cluster, job: &Job, image: Option<String>, json: bool) -> Result<String, Error> {
    let template = template(cluster, image).await?;
    let pod = build::pod(job, &template, json, cluster.field_manager)?;
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    match api.create(&PostParams::default(), &pod).await {
        Ok(created) => Ok(created.name_any()),
        Err(error) => {
            let doing = "creating a reader pod for the memory";
            Err(cluster.refusal_error(doing, &error, vec![Right::on_pods("create", "pods")]).await)
        }
    }
}

/// Deletes the pod.
///
/// # Errors
/// If the API server refuses it. The pod ends by itself.
pub async fn delete(cluster: &Cluster, name: &str) -> Result<(), Error> {
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    match api.delete(name, &DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() }).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => {
            let doing = format!("deleting the reader pod {name}, which ends by itself within {DEADLINE_SECONDS} s");
            Err(cluster.request_error(&doing, &error))
        }
    }
}

/// Waits until the pod has ended, and checks that it has read the whole log.
///
/// # Errors
/// If it has not, is deleted, or cannot be watched.
pub async fn check_end(cluster: &Cluster, name: &str) -> Result<(), Error> {
    match build::failure_reason(&wait_for_end(cluster, name).await?) {
        None => Ok(()),
        Some(why) => Err(Error::failed(format!("the reader pod {name} could not read all of the log: {why}"))),
    }
}

/// Returns the template for the pod. It is made from the newest worker pod of the namespace, or else from the defaults of the
/// chart. `image` replaces the image of the worker pod, and is required if there is no worker pod.
async fn template(cluster: &Cluster, image: Option<String>) -> Result<Template, Error> {
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let workers = ListParams::default().labels(&format!("{LABEL_MANAGED_BY}={MANAGER},{LABEL_COMPONENT}=worker"));
    let pods = match list_all(&api, workers, |_| true).await {
        Ok(pods) => pods,
        Err(error) if image.is_none() => {
            let doing = "looking for a worker pod to take the image from (`options.image` selects an image without it)";
            return Err(cluster.refusal_error(doing, &error, vec![Right::on_pods("list", "pods")]).await);
        }
        // The image is known, and the defaults of the chart are enough for the rest.
        Err(_) => Vec::new(),
    };
    let newest = pods.iter().max_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0));
    match (newest.and_then(Template::from_worker), image) {
        (Some(template), None) => Ok(template),
        (Some(template), Some(image)) => Ok(template.with_image(image)),
        (None, Some(image)) => Ok(Template::default_with_image(image)),
        (None, None) => Err(Error::invalid(format!(
            "the namespace {} has no worker pod to take the image of the reader pod from: name the image of the workers \
             (worker.image in the chart) with `options.image`",
            cluster.namespace
        ))),
    }
}

/// Returns the state of the pod. Returns `None` while it is starting.
fn pod_state(pod: Option<&Pod>) -> Option<PodState> {
    match pod {
        None => Some(PodState::Deleted),
        Some(pod) if pods::has_started(pod) => Some(PodState::Started),
        Some(pod) => build::stuck_reason(pod).map(PodState::Stuck),
    }
}

/// Waits until the container of the pod has started.
///
/// # Errors
/// If the pod cannot start, does not start in time, or is deleted.
pub async fn wait_for_start(cluster: &Cluster, name: &str) -> Result<(), Error> {
    let pods: Api<Pod> = Api::namespaced(cluster.watch_client.clone(), &cluster.namespace);
    let this_pod = watch::Selector::name(name);
    let mut unscheduled_reason = None;
    let state = watch::until(&pods, &this_pod, |pods| {
        let pod = pods.get(name);
        unscheduled_reason = pod.and_then(build::unscheduled_reason);
        pod_state(pod)
    });
    // The deadline in the spec of the pod does not include the time until the pod is scheduled.
    let state = tokio::time::timeout(Duration::from_secs(DEADLINE_SECONDS.into()), state).await;
    let why = match state {
        Ok(Ok(PodState::Started)) => return Ok(()),
        Ok(Ok(PodState::Stuck(why))) => why,
        Ok(Ok(PodState::Deleted)) => {
            return Err(Error::failed(format!("the reader pod {name} was deleted before it started")));
        }
        Ok(Err(error)) => return Err(watch_error(cluster, name, &error).await),
        Err(_) => unscheduled_reason.unwrap_or_else(|| format!("it has not started within {DEADLINE_SECONDS} s")),
    };
    Err(Error::failed(format!("the reader pod {name} cannot start: {why}")))
}

/// Waits until the pod has ended, and returns it.
///
/// # Errors
/// If the pod is deleted, or cannot be watched.
async fn wait_for_end(cluster: &Cluster, name: &str) -> Result<Pod, Error> {
    let pods: Api<Pod> = Api::namespaced(cluster.watch_client.clone(), &cluster.namespace);
    let this_pod = watch::Selector::name(name);
    let ended = watch::until(&pods, &this_pod, |pods| match pods.get(name) {
        None => Some(Err(Error::failed(format!("the reader pod {name} was deleted while it was reading")))),
        Some(pod) => pod::has_ended(pod).then(|| Ok(pod.clone())),
    });
    match ended.await {
        Ok(ended) => ended,
        Err(error) => Err(watch_error(cluster, name, &error).await),
    }
}

/// Returns the error of a failed watch of the pod.
async fn watch_error(cluster: &Cluster, name: &str, error: &kube::Error) -> Error {
    let rights = ["list", "watch"].map(|verb| Right::on_pods(verb, "pods")).to_vec();
    cluster.refusal_error(&format!("watching the reader pod {name}"), error, rights).await
}
