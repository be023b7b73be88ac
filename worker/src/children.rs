//! The children of a Job in a cluster: the operator lists the Skills, creates the children, and says how they ended.

use crate::driver::{ChildDesk, Children};
use crate::inputs::Inputs;
use crate::report::{Client, SendError};
use bloomery_crds::children::{self, ChildRequest, ChildState, DEFAULT_CHILD_WAIT_SECONDS, VisibleSkill};
use bloomery_engine::event::CallId;
use bloomery_http::Backoff;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use std::sync::Arc;
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
    /// The longest time to wait for a child.
    wait: Duration,
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
            wait: Duration::from_secs(wait.into()),
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
        async { tokio::time::timeout(self.wait, self.desk.end_of(&request.call)).await.ok() }.boxed_local()
    }
}
