//! Follows a Job through its pods.

use super::jobs::deleted_error;
use super::{Cluster, Right, pods, state, watch};
use crate::error::Error;
use bloomery_crds::v1alpha1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt};
use std::collections::BTreeSet;

/// The next step while a Job is followed.
pub enum FollowStep {
    /// Read the log of this pod, which has started.
    Pod(Box<Pod>),
    /// Stop: the Job has reached the state that stops.
    Stop(Box<Job>),
}

/// Returns whether a Job has ended or waits for people, so that it has no more events for now.
pub fn is_at_rest(job: &Job) -> bool {
    state::has_ended(job) || state::waits_for_people(job)
}

/// Waits until a pod has started whose UID is not in `known`, or until `stops` is true for the Job. The pod takes precedence.
///
/// # Errors
/// If the Job is deleted, or cannot be watched.
pub async fn next_step(
    cluster: &Cluster,
    job: &Job,
    known: &BTreeSet<String>,
    stops: fn(&Job) -> bool,
) -> Result<FollowStep, Error> {
    let (name, uid) = (job.name_any(), job.uid());
    let (watch_client, namespace) = (&cluster.watch_client, &cluster.namespace);
    let first_unknown = |pods: &mut dyn Iterator<Item = &Pod>| {
        let mut pods = pods::own_pods_in_order(job, pods.cloned()).into_iter();
        pods.find(|pod| pod.uid().is_some_and(|uid| !known.contains(&uid)) && pods::has_started(pod))
    };
    let api: Api<Pod> = Api::namespaced(watch_client.clone(), namespace);
    let of_job = pods::selector(&name);
    let pod = watch::until(&api, &of_job, |pods| first_unknown(&mut pods.values()));
    let jobs: Api<Job> = Api::namespaced(watch_client.clone(), namespace);
    let this_job = watch::Selector::name(&name);
    let stopped = watch::until(&jobs, &this_job, |jobs| match jobs.get(&name) {
        Some(job) if job.uid() == uid => stops(job).then(|| Ok(job.clone())),
        Some(_) | None => Some(Err(deleted_error(&name))),
    });
    let watching = format!("watching the Job {name}");
    tokio::select! {
        biased;
        pod = pod => match pod {
            Ok(pod) => Ok(FollowStep::Pod(Box::new(pod))),
            Err(error) => {
                let rights = ["list", "watch"].map(|verb| Right::on_pods(verb, "pods")).to_vec();
                Err(cluster.refusal_error(&watching, &error, rights).await)
            }
        },
        stopped = stopped => match stopped {
            // The last pod may have started and ended meanwhile.
            Ok(stopped) => {
                let stopped = stopped?;
                let pods = pods::pods(cluster, job).await?;
                let pod = first_unknown(&mut pods.iter());
                Ok(pod.map_or_else(|| FollowStep::Stop(Box::new(stopped)), |pod| FollowStep::Pod(Box::new(pod))))
            }
            Err(error) => {
                let rights = ["list", "watch"].map(Right::on_jobs).to_vec();
                Err(cluster.refusal_error(&watching, &error, rights).await)
            }
        },
    }
}
