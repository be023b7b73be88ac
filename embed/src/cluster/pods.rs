//! The pods of a Job, and their logs.

use super::watch::{self, Selector};
use super::{Cluster, Right};
use crate::error::{Error, ErrorKind};
use bloomery_crds::names::{LABEL_ATTEMPT, LABEL_JOB};
use bloomery_crds::pod::{self, WORKER_CONTAINER};
use bloomery_crds::v1alpha1::Job;
use futures::AsyncBufRead;
use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use kube::{Api, ResourceExt};
use std::pin::Pin;
use std::time::Duration;

/// The time within which the status of a pod shows the end of its container.
const MAX_STATUS_DELAY: Duration = Duration::from_secs(5);

/// The log of a pod, while it is read.
pub type PodLog = Pin<Box<dyn AsyncBufRead + Send>>;

/// Selects the pods of a Job by its name. [`own_pods_in_order`] removes pods of an earlier Job of the same name.
pub fn selector(name: &str) -> Selector {
    Selector::label(LABEL_JOB, name)
}

/// Lists the pods of a Job, in the order of its attempts.
///
/// # Errors
/// If they cannot be listed.
pub async fn pods(cluster: &Cluster, job: &Job) -> Result<Vec<Pod>, Error> {
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    match api.list(&selector(&job.name_any()).list_params()).await {
        Ok(list) => Ok(own_pods_in_order(job, list.items)),
        Err(error) => {
            let right = Right::on_pods("list", "pods");
            Err(cluster.refusal_error("listing the Job's pods", &error, vec![right]).await)
        }
    }
}

/// Returns the pods that belong to a Job, in the order of its attempts.
pub fn own_pods_in_order(job: &Job, pods: impl IntoIterator<Item = Pod>) -> Vec<Pod> {
    let uid = job.uid().unwrap_or_default();
    let is_own =
        |pod: &Pod| attempt_number(pod).is_some() && pod.owner_references().iter().any(|owner| owner.uid == uid);
    let mut pods: Vec<Pod> = pods.into_iter().filter(is_own).collect();
    pods.sort_by_key(attempt_number);
    pods
}

/// Returns the attempt number of a worker pod. Returns `None` for other pods.
pub fn attempt_number(pod: &Pod) -> Option<u32> {
    pod.labels().get(LABEL_ATTEMPT)?.parse().ok()
}

/// Returns whether the worker of a pod has started. Before that, the pod has no log.
pub fn has_started(pod: &Pod) -> bool {
    let state = pod::worker_status(pod).and_then(|worker| worker.state.as_ref());
    state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
}

/// Opens the log of a worker's container. With `follow`, it ends with the container. Returns `None` if the pod was deleted.
///
/// # Errors
/// If the log cannot be read.
pub async fn open_log(cluster: &Cluster, pod: &str, follow: bool) -> Result<Option<PodLog>, Error> {
    let api: Api<Pod> = Api::namespaced(cluster.watch_client.clone(), &cluster.namespace);
    let params = LogParams { container: Some(WORKER_CONTAINER.to_owned()), follow, ..LogParams::default() };
    match api.log_stream(pod, &params).await {
        Ok(log) => Ok(Some(Box::pin(log))),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => {
            let right = Right::on_pods("get", "pods/log");
            Err(cluster.refusal_error(&format!("reading the log of the pod {pod}"), &error, vec![right]).await)
        }
    }
}

/// Checks that a pod, whose followed log has ended, has ended too or was deleted. The log also ends if the API server loses its connection
/// to the node.
///
/// # Errors
/// If the pod has not ended, or cannot be watched.
pub async fn check_end(cluster: &Cluster, pod: &str) -> Result<(), Error> {
    let api: Api<Pod> = Api::namespaced(cluster.watch_client.clone(), &cluster.namespace);
    let this_pod = Selector::name(pod);
    let ended = watch::until(&api, &this_pod, |pods| pods.get(pod).is_none_or(pod::has_ended).then_some(()));
    match tokio::time::timeout(MAX_STATUS_DELAY, ended).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => {
            let rights = ["list", "watch"].map(|verb| Right::on_pods(verb, "pods")).to_vec();
            Err(cluster.refusal_error(&format!("watching the pod {pod}"), &error, rights).await)
        }
        Err(_) => {
            Err(Error::new(ErrorKind::Unavailable, format!("the log of the pod {pod} was interrupted: the pod runs")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_testkit::objects::jobs::job;
    use serde_json::json;

    fn pod(name: &str, attempt: &str, uid: &str) -> Pod {
        serde_json::from_value(json!({"metadata": {
            "name": name, "labels": {"bloomery.dev/attempt": attempt},
            "ownerReferences": [{"apiVersion": "bloomery.dev/v1alpha1", "kind": "Job", "name": "refund", "uid": uid}],
        }}))
        .unwrap()
    }

    #[test]
    fn pods_of_a_job_are_sorted_by_attempt() {
        let pods = [
            pod("ten", "10", "uid-1"),
            pod("another", "1", "uid-0"),
            pod("two", "2", "uid-1"),
            pod("none", "x", "uid-1"),
        ];
        let names: Vec<String> = own_pods_in_order(&job("refund"), pods).iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["two", "ten"]);
    }

    #[test]
    fn a_pod_has_started_when_its_container_runs_or_has_ended() {
        let has_started_in = |state: serde_json::Value| {
            let mut pod = pod("one", "1", "uid-1");
            let status = json!({"containerStatuses": [
                {"name": "worker", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state},
            ]});
            pod.status = serde_json::from_value(status).unwrap();
            has_started(&pod)
        };
        assert!(has_started_in(json!({"running": {}})) && has_started_in(json!({"terminated": {"exitCode": 0}})));
        assert!(!has_started_in(json!({"waiting": {"reason": "ContainerCreating"}})));
        assert!(!has_started(&pod("one", "1", "uid-1")));
    }
}
