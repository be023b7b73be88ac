//! The frame of a story: a tenant of its own, and what is printed where it fails.

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;
use tokio::sync::RwLock;

use super::cluster::Cluster;
use super::dump;
use super::tenant::Tenant;

/// Held by the stories that run: shared by those that run side by side, exclusively by one that runs alone.
static RUNNING: RwLock<()> = RwLock::const_new(());

/// Runs a story in a tenant of its own.
///
/// The tenant goes when the story has ended well, and is not waited for. If it failed, what is in the
/// tenant is printed, and it stays.
pub async fn story(story: impl AsyncFnOnce(&Tenant)) {
    let _beside_others = RUNNING.read().await;
    run(story).await;
}

/// Runs a story while there is no other: for what would befall all of them.
pub async fn story_alone(story: impl AsyncFnOnce(&Tenant)) {
    let _alone = RUNNING.write().await;
    run(story).await;
}

async fn run(story: impl AsyncFnOnce(&Tenant)) {
    let tenant = Tenant::open(Cluster::connect().await).await;
    match AssertUnwindSafe(story(&tenant)).catch_unwind().await {
        Ok(()) => tenant.delete().await,
        Err(failure) => {
            dump::print(&tenant).await;
            resume_unwind(failure)
        }
    }
}
