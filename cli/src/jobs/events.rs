//! `bloomery events` on a cluster: prints the logs of the Job's pods. If no pod is left, a reader pod reads the log from the
//! memory.

use super::client::{self, Client};
use super::cluster_command::ClusterCommand;
use super::{logs, reader, show, state};
use crate::args::EventsArgs;
use crate::error::Error;
use crate::exit::Exit;
use crate::text;
use bloomery_crds::v1alpha1::Job;
use bloomery_embed::cluster::follow::{FollowStep, is_at_rest, next_step};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
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
    let client = client::open(command).await?;
    let job = client.job(name).await?;
    show::check_skill(&job, args.skill.as_deref())?;
    if args.json || args.whole {
        return reader::read(&client.cluster, &job, args).await;
    }
    if args.follow && !is_at_rest(&job) {
        return follow(&client, &job, command).await;
    }
    let pods = logs::pods(&client.cluster, &job).await?;
    if pods.is_empty() && job.status.as_ref().is_some_and(|status| status.log.is_some()) {
        text::inform(&format!("No pod of the Job {name} is left: reading its log with a reader pod."));
        return reader::read(&client.cluster, &job, args).await;
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
        let has_reader = logs::print(&client.cluster, &pod.name_any(), false).await?;
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

/// Prints the logs of the pods in turn, until the Job has ended or waits for people.
async fn follow(client: &Client, job: &Job, command: &ClusterCommand<'_>) -> Result<Exit, Error> {
    let mut printed: BTreeSet<String> = BTreeSet::new();
    let job_at_rest = loop {
        match next_step(&client.cluster, job, &printed, is_at_rest).await? {
            FollowStep::Pod(pod) => {
                if printed.is_empty() {
                    report_missing_attempts(std::slice::from_ref(pod.as_ref()), &job.name_any(), command);
                }
                printed.extend(pod.uid());
                let has_reader = logs::print(&client.cluster, &pod.name_any(), true).await?;
                if !has_reader {
                    return Ok(Exit::Success);
                }
            }
            FollowStep::Stop(job) => break job,
        }
    };
    text::inform(&format!("The Job {}: {}", job.name_any(), state::summary(&job_at_rest)));
    for hint in state::hints(&job_at_rest, &client::decision_state(client, &job_at_rest).await, command) {
        text::inform(&hint);
    }
    Ok(Exit::Success)
}
