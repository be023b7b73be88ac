//! A temporary pod that reads a Job's log from the memory. It mounts only the skill directory, read-only.

mod build;

use super::client::Client;
use super::{logs, watch};
use crate::args::EventsArgs;
use crate::cluster::{Right, list_all};
use crate::error::Error;
use crate::exit::Exit;
use crate::text;
use bloomery_crds::names::{LABEL_COMPONENT, LABEL_MANAGED_BY, MANAGER};
use bloomery_crds::v1alpha1::Job;
use build::{DEADLINE, Template};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use std::time::Duration;

/// The state of a reader pod.
enum PodState {
    /// It has a log.
    Begun,
    /// It cannot start, with the reason.
    Stuck(String),
    /// It was deleted.
    Gone,
}

/// Prints the log of a Job.
///
/// # Errors
/// If there is none, or the pod cannot read it.
pub(super) async fn read(client: &Client, job: &Job, args: &EventsArgs) -> Result<Exit, Error> {
    let template = template(client, args.image.clone()).await?;
    let pod = build::pod(job, &template, args.json)?;
    let api: Api<Pod> = Api::namespaced(client.cluster.client.clone(), &client.cluster.namespace);
    let made = match api.create(&PostParams::default(), &pod).await {
        Ok(made) => made,
        Err(error) => {
            let doing = "creating a reader pod for the memory";
            return Err(client.cluster.refused(doing, &error, vec![Right::on_pods("create", "pods")]).await);
        }
    };
    let name = made.name_any();
    text::inform(&format!(
        "The reader pod {name} reads the log from the memory (mounted read-only), and is deleted afterwards."
    ));
    let done = tokio::select! {
        done = print_log(client, &name) => done,
        _ = tokio::signal::ctrl_c() => Err(Error { exit: Exit::Interrupted, message: "interrupted".to_owned() }),
    };
    match api.delete(&name, &DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() }).await {
        Ok(_) => done,
        Err(kube::Error::Api(status)) if status.code == 404 => done,
        Err(error) => {
            let doing = format!("the reader pod {name} is left, and ends by itself: deleting it");
            let failure = client.cluster.request_error(&doing, &error);
            text::report(&failure.message);
            done
        }
    }
}

/// Returns the template for the pod: the newest worker of the namespace, if it can be read.
async fn template(client: &Client, image: Option<String>) -> Result<Template, Error> {
    let api: Api<Pod> = Api::namespaced(client.cluster.client.clone(), &client.cluster.namespace);
    let workers = ListParams::default().labels(&format!("{LABEL_MANAGED_BY}={MANAGER},{LABEL_COMPONENT}=worker"));
    let pods = match list_all(&api, workers, |_| true).await {
        Ok(pods) => pods,
        Err(error) if image.is_none() => {
            let doing = "looking for a worker pod to take the image from (or name it with --image)";
            return Err(client.cluster.refused(doing, &error, vec![Right::on_pods("list", "pods")]).await);
        }
        Err(_) => Vec::new(),
    };
    let newest = pods.iter().max_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0));
    match (newest.and_then(Template::from_worker), image) {
        (Some(template), None) => Ok(template),
        (Some(template), Some(image)) => Ok(template.with_image(image)),
        (None, Some(image)) => Ok(Template::default_with_image(image)),
        (None, None) => Err(Error::usage(format!(
            "no worker pod is left in {} whose image could read the log: name the image with --image. It is that of the \
             workers (worker.image in the chart)",
            client.cluster.namespace
        ))),
    }
}

/// Returns the state of the pod; `None` while it is starting.
fn pod_state(pod: Option<&Pod>) -> Option<PodState> {
    match pod {
        None => Some(PodState::Gone),
        Some(pod) if logs::has_begun(pod) => Some(PodState::Begun),
        Some(pod) => build::stuck(pod).map(PodState::Stuck),
    }
}

/// Prints the log of the pod, and returns how it ended.
async fn print_log(client: &Client, name: &str) -> Result<Exit, Error> {
    let watched: Api<Pod> = Api::namespaced(client.cluster.watch_client.clone(), &client.cluster.namespace);
    let only = watch::Selector::name(name);
    let mut unscheduled = None;
    let life = watch::until(&watched, &only, |pods| {
        let pod = pods.get(name);
        unscheduled = pod.and_then(build::unscheduled);
        pod_state(pod)
    });
    // The deadline of the pod starts only on a node.
    let life = tokio::time::timeout(Duration::from_secs(DEADLINE.into()), life).await;
    let stuck = |why: &str| Err(Error::failed(format!("the reader pod {name} cannot start: {why}")));
    let rights = || ["list", "watch"].map(|verb| Right::on_pods(verb, "pods")).to_vec();
    let watching = format!("watching the reader pod {name}");
    let Ok(life) = life else {
        return stuck(&unscheduled.unwrap_or_else(|| format!("it has not started within {DEADLINE} s")));
    };
    match life {
        Ok(PodState::Begun) => {}
        Ok(PodState::Stuck(why)) => return stuck(&why),
        Ok(PodState::Gone) => {
            return Err(Error::failed(format!("the reader pod {name} was deleted before it started")));
        }
        Err(error) => return Err(client.cluster.refused(&watching, &error, rights()).await),
    }
    if !logs::print(client, name, true).await? {
        return Ok(Exit::Success);
    }
    let ended = watch::until(&watched, &only, |pods| match pods.get(name) {
        None => Some(None),
        Some(pod) => logs::has_ended(pod).then(|| Some(pod.clone())),
    });
    let ended = match ended.await {
        Ok(Some(ended)) => ended,
        Ok(None) => return Err(Error::failed(format!("the reader pod {name} was deleted while it was reading"))),
        Err(error) => return Err(client.cluster.refused(&watching, &error, rights()).await),
    };
    match build::failure(&ended) {
        None => Ok(Exit::Success),
        Some(why) => Err(Error::failed(format!("the reader pod {name} could not read all of the log: {why}"))),
    }
}
