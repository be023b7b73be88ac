//! The children of a Job in a cluster: the operator lists the Skills, creates the children, and says how they ended.

use crate::driver::{ChildDesk, Children};
use crate::inputs::Inputs;
use crate::report::{Client, SendError};
use bloomery_crds::children::{
    self, ChildRequest, ChildState, DEFAULT_CHILD_WAIT_SECONDS, MAX_CHILD_WAIT_SECONDS, VisibleSkill,
};
use bloomery_engine::event::CallId;
use bloomery_http::Backoff;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// The most pages of Skills that are read.
const MAX_PAGES: usize = 64;

/// The time limit for reading the Skills, with retries.
const LIST_TIMEOUT: Duration = Duration::from_mins(1);

/// The children of the Job of a pod.
#[derive(Debug)]
pub struct PodChildren {
    client: Client,
    desk: Arc<ChildDesk>,
    /// The name, the Skill and the run key of the Job.
    job: String,
    skill: String,
    run_key: String,
    waits: Waits,
}

/// The waits for the children of an attempt. Together they are bounded, because they do not count as work, and the pod has a deadline.
#[derive(Debug)]
struct Waits {
    /// The longest wait for a child.
    each: Duration,
    /// The sum of the waits so far, in milliseconds.
    waited_ms: AtomicU64,
}

impl Waits {
    fn new(each: Duration) -> Self {
        Self { each, waited_ms: AtomicU64::new(0) }
    }

    /// Waits for the end of a child. Returns `None` if it takes too long.
    async fn wait_for<T>(&self, end: impl Future<Output = T>) -> Option<T> {
        let waited = Duration::from_millis(self.waited_ms.load(Ordering::Relaxed));
        let left = Duration::from_secs(MAX_CHILD_WAIT_SECONDS.into()).saturating_sub(waited);
        let began = Instant::now();
        let ended = tokio::time::timeout(self.each.min(left), end).await.ok();
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.waited_ms.fetch_add(took, Ordering::Relaxed);
        ended
    }
}

impl PodChildren {
    /// Returns the children of a Job. `desk` receives their states.
    pub fn new(inputs: &Inputs, client: Client, desk: Arc<ChildDesk>) -> Self {
        let part = &inputs.part;
        let wait = part.child_wait_seconds.unwrap_or(DEFAULT_CHILD_WAIT_SECONDS);
        Self {
            client,
            desk,
            job: part.job.name.clone(),
            skill: inputs.revision.skill.clone(),
            run_key: part.run_key.clone(),
            waits: Waits::new(Duration::from_secs(wait.into())),
        }
    }

    async fn read_skills(&self) -> Result<Vec<VisibleSkill>, SendError> {
        let (mut skills, mut after) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let page = self.client.skills(after.as_deref()).await?;
            skills.extend(page.skills);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(skills)
    }
}

impl Children for PodChildren {
    fn name(&self, call: &CallId) -> String {
        children::name(&self.job, &self.skill, &self.run_key, &call.to_string())
    }

    fn skills(&self) -> LocalBoxFuture<'_, Result<Vec<VisibleSkill>, String>> {
        async {
            let began = Instant::now();
            let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(5));
            loop {
                match self.read_skills().await {
                    Ok(skills) => return Ok(skills),
                    Err(error) if error.is_permanent() || began.elapsed() >= LIST_TIMEOUT => {
                        return Err(format!("the Skills of the namespace cannot be listed: {error}"));
                    }
                    Err(error) => tracing::warn!("the Skills of the namespace cannot be listed yet: {error}"),
                }
                tokio::time::sleep(backoff.next_delay()).await;
            }
        }
        .boxed_local()
    }

    fn end<'a>(&'a self, request: &'a ChildRequest) -> LocalBoxFuture<'a, Option<ChildState>> {
        self.waits.wait_for(self.desk.end_of(&request.call)).boxed_local()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    #[tokio::test]
    async fn the_waits_of_an_attempt_are_bounded_together() {
        let waits = Waits::new(Duration::from_millis(5));
        assert_eq!(waits.wait_for(pending::<()>()).await, None);
        assert!(waits.waited_ms.load(Ordering::Relaxed) >= 5);
        let all_ms = u64::from(MAX_CHILD_WAIT_SECONDS) * 1000;
        let waits = Waits { each: Duration::from_hours(1), waited_ms: AtomicU64::new(all_ms - 5) };
        assert_eq!(waits.wait_for(pending::<()>()).await, None);
        assert_eq!(waits.wait_for(pending::<()>()).await, None);
        assert_eq!(waits.wait_for(ready(7)).await, Some(7), "an end that is known needs no wait");
    }
}
