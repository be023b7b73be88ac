//! The names that a cluster or a memory has. Errors lead to no names: completion cannot show them.

use crate::args::{ClusterArgs, Goal, Invocation, Place, PlaceArgs};
use crate::cluster::{Cluster, list_all};
use crate::local::memory;
use crate::local::skill_directory::SkillDirectory;
use bloomery_crds::v1alpha1::{Job, JobStatus, Skill};
use clap::{ArgMatches, FromArgMatches};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::config::Kubeconfig;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The timeout of all requests for one completion.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(3);

/// The kind of names that an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Jobs of the cluster.
    Jobs,
    /// Jobs of the cluster that have not ended.
    LiveJobs,
    /// Jobs of the cluster, or of the memory.
    JobsOfPlace,
    /// Jobs of the cluster or of the memory, or directories of logs.
    JobsOrLogs,
    /// Open Approvals, and the Jobs that have one.
    Approvals,
    /// Skills.
    Skills,
    /// Skills and Jobs.
    SkillsAndJobs,
    /// Open questions of the Job on the command line.
    Questions,
    /// Namespaces.
    Namespaces,
    /// Contexts of the kubeconfig.
    Contexts,
    /// The states that `wait --for` takes.
    Goals,
}

impl Kind {
    /// Returns the kind of names that an argument of a command takes; `None` where it takes something else.
    pub(super) fn of_argument(command: &str, argument: &str) -> Option<Self> {
        Some(match (command, argument) {
            ("approve" | "deny" | "can-approve", "name") => Self::Approvals,
            ("reply", "job") | ("cancel", "jobs") => Self::LiveJobs,
            ("reply", "question") => Self::Questions,
            ("wait", "job") => Self::Jobs,
            ("wait", "goal") => Self::Goals,
            ("get", "key") => Self::JobsOfPlace,
            ("get", "skill") => Self::Skills,
            ("events", "log") => Self::JobsOrLogs,
            ("tree", "name") => Self::SkillsAndJobs,
            // The namespace of `import` is written into a manifest, and need not exist.
            ("import", _) => return None,
            (_, "namespace") => Self::Namespaces,
            (_, "context") => Self::Contexts,
            _ => return None,
        })
    }
}

/// Where names are looked up: the cluster or the memory that the command line selects.
#[derive(Debug, Clone)]
pub(super) struct Source {
    cluster: ClusterArgs,
    /// The memory, where the command works on one.
    memory: Option<PathBuf>,
    /// The Job on the command line.
    job: Option<String>,
}

impl Source {
    /// Reads the options of a command line, as far as it is typed.
    pub(super) fn new(command: &str, matches: &ArgMatches, invocation: Invocation) -> Self {
        let place = match command {
            "get" | "events" => PlaceArgs::from_arg_matches(matches).unwrap_or_default(),
            "approve" | "deny" | "can-approve" | "reply" | "cancel" | "wait" | "tree" => {
                let cluster = ClusterArgs::from_arg_matches(matches).unwrap_or_default();
                PlaceArgs { on_cluster: true, cluster, ..PlaceArgs::default() }
            }
            _ => PlaceArgs::default(),
        };
        let flag = |id: &str| matches.try_get_one::<bool>(id).ok().flatten().copied().unwrap_or_default();
        let memory = match place.place(invocation, flag("all_namespaces") || flag("whole")) {
            Place::Memory(memory) => Some(memory.to_owned()),
            Place::Cluster(_) => None,
        };
        let job = matches.try_get_one::<String>("job").ok().flatten().cloned();
        Self { cluster: place.cluster, memory, job }
    }

    /// Returns the names of a kind.
    pub(super) fn names(&self, kind: Kind) -> Vec<String> {
        match (kind, &self.memory) {
            (Kind::Contexts, _) => contexts(&self.cluster),
            (Kind::Goals, _) => Goal::names().map(str::to_owned).collect(),
            (Kind::JobsOfPlace | Kind::JobsOrLogs, Some(memory)) => keys(memory),
            _ => on_the_cluster(kind, self),
        }
    }
}

/// Returns the keys of the Jobs of a memory.
fn keys(dir: &Path) -> Vec<String> {
    let directories = memory::skill_directories(dir).unwrap_or_default();
    let keys: BTreeSet<String> = directories.iter().flat_map(SkillDirectory::jobs).collect();
    keys.into_iter().collect()
}

fn contexts(args: &ClusterArgs) -> Vec<String> {
    let read = args.kubeconfig.as_ref().map_or_else(Kubeconfig::read, Kubeconfig::read_from);
    let contexts = read.map(|config| config.contexts).unwrap_or_default();
    contexts.into_iter().map(|context| context.name).collect()
}

fn on_the_cluster(kind: Kind, source: &Source) -> Vec<String> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return Vec::new() };
    runtime.block_on(async {
        let asked = async {
            let cluster = Cluster::find(&source.cluster).await.ok()?;
            Some(names(kind, &cluster, source.job.as_deref()).await)
        };
        tokio::time::timeout(COMPLETION_TIMEOUT, asked).await.ok().flatten().unwrap_or_default()
    })
}

async fn names(kind: Kind, cluster: &Cluster, job: Option<&str>) -> Vec<String> {
    let of = |names: Vec<String>| names.into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
    match kind {
        Kind::Jobs | Kind::JobsOfPlace | Kind::JobsOrLogs => object_names(&all::<Job>(cluster).await),
        Kind::LiveJobs => {
            let mut jobs = all::<Job>(cluster).await;
            jobs.retain(|job| !job.status.as_ref().is_some_and(JobStatus::is_terminal));
            object_names(&jobs)
        }
        Kind::Approvals => {
            let open = cluster.approvals(|approval| approval.spec.decision.is_none()).await.unwrap_or_default();
            of(open.iter().flat_map(|approval| [approval.name_any(), approval.spec.job.clone()]).collect())
        }
        Kind::Skills => object_names(&all::<Skill>(cluster).await),
        Kind::SkillsAndJobs => {
            of([object_names(&all::<Skill>(cluster).await), object_names(&all::<Job>(cluster).await)].concat())
        }
        Kind::Questions => {
            let api = Api::<Job>::namespaced(cluster.client.clone(), &cluster.namespace);
            let job = match job {
                Some(name) => api.get(name).await.ok(),
                None => None,
            };
            let waiting = job.and_then(|job| job.status?.waiting_for);
            waiting.map(|waiting| waiting.questions).unwrap_or_default().into_iter().map(|asked| asked.id).collect()
        }
        Kind::Namespaces => {
            let api = Api::<Namespace>::all(cluster.client.clone());
            api.list_metadata(&ListParams::default()).await.map(|list| object_names(&list.items)).unwrap_or_default()
        }
        Kind::Contexts | Kind::Goals => Vec::new(),
    }
}

async fn all<K>(cluster: &Cluster) -> Vec<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let api = Api::<K>::namespaced(cluster.client.clone(), &cluster.namespace);
    list_all(&api, ListParams::default(), |_| true).await.unwrap_or_default()
}

fn object_names<K: Resource>(objects: &[K]) -> Vec<String> {
    objects.iter().map(ResourceExt::name_any).collect()
}
