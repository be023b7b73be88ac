//! The namespaces that the operator serves: all, a list, or one; and an installation in two releases.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::process::Command;

use bloomery_crds::v1alpha1::{Job, Skill};
use bloomery_e2e::harness::audit::{self, AuditedRequest};
use bloomery_e2e::harness::{Cluster, Tenant, cluster, command, eventually, operator, refund_of, story, story_alone};
use futures::FutureExt;
use kube::ResourceExt;

/// Installs the chart with these values, and waits until the leader is a pod of this installation. Returns the pod's name.
pub async fn install(cluster: &Cluster, values: &[&str]) -> String {
    command::run(&mut command::script("hack/install", values));
    operator::until_rolled_out(cluster).await;
    let installed = operator::ready_pod(cluster).await.name_any();
    eventually("the new pod to lead", async || {
        let leader = operator::leader(cluster).await.name_any();
        if leader == installed { Ok(()) } else { Err(leader) }
    })
    .await;
    installed
}

/// The releases of an installation.
#[derive(Clone, Copy)]
enum Releases {
    /// One with all objects.
    One,
    /// One of a cluster admin with the objects of cluster scope, and one of a team with the operator.
    Two,
}

/// The release with the objects of cluster scope.
const CLUSTER_RELEASE: &str = "bloomery-cluster";

/// A user with the role `admin` in the namespace of the operator, and with no other right.
const TEAM: &str = "e2e-team";

/// Installs the two releases of docs/how-to/install.md, the second one as a user without rights on the cluster. Returns the name of the
/// operator's pod.
async fn install_two(cluster: &Cluster, watched: &str) -> String {
    uninstall(operator::RELEASE);
    let chart = command::checkout("charts/bloomery").display().to_string();
    let shared = ["--set", "fullnameOverride=bloomery", "--set", watched];
    let of_cluster = ["upgrade", "--install", CLUSTER_RELEASE, &chart, "--namespace", operator::NAMESPACE];
    // The CRDs of the release before are taken over.
    let rest = ["--take-ownership", "--force-conflicts", "--set", "namespacedResources.enabled=false"];
    command::run(&mut command::helm(&[&of_cluster[..], &rest, &shared].concat()));

    let binding = ["create", "rolebinding", TEAM, "--clusterrole", "admin", "--user", TEAM];
    command::run(&mut in_its_namespace(&binding));
    let asked = command::attempt(&mut in_its_namespace(&["auth", "can-i", "create", "clusterroles", "--as", TEAM]));
    assert!(!asked.status.success(), "{TEAM} has rights on the cluster: {asked:?}");
    let rest = ["--set", "clusterResources.enabled=false", "--kube-as-user", TEAM];
    install(cluster, &[&shared[..], &rest].concat()).await
}

/// Uninstalls a release if it exists. The CRDs stay.
fn uninstall(release: &str) {
    let uninstall = ["uninstall", "--wait", "--ignore-not-found", "--namespace", operator::NAMESPACE, release];
    command::run(&mut command::helm(&uninstall));
}

/// Runs `meanwhile`, which installs the chart in another way. The installation of all stories is restored afterwards, also if `meanwhile`
/// fails.
pub async fn restored_afterwards(cluster: &Cluster, meanwhile: impl AsyncFnOnce()) {
    let done = AssertUnwindSafe(meanwhile()).catch_unwind().await;
    uninstall(CLUSTER_RELEASE);
    command::run(&mut in_its_namespace(&["delete", "rolebinding", TEAM, "--ignore-not-found"]));
    install(cluster, &[]).await;
    done.unwrap_or_else(|failure| resume_unwind(failure));
}

/// Returns a kubectl command in the namespace of the operator.
fn in_its_namespace(arguments: &[&str]) -> Command {
    command::kubectl(&[&["--namespace", operator::NAMESPACE][..], arguments].concat())
}

/// Runs `meanwhile` with an operator that serves these namespaces. It receives the name of the operator's pod.
async fn serving(releases: Releases, served: &[&Tenant], meanwhile: impl AsyncFnOnce(&str)) {
    let names: Vec<&str> = served.iter().map(|tenant| tenant.namespace.as_str()).collect();
    let cluster = &served.first().expect("a namespace").cluster;
    let watched = format!("watch.namespaces={{{}}}", names.join(","));
    restored_afterwards(cluster, async || {
        let pod = match releases {
            Releases::One => install(cluster, &["--set", &watched]).await,
            Releases::Two => install_two(cluster, &watched).await,
        };
        meanwhile(&pod).await;
    })
    .await;
}

/// Runs a Job in each served namespace, and leaves a Job in another one. Checks that the operator works on the former only, with all the
/// rights that it needs.
async fn the_operator_stays_in(releases: Releases, served: &[&Tenant]) {
    let cluster = &served.first().expect("a namespace").cluster;
    let outside = Tenant::open(cluster.clone()).await;
    serving(releases, served, async |pod| {
        outside.model("default").await;
        outside.skill("cs-tier-1").await;
        let ignored = outside.job("refund").await;
        for tenant in served {
            let shop = tenant.shop(&[refund_of("A-17")]).await;
            tenant.skill("cs-tier-1").await;
            let job = tenant.job("refund").lasting(0).await;
            job.gone().await;
            shop.assert_refunded_once("A-17").await;
        }
        let job = outside.api::<Job>().get(&ignored.name).await.expect("the Job stays");
        let skill = outside.api::<Skill>().get("cs-tier-1").await.expect("the Skill stays");
        assert!(skill.status.is_none_or(|status| status.revision.is_none()), "nobody serves the namespace");
        assert!(job.status.is_none_or(|status| status.attempt.is_none()), "nobody serves the namespace");

        let requests = audit::operator_requests_with(pod);
        let names: BTreeSet<&str> = served.iter().map(|tenant| tenant.namespace.as_str()).collect();
        let elsewhere: Vec<AuditedRequest> =
            requests.iter().filter(|request| !is_in(&names, request)).cloned().collect();
        assert_eq!(audit::list(&elsewhere), "", "the operator asks only for what it serves");
        let refused: Vec<AuditedRequest> = requests.iter().filter(|request| request.code == 403).cloned().collect();
        assert_eq!(audit::list(&refused), "", "the chart grants all that the operator needs");
        let asked = |resource: &str| requests.iter().any(|request| request.resource == resource);
        assert!(asked("pods") && asked("skilljobs"), "the log shows what the operator does");
    })
    .await;
    // The operator serves all namespaces again.
    outside.remove::<Job>("refund").await;
    let skill = outside.skill("cs-tier-1").await;
    skill.until("a revision", |status| status.revision.is_some()).await;
    outside.delete().await;
}

/// Returns whether a request is about a served namespace, the operator's own namespace, or what has cluster scope.
fn is_in(served: &BTreeSet<&str>, request: &AuditedRequest) -> bool {
    match (request.resource.as_str(), request.namespace.as_deref()) {
        ("namespaces", _) => served.contains(request.name.as_str()),
        ("validatingadmissionpolicies" | "validatingadmissionpolicybindings" | "tokenreviews", None) => true,
        (_, Some(namespace)) => namespace == operator::NAMESPACE || served.contains(namespace),
        (_, None) => false,
    }
}

#[tokio::test]
async fn requests_for_an_object_stay_in_its_namespace() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("the audit log") {
            return;
        }
        // Names that no other namespace has.
        let unique = tenant.namespace.rsplit('-').next().unwrap_or_default();
        let (skill, job) = (format!("agent-{unique}"), format!("refund-{unique}"));
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill(&skill).await.ready().await;
        tenant.job(&job).for_skill(&skill).await.succeeded().await;
        shop.assert_refunded_once("A-17").await;
        let mut requests = audit::operator_requests_with(unique);
        requests.retain(|request| [&skill, &job].iter().any(|name| request.name.starts_with(name.as_str())));
        assert!(requests.iter().any(|request| request.resource == "pods" && request.verb == "create"));
        requests.retain(|request| request.namespace.as_deref() != Some(&tenant.namespace));
        assert_eq!(audit::list(&requests), "", "every request stays in the namespace of its object");
    })
    .await;
}

/// These disturb all stories. `hack/e2e` runs them one by one, after the others.
mod alone {
    use super::*;

    #[tokio::test]
    async fn an_operator_of_one_namespace_stays_in_it() {
        story_alone(async |tenant| {
            if !cluster::is_local_or_skips("the audit log") {
                return;
            }
            the_operator_stays_in(Releases::One, &[tenant]).await;
        })
        .await;
    }

    #[tokio::test]
    async fn an_operator_of_a_list_of_namespaces_stays_in_them() {
        story_alone(async |tenant| {
            if !cluster::is_local_or_skips("the audit log") {
                return;
            }
            let second = Tenant::open(tenant.cluster.clone()).await;
            the_operator_stays_in(Releases::One, &[tenant, &second]).await;
            second.delete().await;
        })
        .await;
    }

    #[tokio::test]
    async fn an_operator_that_a_team_installs_without_rights_on_the_cluster_stays_in_its_namespace() {
        story_alone(async |tenant| {
            if !cluster::is_local_or_skips("the audit log") {
                return;
            }
            the_operator_stays_in(Releases::Two, &[tenant]).await;
        })
        .await;
    }
}
