//! Everything that a run needs from outside of its log.

use super::finished_call::FinishedCall;
use crate::shared_cache::SharedCache;
use crate::stop::{Stop, StopReason};
use crate::tools::CoreTools;
use bloomery_crds::children::{ChildRequest, ChildState, VisibleSkill};
use bloomery_crds::report::{ExternalWait, Projection};
use bloomery_engine::Event;
use bloomery_engine::event::{CallId, ToolProgress};
use bloomery_engine::people::{HumanRequest, Statement};
use bloomery_engine::step::{ModelRequest, ToolCall};
use bloomery_engine::tool::ListedTool;
use bloomery_http::Pauses;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// Everything that a run needs from outside of its log. A worker pod, local mode and the tests build one each.
#[derive(Debug)]
pub struct Environment<'a, M, T> {
    /// The directory of the Skill's memory.
    pub memory: &'a Path,
    /// Unique to this worker. It is part of the names of temporary files, so two workers never write the same one.
    pub writer: &'a str,
    /// The models.
    pub model: &'a M,
    /// The Skill's tools.
    pub tools: &'a T,
    /// The worker's own tools, and the cache of large results.
    pub core: &'a CoreTools,
    /// The short-lived cache that the Jobs of the Skill share.
    pub cache: &'a SharedCache,
    /// The people who decide and answer.
    pub people: &'a dyn People,
    /// The children of the Job.
    pub children: &'a dyn Children,
    /// The requests to stop.
    pub stop: &'a Stop,
    /// The time limits of waiting.
    pub patience: Patience,
}

/// The models of a Job. The implementation for real ones is `model::Clients`.
pub trait Model {
    /// Returns what the run has to wait for, if the Model's key is missing from its Secret. Each call reads the Secret again, so a
    /// key that is added later is found without a restart.
    fn missing_key(&self, model: &str) -> Option<ExternalWait>;

    /// Asks the Model that the request names. Returns [`Event::ModelAnswered`], or [`Event::ModelFailed`] once the client's
    /// retries are used up or requests have taken `within`. Delays between retries are made and reported by `waits`, and do
    /// not count as work. Dropping the future drops the request.
    fn complete(&self, request: &ModelRequest<'_>, within: Duration, waits: &Pauses<'_>)
    -> impl Future<Output = Event>;
}

/// The error of listing the tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListError {
    /// A sentence for people.
    pub message: String,
    /// Whether a retry is pointless.
    pub is_final: bool,
}

/// The Skill's tools. The implementation for real ones is `SkillTools`.
pub trait Tools {
    /// Lists the tools. The list may come from a cache. It is empty if the Skill has neither a server nor scripts.
    fn list(&self, within: Duration) -> impl Future<Output = Result<Vec<ListedTool>, ListError>>;

    /// Lists the tools from the server itself, to compare them with the fixed catalogue.
    fn list_uncached(&self, within: Duration) -> impl Future<Output = Result<Vec<ListedTool>, ListError>> {
        self.list(within)
    }

    /// Sends a call once. A tool that has changed since the catalogue was fixed is not called. `listener` receives what the
    /// server reports while the call runs.
    ///
    /// The outcome is [`Event::ToolCompleted`] if the call succeeded, [`Event::ToolFailed`] if the server reported a failure or the
    /// call was not sent, and otherwise [`Event::ToolIndeterminate`].
    fn call(
        &self,
        call: &ToolCall<'_>,
        within: Duration,
        listener: &dyn Fn(ToolProgress),
    ) -> impl Future<Output = FinishedCall>;
}

/// The people who decide and answer while a conversation runs.
pub trait People: fmt::Debug + Sync {
    /// Returns whether people can be asked while the worker runs. Otherwise a conversation that needs them parks, and a later attempt
    /// receives their answers.
    fn can_be_asked(&self) -> bool;

    /// Takes the statements that came since the last call. Never waits.
    fn take_statements(&self) -> Vec<Statement>;

    /// Asks all requests at once, and returns the first statement; the caller asks the remaining requests again. Returns
    /// `None` if the people have left, so no answer will come. Dropping the future withdraws the requests.
    fn ask<'a>(&'a self, requests: &'a [HumanRequest<'a>]) -> LocalBoxFuture<'a, Option<Statement>>;
}

/// No people. A held call or a question parks the conversation.
#[derive(Debug, Clone, Copy)]
pub struct Nobody;

impl People for Nobody {
    fn can_be_asked(&self) -> bool {
        false
    }

    fn take_statements(&self) -> Vec<Statement> {
        Vec::new()
    }

    fn ask<'a>(&'a self, _: &'a [HumanRequest<'a>]) -> LocalBoxFuture<'a, Option<Statement>> {
        futures::future::ready(None).boxed_local()
    }
}

/// The children of a Job, and the Skills that it may invoke.
pub trait Children: fmt::Debug + Sync {
    /// Returns the name of the child of a call.
    fn name(&self, call: &CallId) -> String;

    /// Reads the Skills that the Job may invoke. The error is a clause for the model.
    fn skills(&self) -> LocalBoxFuture<'_, Result<Vec<VisibleSkill>, String>>;

    /// Waits until a child has ended, and returns its state. The observer has its request. Returns `None` if the worker does not wait any
    /// longer. Dropping the future ends the wait only.
    fn end<'a>(&'a self, request: &'a ChildRequest) -> LocalBoxFuture<'a, Option<ChildState>>;

    /// Returns whether children run in this process. Then a request to stop reaches them too, and they get time to end.
    fn run_here(&self) -> bool {
        false
    }
}

/// No children. The Job is not offered the tool that invokes Skills.
#[derive(Debug, Clone, Copy)]
pub struct NoChildren;

impl Children for NoChildren {
    fn name(&self, call: &CallId) -> String {
        call.to_string()
    }

    fn skills(&self) -> LocalBoxFuture<'_, Result<Vec<VisibleSkill>, String>> {
        futures::future::ready(Err("there is no operator that runs other Skills".to_owned())).boxed_local()
    }

    fn end<'a>(&'a self, _: &'a ChildRequest) -> LocalBoxFuture<'a, Option<ChildState>> {
        futures::future::ready(None).boxed_local()
    }
}

/// Shows the state of a run while it continues: a [`crate::report::Reporter`], or a person's terminal.
pub trait Observer: fmt::Debug + Sync {
    /// Receives a new state of the conversation. Every event in it is durable.
    fn state_changed(&self, projection: Projection);

    /// Receives what the run waits for outside of the worker; `None` when the wait is over.
    fn waiting(&self, waiting: Option<ExternalWait>);

    /// Receives the requests for the children whose ends the log lacks. Their starts are durable.
    fn children(&self, _: Vec<ChildRequest>) {}
}

/// The time limits of a run.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// The time limit of waiting for an MCP server that does not answer, or a busy model.
    pub external_wait: Duration,
    /// The time limit of waiting for a missing key of a Secret.
    pub secret_wait: Duration,
    /// The time limit of one call of a tool. A Skill may set a shorter limit for a tool.
    pub tool: Duration,
    /// How long a running call with effect may continue after a request to end the pod.
    pub grace: Duration,
    /// How long a running call with effect may continue after the Job is cancelled or its Skill is deleted. It is shorter than `grace`,
    /// because a person waits.
    pub cancel_grace: Duration,
}

impl Patience {
    /// Returns the limits of a worker pod. `external_wait` and `secret_wait` limit the waits for what a person can repair.
    pub fn new(external_wait: Duration, secret_wait: Duration) -> Self {
        Self {
            external_wait,
            secret_wait,
            tool: bloomery_mcp::MAX_CALL_TIMEOUT,
            // The pod has 60 s to end. The other 10 s are for the log and the report.
            grace: Duration::from_secs(50),
            cancel_grace: Duration::from_secs(5),
        }
    }

    /// Returns how long a run waits for something outside of the worker.
    pub(super) fn limit_for(&self, waiting: &ExternalWait) -> Duration {
        match waiting {
            ExternalWait::SecretMissing { .. } => self.secret_wait,
            ExternalWait::McpUnavailable { .. } | ExternalWait::ModelUnavailable { .. } => self.external_wait,
        }
    }

    /// Returns how long a call with effect may continue after a request to stop.
    pub(super) fn grace_for(&self, reason: StopReason) -> Duration {
        match reason {
            StopReason::Drain | StopReason::Suspended | StopReason::Superseded => self.grace,
            StopReason::Cancelled | StopReason::SkillDeleted => self.cancel_grace,
        }
    }
}
