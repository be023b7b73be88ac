//! The shell: the names that a cluster or a memory knows. What cannot be found out is left out.

use super::point::{Kind, Named};
use crate::args::{ClusterArgs, Invocation};
use crate::cluster::{Cluster, every};
use crate::local::skill_directory::SkillDirectory;
use crate::local::{DEFAULT_MEMORY, memory};
use bloomery_crds::v1alpha1::{Job, Skill};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::config::Kubeconfig;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

/// How long somebody waits who has pressed a key.
const PATIENCE: Duration = Duration::from_secs(3);

/// The names of a kind.
pub(super) fn find(kind: Kind, named: &Named, memory: Option<&Path>, invocation: Invocation) -> Vec<String> {
    match kind {
        Kind::Contexts => contexts(&named.args),
        Kind::JobsOfPlace { on_cluster, .. } => match (memory, invocation) {
            (Some(memory), _) => keys(memory),
            (None, Invocation::Standalone) if !on_cluster => keys(Path::new(DEFAULT_MEMORY)),
            (None, Invocation::Standalone | Invocation::KubectlPlugin) => on_the_cluster(Kind::Jobs, named),
        },
        Kind::Jobs
        | Kind::LiveJobs
        | Kind::Approvals
        | Kind::Skills
        | Kind::SkillsAndJobs
        | Kind::Questions
        | Kind::Namespaces => on_the_cluster(kind, named),
    }
}

/// The Jobs of a memory.
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

fn on_the_cluster(kind: Kind, named: &Named) -> Vec<String> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return Vec::new() };
    runtime.block_on(async {
        let asked = async {
            let cluster = Cluster::find(&named.args).await.ok()?;
            Some(names(kind, &cluster, named.first.as_deref()).await)
        };
        tokio::time::timeout(PATIENCE, asked).await.ok().flatten().unwrap_or_default()
    })
}

async fn names(kind: Kind, cluster: &Cluster, first: Option<&str>) -> Vec<String> {
    let of = |names: Vec<String>| names.into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
    match kind {
        Kind::Jobs | Kind::JobsOfPlace { .. } => named(&all::<Job>(cluster).await),
        Kind::LiveJobs => {
            let mut jobs = all::<Job>(cluster).await;
            jobs.retain(|job| !job.status.as_ref().is_some_and(bloomery_crds::v1alpha1::JobStatus::is_terminal));
            named(&jobs)
        }
        Kind::Approvals => {
            let open = cluster.approvals(|approval| approval.spec.decision.is_none()).await.unwrap_or_default();
            of(open.iter().flat_map(|approval| [approval.name_any(), approval.spec.job.clone()]).collect())
        }
        Kind::Skills => named(&all::<Skill>(cluster).await),
        Kind::SkillsAndJobs => of([named(&all::<Skill>(cluster).await), named(&all::<Job>(cluster).await)].concat()),
        Kind::Questions => {
            let api = Api::<Job>::namespaced(cluster.client.clone(), &cluster.namespace);
            let job = match first {
                Some(name) => api.get(name).await.ok(),
                None => None,
            };
            let waiting = job.and_then(|job| job.status?.waiting_for);
            waiting.map(|waiting| waiting.questions).unwrap_or_default().into_iter().map(|asked| asked.id).collect()
        }
        Kind::Namespaces => {
            let api = Api::<Namespace>::all(cluster.client.clone());
            api.list_metadata(&ListParams::default()).await.map(|list| named(&list.items)).unwrap_or_default()
        }
        Kind::Contexts => Vec::new(),
    }
}

async fn all<K>(cluster: &Cluster) -> Vec<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let api = Api::<K>::namespaced(cluster.client.clone(), &cluster.namespace);
    every(&api, ListParams::default(), |_| true).await.unwrap_or_default()
}

fn named<K: Resource>(objects: &[K]) -> Vec<String> {
    objects.iter().map(ResourceExt::name_any).collect()
}
