//! `bloomery events` on a cluster: prints the logs of the Job's pods. If no pod is left, a reader pod reads the log from the
//! memory.

use super::client::{Client, deleted_error};
use super::cluster_command::ClusterCommand;
use super::{logs, reader, show, state, watch};
use crate::args::EventsArgs;
use crate::cluster::Right;
use crate::error::Error;
use crate::exit::Exit;
use crate::text;
use bloomery_crds::v1alpha1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt};
use std::collections::BTreeSet;

/// Prints the events of a Job. A reader pod is used if the command line requires it, or if no pod of the Job is left.
pub(super) async fn run(args: &EventsArgs, command: &ClusterCommand<'_>) -> Result<Exit, Error> {
    // On a cluster, the argument is the name of a Job.
    let name = &args.log;
    if let Some(fault) = bloomery_skills::names::name_fault(name) {
        return Err(Error::usage(format!(
            "the name of a Job {fault}. To read the log in a directory of this machine, use --memory DIR"
        )));
    }
    if args.json && args.follow {
        return Err(Error::usage("--json reads the log from the memory and cannot follow it: leave out --follow"));
    }
    let client = Client::open(command).await?;
    let job = client.job(name).await?;
    show::check_skill(&job, args.skill.as_deref())?;
    if args.json || args.whole {
        return reader::read(&client, &job, args).await;
    }
    if args.follow && !is_at_rest(&job) {
        return follow(&client, &job, command).await;
    }
    let pods = logs::pods(&client, &job).await?;
    if pods.is_empty() && job.status.as_ref().is_some_and(|status| status.log.is_some()) {
        text::inform(&format!("No pod of the Job {name} is left: reading its log with a reader pod."));
        return reader::read(&client, &job, args).await;
    }
    if pods.is_empty() {
        return Err(Error::usage(format!("the Job {name} has no events yet: {}", state::summary(&job))));
    }
    report_missing_attempts(&pods, name, command);
    for pod in &pods {
        if !logs::has_started(pod) {
            text::report(&format!("the pod {} has not started yet", pod.name_any()));
            continue;
        }
        let has_reader = logs::print(&client, &pod.name_any(), false).await?;
        if !has_reader {
            break;
        }
    }
    Ok(Exit::Success)
}

/// Reports that the pods of the first attempts are gone.
fn report_missing_attempts(pods: &[Pod], job: &str, command: &ClusterCommand<'_>) {
    let first = pods.first().and_then(logs::attempt_number).unwrap_or(1);
    if first > 1 {
        let missing_pods = if first == 2 {
            "pod of attempt 1 is".to_owned()
        } else {
            format!("pods of attempts 1 to {} are", first - 1)
        };
        let whole = command.line(&format!("events {job} --whole"));
        text::inform(&format!("The {missing_pods} gone. To read the whole log with a reader pod: {whole}"));
    }
}

/// Returns whether a Job has ended or waits for people, so that it has no more events for now.
fn is_at_rest(job: &Job) -> bool {
    state::has_ended(job) || state::waits_for_people(job)
}

/// The next step while a Job is followed.
enum FollowStep {
    /// Print the log of this pod, which has started.
    Pod(Box<Pod>),
    /// Stop: this Job has ended, or waits for people.
    Stop(Box<Job>),
}

/// Prints the logs of the pods in turn, until the Job has ended or waits for people.
async fn follow(client: &Client, job: &Job, command: &ClusterCommand<'_>) -> Result<Exit, Error> {
    let mut printed: BTreeSet<String> = BTreeSet::new();
    let job_at_rest = loop {
        match next_step(client, job, &printed).await? {
            FollowStep::Pod(pod) => {
                if printed.is_empty() {
                    report_missing_attempts(std::slice::from_ref(pod.as_ref()), &job.name_any(), command);
                }
                printed.extend(pod.uid());
                let has_reader = logs::print(client, &pod.name_any(), true).await?;
                if !has_reader {
                    return Ok(Exit::Success);
                }
            }
            FollowStep::Stop(job) => break job,
        }
    };
    text::inform(&format!("The Job {}: {}", job.name_any(), state::summary(&job_at_rest)));
    for hint in state::hints(&job_at_rest, &client.decision_state(&job_at_rest).await, command) {
        text::inform(&hint);
    }
    Ok(Exit::Success)
}

/// Waits until a pod has started whose log is not printed yet, or until the Job has ended or waits for people. The pod takes
/// precedence.
async fn next_step(client: &Client, job: &Job, printed: &BTreeSet<String>) -> Result<FollowStep, Error> {
    let (name, uid) = (job.name_any(), job.uid());
    let (watch_client, namespace) = (&client.cluster.watch_client, &client.cluster.namespace);
    let first_unprinted = |pods: &mut dyn Iterator<Item = &Pod>| {
        let mut pods = logs::own_pods_in_order(job, pods.cloned()).into_iter();
        pods.find(|pod| pod.uid().is_some_and(|uid| !printed.contains(&uid)) && logs::has_started(pod))
    };
    let pods: Api<Pod> = Api::namespaced(watch_client.clone(), namespace);
    let of_job = logs::selector(&name);
    let pod = watch::until(&pods, &of_job, |pods| first_unprinted(&mut pods.values()));
    let jobs: Api<Job> = Api::namespaced(watch_client.clone(), namespace);
    let this_job = watch::Selector::name(&name);
    let job_at_rest = watch::until(&jobs, &this_job, |jobs| match jobs.get(&name) {
        Some(job) if job.uid() == uid => is_at_rest(job).then(|| Ok(job.clone())),
        Some(_) | None => Some(Err(deleted_error(&name))),
    });
    let watching = format!("watching the Job {name}");
    tokio::select! {
        biased;
        pod = pod => match pod {
            Ok(pod) => Ok(FollowStep::Pod(Box::new(pod))),
            Err(error) => {
                let rights = ["list", "watch"].map(|verb| Right::on_pods(verb, "pods")).to_vec();
                Err(client.cluster.refusal_error(&watching, &error, rights).await)
            }
        },
        job_at_rest = job_at_rest => match job_at_rest {
            // The last pod may have started and ended meanwhile.
            Ok(job_at_rest) => {
                let job_at_rest = job_at_rest?;
                let pods = logs::pods(client, job).await?;
                let pod = first_unprinted(&mut pods.iter());
                Ok(pod.map_or_else(|| FollowStep::Stop(Box::new(job_at_rest)), |pod| FollowStep::Pod(Box::new(pod))))
            }
            Err(error) => {
                let rights = ["list", "watch"].map(Right::on_jobs).to_vec();
                Err(client.cluster.refusal_error(&watching, &error, rights).await)
            }
        },
    }
}
