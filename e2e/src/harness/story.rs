//! Runs stories, each in its own tenant, and prints the tenant's state if a story fails.

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;
use tokio::sync::RwLock;

use super::cluster::Cluster;
use super::command;
use super::dump;
use super::tenant::Tenant;

/// Stories that run at the same time hold this lock shared. A story that runs alone holds it exclusively.
static STORIES_LOCK: RwLock<()> = RwLock::const_new(());

/// Runs a story in its own tenant.
///
/// After a success, the tenant is deleted without waiting for its removal. After a failure, the objects of the tenant are
/// printed, and its Jobs are cancelled, so that they take no place from other stories. The tenant is not deleted.
pub async fn story(story: impl AsyncFnOnce(&Tenant)) {
    let _beside_others = STORIES_LOCK.read().await;
    run(story).await;
}

/// Runs a story while no other story runs. It is for stories whose changes affect all tenants. Except for ignored ones, they are in a
/// module `alone`, so that `hack/e2e` runs them after the others, and they block none.
pub async fn story_alone(story: impl AsyncFnOnce(&Tenant)) {
    let _alone = STORIES_LOCK.write().await;
    run(story).await;
}

/// Runs a benchmark while no story runs, and waits until its tenant is gone, also if it misses its goal: thousands of objects would slow
/// the next benchmark. [`Tenant::gone`] waits too short for them. Nothing is printed but the failure.
pub async fn benchmark(story: impl AsyncFnOnce(&Tenant)) {
    let _alone = STORIES_LOCK.write().await;
    let tenant = Tenant::open(Cluster::connect().await).await;
    let done = AssertUnwindSafe(story(&tenant)).catch_unwind().await;
    tenant.delete().await;
    let gone = ["wait", "--for=delete", "--timeout=15m", "namespace", &tenant.namespace];
    command::run(&mut command::kubectl(&gone));
    done.unwrap_or_else(|failure| resume_unwind(failure));
}

async fn run(story: impl AsyncFnOnce(&Tenant)) {
    let tenant = Tenant::open(Cluster::connect().await).await;
    match AssertUnwindSafe(story(&tenant)).catch_unwind().await {
        Ok(()) => tenant.delete().await,
        Err(failure) => {
            dump::print(&tenant).await;
            tenant.cancel_jobs().await;
            resume_unwind(failure)
        }
    }
}
