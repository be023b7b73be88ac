//! The names of objects in a cluster or a memory, as candidates for completion. After an error there are no candidates, because
//! completion cannot show errors.

use crate::args::{ClusterArgs, Invocation, Place, PlaceArgs, WaitTarget};
use crate::cluster::{self, Cluster, list_all};
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
pub(super) enum NameKind {
    /// Jobs of the cluster.
    Jobs,
    /// Jobs of the cluster that have not ended.
    UnfinishedJobs,
    /// Jobs of the selected place: the cluster or the memory.
    JobsOfPlace,
    /// Jobs of the selected place, or directories of logs.
    JobsOrLogs,
    /// Open Approvals, and the Jobs with open Approvals.
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
    WaitTargets,
}

impl NameKind {
    /// Returns the kind of names that an argument of a command takes. Returns `None` if it takes no names.
    pub(super) fn for_argument(command: &str, argument: &str) -> Option<Self> {
        Some(match (command, argument) {
            ("approve" | "deny" | "can-approve", "name") => Self::Approvals,
            ("reply", "job") | ("cancel", "jobs") => Self::UnfinishedJobs,
            ("reply", "question") => Self::Questions,
            ("wait", "job") => Self::Jobs,
            ("wait", "target") => Self::WaitTargets,
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

/// The source of names: the cluster or the memory that the command line selects.
#[derive(Debug, Clone)]
pub(super) struct NameSource {
    cluster: ClusterArgs,
    /// The memory; `None` if the command uses the cluster.
    memory: Option<PathBuf>,
    /// The Job on the command line.
    job: Option<String>,
}

impl NameSource {
    /// Reads the options of an incomplete command line.
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
    pub(super) fn names(&self, kind: NameKind) -> Vec<String> {
        match (kind, &self.memory) {
            (NameKind::Contexts, _) => contexts(&self.cluster),
            (NameKind::WaitTargets, _) => WaitTarget::names().map(str::to_owned).collect(),
            (NameKind::JobsOfPlace | NameKind::JobsOrLogs, Some(memory)) => job_keys(memory),
            _ => names_in_cluster(kind, self),
        }
    }
}

/// Returns the keys of the Jobs of a memory.
fn job_keys(dir: &Path) -> Vec<String> {
    let directories = memory::skill_directories(dir).unwrap_or_default();
    let keys: BTreeSet<String> = directories.iter().flat_map(SkillDirectory::job_keys).collect();
    keys.into_iter().collect()
}

/// Returns the contexts of the kubeconfig.
fn contexts(args: &ClusterArgs) -> Vec<String> {
    let kubeconfig = args.kubeconfig.as_ref().map_or_else(Kubeconfig::read, Kubeconfig::read_from);
    let contexts = kubeconfig.map(|kubeconfig| kubeconfig.contexts).unwrap_or_default();
    contexts.into_iter().map(|context| context.name).collect()
}

/// Looks up names in the cluster, up to a timeout.
fn names_in_cluster(kind: NameKind, source: &NameSource) -> Vec<String> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return Vec::new() };
    runtime.block_on(async {
        let lookup = async {
            let cluster = cluster::open(&source.cluster).await.ok()?;
            Some(list_names(kind, &cluster, source.job.as_deref()).await)
        };
        tokio::time::timeout(COMPLETION_TIMEOUT, lookup).await.ok().flatten().unwrap_or_default()
    })
}

/// Lists the names of a kind in the cluster. `job` is the Job on the command line.
async fn list_names(kind: NameKind, cluster: &Cluster, job: Option<&str>) -> Vec<String> {
    let sorted_without_duplicates =
        |names: Vec<String>| names.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    match kind {
        NameKind::Jobs | NameKind::JobsOfPlace | NameKind::JobsOrLogs => {
            object_names(&list_objects::<Job>(cluster).await)
        }
        NameKind::UnfinishedJobs => {
            let mut jobs = list_objects::<Job>(cluster).await;
            jobs.retain(|job| !job.status.as_ref().is_some_and(JobStatus::is_terminal));
            object_names(&jobs)
        }
        NameKind::Approvals => {
            let open = cluster.approvals(|approval| approval.spec.decision.is_none()).await.unwrap_or_default();
            sorted_without_duplicates(
                open.iter().flat_map(|approval| [approval.name_any(), approval.spec.job.clone()]).collect(),
            )
        }
        NameKind::Skills => object_names(&list_objects::<Skill>(cluster).await),
        NameKind::SkillsAndJobs => {
            let (skills, jobs) = (list_objects::<Skill>(cluster).await, list_objects::<Job>(cluster).await);
            sorted_without_duplicates([object_names(&skills), object_names(&jobs)].concat())
        }
        NameKind::Questions => {
            let api = Api::<Job>::namespaced(cluster.client.clone(), &cluster.namespace);
            let job = match job {
                Some(name) => api.get(name).await.ok(),
                None => None,
            };
            let waiting = job.and_then(|job| job.status?.waiting_for);
            waiting
                .map(|waiting| waiting.questions)
                .unwrap_or_default()
                .into_iter()
                .map(|question| question.id)
                .collect()
        }
        NameKind::Namespaces => {
            let api = Api::<Namespace>::all(cluster.client.clone());
            api.list_metadata(&ListParams::default()).await.map(|list| object_names(&list.items)).unwrap_or_default()
        }
        NameKind::Contexts | NameKind::WaitTargets => Vec::new(),
    }
}

/// Lists all objects of a kind in the namespace.
async fn list_objects<K>(cluster: &Cluster) -> Vec<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let api = Api::<K>::namespaced(cluster.client.clone(), &cluster.namespace);
    list_all(&api, ListParams::default(), |_| true).await.unwrap_or_default()
}

/// Returns the names of objects.
fn object_names<K: Resource>(objects: &[K]) -> Vec<String> {
    objects.iter().map(ResourceExt::name_any).collect()
}
